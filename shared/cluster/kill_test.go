package cluster

import (
	"strings"
	"testing"
)

func TestKillContainerReachesKindOnly(t *testing.T) {
	for _, c := range []Cluster{&embedded{}, &external{}} {
		if err := KillContainer(t.Context(), c, "node", "id"); err == nil || !strings.Contains(err.Error(), "kind clusters only") {
			t.Errorf("%T: got error %v, want one that says where it works", c, err)
		}
	}
}
