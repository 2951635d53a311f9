#!/bin/sh
# test.sh STAGE…: the tests of the stages, of the harness and of the scripts; no cluster is needed.
# All run, also after a failure; the last lines say what failed.
set -eu
cd "$(dirname "$0")/.."
failed=

# run NAME COMMAND…: runs a command and notes a failure.
run() {
  name=$1
  shift
  echo "==> testing $name"
  "$@" || failed="$failed $name"
}

# One set of binaries for all; made or downloaded if this machine has none.
KUBEBUILDER_ASSETS=${KUBEBUILDER_ASSETS:-$(go -C shared run ./cmd/harness assets)}
export KUBEBUILDER_ASSETS

for stage in "$@"; do
  run "$stage" "${MAKE:-make}" -C "$stage" test
done
run shared go -C shared test ./...
run scripts/docssite go -C scripts/docssite test ./...
run scripts/docstest go -C scripts/docstest test -count=1 ./...
run scripts/starter go -C scripts/starter test ./...
run scripts/tools env GOWORK=off go -C scripts/tools test ./...

if [ -n "$failed" ]; then
  echo "failed:$failed" >&2
  exit 1
fi
