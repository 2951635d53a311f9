#!/bin/sh
# verify-words.sh: code, manifests, scripts, READMEs and chapters use the words of the Kubernetes documentation; scripts/tools/words
# has the list of others, and of the places where one of them is right.
set -eu
unset CDPATH GOOS GOARCH
cd "$(dirname "$0")/.."
files=$(scripts/files.sh '*.go' '*.yaml' '*.yml' '*.sh' '*.md' '*.mk' '*Makefile' '*Dockerfile' .ci/run |
  grep -v '^scripts/tools/words/')
# Not into TMPDIR, where a program may not be run.
GOWORK=off go -C scripts/tools build -buildvcs=false -o "$PWD/bin/words" ./words
# xargs would call it several times, and each time it would miss what the others have read.
printf '%s\n' "$files" | bin/words
