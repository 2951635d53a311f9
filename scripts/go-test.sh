#!/bin/sh
# go-test.sh ARGUMENT…: go test with these arguments, as CI runs it. Where few tests fail, they are run a second time. One that
# passes then is a bug too: its name is appended to the file that FLAKY_TESTS names, and make test ends with it.
set -eu
unset CDPATH
scripts=$(cd "$(dirname "$0")" && pwd)
gotestsum=$(GOWORK=off go -C "$scripts/tools" tool -n gotestsum)
report=$(mktemp)
trap 'rm -f "$report"' EXIT
trap 'exit 1' HUP INT PIPE TERM

# gotestsum takes the packages apart from the flags. What comes after -args is the test's.
packages='' args='' left=$#
while [ "$left" -gt 0 ]; do
  case $args$1 in
    . | ./*) packages="$packages $1" ;;
    *)
      [ "$1" != -args ] || args=1
      set -- "$@" "$1"
      ;;
  esac
  shift
  left=$((left - 1))
done
# Tests that run make have nothing of this one.
flaky=${FLAKY_TESTS:-/dev/null}
unset GO_TEST FLAKY_TESTS
# A test that fails and the one around it count as two.
"$gotestsum" --format=standard-quiet --hide-summary=skipped --rerun-fails=1 --rerun-fails-max-failures=6 \
  --rerun-fails-report="$report" --packages="${packages# }" -- "$@"
if [ -s "$report" ]; then
  tee -a "$flaky" <"$report" | sed 's/^/FLAKY: /'
fi
