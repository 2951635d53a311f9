package plugin

import (
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/workbook/04-goop/internal/worker"
)

// If its connection to the kubelet breaks off, an API server ends the stream of a log as if the log were complete.
func TestAStreamThatEndsShortBeforeItsWorker(t *testing.T) {
	for name, inTheStream := range map[string]bool{"the worker ends before the stream does": true, "and after it": false} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), newFake(t)
			opened := make(chan string, 10)
			f.operator(func(goop string) {
				pod := f.worker(goop, "n1", 0, func(w http.ResponseWriter, r *http.Request) {
					opened <- r.URL.Query().Get("follow")
					if len(opened) > 1 {
						_, _ = io.WriteString(w, "one\ntwo\nthree\n")
						return
					}
					_, _ = io.WriteString(w, "one\ntw")
					w.(http.Flusher).Flush()
					if inTheStream {
						f.finish(goop+"-0-n1", worker.Record{Tries: 1})
					}
				})
				eventually(t, "the log is read", func() bool { return len(opened) > 0 })
				if !inTheStream {
					f.finish(pod, worker.Record{Tries: 1})
				}
				f.end(goop, 1)
			})
			r := f.run("run", "--", "work")
			g.Expect(r).To(Equal(ran{0, "n1: one\nn1: two\nn1: three\n", ""}))
		})
	}
}

// The log of an ended worker may be cut as well. Its record has the end of the output.
func TestAWholeLogThatIsCut(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	opened := 0
	f.operator(func(goop string) {
		f.finish(f.worker(goop, "n1", 0, func(w http.ResponseWriter, _ *http.Request) {
			if opened++; opened == 1 {
				_, _ = io.WriteString(w, "one\n")
				return
			}
			_, _ = io.WriteString(w, "one\ntwo\n")
		}), worker.Record{Tries: 1, Output: "one\ntwo\n"})
		f.end(goop, 1)
	})
	r := f.run("run", "--", "work")
	g.Expect(r).To(Equal(ran{0, "n1: one\nn1: two\n", ""}))
}

// stdout and stderr of a command may be interleaved differently in its log and in its record.
func TestALogThatDiffersFromItsRecord(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.finish(f.worker(goop, "n1", 0, text("out\nerr\n")), worker.Record{Tries: 1, Output: "err\nout\n"})
		f.end(goop, 1)
	})
	r := f.run("run", "--", "work")
	g.Expect(r).To(Equal(ran{0, "n1: out\nn1: err\n", ""}))
	g.Expect(f.count("get logs")).To(Equal(2))
}

// The kubelet has rotated the older part of a log away. Everything in it was read before.
func TestALogWhoseBeginningWasRotatedAfterItWasRead(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	opened := 0
	f.operator(func(goop string) {
		f.worker(goop, "n1", 0, func(w http.ResponseWriter, r *http.Request) {
			switch opened++; opened {
			case 1:
				_, _ = io.WriteString(w, "one\ntwo\nthr")
			case 2: // it breaks off within what was read before
				linesFrom(1, "two\n")(w, r)
			default:
				linesFrom(1, "two\nthree\nfour\n")(w, r)
				f.finish(goop+"-0-n1", worker.Record{Tries: 1})
				f.end(goop, 1)
			}
		})
	})
	r := f.run("run", "--", "work")
	g.Expect(r).To(Equal(ran{0, "n1: one\nn1: two\nn1: thr\nn1: three\nn1: four\n", ""}))
}

// A message of the kubelet in place of a log, with status 200, is not output of the worker.
func TestMessagesOfTheKubeletInALog(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	const gone, noFile = "unable to retrieve container logs for containerd://abc", `failed to try resolving symlinks in path "/var/log/pods/x": no such file`
	opened := 0
	f.operator(func(goop string) {
		f.finish(f.worker(goop, "n1", 0, func(w http.ResponseWriter, _ *http.Request) {
			kubeletSays(w, gone)
		}), worker.Record{Tries: 1, Output: "from the record\n"})
		f.ends(goop, "n2", 0, gone+"\n", 0) // the same text as real output
		f.finish(f.worker(goop, "n3", 0, func(w http.ResponseWriter, _ *http.Request) {
			if opened++; opened == 1 {
				kubeletSays(w, noFile+"\n")
				return
			}
			_, _ = io.WriteString(w, "at last\n")
		}), worker.Record{Tries: 1, Output: "at last\n"})
		f.finish(f.worker(goop, "n4", 0, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "begun\n")
			kubeletSays(w, "failed to create fsnotify watcher:\ntoo many open files")
		}), worker.Record{Tries: 1, Output: "begun\nended\n"})
		f.end(goop, 4)
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0))
	g.Expect(strings.Split(r.out, "\n")).To(ConsistOf("n1: from the record", "n2: "+gone, "n3: at last", "n4: begun", "n4: ended", ""))
	g.Expect(r.err).To(And(
		ContainSubstring("goop: n1: its output is not available: the node says: "+gone+"; shown is the end of it, at most 2 KiB, from the record\n"),
		ContainSubstring("goop: n4: the end of its output is shown from the record: the node says: failed to create fsnotify watcher:\n  too many open files\n")))
	g.Expect(strings.Count(r.err, "goop: ")).To(Equal(2), r.err)
}

// The log breaks off within the part of the output that is in the record, and its rest is deleted with the pod. The rest
// is shown from the record, if it is certain where it continues.
func TestALogThatIsCutWithinItsRecord(t *testing.T) {
	long := strings.Repeat("a line of the log of some length\n", 100)
	for name, test := range map[string]struct{ read, output, shown string }{
		"in a short output":   {"one\ntw", "one\ntwo\nthree\n", "one\ntwo\nthree\n"},
		"in a long output":    {long + "one\ntw", (long + "one\ntwo\nthree\n")[len(long)+14-worker.MaxOutput:], long + "one\ntwo\nthree\n"},
		"before the record":   {"one\n", (long + "three\n")[len(long)+6-worker.MaxOutput:], "one\n"},
		"in another order":    {"err\n", "out\nerr\n", "err\n"},
		"after all of it":     {"one\n", "one\n", "one\n"},
		"a record that began": {long + "a", "a" + strings.Repeat("b", worker.MaxOutput-1), long + "a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), newFake(t)
			f.operator(func(goop string) {
				f.worker(goop, "n1", 0, func(w http.ResponseWriter, _ *http.Request) {
					_, _ = io.WriteString(w, test.read)
					w.(http.Flusher).Flush()
					f.finish(goop+"-0-n1", worker.Record{Tries: 1, Output: test.output})
					f.removePod(goop + "-0-n1")
					f.end(goop, 1)
				})
			})
			r := f.run("run", "--", "work")
			g.Expect(strings.ReplaceAll(r.out, "n1: ", "")).To(Equal(test.shown), r.err)
			g.Expect(r.code).To(Equal(0))
		})
	}
}
