package image

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is copied into an image without being a program of bin/ is in no hash of programs and Dockerfile.
func TestAnEditOfWhatIsCopiedGivesAnotherReference(t *testing.T) {
	const copies = "COPY bin/linux-${TARGETARCH}/server /\n"
	for name, row := range map[string]struct {
		dockerfile string
		byID       bool
	}{
		"kubebuilder's":        {"FROM golang AS builder\nCOPY . .\nRUN go build -o server ./cmd\nFROM scratch AS server\nCOPY --from=builder /server .\n", true},
		"another folder":       {"FROM scratch AS server\n" + copies + "COPY templates/ /templates/\n", true},
		"beside a program":     {"FROM scratch AS server\nCOPY bin/linux-${TARGETARCH}/server templates/cow /\n", true},
		"all programs":         {"FROM scratch AS server\nCOPY bin/linux-${TARGETARCH}/ /\n", true},
		"ADD":                  {"FROM scratch AS server\n" + copies + "add templates /templates\n", true},
		"the JSON form":        {"FROM scratch AS server\n" + copies + "COPY [\"templates/cow\", \"/\"]\n", true},
		"the short JSON form":  {"FROM scratch AS server\n" + copies + "COPY [\"templates/cow\",\"/\"]\n", true},
		"over two lines":       {"FROM scratch AS server\n" + copies + "COPY --chmod=644 \\\n  # the cow\n  templates/cow /\n", true},
		"a mount":              {"FROM busybox AS server\n" + copies + "RUN --mount=type=bind,target=/src cp -r /src /\n", true},
		"upon a target before": {"FROM scratch AS base\nCOPY templates /\nFROM --platform=linux Base AS server\n" + copies, true},
		"a program only":       {"FROM scratch AS server\n" + copies, false},
		"with a mode":          {"FROM scratch AS server\nCOPY --chmod=755 \\\n bin/linux-${TARGETARCH}/server /\nRUN [\"/server\"]\n", false},
		"after another target": {"FROM scratch AS base\nCOPY templates /\nFROM scratch AS server\n" + copies, false},
	} {
		t.Run(name, func(t *testing.T) {
			calls, dir := fakeEngine(t), newStage(t)
			cow := filepath.Join(dir, "templates", "cow")
			if err := os.Mkdir(filepath.Dir(cow), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(row.dockerfile), 0o600); err != nil {
				t.Fatal(err)
			}
			var refs []string
			for _, text := range []string{"moo", "moo", "oink"} {
				if err := os.WriteFile(cow, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				ref, err := Build(t.Context(), &bytes.Buffer{}, dir, "server")
				if err != nil {
					t.Fatal(err)
				}
				refs = append(refs, ref)
			}
			if refs[0] != refs[1] || (refs[1] != refs[2]) != row.byID {
				t.Errorf("before and after an edit: %q", refs)
			}
			made, _ := os.ReadFile(calls)
			if got := strings.Contains(string(made), "tag sha256:"); got != row.byID {
				t.Errorf("the engine was called with\n%s", made)
			}
		})
	}
}
