package docstest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// remembered is what a reader's shell keeps from one block to the next: its folder and its variables, exported or not.
// Bash's own and those that cannot be changed are not kept. It also notes which line of a block has failed.
const remembered = `docstest_own=$'\n'$(compgen -v)$'\n'
docstest_leave() {
  set +e
  trap - ERR
  IFS=$' \t\n'
  pwd > "$STATE/folder"
  [ -z "$docstest_line" ] || echo $((docstest_line - docstest_base)) > "$STATE/line"
  docstest_now=$'\n'$(compgen -v)$'\n'
  {
    for docstest_name in $docstest_own; do
      [[ $docstest_now == *$'\n'$docstest_name$'\n'* ]] || echo "unset $docstest_name"
    done
    declare -px
    for docstest_name in $docstest_now; do
      [[ $docstest_own != *$'\n'$docstest_name$'\n'* ]] || continue
      case $docstest_name in docstest_* | BASH* | FUNCNAME | PIPESTATUS | _) continue ;; esac
      docstest_value=$(declare -p "$docstest_name" 2>/dev/null) || continue
      docstest_flags=${docstest_value#declare -}
      case ${docstest_flags%% *} in *[rx]*) continue ;; esac
      echo "$docstest_value"
    done
  } > "$STATE/variables"
}
cd "$(cat "$STATE/folder")" && . "$STATE/variables"
trap docstest_leave EXIT
trap 'docstest_line=$LINENO' ERR
set -eo pipefail
docstest_base=$LINENO
`

// buffer can be read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// bash runs a block as a reader's shell would that has been in use for a while. What it keeps is in the folder state.
func (r *reader) bash(ctx context.Context, ts *testscript.TestScript, state, file string) *exec.Cmd {
	ts.Check(os.MkdirAll(state, 0o755))
	if _, err := os.Stat(filepath.Join(state, "folder")); err != nil {
		ts.Check(os.WriteFile(filepath.Join(state, "folder"), []byte(r.repository), 0o644))
		ts.Check(os.WriteFile(filepath.Join(state, "variables"), nil, 0o644))
	}
	ts.Check(os.RemoveAll(filepath.Join(state, "line")))
	cmd := exec.CommandContext(ctx, "bash", "-c", remembered+ts.ReadFile(file))
	cmd.Dir = r.repository
	cmd.Env = append(os.Environ(), "STATE="+state, "CLUSTER_NAME="+r.cluster, "CLUSTER="+ts.Getenv("CLUSTER"), "PAGER=cat")
	// All that it starts ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = ends
	return cmd
}

// failedAt tells which line of a block has failed, from 1, and what it says; 0 if the shell could not tell.
func failedAt(state, block string) (line int, command string) {
	noted, err := os.ReadFile(filepath.Join(state, "line"))
	if err != nil {
		return 0, ""
	}
	lines := strings.Split(block, "\n")
	line, err = strconv.Atoi(strings.TrimSpace(string(noted)))
	if err != nil || line < 1 || line > len(lines) {
		return 0, ""
	}
	return line, strings.TrimSpace(lines[line-1])
}
