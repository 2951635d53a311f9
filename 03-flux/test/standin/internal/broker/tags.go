package broker

import (
	"fmt"
	"path/filepath"
	"strings"

	"example.com/workbook/03-flux/test/standin/internal/wire"
)

// expandTags expands {{size}} and the like in a command, as a broker's job shell always does (src/shell/mustache.c in
// flux-core). Unknown names, and names with spaces, are not expanded.
func expandTags(work *wire.Work, job, task int) []string {
	tags := strings.NewReplacer(
		"{{id}}", fmt.Sprintf("f%d", job),
		"{{name}}", filepath.Base(work.Args[0]),
		"{{size}}", fmt.Sprint(work.Tasks),
		"{{taskid}}", fmt.Sprint(task),
	)
	args := make([]string, 0, len(work.Args))
	for _, arg := range work.Args {
		args = append(args, tags.Replace(arg))
	}
	return args
}
