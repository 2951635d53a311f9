#!/bin/sh
# verify-links.sh: no Markdown file links to a file or a heading of this repository that is not there.
set -eu
cd "$(dirname "$0")/.."
mdlinks=$(mktemp)
trap 'rm -f "$mdlinks"' EXIT
trap 'exit 1' HUP INT PIPE TERM
GOWORK=off go -C scripts/tools build -o "$mdlinks" ./mdlinks
git ls-files --cached --others --exclude-standard -- '*.md' | while read -r file; do
  [ ! -f "$file" ] || echo "$file"
done | xargs "$mdlinks"
