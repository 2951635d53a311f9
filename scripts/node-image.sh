#!/usr/bin/env bash
# Makes sure that there is a node image for kind and prints its reference as the last line of standard
# output; progress goes to standard error. The pinned upstream image where it is here or can be pulled;
# else one of the same shape, built from the Go module proxy and Debian's packages (Linux, root, Debian
# or Ubuntu). It is kept by the hash of what it is made of.
#
# usage: node-image.sh [present]     present makes none: it fails where there is none
set -euo pipefail
unset CDPATH

harness=$(cd "$(dirname "$0")/.." && pwd)
parts=$harness/scripts/node-image
# shellcheck source-path=SCRIPTDIR source=../shared/config/harness.env
source "$harness/shared/config/harness.env"

readonly mark=$HARNESS_NAME-node-build # containers, intermediate images and the work folder
readonly entrypoint='ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]'
cache=${HARNESS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/$HARNESS_NAME}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
export HARNESS_CACHE=$cache # absolute: what builds the binaries runs in another folder
work=$cache/$mark
doing=

# macOS has no timeout command; there a hanging engine is interrupted by hand.
command -v timeout >/dev/null || timeout() { shift && "$@"; }

say() { echo "$*" >&2; }
fail() {
  say "node-image: $*"
  exit 1
}

# step says what is being done and, at the end, how long it took. A failure ends the script, and
# finish tells it: calling "$@" in a condition would switch off "set -e" inside.
step() {
  doing=$1
  began=$SECONDS
  shift
  say "==> $doing"
  "$@" >&2
  say "==> $doing: took $((SECONDS - began))s"
  doing=
}

find_engine() {
  if timeout 10 docker version >/dev/null 2>&1; then
    echo docker
  elif timeout 10 podman info >/dev/null 2>&1; then
    echo podman
  else
    fail "no container engine answers: run \`make engine\` (Debian or Ubuntu, as root) or start your own"
  fi
}

present() { "$engine" image inspect "$1" >/dev/null 2>&1; }

# inputs prints everything the built image depends on.
inputs() {
  echo "$KUBERNETES_VERSION $ETCD_VERSION $CONTAINERD_VERSION $CNI_PLUGINS_VERSION $COREDNS_VERSION"
  echo "$LOCAL_PATH_PROVISIONER_VERSION $DEBIAN_SUITE $(uname -m)"
  grep -o 'sigs.k8s.io/kind v[^ ]*' "$harness/shared/go.mod"
  cat "$0" "$parts"/* "$harness"/scripts/components/*/go.mod
}

pull() {
  say "==> pulling $KIND_NODE_IMAGE"
  local begin=$SECONDS code=0
  # Beside the script, which would act on Ctrl-C only after it: timeout keeps the signals of the terminal from what it runs.
  trap 'kill "${!-}" 2>/dev/null || true; exit 130' INT TERM
  timeout 1200 "$engine" pull --quiet "$KIND_NODE_IMAGE" >&2 &
  wait $! || code=$?
  trap - INT TERM
  if ((code == 0)); then
    say "==> pulling $KIND_NODE_IMAGE: took $((SECONDS - begin))s"
  else
    say "==> it cannot be pulled (after $((SECONDS - begin))s): a node image is built instead"
    return 1
  fi
}

require_builder() {
  local what="the node image cannot be pulled, and building one needs"
  [[ $(uname -s) == Linux ]] || fail "$what Linux: connect to the internet, or go on without kind with CLUSTER=embedded"
  command -v apt-get >/dev/null || fail "$what Debian or Ubuntu: connect to the internet, or go on without kind with CLUSTER=embedded"
  [[ $(id -u) == 0 ]] || fail "$what root: run sudo make node-image, or go on without kind with CLUSTER=embedded"
  command -v go >/dev/null || fail "$what Go"
}

