# What makes root file systems of Debian sources this, from the top folder of the project.

# alone runs the script again where what it mounts is its own, and goes with it however it
# ends. Whoever is not root becomes root of users of their own, with uidmap and a range of
# users in /etc/subuid; adduser gives everybody one.
alone() {
	[ -z "${PERCH_ALONE:-}" ] || return 0
	export PERCH_ALONE=yes
	[ "$(id -u)" -ne 0 ] || exec unshare --mount "$@"
	unshare --map-root-user --map-auto true 2>/dev/null || {
		echo "whoever is not root needs the package uidmap and a range of users in /etc/subuid and /etc/subgid to unpack a Debian with its owners; or run this with sudo" >&2
		exit 1
	}
	exec unshare --map-root-user --map-auto --mount "$@"
}

# emulates has this kernel run programs of an architecture, amd64 or arm64.
emulates() {
	[ "$(dpkg --print-architecture)" != "$1" ] || return 0
	case $1 in amd64) emulator=qemu-x86_64 ;; *) emulator=qemu-aarch64 ;; esac
	[ -e /proc/sys/fs/binfmt_misc/register ] || mount -t binfmt_misc none /proc/sys/fs/binfmt_misc || true
	[ -e "/proc/sys/fs/binfmt_misc/$emulator" ] || update-binfmts --enable "$emulator" || {
		echo "this kernel runs no programs of $1 (binfmt_misc); sudo update-binfmts --enable $emulator, or a machine that is $1, is the cure" >&2
		exit 1
	}
}
