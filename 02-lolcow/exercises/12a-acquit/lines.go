package acquit

import (
	_ "embed" // the start
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"example.com/workbook/shared/exercise/check"
)

// mostLines is how many lines may be changed.
const mostLines = 5

//go:embed start/exercise.go
var startOfExercise string

// imports are the lines of an import.
var imports = regexp.MustCompile(`^(import )?\(?(\w+ )?"[^"]+"\)?$`)

// accused says whether a line is about what is to be acquitted.
func accused(line string) bool {
	return strings.Contains(line, "+kubebuilder:") || strings.Contains(line, "Owns(")
}

// compare fails if more than that has changed, or what is to be acquitted.
func compare(b *check.B, dir string) {
	before, after := lines(startOfExercise), lines(code(b, dir))
	removed, added := differences(before, after)
	for _, line := range slices.Concat(removed, added) {
		if accused(line) {
			b.Fatalf("this is not the cause, and was changed: %s", line)
		}
	}
	for _, line := range removed {
		b.Event("- %s", line)
	}
	for _, line := range added {
		b.Event("+ %s", line)
	}
	if n := max(len(removed), len(added)); n > mostLines {
		b.Fatalf("%d lines are changed, and at most %d need to be", n, mostLines)
	}
}

// code is what is in the Go files of a folder.
func code(b *check.B, dir string) string {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		b.Fatalf("%v", err)
	}
	var all strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			b.Fatalf("%v", err)
		}
		all.Write(content)
		all.WriteString("\n")
	}
	return all.String()
}

// lines are those that count: code, and RBAC markers.
func lines(text string) []string {
	var counted []string
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(line), " ")
		comment := strings.HasPrefix(line, "//") && !accused(line)
		if line != "" && !comment && !imports.MatchString(line) {
			counted = append(counted, line)
		}
	}
	return counted
}

// differences are the lines that the longest common subsequence does not have.
func differences(before, after []string) (removed, added []string) {
	// common[i][j] is the length of that of before[i:] and after[j:].
	common := make([][]int, len(before)+1)
	for i := range common {
		common[i] = make([]int, len(after)+1)
	}
	for i, one := range slices.Backward(before) {
		for j, other := range slices.Backward(after) {
			if one == other {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(before) && j < len(after) {
		switch {
		case before[i] == after[j]:
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			removed = append(removed, before[i])
			i++
		default:
			added = append(added, after[j])
			j++
		}
	}
	return append(removed, before[i:]...), append(added, after[j:]...)
}
