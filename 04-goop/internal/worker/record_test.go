package worker

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRecordFitsTheMessage(t *testing.T) {
	for name, output := range map[string]string{
		"nothing":                  "",
		"a line":                   "hello from a\n",
		"no newline":               "hello",
		"as long as can be":        strings.Repeat("x", MaxOutput),
		"too long":                 "gone" + strings.Repeat("x", MaxOutput),
		"NUL, six characters each": strings.Repeat("\x00", 5000),
		"quotes, two each":         strings.Repeat(`"`, 5000),
		"markup":                   strings.Repeat("<&>", 5000),
		"characters of four bytes": strings.Repeat("🐄", 1000),
		"no UTF-8":                 strings.Repeat("\xff", 5000),
		"line separators":          strings.Repeat("\u2028", 2000),
		"a bit of each":            strings.Repeat("\x00\xff🐄\"x\u2028", 600),
	} {
		t.Run(name, func(t *testing.T) {
			text, err := encode(Record{ExitCode: maxExitCode, Tries: 1001, Output: output})
			if err != nil {
				t.Fatal(err)
			}
			if len(text) > maxRecord {
				t.Errorf("the record has %d bytes, more than %d", len(text), maxRecord)
			}
			got, err := ParseRecord(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if got.ExitCode != maxExitCode || got.Tries != 1001 {
				t.Errorf("got %+v", got)
			}
			valid := strings.ToValidUTF8(output, string(utf8.RuneError))
			if len(valid) > maxRecord && len(text) < MaxOutput/2 {
				t.Errorf("the record has %d bytes only", len(text))
			}
			if len(got.Output) > MaxOutput || !strings.HasSuffix(valid, got.Output) {
				t.Errorf("got %d bytes of output that are not its end", len(got.Output))
			}
		})
	}
}

func TestRecordOfAnyOutput(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		output := make([]byte, random.IntN(3*MaxOutput))
		limit := 1 + random.IntN(256)
		for i := range output {
			output[i] = byte(random.IntN(limit))
		}
		text, err := encode(Record{ExitCode: 1, Tries: 1, Output: string(output)})
		if err != nil || len(text) > maxRecord || !utf8.Valid(text) {
			t.Fatalf("%q became %d bytes, error %v", output, len(text), err)
		}
		record, err := ParseRecord(string(text))
		if err != nil || len(record.Output) > MaxOutput || !utf8.ValidString(record.Output) {
			t.Fatalf("%s was read with %d bytes of output, error %v", text, len(record.Output), err)
		}
		again, err := encode(record)
		if err != nil || !bytes.Equal(again, text) {
			t.Fatalf("%s became %s, error %v", text, again, err)
		}
	}
}

func TestParseRecordRejectsOtherMessages(t *testing.T) {
	for message, want := range map[string]string{
		"":                                     "unexpected end of JSON",
		"Killed":                               "invalid character",
		"[]":                                   "cannot unmarshal array",
		"{}":                                   "it has no exitCode or no tries",
		`{"exitCode":0}`:                       "it has no exitCode or no tries",
		`{"exitCode":-1,"tries":1}`:            "the exitCode -1 is none",
		`{"exitCode":256,"tries":1}`:           "the exitCode 256 is none",
		`{"exitCode":0,"tries":0}`:             "it counts 0 tries",
		`{"exitCode":0,"tries":1,"output":1}`:  "cannot unmarshal number",
		`{"exitCode":99999999999999,"tries":1`: "unexpected end of JSON",
	} {
		if _, err := ParseRecord(message); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", message, err, want)
		}
	}
}

func TestParseRecordOfACutMessage(t *testing.T) {
	output := "begin \" \\ \x00 🐄 end\n"
	whole, err := json.Marshal(Record{ExitCode: 3, Tries: 2, Output: output})
	if err != nil {
		t.Fatal(err)
	}
	begins := strings.Index(string(whole), "begin")
	for cut := begins; cut < len(whole); cut++ {
		got, err := ParseRecord(string(whole[:cut]))
		if err != nil {
			t.Fatalf("%s: %v", whole[:cut], err)
		}
		// A character of which a part is missing may be read as U+FFFD.
		read := strings.TrimRight(got.Output, string(utf8.RuneError))
		if got.ExitCode != 3 || got.Tries != 2 || !strings.HasPrefix(output, read) || len(read) < cut-begins-15 {
			t.Errorf("%s was read as %+v", whole[:cut], got)
		}
	}
}

func TestParseRecordBoundsTheOutput(t *testing.T) {
	record, err := ParseRecord(`{"exitCode":0,"tries":1,"output":"` + strings.Repeat("x", 4*MaxOutput) + `"}`)
	if err != nil || len(record.Output) != MaxOutput {
		t.Errorf("got %d bytes of output, error %v", len(record.Output), err)
	}
}
