#!/bin/sh
# learn.sh [COMMAND [ID]]: the exercises, with a check of your code at each save; `learn.sh help` lists the commands.
# It is `make learn` with the exit codes: 0 done, 1 not yet, 2 cannot run.
set -eu
unset CDPATH GOOS GOARCH
# As make has it: Go compiles a package once for both.
export CGO_ENABLED="${CGO_ENABLED:-0}"
cd "$(dirname "$0")/.."
[ -x bin/learn ] || echo '==> building the runner, once: half a minute on 2 cores' >&2
# The program lies in the workspace, whatever GOWORK is. `go run` would lose the exit code.
if ! GOWORK='' go build -buildvcs=false -ldflags='-s -w' -o bin/learn ./scripts/learn; then
  echo 'learn: the runner cannot be built: see above' >&2
  exit 2
fi
exec bin/learn "$@"
