#!/bin/sh
# copy-tree.sh DIR DEST: copies what git tracks in DIR, and what it would if you added it, to DEST.
set -eu
mkdir -p "$2"
dest=$(cd "$2" && pwd)
cd "$1"
git ls-files --cached --others --exclude-standard | while read -r file; do
  [ ! -e "$file" ] || echo "$file"
done | tar -cf - -T - | tar -xf - -C "$dest"
