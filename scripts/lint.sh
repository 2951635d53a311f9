#!/bin/sh
# lint.sh [DIR]: golangci-lint over every module in and below DIR. Without DIR: over all modules, then
# shfmt over the shell scripts and actionlint over the workflows. All run; the exit code tells.
# FIX=1 corrects what golangci-lint and shfmt can correct themselves.
set -eu
unset CDPATH GOOS GOARCH
scripts=$(cd "$(dirname "$0")" && pwd)
tools=$scripts/tools
failed=0
# Each module as it is on its own: the workspace hides a requirement that a module lacks.
export GOWORK=off

# tool NAME MODULE: prints the path of a pinned tool, building it first if need be.
tool() {
  [ "$1" != golangci-lint ] || [ -x "$(go -C "$2" tool -n "$1" 2>/dev/null)" ] ||
    echo "==> building $1, once: 2 minutes on 2 cores" >&2
  go -C "$2" tool -n "$1"
}

# modules DIR: prints the folders below DIR that hold a go.mod and Go files of that module, or a go.mod that go cannot
# read: the linter says why. The harness inside a project made by `make starter` is linted where it comes from; copies
# among artifacts are not ours, nor what go mod vendor has copied, nor the modules that an exercise is about.
modules() {
  find "$1" -name go.mod -not -path '*/.*/*' -not -path '*/hack/harness/*' -not -path '*/_artifacts/*' -not -path '*/vendor/*' -not -path '*/exercises/*/*' | sort | while IFS= read -r file; do
    dir=${file%/go.mod}
    if ! packages=$(cd "$dir" && go list ./... 2>/dev/null) || [ -n "$packages" ]; then
      echo "$dir"
    fi
  done
}

golangci=$(tool golangci-lint "$tools/golangci-lint")
for module in $(modules "${1:-.}"); do
  echo "==> golangci-lint $module"
  (cd "$module" && "$golangci" run --allow-parallel-runners ${FIX:+--fix} ./...) || failed=1
done
[ $# -eq 0 ] || exit "$failed"

cd "$scripts/.."
echo '==> shfmt'
files=$("$scripts/files.sh" '*.sh' .ci/run)
printf '%s\n' "$files" | tr '\n' '\0' | xargs -0 "$(tool shfmt "$tools")" -d ${FIX:+-w} || failed=1

echo '==> actionlint'
"$(tool actionlint "$tools")" -shellcheck= -pyflakes= || failed=1
exit "$failed"
