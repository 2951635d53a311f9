#!/bin/sh
# failures.sh LOG: what failed, from the output of go test, Ginkgo or a linter: each failed test with the last 20 lines that it
# said, each package that did not build or panicked. Where there is none of these, the end of the log.
set -eu
awk -v most=20 '
  function flush(  i, from) {
    if (head != "") {
      found = 1
      print head
      from = count > most && !first ? count - most + 1 : 1
      if (from > 1) print "    … the whole of it is in the log"
      for (i = from; i <= count && i < from + most; i++) print said[i]
    }
    head = ""; count = 0; first = 0
  }
  /^ *(---|===) FAIL: / { flush(); head = $0; next }
  # Of these the beginning says what happened.
  /^(panic:|fatal error:|# |Summarizing [0-9]+ Failure)/ { flush(); head = $0; first = 1; next }
  /^(ok|FAIL|PASS|DONE|===|==>|Ran [0-9]+ of) ?/ || /^ *--- (PASS|SKIP)/ || /^make(\[[0-9]+\])?: / { flush(); if (/^FAIL\t|^make/) packages[++all] = $0; next }
  head != "" { said[++count] = $0 }
  { last[NR % most] = $0 }
  END {
    flush()
    if (!found) for (i = NR - most + 1; i <= NR; i++) if (i > 0 && (i % most) in last) print last[i % most]
    for (i = 1; i <= all; i++) print packages[i]
  }' "$1"
