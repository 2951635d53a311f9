package cluster

import (
	"errors"
	"testing"
)

func TestAgain(t *testing.T) {
	t.Parallel()
	taken := errors.New("address already in use")
	for name, test := range map[string]struct {
		fails, starts int
		want          error
	}{
		"at once":                {0, 1, nil},
		"with the second port":   {1, 2, nil},
		"with the third":         {2, 3, nil},
		"never: it is no port's": {9, 3, taken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			starts := 0
			err := again(func() error {
				starts++
				if starts <= test.fails {
					return taken
				}
				return nil
			})
			if !errors.Is(err, test.want) || starts != test.starts {
				t.Errorf("%d starts and %v, not %d and %v", starts, err, test.starts, test.want)
			}
		})
	}
}
