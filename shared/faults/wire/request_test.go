package wire

import (
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestRequest(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"GET /api/v1/namespaces":                                           "list namespaces",
		"GET /api/v1/namespaces/a":                                         "get namespaces",
		"PUT /api/v1/namespaces/a/finalize":                                "update namespaces/finalize",
		"GET /api/v1/namespaces/a/pods":                                    "list pods",
		"GET /api/v1/namespaces/a/pods?watch=true":                         "watch pods",
		"GET /api/v1/pods?watch=1":                                         "watch pods",
		"GET /api/v1/pods?watch=0&timeoutSeconds=3":                        "list pods",
		"GET /api/v1/namespaces/a/pods/b":                                  "get pods",
		"GET /api/v1/namespaces/a/pods/b/log":                              "get pods/log",
		"POST /apis/apps/v1/namespaces/a/deployments":                      "create deployments",
		"PATCH /apis/apps/v1/namespaces/a/deployments/b?force=true":        "patch deployments",
		"PATCH /apis/apps/v1/namespaces/a/deployments/b/status":            "patch deployments/status",
		"DELETE /apis/apps/v1/namespaces/a/deployments/b":                  "delete deployments",
		"DELETE /apis/apps/v1/namespaces/a/deployments":                    "deletecollection deployments",
		"GET /apis/samplecontroller.example.com/v1alpha1/foos?watch=true":  "watch foos",
		"GET /apis/samplecontroller.example.com/v1alpha1/foos?watch=false": "list foos",
		"GET /api/v1":  "get ",
		"GET /apis":    "get ",
		"GET /healthz": "get ",
	} {
		method, url, _ := strings.Cut(path, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, "https://api"+url, nil)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(parse(req).String()).To(Equal(want), path)
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	start := time.Unix(0, 0)
	log := Log{
		{At: start, Verb: "list", Resource: "configmaps"},
		{At: start.Add(time.Second), Verb: "watch", Resource: "configmaps"},
		{At: start.Add(2 * time.Second), Verb: "watch", Resource: "configmaps"},
		{At: start.Add(3 * time.Second), Verb: "watch", Resource: "pods"},
	}
	g.Expect(log.String()).To(Equal("4: 1 list configmaps, 2 watch configmaps, 1 watch pods"))
	g.Expect(log.Since(start.Add(time.Second)).Before(start.Add(3 * time.Second)).String()).To(Equal("2: 2 watch configmaps"))
	g.Expect(log.Of("watch", "").String()).To(Equal("3: 2 watch configmaps, 1 watch pods"))
	g.Expect(log.Of("", "pods").String()).To(Equal("1: 1 watch pods"))
	g.Expect(log.Of("get", "pods").String()).To(Equal("0"))
	g.Expect(log).To(HaveLen(4), "the log itself is not changed")
}
