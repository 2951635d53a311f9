package plugin

import (
	"bytes"
	"encoding/json"
	"sync"
)

// jsonSink prints one line of JSON for each worker when it has ended, and a last one for the whole Goop. A program can
// process the lines as they arrive, and memory holds one worker for each log that is being read.
type jsonSink struct {
	console *console

	// lock allows only one object to be encoded at a time: its text is up to six times as long as the output.
	lock sync.Mutex
}

// workerObject is the result of one worker. --help describes it for -o json.
type workerObject struct {
	Type     string `json:"type"` // worker
	Node     string `json:"node"`
	Round    int32  `json:"round"`
	ExitCode *int32 `json:"exitCode"` // null: the exit code is not known
	Tries    int32  `json:"tries,omitempty"`
	Output   string `json:"output"`
	// OutputFrom is log, or record if the log could not be read. Then output has at most the last 2 KiB.
	OutputFrom string `json:"outputFrom"`
	// OutputError is the reason why output is incomplete.
	OutputError string `json:"outputError,omitempty"`
	// OutputClipped is how many bytes of output are left out after the first 1 MiB.
	OutputClipped int64 `json:"outputClipped,omitempty"`
}

// summaryObject is the last line.
type summaryObject struct {
	Type       string        `json:"type"` // summary
	Goop       string        `json:"goop"`
	Namespace  string        `json:"namespace"`
	Reason     string        `json:"reason"`
	ExitCode   int           `json:"exitCode"`
	Desired    int32         `json:"desired"`
	Succeeded  int32         `json:"succeeded"`
	Failed     int32         `json:"failed"`
	Unfinished []placeObject `json:"unfinished,omitempty"`
}

type placeObject struct {
	Node  string `json:"node"`
	Round int32  `json:"round"`
}

func (s *jsonSink) open(place) output { return &jsonOutput{capture: newCapture(), sink: s} }

type jsonOutput struct {
	*capture
	sink *jsonSink
}

func (o *jsonOutput) end(r result) error {
	o.settle(r)
	object := workerObject{
		Type: "worker", Node: r.node, Round: r.round,
		Output: string(o.kept), OutputFrom: "log", OutputError: r.lost, OutputClipped: o.clipped(),
	}
	if r.lost != "" && !r.partial {
		object.OutputFrom = "record"
	}
	if r.record != nil {
		object.ExitCode, object.Tries = &r.record.ExitCode, r.record.Tries
	}
	o.capture = nil
	return o.sink.print(object)
}

func (s *jsonSink) finish(outcome summary) error {
	object := summaryObject{
		Type: "summary", Goop: outcome.goop.Name, Namespace: outcome.goop.Namespace,
		Reason: outcome.reason, ExitCode: outcome.exitCode,
		Desired: outcome.goop.Status.Desired, Succeeded: outcome.goop.Status.Succeeded, Failed: outcome.goop.Status.Failed,
	}
	for _, at := range outcome.unfinished {
		object.Unfinished = append(object.Unfinished, placeObject{Node: at.node, Round: at.round})
	}
	return s.print(object)
}

// print writes one object as a line. Bytes that are not UTF-8 become U+FFFD.
func (s *jsonSink) print(object any) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return err
	}
	_, err := s.console.Write(s.console.shown(line.Bytes()))
	return err
}
