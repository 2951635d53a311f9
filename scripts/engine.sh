#!/usr/bin/env bash
# Makes sure that a container engine answers on this machine. Where one does, nothing is changed.
# Otherwise, on Debian and Ubuntu and as root, Docker is installed from the distribution's packages
# and started, with or without an init system.
#
# usage: engine.sh [start|stop|pid]     stop ends only a daemon that this script started; pid prints its number, if it runs
set -euo pipefail
unset CDPATH GOOS GOARCH

harness=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../shared/config/harness.env
source "$harness/shared/config/harness.env"

readonly pid_file=/run/$HARNESS_NAME-dockerd.pid
readonly log_file=/var/log/$HARNESS_NAME-dockerd.log
readonly runtime=/usr/local/libexec/$HARNESS_NAME-runc
readonly daemon_json=/etc/docker/daemon.json

# macOS has no timeout command; there a hanging engine is interrupted by hand.
command -v timeout >/dev/null || timeout() { shift && "$@"; }

say() { echo "engine: $*" >&2; }
fail() {
  say "$*"
  exit 1
}

# answers prints the name of the first engine that answers, in the order package engine asks them.
answers() {
  if timeout 10 docker version >/dev/null 2>&1; then
    echo docker
  elif timeout 10 podman info >/dev/null 2>&1; then
    echo podman
  else
    return 1
  fi
}

# may_be_used fails where an engine is up and answers others: to install one would be of no use.
may_be_used() {
  local said
  said=$(timeout 10 docker version 2>&1 >/dev/null) || true
  grep -qiE 'permission denied.*connect|connect.*permission denied' <<<"$said" || return 0
  say "$said"
  fail "an engine is up, but you may not use it: add yourself to group docker (sudo usermod -aG docker \$USER, then log in again), or go on without one with CLUSTER=embedded"
}

require_debian_root() {
  [[ -z ${DOCKER_HOST:-} ]] || fail "DOCKER_HOST is $DOCKER_HOST and no engine answers there: start that one, or unset DOCKER_HOST"
  local id="" id_like=""
  if [[ -r /etc/os-release ]]; then
    id=$(. /etc/os-release && echo "${ID:-}")
    id_like=$(. /etc/os-release && echo "${ID_LIKE:-}")
  fi
  case " $id $id_like " in
    *" debian "* | *" ubuntu "*) ;;
    *) fail "no container engine answers, and this script installs one only on Debian and Ubuntu: start Docker Desktop or your own engine, or go on without one with CLUSTER=embedded" ;;
  esac
  [[ $(id -u) == 0 ]] ||
    fail "no container engine answers: start it, or run this as root to install and start Docker (sudo make engine), or go on without one with CLUSTER=embedded"
}

