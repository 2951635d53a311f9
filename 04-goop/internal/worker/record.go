package worker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// MaxOutput is how many bytes of the end of a command's output a record keeps.
	MaxOutput = 2048

	// maxRecord is how many bytes of a container's termination message the kubelet keeps. It keeps the end of a longer
	// message, which is not valid JSON.
	maxRecord = 4096

	// maxExitCode is the highest exit code of a Linux process.
	maxExitCode = 255
)

// Record is the result of a worker. It is in the directory of its pod, so that the work is not done again there, and in
// the termination message of its container, where the operator reads it.
type Record struct {
	// ExitCode of the last try: 128 plus the number of a signal, 126 if the program could not be executed, 127 if it was
	// not found.
	ExitCode int32 `json:"exitCode"`

	// Tries is how often the command was started.
	Tries int32 `json:"tries"`

	// Output is the end of the output of the last try: at most MaxOutput bytes of valid UTF-8.
	Output string `json:"output,omitempty"`
}

// ParseRecord reads the termination message of a worker. It also reads a message that was cut at its end, as the kubelet
// does in pods with more than three containers.
func ParseRecord(message string) (Record, error) {
	var fields struct {
		ExitCode *int32 `json:"exitCode"`
		Tries    *int32 `json:"tries"`
		Output   string `json:"output"`
	}
	text := repaired(message)
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return Record{}, fmt.Errorf("the message is not a worker's record: %w", err)
	}
	switch {
	case fields.ExitCode == nil || fields.Tries == nil:
		return Record{}, fmt.Errorf("the message is not a worker's record: it has no exitCode or no tries")
	case *fields.ExitCode < 0 || *fields.ExitCode > maxExitCode:
		return Record{}, fmt.Errorf("the message is not a worker's record: the exitCode %d is none", *fields.ExitCode)
	case *fields.Tries < 1:
		return Record{}, fmt.Errorf("the message is not a worker's record: it counts %d tries", *fields.Tries)
	}
	return Record{ExitCode: *fields.ExitCode, Tries: *fields.Tries, Output: clip([]byte(fields.Output))}, nil
}

// repaired completes a message that was cut within its output, which is the last field. It returns any other message
// unchanged.
func repaired(message string) string {
	if json.Valid([]byte(message)) || !strings.Contains(message, `"output":"`) {
		return message
	}
	// The cut may be within an escape sequence. The longest one in JSON consists of two parts of six characters.
	for cut := range min(12, len(message)) {
		whole := message[:len(message)-cut] + `"}`
		if json.Valid([]byte(whole)) {
			return whole
		}
	}
	return message
}

// encode returns the text of a record. It shortens the output at its front until the text fits into a termination
// message: a character may take six bytes in JSON.
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

// marshal is json.Marshal without the escaping of <, > and &, which browsers need and which takes space.
func marshal(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encoding the record: %w", err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// clip returns the end of an output as valid UTF-8: at most MaxOutput bytes.
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
