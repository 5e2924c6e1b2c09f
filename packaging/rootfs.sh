# Functions for the scripts that build root file systems of Debian. The scripts run in the top
# folder of the project.

# alone SCRIPT [ARGUMENT...] runs a script again in its own mount namespace, so that its mounts
# disappear when it ends. A user who is not root becomes root in a user namespace, which takes
# the package uidmap and a range of IDs in /etc/subuid (adduser creates one for each user).
alone() {
	[ -z "${PERCH_ALONE:-}" ] || return 0
	export PERCH_ALONE=yes
	[ "$(id -u)" -ne 0 ] || exec unshare --mount "$@"
	unshare --map-root-user --map-auto true 2>/dev/null || {
		echo "to unpack a Debian with its owners, run this with sudo, or install uidmap and have a range of users in /etc/subuid and /etc/subgid" >&2
		exit 1
	}
	exec unshare --map-root-user --map-auto --mount "$@"
}

# emulates ARCHITECTURE makes this kernel run programs for amd64 or arm64.
emulates() {
	[ "$(dpkg --print-architecture)" != "$1" ] || return 0
	case $1 in amd64) emulator=qemu-x86_64 ;; *) emulator=qemu-aarch64 ;; esac
	[ -e /proc/sys/fs/binfmt_misc/register ] || mount -t binfmt_misc none /proc/sys/fs/binfmt_misc || true
	[ -e "/proc/sys/fs/binfmt_misc/$emulator" ] || update-binfmts --enable "$emulator" || {
		echo "this kernel runs no programs of $1 (binfmt_misc); sudo update-binfmts --enable $emulator, or a machine that is $1, is the cure" >&2
		exit 1
	}
}
