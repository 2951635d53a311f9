#!/bin/sh
# verify-snippets.sh: the code that a Markdown file shows by an [embedmd] line is the code that is
# there. `make snippets` brings it up to date.
set -eu
unset CDPATH GOOS GOARCH
cd "$(dirname "$0")/.."
files=$(scripts/files.sh '*.md')
embedmd=$(GOWORK=off go -C scripts/tools tool -n embedmd)
flag=${1:--d}
failed=0
while IFS= read -r file; do
  "$embedmd" "$flag" "$file" </dev/null >&2 || failed=1
done <<EOF
$files
EOF
exit "$failed"
