package lesson

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Patience bounds everything that a lesson waits for. Only a busy computer takes as long.
const Patience = 30 * time.Second

// Steps runs the steps of a lesson in order. The first error ends it.
func Steps(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Until waits for a condition, at most for Patience. The error says what it waited for.
func Until(ctx context.Context, what string, condition func() bool) error {
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, Patience, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s: %w", what, err)
	}
	return nil
}
