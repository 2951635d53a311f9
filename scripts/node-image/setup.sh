#!/bin/bash
# Runs inside the node's root file system, after the packages, kind's files and the Kubernetes
# binaries are in it: what kind's own base image does at this point (images/base/Dockerfile).
set -euo pipefail

chmod 0755 /kind /kind/bin /kind/bin/* /usr/local/bin/*

# Units that make no sense in a container, or that touch the host.
find /lib/systemd/system/sysinit.target.wants/ -name systemd-tmpfiles-setup.service -delete
rm -f /lib/systemd/system/multi-user.target.wants/* \
  /etc/systemd/system/*.wants/* \
  /lib/systemd/system/local-fs.target.wants/* \
  /lib/systemd/system/sockets.target.wants/*udev* \
  /lib/systemd/system/sockets.target.wants/*initctl* \
  /lib/systemd/system/basic.target.wants/*
echo ReadKMsg=no >>/etc/systemd/journald.conf
ln -sf /usr/lib/systemd/systemd /sbin/init

systemctl --quiet enable kubelet.service containerd.service undo-mount-hacks.service
# It would register things for the whole kernel, the host's too.
systemctl --quiet mask systemd-binfmt.service

mkdir -p /etc/kubernetes/manifests

ctr oci spec |
  jq '.hooks.createContainer += [{"path": "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' \
    >/etc/containerd/cri-base.json

# A host that withholds CAP_SYS_RESOURCE lets no process lower an OOM score; with this,
# containerd asks for the lowest it can have. It changes nothing on other hosts.
sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' /etc/containerd/config.toml
grep -q 'restrict_oom_score_adj = true' /etc/containerd/config.toml

# Every node needs an identity of its own, made at its first start.
: >/etc/machine-id
