package broker

import (
	"fmt"
	"path/filepath"
	"strings"

	"example.com/workbook/03-flux/test/standin/internal/wire"
)

// expandTags does to a command what a broker's job shell does, whether it is wanted or not: {{size}} and the like
// become what they mean (src/shell/mustache.c in flux-core). What has another name, or spaces in it, stays.
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
