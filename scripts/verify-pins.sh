#!/bin/sh
# verify-pins.sh: a version that is written in more than one place is the same in all of them, and
# nothing asks for @latest.
set -eu
unset CDPATH GOOS GOARCH
cd "$(dirname "$0")/.."
failed=0
wrong() {
  echo "$@" >&2
  failed=1
}
# same WHAT A FILE-A B FILE-B
same() { [ "$2" = "$4" ] || wrong "$1: '$2' in $3, but '$4' in $5"; }
# version FILE MODULE: the version that a go.mod requires.
version() { awk -v m="$2" '$1 == m { print $2 } $1 == "require" && $2 == m { print $3 }' "$1"; }

modules=$(scripts/files.sh 'go.mod' '**/go.mod')
# Tools and the parts of the node image are programs of their own, with dependencies of their own.
ours=$(echo "$modules" | grep -vE '^scripts/(tools|components)/')

# 1. One version of every library, and one Go. A build with the workspace and one without compile the same packages then,
# and Go's cache serves both.
# shellcheck disable=SC2086 # a list of files
clash=$(awk '{ sub(/^require /, ""); sub(/^[ \t]+/, "") }
  $1 ~ /\./ && $1 !~ /^example\.com\// && $2 ~ /^v/ {
    if (($1 in first) && first[$1] != $2) print "  " $1 ": " first[$1] " in " where[$1] ", but " $2 " in " FILENAME
    if (!($1 in first)) { first[$1] = $2; where[$1] = FILENAME }
  }' $ours)
[ -z "$clash" ] || wrong "the modules disagree:
$clash"
go=$(awk '$1 == "go" { print $2 }' go.work)
for file in $modules; do
  same 'the Go version' "$go" go.work "$(awk '$1 == "go" { print $2 }' "$file")" "$file"
done

# 2. What belongs to one release of Kubernetes.
. shared/config/harness.env
client=$(version shared/go.mod k8s.io/client-go)
for module in k8s.io/api k8s.io/apimachinery; do
  same "$module" "$client" 'k8s.io/client-go of shared/go.mod' "$(version shared/go.mod $module)" shared/go.mod
done
# shellcheck disable=SC2153 # set by harness.env
minor=${KUBERNETES_VERSION#v1.}
client_minor=${client#v0.}
same 'the minor version of Kubernetes' "${minor%%.*}" harness.env "${client_minor%%.*}" 'k8s.io/client-go of shared/go.mod'
tag=${KIND_NODE_IMAGE#*:}
same 'the node image' "$KUBERNETES_VERSION" 'KUBERNETES_VERSION of harness.env' "${tag%%@*}" 'KIND_NODE_IMAGE of harness.env'
# Where the module is not in the cache yet, list knows no folder of it.
GOWORK=off go -C shared mod download sigs.k8s.io/kind
kind=$(GOWORK=off go -C shared list -m -f '{{.Dir}}' sigs.k8s.io/kind)
same 'the node image' "$KIND_NODE_IMAGE" harness.env \
  "$(sed -n 's/^const Image = "\(.*\)"/\1/p' "$kind/pkg/apis/config/defaults/image.go")" 'the kind module'
same 'kustomize/kyaml' "$(version shared/go.mod sigs.k8s.io/kustomize/api)" 'kustomize/api of shared/go.mod' \
  "$(version shared/go.mod sigs.k8s.io/kustomize/kyaml)" shared/go.mod
same 'Kubernetes' "$KUBERNETES_VERSION" harness.env \
  "$(version scripts/components/kubernetes/go.mod k8s.io/kubernetes)" scripts/components/kubernetes/go.mod
# shellcheck disable=SC2153
same 'etcd' "$ETCD_VERSION" harness.env \
  "$(version scripts/components/etcd/go.mod go.etcd.io/etcd/server/v3)" scripts/components/etcd/go.mod
same 'kwok' "$KWOK_VERSION" harness.env "$(version shared/go.mod sigs.k8s.io/kwok)" shared/go.mod
for test in $(scripts/files.sh '0[1-4]-*.go' | tr '\n' '\0' | xargs -0 grep -l 'kubernetesVersion = ' || true); do
  same 'Kubernetes' "$KUBERNETES_VERSION" harness.env "$(sed -n 's/.*kubernetesVersion = "\(.*\)"/\1/p' "$test")" "$test"
done

# 3. Tools, and the machines that others run this on.
tools=$(version scripts/tools/go.mod sigs.k8s.io/controller-tools)
for makefile in $(scripts/files.sh '0[1-4]-*/Makefile'); do
  found=$(sed -n 's/.*cmd\/controller-gen@\([^ ]*\).*/\1/p' "$makefile" | sort -u)
  [ -z "$found" ] || same 'controller-gen' "$tools" scripts/tools/go.mod "$found" "$makefile"
done
same 'the Go of the dev container' "${go%.*}" go.work \
  "$(sed -n 's/.*devcontainers\/go:\([^"]*\)".*/\1/p' .devcontainer/devcontainer.json)" .devcontainer/devcontainer.json
grep -q 'go-version-file: go.work$' .github/workflows/ci.yml || wrong '.github/workflows/ci.yml: take the Go version from go.work, by go-version-file'
latest=$(scripts/files.sh | tr '\n' '\0' |
  xargs -0 sh -c 'grep -nE "$@" || [ $? -eq 1 ]' sh '@(latest|main|master)([^A-Za-z0-9_-]|$)')
latest=$(printf '%s\n' "$latest" | grep -vE '^(scripts/verify-pins\.sh|[^:]*\.md):' || true)
[ -z "$latest" ] || wrong "ask for a version:
$latest"
exit "$failed"
