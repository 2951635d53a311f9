// Reflector has client-go keep a store in line with the server: it lists, watches, watches on after an
// outage, and lists again when the server has forgotten where it was.
//
// Read beside it, at the pinned version, k8s.io/client-go@v0.37.2 tools/cache/reflector.go:
//   - ListAndWatchWithContext: first watchList, the streamed list; list where that fails; then watch.
//   - watch and isWatchErrorRetriable: after which errors it watches on, and after which it lists again.
//   - NewReflectorWithOptions and the constants at the top: the back-off. What it replaces in one's own code,
//     Run(stopCh), is RunWithContext.
package main

import (
	"context"

	"example.com/workbook/01-informers/internal/lesson"
)

func main() { lesson.Main(program) }

var program = lesson.Lesson{
	Name: "reflector",
	Shows: `Runs a reflector on pods and prints what it asks of the server and does to its store: at first, when pods
change, while the server is away, when it is back, and after a 410. It takes about 5 seconds.`,
	Run: run,
}

func run(ctx context.Context, world *lesson.World) error {
	if err := world.CreatePods(ctx, "a", "b", "c"); err != nil {
		return err
	}
	mirror, err := newMirror(ctx, world)
	if err != nil {
		return err
	}
	defer mirror.door.shut()
	stop := mirror.start(ctx)
	defer stop()

	for _, step := range []func(context.Context) error{
		mirror.fill, mirror.follow, mirror.outage, mirror.forgotten,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	stop()
	return olderServer(ctx, world)
}
