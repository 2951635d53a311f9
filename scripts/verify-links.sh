#!/bin/sh
# verify-links.sh: no Markdown file links to a file or a heading of this repository that is not there.
set -eu
unset CDPATH
cd "$(dirname "$0")/.."
files=$(scripts/files.sh '*.md')
mdlinks=$(mktemp)
trap 'rm -f "$mdlinks"' EXIT
trap 'exit 1' HUP INT PIPE TERM
GOWORK=off go -C scripts/tools build -buildvcs=false -o "$mdlinks" ./mdlinks
printf '%s\n' "$files" | tr '\n' '\0' | xargs -0 "$mdlinks"
