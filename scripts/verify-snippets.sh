#!/bin/sh
# verify-snippets.sh: the code that a Markdown file shows by an [embedmd] line is the code that is
# there. `make snippets` brings it up to date.
set -eu
cd "$(dirname "$0")/.."
embedmd=$(GOWORK=off go -C scripts/tools tool -n embedmd)
flag=${1:--d}
failed=0
for file in $(git ls-files --cached --others --exclude-standard -- '*.md'); do
  [ ! -f "$file" ] || "$embedmd" "$flag" "$file" >&2 || failed=1
done
exit "$failed"
