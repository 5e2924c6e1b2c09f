#!/bin/sh
# Takes out of a root file system what a container has no use for, and what differs from
# build to build; mmdebstrap runs it.
set -eu
root=$1

# What people at a terminal or a machine that boots would use.
rm -rf "$root"/usr/share/locale/* "$root"/usr/share/info/* "$root"/usr/share/doc-base "$root"/usr/share/lintian
rm -rf "$root"/usr/share/bash-completion "$root"/usr/share/zsh "$root"/usr/share/fish
rm -rf "$root"/usr/lib/systemd/system "$root"/etc/systemd/system "$root"/var/lib/systemd "$root"/etc/sysusers.d "$root"/usr/bin/qemu-*-static

# Logs and caches; identities and backups of files.
rm -rf "$root"/var/log/* "$root"/var/cache/* "$root"/var/lib/apt/lists/*
# In /tmp mmdebstrap has its own configuration of apt, without which apt would change this machine's lists.
rm -f "$root/tmp/perch.deb"
rm -f "$root"/etc/machine-id "$root"/var/lib/dbus/machine-id "$root"/etc/resolv.conf "$root"/etc/hostname "$root"/etc/.pwd.lock
rm -f "$root"/etc/passwd- "$root"/etc/group- "$root"/etc/shadow- "$root"/etc/gshadow- "$root"/var/lib/dpkg/*-old
# Where this machine gets its packages from is its own affair.
rm -rf "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/* "$root"/etc/apt/apt.conf.d/99mmdebstrap

# Nobody becomes root in it.
find "$root" -xdev -type f -perm /6000 -exec chmod a-s {} +
# The data are Perch's, and so is the folder that keys are mounted into.
install -d -o 8003 -g 8003 -m 750 "$root/var/lib/perch"
chown 8003:8003 "$root/etc/perch/secrets"
