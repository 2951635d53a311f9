package record

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// quoted returns how many bytes a text takes in JSON as the API server encodes it, without the quotes.
func quoted(t failer, text string) int {
	t.Helper()
	data, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return len(data) - len(`""`)
}

func TestClip(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat("a line of text.\n", 200)
	for name, test := range map[string]struct{ output, want string }{
		"nothing":                     {"", ""},
		"as much as fits":             {strings.Repeat("x", maxOutput), strings.Repeat("x", maxOutput)},
		"a byte more: the end counts": {"a" + strings.Repeat("x", maxOutput), strings.Repeat("x", maxOutput)},
		"text with line ends":         {lines, lines[len(lines)-maxOutput:]},
		"characters stay whole":       {strings.Repeat("€", 1000), strings.Repeat("€", 682)},
		"control characters":          {strings.Repeat("\x1b", 1000), strings.Repeat("\x1b", 384)},
		"what browsers must not see":  {strings.Repeat("<", 1000), strings.Repeat("<", 384)},
		"quotes":                      {strings.Repeat(`"`, 2000), strings.Repeat(`"`, 1152)},
		"line ends only":              {strings.Repeat("\n", 2000), strings.Repeat("\n", 1152)},
		"separators of lines":         {strings.Repeat("\u2028", 1000), strings.Repeat("\u2028", 384)},
		"no UTF-8":                    {"\xff\xfe ok", "\uFFFD ok"},
		"no YAML":                     {"\u009b31m ok\x7f\uffff", "\uFFFD31m ok\uFFFD\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			NewWithT(t).Expect(Clip(test.output)).To(Equal(test.want))
		})
	}
}

// kubectl prints a Goop as YAML, and lets it be edited so: no output of a worker keeps it from that.
func TestClippedOutputIsInYAML(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	for first := rune(0); first <= utf8.MaxRune; first += 0x100 {
		var output strings.Builder
		for char := range rune(0x100) {
			output.WriteRune(first + char)
		}
		_, err := yaml.Marshal(v1alpha1.Failure{Output: Clip(output.String())})
		g.Expect(err).NotTo(HaveOccurred(), "from %U", first)
	}
}

func TestClipKeepsTheEndAndNoMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\x00", "\n", `"`, "&", "\u2028", "\xff", "😀", strings.Repeat("x", 500)}))
		output := strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "output"), "")
		output = strings.Repeat(output, rapid.IntRange(1, 50).Draw(t, "times"))
		clipped := Clip(output)
		whole := printable(output)
		switch {
		case !utf8.ValidString(clipped) || !strings.HasSuffix(whole, clipped):
			t.Fatalf("%q is no end of %q", clipped, whole)
		case len(clipped) > maxOutput || quoted(t, clipped) > maxQuoted:
			t.Fatalf("%d bytes are left, as JSON %d", len(clipped), quoted(t, clipped))
		case Clip(clipped) != clipped:
			t.Fatalf("clipped again, %q is %q", clipped, Clip(clipped))
		case len(clipped) < len(whole):
			// One more character might not fit. It has at most four bytes, or six as JSON.
			if len(clipped)+utf8.UTFMax <= maxOutput && quoted(t, clipped)+len(`\u0000`) <= maxQuoted-spare(clipped) {
				t.Fatalf("only %d of %d bytes are left, as JSON %d", len(clipped), len(whole), quoted(t, clipped))
			}
		}
	})
}

// spare is the difference between quotedSize and encoding/json: older versions encode two characters with more bytes.
func spare(text string) int {
	return 4 * (strings.Count(text, "\b") + strings.Count(text, "\f"))
}

// Clip counts the correct number of bytes for each of the first 12,288 characters, and for the others by their length.
func TestQuotedSize(t *testing.T) {
	t.Parallel()
	chars := []rune{'\uD7FF', '\uE000', utf8.RuneError, '\uFFFF', '\U00010000', '😀', utf8.MaxRune}
	for char := range rune(0x3000) {
		chars = append(chars, char)
	}
	for _, char := range chars {
		text := string(char)
		if got, want := quotedSize(char), quoted(t, text)+spare(text); got != want {
			t.Fatalf("%q is counted as %d bytes, and takes %d", char, got, want)
		}
	}
}

// The largest possible status: every byte of every output is escaped, and all names and messages are long.
func TestAStatusStaysBelow64KiB(t *testing.T) {
	t.Parallel()
	const limit, messages = 64 << 10, 8 << 10
	for name, char := range map[string]string{
		"plain": "x", "control characters": "\x01", "quotes": `"`, "line ends": "\n", "browsers": "<", "euros": "€",
		"separators": "\u2028", "no UTF-8": "\xff", "backspaces": "\b", "a mixture": "x\x01é\"",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			r := read(t, nil)
			for i := range 2 * v1alpha1.MaxFailures {
				node := fmt.Sprintf("%0253d", i)
				r.Finish(Finish{Place: plan.Place{Node: node, Round: 31}, ExitCode: 255, Tries: 1001, Output: strings.Repeat(char, 4096)})
			}
			g.Expect(r.Failures).To(HaveLen(v1alpha1.MaxFailures))
			now := metav1.NewTime(noon)
			status := v1alpha1.GoopStatus{
				ObservedGeneration: 1 << 50, Desired: 160000, Running: 160000, Succeeded: 160000, Failed: 160000,
				ExitCode: new(int32(255)), StartTime: &now, CompletionTime: &now, Failures: r.Failures,
			}
			for i, kind := range []string{
				v1alpha1.ConditionRunning, v1alpha1.ConditionSuspended, v1alpha1.ConditionComplete, v1alpha1.ConditionFailed,
			} {
				status.Conditions = append(status.Conditions, metav1.Condition{
					Type: kind, Status: metav1.ConditionUnknown, ObservedGeneration: int64(1<<50 + i), LastTransitionTime: now,
					Reason: v1alpha1.ReasonHostAccessNotAllowed, Message: strings.Repeat("m", messages/4),
				})
			}
			data, err := json.Marshal(status)
			g.Expect(err).NotTo(HaveOccurred())
			text := 0
			for _, shard := range r.Changed() {
				text += len(shard.Text)
			}
			t.Logf("the status has %d bytes, the record %d", len(data), text)
			g.Expect(len(data)).To(BeNumerically("<", limit))
			g.Expect(text).To(BeNumerically("<", ShardSize))
		})
	}
}
