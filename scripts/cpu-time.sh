#!/bin/bash
# cpu-time.sh PROGRAM…: for go test -exec. Runs the tests of a package, and appends to the file in CPU_TIMES how many seconds
# of the CPU they took, with the processes that they waited for.
export LC_ALL=C
TIMEFORMAT='%U %S'
root=$(dirname "$(dirname "$0")")
# Descriptor 3 is closed for it: go test waits for all who hold its output, which is for what a test leaves running too.
{ time "$@" 2>&3 3>&-; } 3>&2 2>"$CPU_TIMES.$$"
code=$?
awk -v package="${PWD#"$root"/}" '{ printf "%7.1f  %s\n", $1 + $2, package }' "$CPU_TIMES.$$" >>"$CPU_TIMES"
rm -f "$CPU_TIMES.$$"
exit $code
