# shellcheck shell=bash
# lib.sh: what .ci/run does its steps with.
export CI=true GINKGO_NO_COLOR=true
unset CLUSTER KUBECONFIG DOCS_CLUSTER_NAME
# A hook of git has them set.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
# The clusters of a user of this machine stay as they are.
export CLUSTER_NAME=ci-$$-$(date +%s)

began=$SECONDS
budget=0 # seconds that this run may take; 0 is no limit
artifacts=_artifacts/ci
# What passed only when it was run once more.
export FLAKY_TESTS=$PWD/$artifacts/flaky
names=() seconds=() results=() failed=()

# macOS has no timeout command; there a step that hangs is interrupted by hand.
command -v timeout >/dev/null || timeout() { shift 3 && "$@"; }

as_root() {
  if [[ $(id -u) == 0 ]]; then "$@"; else sudo "$@"; fi
}

note() { names+=("$1") seconds+=("$2") results+=("$3"); }

# try NAME COMMAND…: runs a command, notes how long it took and, if it failed, its name. A command of this shell has no limit.
try() {
  local name=$1 start=$SECONDS code=0 log=$artifacts/$1.log
  shift
  printf '\n=== %s\n' "$name"
  if ((budget)) && ! declare -F "$1" >/dev/null; then
    set -- timeout -k 60 $((budget - (SECONDS - began))) "$@"
  fi
  "$@" 2>&1 </dev/null | tee "$log" || code=$?
  if ((code == 0)); then
    note "$name" $((SECONDS - start)) ok
  else
    ((code != 124)) || echo 'it was ended: the time of this run was over' | tee -a "$log"
    note "$name" $((SECONDS - start)) FAILED
    failed+=("$name")
  fi
  return "$code"
}

# step is a try whose failure ends the run.
step() { try "$@" || exit; }

# step_within MINUTES NAME COMMAND…: a step that is left out where less than this is left. What comes after it is left out
# too, so that the order decides and not the size.
step_within() {
  local minutes=$1
  shift
  if [[ -n ${left_out:-} ]] || ((SECONDS - began + minutes * 60 > budget)); then
    left_out=yes
    note "$1" 0 "NOT RUN: of $((budget / 60)) minutes $(((SECONDS - began) / 60)) were over"
  else
    step "$@"
  fi
}

# The tests of pages need a browser, and those of stage 3's script a second shell. Diagrams are drawn by a script that
# npm has.
install_packages() {
  local missing=()
  # It is enough if one of the names is there.
  command -v chromium chromium-browser google-chrome google-chrome-stable || missing+=(chromium)
  # Any will do as a shell; the static one can be put into an image too.
  command -v busybox || missing+=(busybox-static)
  command -v curl || missing+=(curl)
  command -v npm || missing+=(npm)
  if ((${#missing[@]})); then
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
  fi
}

unchanged() {
  local now
  now=$(git status --porcelain)
  if [[ $now != "$before" ]]; then
    printf 'the checks left something in the tree:\n%s\n' "$now"
    return 1
  fi
}

# leftovers prints the harness's programs of a run that was killed: they have no parent any more. Those of a cluster that is
# in use have a supervisor.
leftovers() { ps -eo pid=,ppid=,args= | awk '$2 == 1 && $3 ~ "/operator-harness/.*/(etcd|kube-[a-z-]*)$" { print $1 }'; }

# begin says what it found, and ends what an earlier run on this machine left: on two cores its clusters, which come back with
# the engine, would compete with all that follows.
begin() {
  mkdir -p "$artifacts"
  rm -f "$artifacts"/*.log "$FLAKY_TESTS"
  before=$(git status --porcelain)
  daemon=$(scripts/engine.sh pid)
  printf 'commit    %s\nload      %s\ndisk      %s free\n' "$(git log -1 --format='%h %s')" \
    "$(uptime | sed 's/.*average[s]*: *//')" "$(df -Ph . | awk 'NR == 2 { print $4 }')"
  local left
  left=$(leftovers)
  if [[ -n $left ]]; then
    printf 'leftover  %s\n' "$(ps -o pid=,args= -p "$(paste -sd, - <<<"$left")" | cut -c1-100)"
    # shellcheck disable=SC2086 # one word for each
    as_root kill $left 2>/dev/null || true
  fi
  trap finish EXIT
  trap 'exit 130' INT TERM
}

# in_one_place: where this is a clone in a folder for temporary files, runs .ci/run in a worktree of the commit instead,
# and ends with its exit code. The folder of that has the same name each time: Go and golangci-lint cache by the names of folders.
in_one_place() {
  local code=0 dir=${HARNESS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/operator-harness}/gate
  [[ $PWD/ == "${TMPDIR:-/tmp}"/* && -z $(git status --porcelain) ]] && command -v flock >/dev/null || return 0
  mkdir -p "$dir"
  exec 8>"$dir/lock"
  flock -n 8 || return 0
  # What a run that was killed has left may have no write bits.
  chmod -R u+w "$dir"
  rm -rf "$dir/checkout"
  git worktree prune
  git worktree add --quiet --detach "$dir/checkout" HEAD
  bash "$dir/checkout/.ci/run" 8>&- || code=$?
  [[ ! -d $dir/checkout/_artifacts ]] || cp -R "$dir/checkout/_artifacts" .
  git worktree remove --force "$dir/checkout"
  exit "$code"
}

# start_engine starts the engine, and stops the containers of clusters that come back with it.
start_engine() {
  make engine || return
  [[ $(scripts/engine.sh pid) != "$daemon" ]] || return 0
  local ids
  ids=$(docker ps --quiet --filter label=io.x-k8s.kind.cluster)
  # shellcheck disable=SC2086 # one word for each
  [[ -z $ids ]] || { echo 'stopping clusters that came back with the engine' && docker stop --time 1 $ids; }
}

# finish ends what this run started, whatever happened, and says what failed and what took how long.
finish() {
  local code=$? kind name i
  trap - EXIT
  printf '\n=== ending what was started\n'
  for kind in ${clusters:-}; do
    # Where no engine answers, no part that needs one was run.
    [[ $kind != kind ]] || docker info >/dev/null 2>&1 || continue
    CLUSTER=$kind make cluster-delete || code=1
  done
  if [[ $(scripts/engine.sh pid) != "$daemon" ]]; then
    as_root scripts/engine.sh stop || code=1
  fi

  printf '\n=== tests\n'
  grep -hE '^(ok |Ran [0-9]+ of )|^ *==> .*(specs not run|specs took)|^ *[0-9]{2}-[a-z0-9-]+ +[0-9.]+ |NOT RUN' "$artifacts"/*.log || true
  printf '\n=== the ten slowest specs\n'
  { grep -hE '^ *[a-z]+ +[0-9]+\.[0-9] s  ' "$artifacts"/*.log || true; } | sort -k2 -rn | head -n 10
  for name in ${failed[@]+"${failed[@]}"}; do
    printf '\n=== FAILED: %s\n' "$name"
    .ci/failures.sh "$artifacts/$name.log"
  done
  printf '\n=== what took how long\n'
  for i in "${!names[@]}"; do
    printf '%-34s %5ds  %s\n' "${names[i]}" "${seconds[i]}" "${results[i]}"
  done
  [[ ! -s $FLAKY_TESTS ]] || sed 's/^/FLAKY, which is a bug: /' "$FLAKY_TESTS"
  printf '%-34s %5ds  %s\n' total $((SECONDS - began)) "$([[ $code == 0 ]] && echo ok || echo FAILED)"
  [[ -z ${temp:-} ]] || { chmod -R u+w "$temp" && rm -rf "$temp"; }
  exit "$code"
}
