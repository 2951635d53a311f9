package nonce

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/kubernetes"

	"example.com/workbook/shared/exercise/kube"
)

// variable is the namespace of a process that reconciles the ConfigMap web, and is killed while it launches a machine.
const variable = "EXERCISE_LAUNCHES_IN"

// launchedByAnother lets another process launch the machine of web. Nothing of that process is left but what it has written.
func (s *scene) launchedByAnother() {
	s.b.Event("another process reconciles web, and is killed during the launch")
	program := s.b.Again(variable + "=" + s.namespace)
	program.Stderr = os.Stderr
	output, err := program.Output()
	if err != nil {
		s.b.Fatalf("a process that reconciled web has launched nothing: %v", err)
	}
	// The reader's code may print, too.
	s.launch(string(output[bytes.LastIndexByte(output, '\n')+1:]))
}

// launchAndDie is the main function of that process.
func launchAndDie(entry Entry) {
	config, err := kube.Access()
	if err == nil {
		client := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(os.Getenv(variable))
		for range most {
			err = entry(context.Background(), client, killed{}, "web")
		}
	}
	fmt.Fprintln(os.Stderr, "Reconcile has launched nothing:", err)
	os.Exit(2)
}

// killed is a provider whose client is killed by the first call.
type killed struct{}

// Launch prints the nonce, and ends this process.
func (killed) Launch(_ context.Context, nonce string) (string, error) {
	fmt.Fprintf(os.Stdout, "\n%s", nonce)
	os.Exit(0)
	return "", nil
}