install_packages() {
  local missing=()
  command -v dockerd >/dev/null || missing+=(docker.io)
  command -v runc >/dev/null || missing+=(containerd runc)
  command -v iptables >/dev/null || missing+=(iptables)
  command -v ip >/dev/null || missing+=(iproute2)
  if ((${#missing[@]})); then
    apt_install "${missing[@]}"
  fi
  # Where the client is a package of its own, docker.io only recommends it.
  command -v docker >/dev/null || apt_install docker-cli
}

apt_install() {
  say "installing $*"
  local start=$SECONDS log=$temp/apt.log
  if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    fail "installing $* failed after $((SECONDS - start))s"
  fi
  say "installing $*: took $((SECONDS - start))s"
}

# lacks_capabilities reports whether the bounding set misses any capability that the kernel knows.
lacks_capabilities() {
  local bounding known
  bounding=$((16#$(sed -n 's/^CapBnd:[[:space:]]*//p' /proc/self/status)))
  known=$(((1 << ($(cat /proc/sys/kernel/cap_last_cap) + 1)) - 1))
  (((bounding & known) != known))
}

# configure_capabilities gives Docker a runtime that asks runc only for capabilities this host can
# give. Without it no privileged container starts where the bounding set lacks one, and every kind
# node is a privileged container.
configure_capabilities() {
  lacks_capabilities || return 0
  (cd "$harness/shared" && GOWORK=off CGO_ENABLED=0 go build -buildvcs=false -o "$temp/capped-runc" ./cmd/capped-runc)
  install -D -m 0755 "$temp/capped-runc" "$runtime"
  if [[ ! -e $daemon_json ]]; then
    mkdir -p "$(dirname "$daemon_json")"
    printf '{\n  "default-runtime": "capped",\n  "runtimes": {"capped": {"path": "%s"}}\n}\n' "$runtime" >"$daemon_json"
    say "this host lacks capabilities: $runtime is now Docker's runtime ($daemon_json)"
  elif ! grep -q "$runtime" "$daemon_json"; then
    fail "this host lacks capabilities and $daemon_json exists: add \"default-runtime\": \"capped\" and \"runtimes\": {\"capped\": {\"path\": \"$runtime\"}} to it, then run this again"
  fi
}

# raise_limits lets two clusters of three nodes run at once. One takes 55 of the inotify instances a user
# may have; the kernel's default is 128, and kubelets that find none left do not start.
raise_limits() {
  local instances=/proc/sys/fs/inotify/max_user_instances
  (($(cat $instances) >= 512)) && return
  if echo 512 2>/dev/null >$instances; then
    say "raised fs.inotify.max_user_instances to 512 until the next boot"
  else
    say "fs.inotify.max_user_instances stays at $(cat $instances): two clusters at once may be too much for it"
  fi
}

start_daemon() {
  if [[ -d /run/systemd/system ]]; then
    say "starting the docker service"
    systemctl start docker || fail "the docker service did not start: see journalctl -u docker"
    return
  fi
  say "starting dockerd, log in $log_file"
  # A daemon that was killed leaves its pid file, and dockerd then fails to start if the number
  # belongs to some other process by now.
  if [[ -e /run/docker.pid ]] && ! is_dockerd "$(cat /run/docker.pid)"; then
    rm -f /run/docker.pid
  fi
  # Likewise the containerd that dockerd starts: for a number that some process has, dockerd waits for it in vain.
  local containerd=/run/docker/containerd/containerd.pid
  if [[ -e $containerd && $(cat "/proc/$(cat $containerd)/comm" 2>/dev/null) != containerd ]]; then
    rm -f $containerd
  fi
  # Its own session: Ctrl-C in the terminal that started it must not end it. Descriptor 9 is the lock.
  setsid dockerd >"$log_file" 2>&1 </dev/null 9>&- &
  echo $! >"$pid_file"
}

# is_dockerd reports whether a process id belongs to a running dockerd: numbers are used again.
is_dockerd() { [[ -r /proc/$1/comm && $(cat "/proc/$1/comm") == dockerd ]]; }

wait_until_up() {
  local deadline=$((SECONDS + 60))
  until timeout 10 docker version >/dev/null 2>&1; do
    if ((SECONDS > deadline)) || { [[ -e $pid_file ]] && ! kill -0 "$(cat "$pid_file")" 2>/dev/null; }; then
      [[ -e $log_file ]] && tail -n 20 "$log_file" >&2
      rm -f "$pid_file"
      fail "dockerd does not answer: its last words are above"
    fi
    sleep 0.2
  done
}

start() {
  local name begin=$SECONDS
  if name=$(answers); then
    say "the engine is up ($name)"
    return
  fi
  may_be_used
  require_debian_root
  exec 9>"/run/$HARNESS_NAME-engine.lock"
  flock --nonblock 9 || {
    say "waiting for another process that is starting the engine"
    flock 9
  }
  if name=$(answers); then # the process that held the lock has started it
    say "the engine is up ($name)"
    return
  fi
  temp=$(mktemp -d)
  trap 'rm -rf "$temp"' EXIT
  # Before the packages: their installation may start the daemon.
  configure_capabilities
  install_packages
  raise_limits
  answers >/dev/null || start_daemon
  wait_until_up
  say "docker $(docker version --format '{{.Server.Version}}') is up after $((SECONDS - begin))s"
}

stop() {
  local pid
  if [[ ! -e $pid_file ]] || ! pid=$(cat "$pid_file") || ! is_dockerd "$pid"; then
    rm -f "$pid_file"
    say "no dockerd that this script started is running"
    return
  fi
  say "stopping dockerd ($pid)"
  kill "$pid"
  local deadline=$((SECONDS + 60))
  while kill -0 "$pid" 2>/dev/null; do
    ((SECONDS <= deadline)) || fail "dockerd ($pid) does not end: see $log_file"
    sleep 0.2
  done
  rm -f "$pid_file"
  say "dockerd is stopped"
}

case "${1:-start}" in
  start) start ;;
  stop) stop ;;
  pid) [[ ! -e $pid_file ]] || ! is_dockerd "$(cat "$pid_file")" || cat "$pid_file" ;;
  *) fail "usage: engine.sh [start|stop|pid]" ;;
esac
