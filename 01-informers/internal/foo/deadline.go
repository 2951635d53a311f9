package foo

import (
	"context"
	"time"
)

// ReportTime is how long before its deadline a reconciliation stops acting, so that it can report why.
const ReportTime = 15 * time.Second

// UntilReport returns a context for all that a reconciliation does before it reports. An admission webhook may block a
// request for 30 s: without this limit, two such requests would use up the whole reconciliation, and no status would say why.
func UntilReport(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, limited := ctx.Deadline()
	if !limited {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-ReportTime))
}
