#!/bin/sh
# copy-tree.sh DIR DEST: copies what git tracks in DIR, and what it would if you added it, to DEST.
set -eu
unset CDPATH
scripts=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
dest=$(cd "$2" && pwd)
cd "$1"
files=$("$scripts/files.sh")
# An archive in between: of a pipe only the last command's failure counts.
archive=$(mktemp)
trap 'rm -f "$archive"' EXIT
trap 'exit 1' HUP INT PIPE TERM
printf '%s\n' "$files" | tr '\n' '\0' | tar -cf "$archive" --null -T -
tar -xf "$archive" -C "$dest"
