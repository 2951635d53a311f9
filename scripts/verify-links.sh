#!/bin/sh
# verify-links.sh: no Markdown file links to a file or a heading of this repository that is not there.
set -eu
unset CDPATH GOOS GOARCH
cd "$(dirname "$0")/.."
files=$(scripts/files.sh '*.md')
# Not into TMPDIR, where a program may not be run.
GOWORK=off go -C scripts/tools build -buildvcs=false -o "$PWD/bin/mdlinks" ./mdlinks
printf '%s\n' "$files" | tr '\n' '\0' | xargs -0 bin/mdlinks
