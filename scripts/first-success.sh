#!/usr/bin/env bash
# first-success.sh [MBIT]: how long `make stage-2 e2e` takes on a machine that has Go, make, git and a network of MBIT megabits
# a second (50), and no container engine. It runs in a clone of this commit, with empty caches. Hosts that publish programs
# are answered for from this machine's cache (see scripts/tools/slownet): where those programs were built here, they are
# not the published ones, and their sizes differ.
set -euo pipefail
unset CDPATH GOOS GOARCH
unset KUBECONFIG CLUSTER_NAME
cd "$(dirname "$0")/.."
mbit=${1:-50}
programs=$(go -C shared run ./cmd/harness binaries etcd kube-apiserver kubectl kube-controller-manager kube-scheduler kwok)
version=$(sed -n 's/^KUBERNETES_VERSION=//p' shared/config/harness.env)
temp=$(mktemp -d)
GOWORK=off go -C scripts/tools build -buildvcs=false -o "$temp/slownet" ./slownet

# The caches of modules are read-only.
finish() {
  if [[ -d $temp/clone ]]; then CLUSTER=embedded make -C "$temp/clone" cluster-delete; fi
  chmod -R u+w "$temp"
  rm -rf "$temp"
}
trap finish EXIT
export GOCACHE=$temp/build GOMODCACHE=$temp/modules HARNESS_CACHE=$temp/harness GOFLAGS=
git clone -q . "$temp/clone"
cd "$temp/clone"
CLUSTER=embedded "$temp/slownet" -mbit "$mbit" -programs "$programs" -kubernetes "$version" make stage-2 e2e
