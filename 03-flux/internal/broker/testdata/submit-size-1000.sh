#!/bin/sh
# Starts the broker of one pod, whichever its rank. It is process 1 of the container. Each step is here
# because something goes wrong without it.
set -eu

# 1. When a pod is to end, process 1 alone is told, by TERM. The broker must hear of it, and the exit
#    code must then be 143 (128 + TERM) whatever the broker's is: it exits with 0 if it is told to
#    end before the command has begun, and the Job would take that for success. Before the pod is
#    ready there is nothing to end in good order, and a broker that starts is deaf to TERM: KILL.
#    HUP, INT and QUIT are for images that name one of them as their stop signal.
#    The variables have names that users cannot give to theirs: a shell passes on what it assigns to one.
FLUX_BROKER=''
FLUX_STOPPED=''
stop() {
  FLUX_STOPPED=$1
  signal=KILL
  [ ! -e /flux/ready ] || signal=TERM
  [ -z "$FLUX_BROKER" ] || kill -s "$signal" "$FLUX_BROKER" 2>/dev/null || :
}
trap 'stop 143' TERM
trap 'stop 129' HUP
trap 'stop 130' INT
trap 'stop 131' QUIT

# 2. Without Flux, say so in words that speak of the image.
if ! command -v flux >/dev/null; then
  echo "entrypoint.sh: no program flux in PATH ($PATH): the image must hold Flux (flux-core)" >&2
  exit 127
fi

# 3. The broker rejects a certificate that group or others may read, as they may a mounted Secret.
install -m 0600 /flux-secret/curve.cert /flux/curve.cert

# 4. The pod is ready when /flux/ready is there. Rank 0 makes it when 900 of 1000 brokers are there and
#    the command begins, which the broker of rank 0 runs. The others make it when they have joined:
#    that is when a broker runs rc1, its own start-up, and what is added to it here.
if [ "$JOB_COMPLETION_INDEX" = 0 ]; then
  set -- /bin/sh /flux-config/command.sh
  # Flux pins tasks to the cores that it gives out, which bear the same numbers on each rank: ranks
  # that share a node would crowd on the same cores. cpu-affinity=off leaves that to the kernel. Half a
  # minute after the first task has ended Flux would end the others: exit-timeout=none lets each take
  # its time.
  set -- flux run -N900 -n100000 -o cpu-affinity=off -o exit-timeout=none -- "$@"
  set -- /bin/sh -c ': >/flux/ready; exec "$@"' sh "$@"
else
  FLUX_RC1=$(flux config builtin rc1_path)
  set -- "-Sbroker.rc1_path=$FLUX_RC1 && : >/flux/ready"
fi

# 5. rundir and statedir must belong to the broker's user, and /flux belongs to root: the broker makes
#    folders of its own in it. local-uri is fixed, so that `kubectl exec` can speak with the broker:
#        kubectl exec POD -- env FLUX_URI=local:///flux/run/local flux resource list
#    Without shutdown-timeout, rank 0 never ends as long as one other broker does not.
set -- flux broker \
  --config-path=/flux-config/broker.toml \
  -Srundir=/flux/run \
  -Sstatedir=/flux/state \
  -Slocal-uri=local:///flux/run/local \
  -Sbroker.quorum=900 \
  -Sbroker.quorum-warn=15s \
  -Sbroker.shutdown-timeout=10s \
  -Slog-stderr-level=7 \
  -Slog-forward-level=7 \
  "$@"

# 6. Start it, unless the end has come before. It may also come between two of these lines.
[ -z "$FLUX_STOPPED" ] || exit "$FLUX_STOPPED"
"$@" &
FLUX_BROKER=$!
[ -z "$FLUX_STOPPED" ] || stop "$FLUX_STOPPED"

# 7. Wait for its end. A signal cuts the first wait short while the broker is still there.
code=0
wait "$FLUX_BROKER" || code=$?
while [ -n "$FLUX_STOPPED" ] && kill -s 0 "$FLUX_BROKER" 2>/dev/null; do
  wait "$FLUX_BROKER" || :
done
exit "${FLUX_STOPPED:-$code}"
