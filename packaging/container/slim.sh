#!/bin/sh
# Removes from a root file system the files that a container does not need, and the files that
# differ from build to build. mmdebstrap runs this script.
set -eu
root=$1

# Files for people at a terminal, and for a machine that boots.
rm -rf "$root"/usr/share/locale/* "$root"/usr/share/info/* "$root"/usr/share/doc-base "$root"/usr/share/lintian
rm -rf "$root"/usr/share/bash-completion "$root"/usr/share/zsh "$root"/usr/share/fish
rm -rf "$root"/usr/lib/systemd/system "$root"/etc/systemd/system "$root"/var/lib/systemd "$root"/etc/sysusers.d "$root"/usr/bin/qemu-*-static

# Logs, caches, identities of the machine, and backups of files.
rm -rf "$root"/var/log/* "$root"/var/cache/* "$root"/var/lib/apt/lists/*
# Leave /tmp alone: it contains mmdebstrap's configuration of apt. Without it, apt would change the lists of the building machine.
rm -f "$root/tmp/perch.deb"
rm -f "$root"/etc/machine-id "$root"/var/lib/dbus/machine-id "$root"/etc/resolv.conf "$root"/etc/hostname "$root"/etc/.pwd.lock
rm -f "$root"/etc/passwd- "$root"/etc/group- "$root"/etc/shadow- "$root"/etc/gshadow- "$root"/var/lib/dpkg/*-old
# The package sources of the building machine do not belong in the image.
rm -rf "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/* "$root"/etc/apt/apt.conf.d/99mmdebstrap

# Remove set-user-ID bits: no program in the container may become root.
find "$root" -xdev -type f -perm /6000 -exec chmod a-s {} +
# Perch owns its data folder, and the folder into which keys are mounted.
install -d -o 8003 -g 8003 -m 750 "$root/var/lib/perch"
chown 8003:8003 "$root/etc/perch/secrets"
