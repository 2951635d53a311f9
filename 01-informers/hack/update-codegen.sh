#!/usr/bin/env bash
# update-codegen.sh: writes the clientset, listers, informers and apply configurations of the kinds in api/
# to internal/generated, with the generators of the client-go that go.mod names. `make generate` runs it. It
# works offline once the module cache has the generators, and in a copy of this folder.
set -euo pipefail
export GOWORK=off
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# kube_codegen.sh builds the generators into GOBIN. It is told a folder of its own, so that it leaves
# nothing among the programs of whoever runs it.
export GOBIN=$work/bin

version=$(go list -m -f '{{.Version}}' k8s.io/client-go)
dir=$(go mod download -json "k8s.io/code-generator@$version" | sed -n 's/.*"Dir": "\(.*\)",$/\1/p')
# shellcheck source=/dev/null
source "$dir/kube_codegen.sh"

# It looks for what it wrote before in folders that it expects to be there.
mkdir -p "$work"/generated/{applyconfiguration,clientset,informers,listers}
# The generators have rules of their own for plurals. The exception is what controller-gen says, and the
# CRD has: for a kind such as Index the two would differ.
kube::codegen::gen_client api \
  --with-applyconfig \
  --with-watch \
  --plural-exceptions Foo:Foos \
  --boilerplate hack/boilerplate.go.txt \
  --output-dir "$work/generated" \
  --output-pkg "$(go list -m -f '{{.Path}}')/internal/generated"

# All of it is there, or the old code stays; what a kind that is gone left behind goes.
rm -rf internal/generated
mv "$work/generated" internal/generated
