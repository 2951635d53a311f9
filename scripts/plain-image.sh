#!/bin/sh
# plain-image.sh: put the image that the files of 04-goop/plain name into the nodes of the kind cluster that kubectl points
# at. Where it cannot be pulled, an image with this machine's own busybox gets its name.
set -eu
unset CDPATH GOOS GOARCH
cd "$(dirname "$0")/.."
name=docker.io/library/busybox:1.37
image=$name
docker pull --quiet "$image" >/dev/null 2>&1 || {
  echo "==> $name cannot be pulled: an image with this machine's busybox takes its place" >&2
  image=$(go -C shared run ./cmd/harness image --stage 04-goop busybox)
}
for node in $(kubectl get nodes -o jsonpath='{.items[*].metadata.name}'); do
  docker save "$image" | docker exec -i "$node" ctr --namespace k8s.io images import - >/dev/null
  docker exec "$node" ctr --namespace k8s.io images tag --force "$image" "$name" >/dev/null
  echo "$node has $name"
done
