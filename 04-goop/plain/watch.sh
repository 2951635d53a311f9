#!/bin/sh
# watch.sh [FLAG...]: waits until the plain DaemonSet has done its work on every node. The flags are kubectl's, such as
# --namespace.
set -eu
counts='{.status.observedGeneration} {.status.desiredNumberScheduled} {.status.numberReady}'
while sleep 1; do
  kubectl get daemonset plain "$@" -o jsonpath="$counts" | {
    read -r observed desired ready || :
    echo "${ready:-0} of ${desired:-0} nodes are done" >&2
    [ "${observed:-0}" -gt 0 ] && [ "${ready:-0}" -ge "${desired:-1}" ]
  } && exit
done
