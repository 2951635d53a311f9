#!/bin/sh
# my-lolcow.sh COMMAND [ARGUMENT…]: the commands of Lolcow in a weekend, the chapter that docs/ begins with.
#
#   new [DIR]         make a new project with the kubebuilder CLI, at the versions of this workbook
#   check STEP [DIR]  check the project after a step, for instance 11b
#   adopt STEP [DIR]  put the solution of a step into the project; the files that it replaces are kept
#   generate [DIR]    write the deepcopy functions, the CRD and the role, as `make generate manifests` does
#   install [DIR]     apply the CRD to the cluster of `make cluster`
#   run [DIR]         run the operator from this shell against that cluster, as its ServiceAccount; nodes that run
#                     containers get the image lolcow:latest
#
# DIR is ../my-lolcow beside this repository, unless MY_LOLCOW or an argument says otherwise.
set -eu
unset CDPATH GOOS GOARCH
from=$PWD
cd "$(dirname "$0")/.."
root=$PWD
# The reader's project is no part of the workspace, and neither are the tools. Like all of the workbook it is built without
# cgo: Go compiles a package once for all that use it.
export GOWORK=off CGO_ENABLED="${CGO_ENABLED:-0}"

usage() {
  sed -n 's/^# \{0,1\}//; 2,12p' "$root/scripts/my-lolcow.sh" >&2
  exit 2
}

# absolute DIR: relative to where the reader is, whether it is there or not.
absolute() {
  case $1 in
    /*) echo "$1" ;;
    *) echo "$from/$1" ;;
  esac
}

# version FILE MODULE: the version that a go.mod requires.
version() { awk -v m="$2" '$1 == m { print $2 }' "$1"; }

# new DIR: the CLI's project. It knows nothing of the workbook.
new() {
  mkdir -p "$(dirname "$1")"
  dir=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
  case $dir/ in
    "$root"/_artifacts/*) ;;
    "$root"/*)
      echo "$dir is in this repository, whose workspace does not list it: name a folder beside it" >&2
      exit 1
      ;;
  esac
  if [ -f "$dir/PROJECT" ]; then
    echo "$dir has a project: go on with it, or, to begin anew, rename the folder or delete it" >&2
    exit 1
  elif [ -e "$dir" ] && [ -n "$(ls -A "$dir")" ]; then
    echo "$dir is not empty, and no project: name another folder, or delete it" >&2
    exit 1
  fi
  mkdir -p "$dir"
  name=$(basename "$dir")
  echo "==> the kubebuilder CLI: built once, which takes a minute" >&2
  kubebuilder=$(go -C scripts/tools/kubebuilder tool -n kubebuilder)
  log=$(mktemp)
  # What the tools print is of interest only if they fail.
  scaffold "$kubebuilder" "$dir" >"$log" 2>&1 </dev/null || {
    cat "$log" >&2
    rm "$log"
    exit 1
  }
  rm "$log"
  generate "$dir"
  echo "==> $dir is there" >&2
}

# scaffold KUBEBUILDER DIR: what the CLI writes, and the versions of the workbook in place of the older ones in it.
# shellcheck disable=SC2046 # a list of words
scaffold() {
  cd "$2" &&
    "$1" init --domain my.domain --repo "example.com/$name" --project-name "$name" --fetch-deps=false &&
    "$1" create api --version v1alpha1 --kind Lolcow --resource --controller --make=false &&
    sed "s/^CONTROLLER_TOOLS_VERSION ?= .*/CONTROLLER_TOOLS_VERSION ?= $(version "$root/scripts/tools/go.mod" sigs.k8s.io/controller-tools)/" \
      Makefile >Makefile.new &&
    mv Makefile.new Makefile &&
    # All that both require, not only the libraries of Kubernetes: then Go has most of them compiled.
    go get $(awk 'NR == FNR { if ($2 ~ /^v/) pinned[$1] = $2; next } $1 in pinned && $2 ~ /^v/ { print $1 "@" pinned[$1] }' \
      "$root/shared/go.mod" go.mod) &&
    go mod tidy &&
    cd "$root"
}

# generate DIR: what the project's own `make generate manifests` does, with the same tool at the same version.
generate() {
  generator=$(go -C scripts/tools tool -n controller-gen)
  (
    cd "$1"
    "$generator" object:headerFile=hack/boilerplate.go.txt paths=./api/...
    "$generator" crd paths=./api/... output:crd:artifacts:config=config/crd/bases
    "$generator" rbac:roleName=manager-role paths=./internal/... paths=./cmd/...
  )
}

[ $# -gt 0 ] || usage
command=$1
shift
step=
case $command in
  check | adopt)
    [ $# -gt 0 ] || usage
    step=$1
    shift
    ;;
  new | generate | install | run) ;;
  *) usage ;;
esac
dir=$(absolute "${1:-${MY_LOLCOW:-$root/../my-lolcow}}")
[ "$command" = new ] || [ -f "$dir/PROJECT" ] || {
  echo "$dir is no project yet: scripts/my-lolcow.sh new" >&2
  exit 2
}
case $command in
  new) new "$dir" ;;
  generate) generate "$dir" ;;
  check)
    export MY_LOLCOW="$dir"
    exec scripts/learn.sh run "$step"
    ;;
  adopt) exec go -C 02-lolcow/exercises run ./weekend "$step" "$dir" ;;
  install) exec go -C shared run ./cmd/harness install --stage "$dir" ;;
  run)
    # Where containers run, the pods need the image that the project names. Elsewhere this does nothing.
    go -C shared run ./cmd/harness load --stage 02-lolcow lolcow=lolcow:latest
    # One process needs no lease, and outside of a pod the scaffold finds no namespace for one.
    exec go -C shared run ./cmd/harness run --stage "$dir" -- --leader-elect=false
    ;;
esac
