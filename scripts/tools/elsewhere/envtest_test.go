package elsewhere

import (
	"os"
	"strings"
	"testing"
)

// USE_EXISTING_CLUSTER, exported for the tests of another operator, has envtest take the cluster of the reader's kubeconfig,
// where the tests would install CRDs and delete namespaces.
func TestNoTestTakesTheReadersCluster(t *testing.T) {
	_ = os.Getenv("REPOSITORY_SUM") // so that Go's cache of results sees a change of these files
	output, err := run(t, root, nil, "git", "grep", "--untracked", "-h", "-A1", `envtest\.Environment{`, "--", "*.go")
	if err != nil {
		t.Fatal(err, output)
	}
	for environment := range strings.SplitSeq(output, "--\n") {
		if !strings.Contains(environment, "UseExistingCluster: ") {
			t.Errorf("name UseExistingCluster first, with the value false:\n%s", environment)
		}
	}
}
