package lesson

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Patience bounds everything that a lesson waits for. Only a busy computer takes as long.
const Patience = 30 * time.Second

// Until waits for a condition, at most for Patience. The error says what it waited for.
func Until(ctx context.Context, what string, condition func() bool) {
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, Patience, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		Check(fmt.Errorf("waiting until %s: %w", what, err))
	}
}
