package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"example.com/workbook/shared/audit"
)

// creators is how many objects are created at once.
const creators = 8

// Herd is how those who take care of objects are compared: each gets the same number of new objects in each round.
type Herd struct {
	// Objects is what they are called in the report: "Lolcows".
	Objects   string
	N, Rounds int
	// AtOnce is how many objects each writer takes care of at once.
	AtOnce int
	// Create creates the object of a number in a namespace.
	Create func(ctx context.Context, namespace string, i int) error
	// Missing reports whether an object of a namespace has not been taken care of.
	Missing func(namespace string) bool
	// Counts are the requests of which the first response says that an object has been taken care of.
	Counts func(*audit.Event) bool
	// Writers are the operator, the writer that it is compared with, and others.
	Writers []Writer
}

// Writer takes care of objects.
type Writer struct {
	// Name is that of its column in the report, and User is what the API server knows it by.
	Name, User string
	// Start starts it, when the objects are there.
	Start func(namespace string) Running
}

// Running is a writer that was started: a process that works by itself, or this one, which has to be told to.
type Running struct {
	Pid        int
	Work, Stop func()
}

// OperatorWriter is the stage's operator. It is stopped until it is its turn.
func (b *Bench) OperatorWriter() Writer {
	b.Helper()
	b.Must(b.Operator().Stop(b.Ctx))
	return Writer{"operator", b.Operator().User(), func(string) Running {
		b.Must(b.Operator().Start(b.Ctx))
		return Running{b.Operator().Pid(), func() {}, func() { b.Must(b.Operator().Stop(b.Ctx)) }}
	}}
}

// Compare measures the writers in turn, and prints the round whose ratio of the first writer to the second is the median.
func (b *Bench) Compare(h Herd) {
	b.Helper()
	// What is done for the first time takes longer, for the API server too.
	for _, w := range h.Writers {
		b.measure(h, w, min(h.N, warmUp))
	}
	var rounds [][]Cost
	for range h.Rounds {
		var costs []Cost
		for _, w := range h.Writers {
			costs = append(costs, b.measure(h, w, h.N))
		}
		rounds = append(rounds, costs)
	}
	h.report(b, rounds)
}

// warmUp is the number of objects before the first round.
const warmUp = 50

// Fill creates n objects in a namespace of their own. Pods stay Pending.
func (b *Bench) Fill(h Herd, n int) (namespace string) {
	b.Helper()
	namespace = b.Namespace()
	b.InParallel(n, creators, func(ctx context.Context, i int) error { return h.Create(ctx, namespace, i) })
	return namespace
}

// WaitDone waits until all objects of a namespace have been taken care of. It asks rarely: that is work for the API server.
func (b *Bench) WaitDone(h Herd, namespace string) {
	b.Helper()
	b.Until("all "+h.Objects+" to have been taken care of", time.Second, func() bool { return !h.Missing(namespace) })
}

// measure has objects wait for a writer, starts that, and waits until each has been taken care of.
func (b *Bench) measure(h Herd, w Writer, n int) Cost {
	b.Helper()
	namespace := b.Fill(h, n)
	b.WaitQuiet()
	cost := b.Measure(w.User, namespace, func() Running { return w.Start(namespace) }, func() { b.WaitDone(h, namespace) })
	b.Remove(namespace)
	return cost
}

// rate is how many objects a second were taken care of: from the first request until the last of them had been, by the API
// server's log.
func (h Herd) rate(cost Cost) float64 {
	return float64(h.N) / Finished(cost.Requests, h.Counts).Sub(First(cost.Requests)).Seconds()
}

// ratio is the first writer's rate as a part of the second's; 1 if there is no second.
func (h Herd) ratio(costs []Cost) float64 {
	return h.rate(costs[0]) / h.rate(costs[min(1, len(costs)-1)])
}

func (h Herd) report(b *Bench, rounds [][]Cost) {
	costs := Median(rounds, h.ratio)
	var columns []string
	for i, w := range h.Writers {
		columns = append(columns, w.Name)
		b.ReportMetric(h.rate(costs[i]), strings.ReplaceAll(w.Name, " ", "-")+"/s")
	}
	b.ReportMetric(0, "ns/op")
	if len(columns) > 1 {
		b.ReportMetric(h.ratio(costs), "ratio")
		var ratios []float64
		for _, one := range rounds {
			ratios = append(ratios, h.ratio(one))
		}
		slices.Sort(ratios)
		fmt.Fprintf(os.Stdout, "\n%s to %s in %d rounds: %.2f\n", columns[0], columns[1], len(rounds), ratios)
	}
	rows := []Row{
		Figures(h.Objects+" a second", "%.1f", costs, h.rate),
		Figures("CPU of the writer for each, ms", "%.1f", costs, func(cost Cost) float64 { return Milliseconds(cost.WriterCPU, h.N) }),
		Figures("CPU of the API server for each, ms", "%.1f", costs, func(cost Cost) float64 { return Milliseconds(cost.ServerCPU, h.N) }),
		memory(costs),
		Figures("requests for each", "%.2f", costs, func(cost Cost) float64 { return float64(len(cost.Requests)) / float64(h.N) }),
	}
	if len(columns) > 1 {
		rows = slices.Insert(rows, 1, Figures("ratio to the "+columns[1], "%.2f", costs, func(cost Cost) float64 { return h.rate(cost) / h.rate(costs[1]) }))
	}
	Table(os.Stdout, fmt.Sprintf("%d %s, %d at once", h.N, h.Objects, h.AtOnce), columns, append(rows, Requests(costs, h.N)...))
}

// memory is the row of the peaks, without that of a writer that is this process.
func memory(costs []Cost) Row {
	row := Figures("peak memory of the writer, MB", "%.1f", costs, func(cost Cost) float64 { return Megabytes(cost.Peak) })
	for i := range costs {
		if costs[i].Peak == 0 {
			row.Figures[i] = "-"
		}
	}
	return row
}
