package docstest

import (
	"fmt"
	"strings"

	"golang.org/x/tools/txtar"
)

// script is a chapter as a script of testscript: its commands and outputs are files, and each line of it uses some.
// Without containers the commands that need them are left out, and how many that were is returned.
func script(chapter Chapter, containers bool) (source []byte, leftOut int) {
	var archive txtar.Archive
	var steps strings.Builder
	for n, command := range chapter.Commands {
		if command.Options.Kind && !containers {
			leftOut++
			continue
		}
		input, output := fmt.Sprintf("%02d.sh", n), fmt.Sprintf("%02d.out", n)
		fmt.Fprintf(&steps, "# docs/%s.md:%d\n", chapter.Name, command.Line)
		at := fmt.Sprintf("docs/%s.md %d", chapter.Name, command.Line)
		archive.Files = append(archive.Files, txtar.File{Name: input, Data: []byte(command.Text)})
		switch options := command.Options; {
		case options.Terminal != "":
			fmt.Fprintf(&steps, "terminal %s %s '%s' %s\n", options.Terminal, input, strings.ReplaceAll(options.Until, "'", "''"), at)
		case options.Fails:
			fmt.Fprintf(&steps, "! type %s %s\n", input, at)
		default:
			fmt.Fprintf(&steps, "type %s %s\n", input, at)
		}
		if command.HasOutput {
			archive.Files = append(archive.Files, txtar.File{Name: output, Data: []byte(command.Shown)})
			fmt.Fprintf(&steps, "shows %s docs/%s.md %d\n", output, chapter.Name, command.ShownLine)
		}
	}
	archive.Comment = []byte(steps.String())
	return txtar.Format(&archive), leftOut
}
