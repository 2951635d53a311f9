#!/bin/sh
# verify-layout.sh: the top level holds what the design names and nothing else, and no file names a
# folder of one person's machine.
set -eu
unset CDPATH
cd "$(dirname "$0")/.."
failed=0

files=$(scripts/files.sh)

allowed='01-informers|02-lolcow|03-flux|04-goop|shared|docs|scripts|go\.work|go\.work\.sum|Makefile|README\.md|LICENSE|\..*'
stray=$(echo "$files" | cut -d/ -f1 | sort -u | grep -vxE "$allowed" || true)
if [ -n "$stray" ]; then
  echo "not part of the top level: move it into a stage, shared/, docs/ or scripts/:" >&2
  echo "$stray" | sed 's/^/  /' >&2
  failed=1
fi

# Homes of people, and folders that only a build machine has.
homes='(^|[^A-Za-z0-9_.-])/(home|Users|root|work)/[A-Za-z0-9_.-]+'
found=$(echo "$files" | grep -v 'go\.\(work\.\)\{0,1\}sum$' | tr '\n' '\0' |
  xargs -0 sh -c 'grep -nIE "$@" || [ $? -eq 1 ]' sh "$homes")
if [ -n "$found" ]; then
  echo 'a path of one machine: say it relative to the repository, or by a variable:' >&2
  echo "$found" | sed 's/^/  /' >&2
  failed=1
fi
exit "$failed"
