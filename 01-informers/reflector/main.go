// Reflector has client-go keep a store in line with the server: it lists, watches, resumes the watch after an outage,
// and lists again when the server no longer has the changes since its last resourceVersion.
//
// Read beside it, at the pinned version, k8s.io/client-go@v0.37.2 tools/cache/reflector.go:
//   - ListAndWatchWithContext: first watchList, the streaming list; list where that fails; then watch.
//   - watch and isWatchErrorRetriable: after which errors it resumes the watch, and after which it lists again.
//   - NewReflectorWithOptions and the constants at the top: the back-off. RunWithContext replaces Run(stopCh).
package main

import (
	"context"

	"example.com/workbook/01-informers/internal/lesson"
)

func main() { lesson.Main(program) }

var program = lesson.Lesson{
	Name: "reflector",
	Shows: `Runs a reflector on pods and prints its requests to the server and its calls of the store: at the start, when pods
change, while the server is down, after that, and after a 410. It takes about 5 seconds.`,
	Run: run,
}

func run(ctx context.Context, env *lesson.Env) {
	env.CreatePods(ctx, "a", "b", "c")
	bed := newTestbed(env)
	stop := bed.start(ctx)
	defer stop()
	bed.list(ctx)
	bed.watch(ctx)
	bed.resume(ctx)
	bed.relist(ctx)
	stop()
	withoutStreaming(ctx, env)
}
