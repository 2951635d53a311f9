package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

func TestAnOldServerIsNamed(t *testing.T) {
	for served, old := range map[string]bool{"v1.31.9": true, "v1.20.2-eks": true, "v1.32.0": false, "v1.37.0+k3s1": false, "unknown": false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"gitVersion":%q}`, served)
		}))
		if said := oldServer(&rest.Config{Host: server.URL}); (said != "") != old {
			t.Errorf("%s: got %q", served, said)
		}
		server.Close()
	}
}
