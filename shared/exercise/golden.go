package exercise

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Golden is the file golden.json: what the check says about the start and about each mutant. exercises-check compares, and
// writes it with UPDATE=1.
type Golden struct {
	Start   Outcome            `json:"start"`
	Mutants map[string]Outcome `json:"mutants"`
}

// Outcome is what a run came to, without what differs from one run to the next.
type Outcome struct {
	// Failed are the names of the behaviours that are missing.
	Failed []string `json:"failed,omitempty"`
	// Died is the kind of a Death, and During the behaviour that was being checked.
	Died   string `json:"died,omitempty"`
	During string `json:"during,omitempty"`
	// Message is what was seen in place of the first missing behaviour, or what the Death says.
	Message string `json:"message,omitempty"`
}

// Outcome sums the result up.
func (r Result) Outcome() Outcome {
	var o Outcome
	for _, b := range r.Behaviours {
		if b.OK {
			continue
		}
		o.Failed = append(o.Failed, b.Name)
		if o.Message == "" {
			o.Message = constant(b.Seen)
		}
	}
	if r.Died != nil {
		o.Died, o.During = r.Died.Kind, r.Died.Behaviour
		if o.Message == "" {
			o.Message = constant(r.Died.Message)
		}
	}
	return o
}

var (
	address = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	spaces  = regexp.MustCompile(`exercise-[a-z0-9]{5}\b`)
	version = regexp.MustCompile(`(resourceVersion=|uid )[0-9a-f-]+`)
)

// constant leaves out of a text what each run has another of: addresses, namespaces, resourceVersions.
func constant(text string) string {
	text = address.ReplaceAllString(text, "ADDRESS")
	text = spaces.ReplaceAllString(text, "NAMESPACE")
	return version.ReplaceAllString(text, "${1}N")
}

// same says whether two runs came to the same, whatever they said.
func (o Outcome) same(p Outcome) bool {
	return slices.Equal(o.Failed, p.Failed) && o.Died == p.Died && o.During == p.During
}

func (o Outcome) equal(p Outcome) bool { return o.same(p) && o.Message == p.Message }

// Golden reads golden.json. An exercise that is being written has none.
func (e Exercise) Golden() (Golden, error) {
	var g Golden
	content, err := os.ReadFile(e.goldenFile())
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err != nil {
		return g, err
	}
	if err := json.Unmarshal(content, &g); err != nil {
		return g, fmt.Errorf("%s: %w", e.goldenFile(), err)
	}
	return g, nil
}

func (e Exercise) goldenFile() string { return filepath.Join(e.Dir, "golden.json") }

func (e Exercise) writeGolden(g Golden) error {
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(g); err != nil {
		return err
	}
	return os.WriteFile(e.goldenFile(), content.Bytes(), 0o644)
}

// update writes the golden files of the exercises that are right but for them. Half of one, or what the next run comes to
// differently, is worse than the older one.
func update(exercises []Exercise, proofs []*proof) error {
	for _, e := range exercises {
		if slices.ContainsFunc(proofs, func(p *proof) bool { return p.exercise.ID == e.ID && p.wrong() }) {
			continue
		}
		golden := Golden{Mutants: map[string]Outcome{}}
		for _, p := range proofs {
			switch {
			case p.exercise.ID != e.ID:
			case p.kind == "start":
				golden.Start = p.result.Outcome()
			case p.kind == "mutant":
				golden.Mutants[p.name] = p.result.Outcome()
			}
		}
		if err := e.writeGolden(golden); err != nil {
			return err
		}
	}
	return nil
}

// diagnosis is the text of the mutant that came to the same as the reader's code, with the same message. If none has that
// message, alike is the text of the only one with the same failures. The start has no diagnosis.
func (e Exercise) diagnosis(g Golden, r Result) (text, alike string, err error) {
	if r.OK() {
		return "", "", nil
	}
	mutants, err := e.Mutants()
	if err != nil {
		return "", "", err
	}
	outcome := r.Outcome()
	if outcome.equal(g.Start) {
		return "", "", nil
	}
	var texts []string
	for _, mutant := range mutants {
		golden, found := g.Mutants[mutant.Name]
		switch {
		case !found || !golden.same(outcome):
		case golden.Message == outcome.Message:
			return mutant.Text, "", nil
		default:
			texts = append(texts, mutant.Text)
		}
	}
	if len(texts) == 1 && !outcome.same(g.Start) {
		return "", texts[0], nil
	}
	return "", "", nil
}
