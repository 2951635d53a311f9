package worker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// MaxOutput is how many bytes of a command's output a record keeps: its end.
	MaxOutput = 2048

	// maxRecord is how many bytes of a container's termination message the kubelet keeps. Of a longer one it
	// would keep the end, which is no JSON.
	maxRecord = 4096

	// maxExitCode is the highest exit code that a process of Linux can have.
	maxExitCode = 255
)

// Record is what a worker leaves when its work is over: in its pod's folder, so that the work is not done again
// there, and in the termination message of its container, where the operator reads it.
type Record struct {
	// ExitCode of the last try: 128 and the number of a signal, 126 if the program could not be executed, 127 if
	// there was none.
	ExitCode int32 `json:"exitCode"`

	// Tries is how often the command was started.
	Tries int32 `json:"tries"`

	// Output is the end of what the last try wrote: at most MaxOutput bytes, of valid UTF-8.
	Output string `json:"output,omitempty"`
}

// ParseRecord reads the termination message of a worker. A message that was cut at its end, as the kubelet does in
// pods with more than three containers, is read as far as it goes. The error says what is wrong with the message.
func ParseRecord(message string) (Record, error) {
	var fields struct {
		ExitCode *int32 `json:"exitCode"`
		Tries    *int32 `json:"tries"`
		Output   string `json:"output"`
	}
	text := mended(message)
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return Record{}, fmt.Errorf("the message is no worker's record: %w", err)
	}
	switch {
	case fields.ExitCode == nil || fields.Tries == nil:
		return Record{}, fmt.Errorf("the message is no worker's record: it has no exitCode or no tries")
	case *fields.ExitCode < 0 || *fields.ExitCode > maxExitCode:
		return Record{}, fmt.Errorf("the message is no worker's record: the exitCode %d is none", *fields.ExitCode)
	case *fields.Tries < 1:
		return Record{}, fmt.Errorf("the message is no worker's record: it counts %d tries", *fields.Tries)
	}
	return Record{ExitCode: *fields.ExitCode, Tries: *fields.Tries, Output: clip([]byte(fields.Output))}, nil
}

// mended closes a message that was cut within its output, which comes last. Any other is returned as it is.
func mended(message string) string {
	if json.Valid([]byte(message)) || !strings.Contains(message, `"output":"`) {
		return message
	}
	// The cut may be within an escape: two of six characters each are the longest that JSON has.
	for cut := range min(12, len(message)) {
		whole := message[:len(message)-cut] + `"}`
		if json.Valid([]byte(whole)) {
			return whole
		}
	}
	return message
}

// encode makes the text of a record. The output is clipped at its front until all of it is what a termination
// message can hold: a character may take six in JSON.
func encode(record Record) ([]byte, error) {
	record.Output = clip([]byte(record.Output))
	text, err := marshal(record)
	if err != nil {
		return nil, err
	}
	for excess := len(text) - maxRecord; excess > 0; {
		first, size := utf8.DecodeRuneInString(record.Output)
		quoted, err := marshal(string(first))
		if err != nil {
			return nil, err
		}
		record.Output = record.Output[size:]
		excess -= len(quoted) - len(`""`)
	}
	return marshal(record)
}

// marshal is json.Marshal, but it leaves <, > and & as they are: this is not for browsers, and has little room.
func marshal(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encoding the record: %w", err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// clip makes valid UTF-8 of the end of an output: at most MaxOutput bytes.
func clip(output []byte) string {
	text := strings.ToValidUTF8(string(output), string(utf8.RuneError))
	if len(text) <= MaxOutput {
		return text
	}
	text = text[len(text)-MaxOutput:]
	for !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}