install_packages() {
  local missing=()
  command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
  [[ -e /usr/share/keyrings/debian-archive-keyring.gpg ]] || missing+=(debian-archive-keyring)
  command -v gcc >/dev/null || missing+=(gcc)
  echo 'int main(void) { return 0; }' | gcc -static -x c -o /dev/null - 2>/dev/null || missing+=(libc6-dev)
  if ((${#missing[@]})); then
    step "installing ${missing[*]}" apt_install "${missing[@]}"
  fi
}

apt_install() {
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; } \
    >"$work/apt.log" 2>&1 || {
    tail -n 20 "$work/apt.log"
    return 1
  }
}

module_dir() { (cd "$1" && GOWORK=off go mod download -json "$2" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'); }

# collect_binaries builds what is missing in the harness's cache, which the embedded cluster shares.
# KUBEBUILDER_ASSETS may hold anything, so it has no say here.
collect_binaries() {
  binaries=$(cd "$harness/shared" && env -u KUBEBUILDER_ASSETS GOWORK=off go run ./cmd/harness binaries \
    kube-apiserver kube-controller-manager kube-scheduler kubelet kubeadm kube-proxy kubectl etcd \
    containerd ctr containerd-shim-runc-v2 host-local loopback ptp portmap coredns local-path-provisioner)
  local kubernetes
  kubernetes=$(module_dir "$harness/scripts/components/kubernetes" k8s.io/kubernetes)
  gcc -Os -Wall -static -DVERSION="$KUBERNETES_VERSION" -o "$work/pause" "$kubernetes/build/pause/linux/pause.c"
}

# stage_node_files lays out, as in the node's root, all that does not come from Debian.
stage_node_files() {
  local kind to=$work/node
  kind=$(module_dir "$harness/shared" sigs.k8s.io/kind)
  mkdir -p "$to/usr/bin" "$to/usr/local/bin" "$to/opt/cni/bin" "$to/kind/manifests"
  cp -R "$kind/images/base/files/." "$to/"
  chmod -R u+w,go+rX "$to" # the module cache is read-only
  cp -L "$binaries"/{kubelet,kubeadm,kubectl} "$to/usr/bin/"
  cp -L "$binaries"/{containerd,ctr,containerd-shim-runc-v2} "$to/usr/local/bin/"
  cp -L "$binaries"/{host-local,loopback,ptp,portmap} "$to/opt/cni/bin/"
  cp "$parts"/default-*.yaml "$to/kind/manifests/"
  echo -n "$KUBERNETES_VERSION" >"$to/kind/version"
}

# import_root builds the node's file system and imports it as one layer. A few programs of it, with
# their libraries, are kept in $work/tools for the images that need them.
import_root() {
  local packages=systemd,conntrack,iptables,nftables,iproute2,ethtool,util-linux,mount,kmod,libseccomp2,pigz
  packages+=,e2fsprogs,bash,ca-certificates,curl,jq,procps,runc,libc-bin
  export work parts
  mkdir -p "$work/tools" "$work/tmp"
  # shellcheck disable=SC2016 # mmdebstrap expands $1, the root, and the exported names
  TMPDIR=$work/tmp mmdebstrap --quiet --mode=root --variant=minbase --include="$packages" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='cp -R "$work/node/." "$1/"' \
    --customize-hook='chroot "$1" bash -s <"$parts/setup.sh"' \
    --customize-hook='chroot "$1" bash -s <"$parts/tools.sh" | tar -C "$work/tools" -xf -' \
    "$DEBIAN_SUITE" "$work/root.tar"
  "$engine" import --change 'ENV container=docker' "$work/root.tar" "$mark/root:latest" >/dev/null
  rm "$work/root.tar"
}

# component_image makes an image of one program: REFERENCE PROGRAM [ROOT], the program in
# /usr/local/bin over the files of ROOT.
component_image() {
  local reference=$1 program=$2 root=$work/component
  rm -rf "$root"
  mkdir -p "$root"
  if [[ -n ${3:-} ]]; then
    cp -R "$3/." "$root/"
  fi
  mkdir -p "$root/usr/local/bin"
  cp -L "$program" "$root/usr/local/bin/"
  import_component "$reference" "$root" --change "ENTRYPOINT [\"/usr/local/bin/$(basename "$program")\"]"
}

# import_component imports a folder under a name that marks it as ours: the engine may hold a real
# image of the same reference.
import_component() {
  local reference=$1 root=$2
  shift 2
  tar -C "$root" --owner=0 --group=0 -cf - . |
    "$engine" import --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' "$@" \
      - "$mark/$reference" >/dev/null
  components+=("$reference")
}

# component_images makes every image that kubeadm will ask for, and those of the default manifests.
component_images() {
  local reference name
  components=()
  for reference in $("$binaries/kubeadm" config images list --kubernetes-version "$KUBERNETES_VERSION"); do
    name=$(basename "${reference%:*}")
    case $name in
      pause) component_image "$reference" "$work/pause" ;;
      kube-proxy) component_image "$reference" "$binaries/$name" "$work/tools" ;;
      *) component_image "$reference" "$binaries/$name" ;;
    esac
  done
  # The one that containerd's configuration names may be another than kubeadm's.
  reference=$(sed -n 's/^ *sandbox_image = "\(.*\)"/\1/p' "$work/node/etc/containerd/config.toml")
  component_image "$reference" "$work/pause"
  component_image localhost/local-path-provisioner:built "$binaries/local-path-provisioner"
  import_component localhost/node-tools:built "$work/tools"
}

# in_container runs a command in the build container, without containerd's remark, on every call, that
# the host's cgroups are old.
in_container() { "$engine" exec -i "$mark" "$@" 2> >(grep -v 'level=warning msg="DEPRECATION' >&2); }

# load_components puts the component images into the node image's own containerd.
load_components() {
  # The stop signal is systemd's. An import cannot set it; what is committed keeps the container's.
  "$engine" run --detach --name "$mark" --security-opt seccomp=unconfined --stop-signal SIGRTMIN+3 \
    --entrypoint containerd "$mark/root:latest" >/dev/null
  in_container timeout 60 bash -c 'until ctr version >/dev/null 2>&1; do sleep 0.1; done'
  local reference name ours=()
  for reference in "${components[@]}"; do
    ours+=("$mark/$reference")
  done
  "$engine" save "${ours[@]}" | in_container ctr --namespace k8s.io images import \
    --all-platforms --no-unpack --digests --label io.cri-containerd.pinned=pinned - >/dev/null
  for name in $(in_container ctr --namespace k8s.io images list --quiet | grep "/$mark/"); do
    in_container ctr --namespace k8s.io images tag --force "$name" "${name#*"$mark"/}" >/dev/null
    in_container ctr --namespace k8s.io images rm "$name" >/dev/null
  done
  # containerd writes its database to the end before it goes.
  "$engine" kill --signal TERM "$mark" >/dev/null
  "$engine" wait "$mark" >/dev/null
}

commit() { "$engine" commit --change "$entrypoint" "$mark" "$image" >/dev/null; }

# cleanup removes everything but the result, also what a run that was killed has left.
cleanup() {
  "$engine" rm --force "$mark" >/dev/null 2>&1 || true
  local left
  left=$("$engine" image ls --filter "reference=$mark/*" --filter "reference=$mark/*/*" --filter "reference=$mark/*/*/*" \
    --format '{{.Repository}}:{{.Tag}}')
  # shellcheck disable=SC2086 # one word for each image
  [[ -z $left ]] || "$engine" image rm $left >/dev/null 2>&1 || true
  # mmdebstrap that was killed leaves its mounts.
  [[ ! -r /proc/mounts ]] || awk -v work="$work/" 'index($2, work) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r umount
  rm -rf --one-file-system "$work"
}

finish() {
  [[ -z $doing ]] || say "==> $doing: failed after $((SECONDS - began))s"
  cleanup
}

build() {
  require_builder
  exec 9>"$cache/node-image.lock"
  flock --nonblock 9 || {
    say "==> waiting for another process that is building the node image"
    flock 9
  }
  if present "$image"; then # the process that held the lock has built it
    return
  fi
  local begin=$SECONDS
  say "==> building $image: about 15 minutes on 2 cores, with the binaries cached 1 to 2"
  cleanup
  trap finish EXIT
  trap 'exit 130' INT TERM
  mkdir -p "$work"
  install_packages
  step "collecting binaries" collect_binaries
  step "laying out the node's files" stage_node_files
  step "building the node's root file system from Debian $DEBIAN_SUITE" import_root
  step "making the component images" component_images
  step "loading them into the node" load_components
  step "saving $image" commit
  say "==> building $image: took $((SECONDS - begin))s"
}

engine=$(find_engine)
if present "$KIND_NODE_IMAGE"; then
  echo "$KIND_NODE_IMAGE"
  exit
fi
# macOS calls it shasum.
hash=$(inputs | { sha256sum 2>/dev/null || shasum -a 256; })
image=$HARNESS_NAME/node:$KUBERNETES_VERSION-${hash:0:12}
if ! present "$image"; then
  [[ ${1:-} != present ]] || exit 1
  if pull; then
    echo "$KIND_NODE_IMAGE"
    exit
  fi
  build
fi
echo "$image"
