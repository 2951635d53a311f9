#!/bin/sh
# verify-generated.sh: what `make generate manifests` would write is what is there. It works in a
# copy, so it changes nothing.
set -eu
unset CDPATH GOOS GOARCH
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
trap 'exit 1' HUP INT PIPE TERM
failed=0
# A copy of a stage alone would ask the module proxy for it.
controller_gen=$(GOWORK=off go -C scripts/tools tool -n controller-gen)

for stage in 0[1-4]-*; do
  grep -qs '^manifests:' "$stage/Makefile" || continue
  scripts/copy-tree.sh "$stage" "$copy/before"
  cp -R "$copy/before" "$copy/after"
  GOWORK=off "${MAKE:-make}" -C "$copy/after" generate manifests CONTROLLER_GEN="'$controller_gen'" >"$copy/log" 2>&1 || {
    cat "$copy/log" >&2
    exit 1
  }
  if ! (cd "$copy" && diff -ruN before after) >"$copy/diff"; then
    echo "$stage: generated files are out of date; run make ${stage#0} generate manifests:" | sed 's/make \([1-4]\)-[a-z]*/make stage-\1/' >&2
    cat "$copy/diff" >&2
    failed=1
  fi
  rm -rf "$copy/before" "$copy/after"
done
exit "$failed"
