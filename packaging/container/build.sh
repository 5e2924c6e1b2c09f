#!/bin/sh
# Builds the container image: Perch, and a Debian 13 without the files that a container does not need.
#
#   packaging/container/build.sh [FOLDER] [ARCHITECTURE...]
#
# The script needs neither docker nor a registry, only Debian's packages. It runs the maintainer
# scripts of a foreign architecture in an emulator. The result is one archive in the format of the
# Open Container Initiative, with the image for all architectures. The same commit gives the
# same bytes. The script prints the path of the archive on standard output.
set -eu
cd "$(dirname "$0")/../.."
. packaging/rootfs.sh
alone packaging/container/build.sh "$@"

suite=trixie
out=$(mkdir -p "${1:-dist}" && cd "${1:-dist}" && pwd)
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- amd64 arm64
step() { echo "container: $*" >&2; }
fail() { echo "container: $*" >&2 && exit 1; }

for program in mmdebstrap dpkg-deb; do
	command -v "$program" >/dev/null || fail "$program is not installed; packaging/deps.sh deb container installs it"
done
for arch; do
	case $arch in amd64 | arm64) ;; *) echo "containers are for amd64 and arm64, not for $arch" >&2 && exit 2 ;; esac
	emulates "$arch"
done
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
umask 022

debs=$(packaging/deb.sh "$out" "$@")
work=$out/container
rm -rf --one-file-system "$work"
mkdir -p "$work"
go build -trimpath -o "$work/layout" ./packaging/container/layout
go build -trimpath -o "$work/spdx" ./packaging/spdx

platforms=
for arch; do
	perch=$(echo "$debs" | grep "/perch_.*_$arch\.deb\$")
	version=$(dpkg-deb -f "$perch" Version)
	# The dependencies of the package. The last alternative of each is the smallest.
	packages=$(dpkg-deb -f "$perch" Depends | tr , '\n' | sed 's/.*|//; s/(.*//; s/ //g' | tr '\n' ,)ca-certificates,tzdata
	step "installs Debian $suite for $arch"
	mmdebstrap --variant=minbase --architectures="$arch" --aptopt='APT::Install-Recommends "false"' --dpkgopt=force-confold \
		--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-include=/usr/share/doc/*/copyright' --dpkgopt='path-include=/usr/share/doc/perch/examples/*' \
		--essential-hook='install -D -m 644 packaging/container/perch.sysusers "$1/etc/sysusers.d/perch.conf"' \
		--include="$packages" \
		--customize-hook="cp '$perch' \"\$1/tmp/perch.deb\"" \
		--customize-hook='chroot "$1" dpkg -i /tmp/perch.deb' \
		--customize-hook=packaging/container/slim.sh \
		"$suite" "$work/$arch" >"$work/$arch.log" 2>&1 || { tail -n 40 "$work/$arch.log" >&2; fail "Debian could not be installed for $arch; $work/$arch.log says more"; }
	"$work/spdx" -name "perch-container-$arch" -version "$version" "$work/$arch" >"$out/perch-container_${version}_$arch.spdx.json"
	platforms="$platforms $arch=$work/$arch"
done

step "packs it"
archive=$out/perch-container_$version.oci.tar
# shellcheck disable=SC2086 # one word for each architecture
"$work/layout" -version "$version" -revision "$(git rev-parse HEAD)" -source "$(dpkg-deb -f "$perch" Homepage)" -level "${PERCH_GZIP:-9}" \
	-o "$archive" $platforms >&2
echo "$archive"
