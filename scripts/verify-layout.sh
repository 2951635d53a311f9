#!/bin/sh
# verify-layout.sh: the top level holds what the design names and nothing else, and no file names a
# folder of one person's machine.
set -eu
cd "$(dirname "$0")/.."
failed=0

# What git tracks, and what it would if you added it.
files() {
  git ls-files --cached --others --exclude-standard "$@"
}

allowed='01-informers|02-lolcow|03-flux|04-goop|shared|docs|scripts|go\.work|go\.work\.sum|Makefile|README\.md|LICENSE|\..*'
stray=$(files | cut -d/ -f1 | sort -u | grep -vxE "$allowed" || true)
if [ -n "$stray" ]; then
  echo "not part of the top level: move it into a stage, shared/, docs/ or scripts/:" >&2
  echo "$stray" | sed 's/^/  /' >&2
  failed=1
fi

# Homes of people, and folders that only a build machine has.
homes='(^|[^A-Za-z0-9_.-])/(home|Users|root|work)/[A-Za-z0-9_.-]+'
found=$(files | grep -v 'go\.\(work\.\)\{0,1\}sum$' | xargs grep -nIE "$homes" -- 2>/dev/null || true)
if [ -n "$found" ]; then
  echo 'a path of one machine: say it relative to the repository, or by a variable:' >&2
  echo "$found" | sed 's/^/  /' >&2
  failed=1
fi
exit "$failed"
