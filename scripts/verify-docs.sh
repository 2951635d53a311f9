#!/bin/sh
# verify-docs.sh: the files and symbols that the chapters name are there, in this repository and in the libraries at the
# pinned versions; every chapter is in the list of docs/contents.md, has the parts that all have, and every lesson, term
# and error of the other pages leads to a section.
set -eu
unset CDPATH GOOS GOARCH
cd "$(dirname "$0")/.."
go -C scripts/docstest test -count=1 -run '^(TestSources|TestMap|TestShape|TestPages)$' .
