#!/bin/sh
# lines.sh DIR…: how many lines of Go each package below these folders has, and in a second column how many its tests
# have. Generated files, exercises and the harness inside a copy of a stage are not counted.
set -eu
[ $# -gt 0 ] || {
  echo 'usage: scripts/lines.sh DIR…' >&2
  exit 2
}
# .?* and _* are what the go command leaves out too.
find "$@" \( -name '.?*' -o -name '_*' -o -name exercises -o -name vendor -o -path '*/hack/harness' \) -prune -o -type f -name '*.go' -print |
  LC_ALL=C sort | awk '
    function row(name, code, test) { printf "%7d %7d  %s\n", code, test, name }
    {
      file = $0; n = 0; generated = 0
      while ((getline line <file) > 0) {
        n++
        if (line ~ /^\/\/ Code generated .* DO NOT EDIT\.$/) generated = 1
      }
      close(file)
      if (generated) next
      dir = file
      sub(/\/[^\/]*$/, "", dir)
      if (!(dir in seen)) { seen[dir] = 1; order[++dirs] = dir }
      if (file ~ /_test\.go$/) { tests[dir] += n; allTests += n } else { lines[dir] += n; allLines += n }
    }
    END {
      if (dirs == 0) { print "no Go files there" >"/dev/stderr"; exit 1 }
      printf "%7s %7s  %s\n", "lines", "tests", "package"
      for (i = 1; i <= dirs; i++) row(order[i], lines[order[i]], tests[order[i]])
      row("all", allLines, allTests)
    }'
