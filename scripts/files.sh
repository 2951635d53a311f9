#!/bin/sh
# files.sh [PATTERN…]: the files of this folder that git tracks, and those that it would if you added them. It fails
# where git cannot tell, with git's reason: a check that finds no file to look at must not be content.
set -eu
# A hook of git has them set, for another folder than this may be.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
# What go mod vendor has copied is other people's, and not checked here.
list() {
  [ $# -gt 0 ] || set -- .
  git ls-files -z --cached --others --exclude-standard -- "$@" ':(exclude,glob)**/vendor/**'
}
list "$@" >/dev/null || {
  echo 'this works on what git tracks: run it in a git clone' >&2
  exit 1
}
# A list of lines has no place for it, and a check that leaves a file out must not be content.
if list "$@" | tr '\n\0' '\001\n' | grep "$(printf '\001')" >&2; then
  echo 'these names have a line break, here \001, which no script reads: rename the files' >&2
  exit 1
fi
# One that is deleted and not yet committed is tracked too.
list "$@" | tr '\0' '\n' | while IFS= read -r file; do
  [ ! -f "$file" ] && [ ! -h "$file" ] || printf '%s\n' "$file"
done
