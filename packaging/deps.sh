#!/bin/sh
# Installs the Debian packages that building and running Perch need: as root, or
# with sudo. Without either it prints the line to run. With "deb" also those that
# making packages and testing them take, with "arm64" an emulated machine too.
set -eu

packages="gcc libc6-dev pkg-config libopus-dev libspeexdsp-dev libpocketsphinx-dev pocketsphinx-en-us espeak-ng flite
  iproute2 python3 python3-zeroconf curl ca-certificates procps"

# Packages are made for both architectures, and looked at in roots of their own.
other=gcc-aarch64-linux-gnu
[ "$(uname -m)" = aarch64 ] && other=gcc-x86-64-linux-gnu
for group; do
	case $group in
	deb) packages="$packages mmdebstrap $other systemd-container" ;;
	arm64) packages="$packages qemu-system-arm cpio" ;;
	*) echo "deps.sh knows the groups deb and arm64, not $group" >&2 && exit 2 ;;
	esac
done

if ! command -v go >/dev/null; then
	echo "Go 1.26 is needed and is not on the PATH; see https://go.dev/dl" >&2
	exit 1
fi
if ! command -v dpkg-query >/dev/null; then
	echo "this is no Debian system; install what corresponds to: $packages" >&2
	exit 0
fi

missing=""
for p in $packages; do
	dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $p"
done
[ -z "$missing" ] && exit 0

sudo=""
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "these packages are missing; as root run: apt-get update && apt-get install -y$missing" >&2
		exit 1
	fi
	sudo=sudo
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
# shellcheck disable=SC2086 # a list of names
$sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
