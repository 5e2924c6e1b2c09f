#!/bin/sh
# Installs the Debian packages for building, running and testing Perch:
#
#   packaging/deps.sh [GROUP...]
#
# It needs to be root, or uses sudo; without sudo it prints the command to run. Each group
# adds packages: deb for building and testing Debian packages, browser for testing the page,
# app for testing the app of Home Assistant, arm64 for an emulated machine, image for
# building and booting the SD card image, container for building and running the container,
# release for signing a release and its apt repository.
set -eu
cd "$(dirname "$0")/.."

packages="gcc libc6-dev pkg-config libopus-dev libopusfile-dev libspeexdsp-dev libpocketsphinx-dev pocketsphinx-en-us espeak-ng flite ffmpeg
  open-jtalk open-jtalk-mecab-naist-jdic hts-voice-nitech-jp-atr503-m001
  iproute2 zopfli python3 python3-zeroconf curl ca-certificates procps"

# npm fetches the libraries of the page. Any version of Node has a suitable npm.
command -v npm >/dev/null || packages="$packages nodejs npm"

# Packages are built for both architectures, which takes a cross compiler.
other=gcc-aarch64-linux-gnu
[ "$(uname -m)" = aarch64 ] && other=gcc-x86-64-linux-gnu
for group; do
	case $group in
	deb) packages="$packages mmdebstrap $other systemd-container" ;;
	arm64) packages="$packages qemu-system-arm cpio" ;;
	image) packages="$packages mmdebstrap arch-test qemu-user-static binfmt-support qemu-system-arm mtools xz-utils uidmap openssh-client $other" ;;
	container) packages="$packages mmdebstrap arch-test qemu-user-static binfmt-support umoci skopeo crun uidmap $other" ;;
	release) packages="$packages apt-utils gnupg openssh-client" ;;
	app) packages="$packages python3-voluptuous python3-yaml" ;;
	browser) packages="$packages chromium firefox-esr libnss3-tools fonts-dejavu-core fonts-wqy-microhei" ;;
	*) echo "deps.sh knows the groups deb, image, app, container, release, browser and arm64, not $group" >&2 && exit 2 ;;
	esac
done

# Check Go first: without it, all other packages would be installed in vain.
needed=$(sed -n 's/^go //p' go.mod)
if ! command -v go >/dev/null; then
	echo "Go $needed or newer is needed, and there is no go on the PATH: https://go.dev/dl has it. Nothing was installed." >&2
	exit 1
fi
go=$(cd / && GOTOOLCHAIN=local go version | grep -o 'go[0-9][0-9.]*' | head -n 1 | cut -c 3-)
older() { [ "$1" != "$2" ] && [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }
# fetches: Go 1.21 and later downloads the version that a project needs, unless GOTOOLCHAIN forbids that.
fetches() {
	case $(cd / && go env GOTOOLCHAIN) in
	auto | *+auto) ! older "$go" 1.21 ;;
	*) return 1 ;;
	esac
}
if older "$go" "$needed" && ! fetches; then
	echo "Go $needed or newer is needed, and $(command -v go) is Go $go: https://go.dev/dl has the newer. Nothing was installed." >&2
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
# quietly shows the output of a command only if the command fails.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() {
	if ! "$@" >"$log" 2>&1; then
		cat "$log" >&2
		exit 1
	fi
}
quietly $sudo apt-get update -qq
# The Japanese voice is in Debian's section contrib. If the machine does not use contrib, install
# only this package from there, without changing the machine's package sources.
voice=hts-voice-nitech-jp-atr503-m001
case "$missing " in
*" $voice "*)
	if ! apt-cache policy "$voice" 2>/dev/null | grep -q 'Candidate: [0-9]'; then
		missing=$(echo "$missing " | sed "s/ $voice / /")
		contrib=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) contrib' 'Created-By: Packages' 'Component: main' 'Label: Debian' |
			grep -v -e '-[a-z]* contrib$' | head -n 1)
	fi
	;;
esac
# shellcheck disable=SC2086 # a list of names; env, because sudo passes no variables on
quietly $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
if [ -n "${contrib:-}" ]; then
	apart=$(mktemp -d)
	trap 'rm -f "$log"; $sudo rm -rf "$apart"' EXIT
	mkdir -p "$apart/lists/partial" && chmod -R a+rX "$apart"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $contrib" >"$apart/contrib.list"
	set -- -o "Dir::Etc::SourceList=$apart/contrib.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$apart/lists"
	quietly $sudo apt-get "$@" update -qq
	quietly $sudo env DEBIAN_FRONTEND=noninteractive apt-get "$@" install -y -qq --no-install-recommends "$voice"
fi
