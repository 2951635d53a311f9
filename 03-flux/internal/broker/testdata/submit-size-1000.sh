#!/bin/sh
# This script starts the broker of a pod of any rank. It is process 1 of the container. Each step says what fails
# without it.
set -eu

# 1. When a pod is terminated, only process 1 receives TERM. The script forwards it to the broker. The exit code must then
#    be 143 (128 + TERM), whatever the broker's is: a broker that receives TERM before the command has begun exits with 0,
#    which the Job controller would count as a success. A broker that is still starting ignores TERM. Therefore it is killed
#    if the pod is not ready yet: then there is nothing to shut down gracefully. HUP, INT and QUIT are handled because an
#    image may have one of them as its stop signal. The variables have a prefix that spec.template.env rejects: assigning to
#    a variable of the environment would change it for the command.
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

# 2. If the image has no Flux, the message says so.
if ! command -v flux >/dev/null; then
  echo "entrypoint.sh: no program flux in PATH ($PATH): the image must contain Flux (flux-core)" >&2
  exit 127
fi

# 3. The broker rejects a certificate that group or others may read, and the file of a mounted Secret is such a one.
install -m 0600 /flux-secret/curve.cert /flux/curve.cert

# 4. The pod is ready when /flux/ready exists. Rank 0 creates it when 900 of 1000 brokers are connected and
#    its broker starts the command. The other ranks create it when they have joined: a broker then runs its start-up
#    script rc1, to which the creation of the file is added here.
if [ "$JOB_COMPLETION_INDEX" = 0 ]; then
  set -- /bin/sh /flux-config/command.sh
  # Flux pins tasks to the cores that it allocates, and these have the same numbers on each rank: the tasks of ranks that
  # share a node would run on the same cores. With cpu-affinity=off the kernel places them. Flux terminates all tasks half a
  # minute after the first one has ended: exit-timeout=none prevents that.
  set -- flux run -N900 -n100000 -o cpu-affinity=off -o exit-timeout=none -- "$@"
  set -- /bin/sh -c ': >/flux/ready; exec "$@"' sh "$@"
else
  FLUX_RC1=$(flux config builtin rc1_path)
  set -- "-Sbroker.rc1_path=$FLUX_RC1 && : >/flux/ready"
fi

# 5. The broker's user must own rundir and statedir, but root owns /flux: the broker creates its own directories in it.
#    local-uri is fixed, so that a user can connect to the broker with `kubectl exec`:
#        kubectl exec POD -- env FLUX_URI=local:///flux/run/local flux resource list
#    Without shutdown-timeout, rank 0 does not end as long as another broker does not end.
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

# 6. Start the broker, unless a signal has arrived. A signal may also arrive between two of these lines.
[ -z "$FLUX_STOPPED" ] || exit "$FLUX_STOPPED"
"$@" &
FLUX_BROKER=$!
[ -z "$FLUX_STOPPED" ] || stop "$FLUX_STOPPED"

# 7. Wait for the end of the broker. A signal interrupts the first wait while the broker still runs.
code=0
wait "$FLUX_BROKER" || code=$?
while [ -n "$FLUX_STOPPED" ] && kill -s 0 "$FLUX_BROKER" 2>/dev/null; do
  wait "$FLUX_BROKER" || :
done
exit "${FLUX_STOPPED:-$code}"
