#!/usr/bin/env bash
# update-codegen.sh: writes the clientset, listers, informers and apply configurations of the kinds in api/
# to internal/generated, with the generators of the client-go that go.mod names. `make generate` runs it. It
# works offline once the module cache has the generators, and in a copy of this folder.
set -euo pipefail
# Generators run here, whatever is built otherwise.
unset CDPATH GOOS GOARCH
export GOWORK=off
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# kube_codegen.sh builds the generators into GOBIN: a temporary folder, so that they do not replace programs of the user.
export GOBIN=$work/bin

version=$(go list -m -f '{{.Version}}' k8s.io/client-go)
go mod download "k8s.io/code-generator@$version" # with -json it fails without a word
dir=$(go mod download -json "k8s.io/code-generator@$version" | sed -n 's/.*"Dir": "\(.*\)",$/\1/p')
# shellcheck source=/dev/null
source "$dir/kube_codegen.sh"

# It looks for old files in these folders, and fails if they do not exist.
mkdir -p "$work"/generated/{applyconfiguration,clientset,informers,listers}
# The generators have rules of their own for plurals. The exception is the plural of the CRD, from controller-gen: for a kind
# such as Index the two would differ.
kube::codegen::gen_client api \
  --with-applyconfig \
  --with-watch \
  --plural-exceptions Foo:Foos \
  --boilerplate hack/boilerplate.go.txt \
  --output-dir "$work/generated" \
  --output-pkg "$(go list -m -f '{{.Path}}')/internal/generated"

# The old code is replaced only if the generators have succeeded. That also removes the code of deleted kinds.
rm -rf internal/generated
mv "$work/generated" internal/generated
