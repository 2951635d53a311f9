package record

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// The first fields of lines.
const (
	startLetter  = "s"
	beginLetter  = "b"
	finishLetter = "f"
	cleanLetter  = "c"
)

// notStarted is used in place of the time in a line of startLetter.
const notStarted = "-"

// maxFinished is the maximum number of workers in a record. It is larger than the maximum jobCount, and small enough that
// a status can count them together with those that have not finished yet.
const maxFinished = 500_000

// shownLine is how many bytes of a line an error message contains.
const shownLine = 80

// LineError is an invalid line: a user has edited the record.
type LineError struct {
	// Shard is the number of the shard, from 0, and Line the number of the line in it, from 1.
	Shard, Line int
	// Text is the line, and Reason why it is invalid.
	Text, Reason string
}

func (e *LineError) Error() string {
	text := e.Text
	if len(text) > shownLine {
		text = strings.ToValidUTF8(text[:shownLine], "") + "…"
	}
	return fmt.Sprintf("shard %d, line %d: %q: %s", e.Shard, e.Line, text, e.Reason)
}

// Read reads the texts of so many shards by number. The record has what is valid in them: neither invalid lines nor what a
// missing shard recorded. Nothing is added to a last shard that is missing or whose last line is incomplete. The error is the
// first *LineError, or says which shard is missing. Then the caller must leave the shards unchanged until a user has repaired
// them, and start no work: with a record of only the valid lines, work would run again.
func Read(shards map[int]string, count int) (*Record, error) {
	lines := 0
	for text := range maps.Values(shards) {
		lines += strings.Count(text, "\n")
	}
	last, found := shards[count-1]
	r := &Record{
		Begun: map[string]bool{}, Cleaned: map[string]int32{}, Finished: make(map[plan.Place]bool, lines),
		changed: count, closed: !found || (last != "" && !strings.HasSuffix(last, "\n")),
	}
	var first error
	for number := range count {
		text, found := shards[number]
		err := r.readShard(number, text)
		if !found {
			err = fmt.Errorf("shard %d has no %q, or is missing: what it recorded is not known", number, Key)
		}
		first = cmp.Or(first, err)
		r.shards = append(r.shards, []byte(text))
	}
	return r, first
}

// NamesNodes reports whether the text of a shard contains the name of a node, or cannot be read. The only other possible
// content is the start time.
func NamesNodes(text string) bool {
	r, err := Read(map[int]string{0: text}, 1)
	return err != nil || len(r.Begun) > 0
}

// readShard reads the valid lines of a shard, and returns an error for the first invalid one.
func (r *Record) readShard(number int, text string) (first error) {
	count := 0
	for line := range strings.Lines(text) {
		count++
		line, whole := strings.CutSuffix(line, "\n")
		err := errNoEnd
		if whole {
			err = r.readLine(line)
		}
		if err != nil && first == nil {
			first = &LineError{Shard: number, Line: count, Text: line, Reason: err.Error()}
		}
	}
	return first
}

// The reasons why a line is invalid.
var (
	errNoEnd    = errors.New("the line has no end: its rest may be lost")
	errLetter   = errors.New("a line begins with s, b, c or f and a space")
	errTime     = errors.New("after s comes a time as in 2026-01-02T15:04:05Z, or -")
	errNode     = errors.New("the second field is to be the name of a node")
	errFields   = errors.New("after f come a node, a round, an exit code, tries and perhaps an output")
	errRound    = fmt.Errorf("the round is to be a number from 0 to %d", v1alpha1.MaxRounds-1)
	errExitCode = errors.New("the exit code is to be a number")
	errTries    = errors.New("the tries are to be a number")
	errClean    = errors.New("after c come a node, an exit code and tries")
	errFinished = errors.New("there are more workers than a Goop can have")
	errOutput   = errors.New("the output is to be quoted as in Go")
)

func (r *Record) readLine(line string) error {
	letter, rest, _ := strings.Cut(line, " ")
	switch letter {
	case startLetter:
		return r.readStart(rest)
	case beginLetter:
		if !isName(rest) {
			return errNode
		}
		r.Begun[rest] = true
		return nil
	case cleanLetter:
		return r.readClean(rest)
	case finishLetter:
		f, err := parseFinish(rest)
		if err != nil {
			return err
		}
		// A former leader may have added to a shard after its successor created the next one: the earlier line counts.
		switch {
		case r.Finished[f.Place]:
		case len(r.Finished) == maxFinished:
			return errFinished
		default:
			r.count(f)
		}
		return nil
	}
	return errLetter
}

func (r *Record) readStart(text string) error {
	if text == notStarted {
		r.Started = time.Time{}
		return nil
	}
	at, err := time.Parse(time.RFC3339, text)
	at = at.UTC()
	// RFC 3339 cannot represent any other year.
	if err != nil || at.Year() < 1 || at.Year() > 9999 {
		return errTime
	}
	r.Started = at.Truncate(time.Second)
	return nil
}

func (r *Record) readClean(text string) error {
	fields := strings.Split(text, " ")
	if len(fields) != 3 {
		return errClean
	}
	exitCode, errExit := strconv.ParseInt(fields[1], 10, 32)
	_, errTriesText := strconv.ParseInt(fields[2], 10, 32)
	switch {
	case !isName(fields[0]):
		return errNode
	case errExit != nil:
		return errExitCode
	case errTriesText != nil:
		return errTries
	}
	if _, cleaned := r.Cleaned[fields[0]]; !cleaned {
		r.Cleaned[fields[0]], r.Begun[fields[0]] = int32(exitCode), true
	}
	return nil
}

// parseFinish reads what comes after finishLetter.
func parseFinish(text string) (Finish, error) {
	node, text, _ := strings.Cut(text, " ")
	roundText, text, _ := strings.Cut(text, " ")
	exitText, text, complete := strings.Cut(text, " ")
	triesText, output, hasOutput := strings.Cut(text, " ")
	round, errRoundText := strconv.ParseUint(roundText, 10, 8)
	exitCode, errExitText := strconv.ParseInt(exitText, 10, 32)
	tries, errTriesText := strconv.ParseInt(triesText, 10, 32)
	switch {
	case !complete:
		return Finish{}, errFields
	case !isName(node):
		return Finish{}, errNode
	case errRoundText != nil || round >= v1alpha1.MaxRounds:
		return Finish{}, errRound
	case errExitText != nil:
		return Finish{}, errExitCode
	case errTriesText != nil:
		return Finish{}, errTries
	}
	f := Finish{Place: plan.Place{Node: node, Round: int(round)}, ExitCode: int32(exitCode), Tries: int32(tries)}
	if !hasOutput {
		return f, nil
	}
	var err error
	if f.Output, err = strconv.Unquote(output); err != nil || output[0] != '"' {
		return Finish{}, errOutput
	}
	return f, nil
}

// isName reports whether a text can be the name of a node. It checks the characters and the length that the API server
// allows.
func isName(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return false
		}
	}
	return text != "" && len(text) <= validation.DNS1123SubdomainMaxLength
}
