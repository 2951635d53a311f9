#!/bin/sh
# test.sh STAGE…: the tests of the stages, the exercises, the harness and the scripts; no cluster is needed.
# All run, also after a failure; then come the packages that took most CPU time, and the last lines say what failed.
set -eu
unset CDPATH
cd "$(dirname "$0")/.."
failed=
# Most tests wait more than they compute: those of these stages run one after the other, beside all others.
beside='03-flux 04-goop'
is_beside() { case " $beside " in *" $1 "*) ;; *) return 1 ;; esac }
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
trap 'exit 1' HUP INT PIPE TERM

# run NAME COMMAND…: runs a command and notes a failure.
run() {
  name=$1
  shift
  echo "==> testing $name"
  "$@" || failed="$failed $name"
}

# One set of binaries for all, those of KUBEBUILDER_ASSETS if it has them; else made or downloaded if this machine has none.
KUBEBUILDER_ASSETS=$(go -C shared run ./cmd/harness assets)
export KUBEBUILDER_ASSETS
# Those of an embedded cluster, which the harness tests. A test that had to build them would exceed its time.
go -C shared run ./cmd/harness binaries kube-controller-manager kube-scheduler kwok >/dev/null || failed=' programs-of-an-embedded-cluster'
# On a machine that has much else to do an API server needs longer to start than envtest's 20 seconds.
export KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=90s

# Tests that read files outside their module read this too: Go's cache of results sees it, and does not see those files.
# Where git cannot tell which there are, nothing of theirs is cached.
if files=$(scripts/files.sh 2>/dev/null); then
  REPOSITORY_SUM=$(printf '%s\n' "$files" | tr '\n' '\0' | xargs -0 cksum | cksum)
else
  REPOSITORY_SUM=$$-$(date +%s)
fi
export REPOSITORY_SUM

# Without debug information a test program is linked in two thirds of the time, and there are some hundred of them.
TEST_FLAGS="-ldflags=-w ${TEST_FLAGS:-}"
# In CI, or with CPU=1, the CPU time of each package is measured. Go caches no result then.
if [ -n "${CI:-}${CPU:-}" ]; then
  CPU_TIMES=$temp/cpu-times
  PATH=$PWD/scripts:$PATH
  export CPU_TIMES PATH
  TEST_FLAGS="$TEST_FLAGS -exec=cpu-time.sh"
fi

# In CI a test that fails is run once more, and named at the end if it passes then.
GO_TEST='go test'
if [ -n "${CI:-}" ]; then
  FLAKY_TESTS=${FLAKY_TESTS:-$temp/flaky}
  GO_TEST=go-test.sh # in the PATH, see above
  export FLAKY_TESTS
fi
export GO_TEST
in_module() {
  dir=$1
  shift
  (cd "$dir" && $GO_TEST -timeout 40m "$@")
}
alone() { (export GOWORK=off && in_module "$@"); }

test_stage() { run "$1" "${MAKE:-make}" -C "$1" test TEST_FLAGS="$TEST_FLAGS"; }
test_beside() {
  for stage in "$@"; do
    ! is_beside "$stage" || test_stage "$stage"
  done
  printf '%s' "$failed" >"$temp/failed"
}
: >"$temp/failed"
(failed='' && test_beside "$@") >"$temp/beside" 2>&1 &
others=$!
for stage in "$@"; do
  if is_beside "$stage"; then
    echo "==> testing $stage beside the others; its results come last"
  else
    test_stage "$stage"
  fi
done
eval "set -- $TEST_FLAGS" # its quotes mean what they mean in a recipe of make
run shared in_module shared "$@" ./...
for module in */exercises scripts/docssite scripts/docstest scripts/learn scripts/starter; do
  run "$module" in_module "$module" "$@" ./...
done
run scripts/tools alone scripts/tools "$@" ./...
wait "$others" && code=0 || code=$?
cat "$temp/beside"
[ "$code" = 0 ] || failed="$failed tests-beside-the-others"
failed="$failed$(cat "$temp/failed")"

if [ -n "${CPU_TIMES:-}" ]; then
  echo '==> CPU seconds of each package, with the processes that its tests waited for'
  sort -rn "$CPU_TIMES"
  awk '{ sum += $1 } END { printf "%7.1f  in all\n", sum }' "$CPU_TIMES"
fi

if [ -s "${FLAKY_TESTS:-/dev/null}" ]; then
  echo '==> FLAKY, which is a bug: these failed, and passed when they were run once more'
  cat "$FLAKY_TESTS"
fi
if [ -n "$failed" ]; then
  echo "failed:$failed" >&2
  exit 1
fi
