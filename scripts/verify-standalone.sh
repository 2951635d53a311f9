#!/bin/sh
# verify-standalone.sh [-quick]: each module builds, vets and is tidy without the workspace, and each stage does so as a copy in
# a folder of its own. -quick leaves out the copies and linking: what does not compile does not vet either.
set -eu
unset CDPATH GOOS GOARCH
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
trap 'exit 1' HUP INT PIPE TERM
export GOWORK=off
failed=0
quick=
[ "${1:-}" != -quick ] || quick=1

# sound NAME DIR: the checks, with one line for the reader if one fails.
sound() {
  for check in 'build -o /dev/null ./...' 'vet ./...' 'mod tidy -diff'; do
    case $quick$check in 1build*) continue ;; esac
    # shellcheck disable=SC2086 # the words of the check are arguments
    if ! go -C "$2" $check >"$copy/log" 2>&1; then
      echo "$1: go $check fails without the workspace:" >&2
      cat "$copy/log" >&2
      failed=1
      return
    fi
  done
}

for stage in 0[1-4]-*; do
  { [ -z "$quick" ] && [ -f "$stage/go.mod" ]; } || continue
  scripts/copy-tree.sh "$stage" "$copy/$stage"
  sound "a copy of $stage" "$copy/$stage"
done
modules=$(GOWORK='' go list -m -f '{{.Dir}}')
while IFS= read -r module; do
  sound "$module" "$module"
done <<END
$modules
END
exit "$failed"
