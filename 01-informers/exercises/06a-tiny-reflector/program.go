package reflector

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// variable is set in a process that calls the reader's function while the API server is away, and prints its pauses.
const variable = "EXERCISE_PAUSES"

// pausesOfAProgram are the first pauses of a program that has just been started, one a line.
func pausesOfAProgram(b *check.B) string {
	b.Event("a program starts, and the API server is away")
	program := b.Again(variable + "=1")
	program.Stderr = os.Stderr
	output, err := program.Output()
	if err != nil {
		b.Fatalf("a program that called Reflect while the API server was away ended with: %v", err)
	}
	return string(output)
}

// printPauses is the main function of that program.
func printPauses(entry Entry) {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://away.example.com", QPS: -1, Transport: away{}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	left := failures
	entry(context.Background(), client, "default", cache.NewStore(cache.MetaNamespaceKeyFunc), func(_ context.Context, pause time.Duration) {
		fmt.Fprintln(os.Stdout, pause)
		if left--; left == 0 {
			os.Exit(0)
		}
	})
	os.Exit(0)
}

// away is an API server that is away.
type away struct{}

func (away) RoundTrip(*http.Request) (*http.Response, error) { return nil, kube.ErrAway }
