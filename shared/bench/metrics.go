package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

var (
	serverCPU = regexp.MustCompile(`(?m)^process_cpu_seconds_total (\S+)$`)
	// writes are the requests that change something, but for the leases and the nodes that are renewed all the time.
	writes  = regexp.MustCompile(`(?m)^apiserver_request_total\{.*verb="(?:APPLY|DELETE|DELETECOLLECTION|PATCH|POST|PUT)".*\} (\S+)$`)
	renewed = regexp.MustCompile(`(?m)^apiserver_request_total\{.*resource="(?:leases|nodes|tokenreviews|subjectaccessreviews)".*verb="(?:APPLY|PATCH|POST|PUT)".*\} (\S+)$`)
	// reconciled are the keys that workers are done with. Every work queue of client-go counts them.
	reconciled = regexp.MustCompile(`(?m)^workqueue_work_duration_seconds_count\{.*\} (\S+)$`)
)

// sum adds up all values that an expression finds.
func sum(found *regexp.Regexp, text string) (total float64) {
	for _, one := range found.FindAllStringSubmatch(text, -1) {
		value, err := strconv.ParseFloat(one[1], 64)
		if err == nil {
			total += value
		}
	}
	return total
}

// CPUOfServer is the CPU time that an API server has used so far.
func CPUOfServer(ctx context.Context, config *rest.Config) (time.Duration, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, fmt.Errorf("making a client: %w", err)
	}
	text, err := clients.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	return time.Duration(sum(serverCPU, string(text)) * float64(time.Second)), nil
}

// ServerCPU is the CPU time that the API server has used so far.
func (b *Bench) ServerCPU() time.Duration {
	b.Helper()
	used, err := CPUOfServer(b.Ctx, b.Config)
	b.Must(err)
	return used
}

// WaitQuiet waits until all controllers are done with what was written before: two seconds without a write.
func (b *Bench) WaitQuiet() {
	b.Helper()
	count := func() float64 {
		text, err := b.clients.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(b.Ctx)
		b.Must(err)
		return sum(writes, string(text)) - sum(renewed, string(text))
	}
	before, since := count(), time.Now()
	b.Until("the cluster to be quiet", 500*time.Millisecond, func() bool {
		if now := count(); now != before {
			before, since = now, time.Now()
		}
		return time.Since(since) >= 2*time.Second
	})
}

// Reconciliations is how many there have been since the operator was started, of all its controllers.
func (b *Bench) Reconciliations() (total float64) {
	b.Helper()
	err := wait.PollUntilContextCancel(b.Ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		status, body, err := b.Env.Operator.Metrics(ctx, b.token)
		total = sum(reconciled, body)
		// Until the authorizer knows of the binding, and until the port is open, there is no response.
		return err == nil && status == http.StatusOK, nil
	})
	if err != nil {
		b.Fatal(errors.Join(errors.New("reading the operator's metrics"), err))
	}
	return total
}
