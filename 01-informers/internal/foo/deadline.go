package foo

import (
	"context"
	"time"
)

// ReportTime is how long before the end of its time a reconciliation stops acting, so that it can report why.
const ReportTime = 15 * time.Second

// UntilReport returns a context for all that a reconciliation does before it reports. An admission webhook may hold up a
// request for 30 s: two of them used up all the time that there is, and no status said why.
func UntilReport(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, limited := ctx.Deadline()
	if !limited {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-ReportTime))
}
