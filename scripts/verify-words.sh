#!/bin/sh
# verify-words.sh: code, manifests, scripts, READMEs and chapters use the words of the Kubernetes documentation; scripts/tools/words
# has the list of others, and of the places where one of them is right.
set -eu
unset CDPATH
cd "$(dirname "$0")/.."
files=$(scripts/files.sh '*.go' '*.yaml' '*.yml' '*.sh' '*.md' '*.mk' '*Makefile' '*Dockerfile' .ci/run |
  grep -v '^scripts/tools/words/')
words=$(mktemp)
trap 'rm -f "$words"' EXIT
trap 'exit 1' HUP INT PIPE TERM
GOWORK=off go -C scripts/tools build -buildvcs=false -o "$words" ./words
printf '%s\n' "$files" | tr '\n' '\0' | xargs -0 "$words"
