#!/bin/bash
# Runs inside the node's root file system and writes to standard output a tar of a few programs with
# the libraries they need: what kube-proxy and the network and storage pods call. A whole second
# Debian would do as well, and cost every node a hundred megabytes to unpack.
set -euo pipefail

programs=(
  sh cat mkdir mv rm sleep getent
  ip nft conntrack
  iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore
)

# Scripts name their shell by this path, which "command -v" does not print.
files=(/bin/sh)
for program in "${programs[@]}"; do
  files+=("$(command -v "$program")")
done
# iptables loads its matches and targets by name.
for extension in /usr/lib/*/xtables/*.so; do
  files+=("$extension")
done

# ldd prints "name => /path (address)" for libraries and "/path (address)" for the loader.
libraries=$(ldd "${files[@]}" 2>/dev/null | grep -o '/[^ :]* (0x' | cut -d' ' -f1 | sort -u)

# shellcheck disable=SC2086 # one word for each library
tar --create --dereference --absolute-names --transform 's,^/,,' "${files[@]}" $libraries
