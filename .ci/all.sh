# shellcheck shell=bash
# all.sh: the parts of `.ci/run all`, in their order. Each can be the first, so each does its own set-up.
parts=(check measure bench exercises-1 exercises-2 exercises-3 exercises-4 embedded-1 embedded-2 embedded-3 embedded-4 site docs-embedded
  starter-1 starter-2 starter-3 starter-4 kind-1 kind-2 kind-3 exercises-kind kind-4 docs-kind node-image)

part() {
  local n=${1##*-}
  case $1 in
    check) make check ;;
    measure) make measure ;;
    bench) benches ;;
    exercises-kind) start_engine && make node-image && make exercises-check CLUSTER=kind ;;
    exercises-*) make exercises-check STAGE="$n" ;;
    embedded-*) make "stage-$n" e2e CLUSTER=embedded ;;
    kind-*) start_engine && make node-image && make "stage-$n" e2e CLUSTER=kind ;;
    site) make docs-site-test ;;
    docs-embedded) make docs-test CLUSTER=embedded ;;
    docs-kind)
      # Chapter 00 needs no containers, and most of its readers have them: there the image is loaded into nodes.
      start_engine && make node-image && make docs-test CLUSTER=kind && make docs-test CHAPTER=00 CLUSTER=kind ALL=1
      ;;
    starter-*) starter "$n" ;;
    node-image) node_image ;;
  esac
}

# Each benchmark of an operator, small: what it prints means nothing then, and it is seen to run.
benches() {
  export BENCH_FOOS=20 BENCH_LOLCOWS=20 BENCH_ROUNDS=1 BENCH_MANY=20 BENCH_NODES=10
  make stage-1 bench BENCH=Herd && make stage-2 bench BENCH=Herd && make stage-3 bench BENCH=Herd && make stage-4 bench
}

# The node image from nothing: Kubernetes is built from source where the image cannot be pulled.
node_image() {
  local image
  start_engine || return
  ! image=$(scripts/node-image.sh present) || docker image rm "$image" >/dev/null || return
  HARNESS_CACHE=$temp/cache make node-image
}

# One copy is proven whole, on kind. Of the others, on the embedded cluster, a sample of crashes and of specs is enough:
# the stages themselves have shown all of them.
starter() {
  local kind=embedded sample="-ginkgo.fail-on-empty -ginkgo.focus='samples|does not own'" code=0 copy=$temp/starter-$1
  if [[ $1 == 2 ]]; then
    start_engine && make node-image || return
    kind=kind sample=
  fi
  CLUSTER=$kind TEST_FLAGS=${sample:+-short} E2E_FLAGS=$sample make starter STAGE="$1" DEST="$copy" \
    MODULE="github.com/ci/starter-$1" DOMAIN=starters.dev KIND=Teapot VERIFY=1 || code=$?
  # What a failed starter left is worth keeping; the starter itself is not.
  [[ ! -d $copy/_artifacts ]] || cp -R "$copy/_artifacts" "$artifacts/starter-$1"
  return "$code"
}

# all FROM: the parts from this one on. _artifacts/ci/passed has the tree and the part of each that has passed.
all() {
  local from=${1:-${parts[0]}} name tree begun= why
  tree=$(git rev-parse 'HEAD^{tree}')
  [[ " ${parts[*]} " == *" $from "* ]] || { echo "no such part: $from; .ci/run list has them" >&2 && return 2; }
  temp=$(mktemp -d)
  step 'install packages' install_packages
  clusters='kind embedded'
  for name in "${parts[@]}"; do
    [[ $name != "$from" ]] || begun=yes
    why=
    if [[ -z $begun ]]; then
      why="NOT RUN: before $from"
    elif [[ -z $before ]] && grep -qs "^$tree $name\$" "$artifacts/passed"; then
      why='passed before, for this tree'
    fi
    [[ -z $why ]] || { note "$name" 0 "$why" && continue; }
    if try "$name" part "$name" && [[ -z $before ]]; then
      echo "$tree $name" >>"$artifacts/passed"
    fi
    # The memory of one kind of cluster is needed for the next.
    [[ $name != embedded-4 && $name != kind-4 ]] || try "delete the ${name%-*} cluster" make cluster-delete CLUSTER="${name%-*}" || true
  done
  try 'the tree is as it was' unchanged || true
  ((${#failed[@]} == 0))
}
