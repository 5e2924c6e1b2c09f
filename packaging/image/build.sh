#!/bin/sh
# Builds the SD card image: Debian 13 for 64-bit Raspberry Pis, with Perch.
#
#   packaging/image/build.sh [FOLDER]
#
# The script needs only Debian's packages. It creates the file systems with programs of Debian
# 13, which it unpacks into a folder: the result does not depend on the Debian of this machine.
# It mounts no file system of the image and uses no loop device. The maintainer scripts of the
# packages run in an emulator, which takes minutes; the two slowest programs in them are replaced
# by programs of this machine's architecture.
#
# The same commit and the same packages give the same bytes. packages.lock lists the packages. The
# script uses the versions in this list if the mirror still has them, and prints the differences.
# PERCH_LOCK=write updates the list, and PERCH_LOCK=strict makes the script fail if there are
# differences. PERCH_MIRROR is another mirror, or a file with package sources for apt.
set -eu
cd "$(dirname "$0")/../.."
. packaging/rootfs.sh
alone packaging/image/build.sh "$@"

suite=trixie
boot_mib=512   # two kernels and their initrds
spare_mib=192  # of the root, for the first boot; then it has the whole card
out=$(mkdir -p "${1:-dist}" && cd "${1:-dist}" && pwd)
step() { echo "image: $*" >&2; }

emulates arm64
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
umask 022

debs=$(packaging/deb.sh "$out" arm64)
perch=$(echo "$debs" | grep '/perch_')
version=$(dpkg-deb -f "$perch" Version)
image=$out/perch-pi_$version.img
work=$out/image
rm -rf --one-file-system "$work"
mkdir -p "$work"

step "compiles what the first boot and the access point run"
GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -buildid=" -o "$work/perch-firstboot" ./packaging/image/firstboot
GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -buildid=" -o "$work/perch-portal" ./packaging/image/portal

# The programs that create file systems. In Debian 13 they use SOURCE_DATE_EPOCH.
tools=$out/image.tools
if [ ! -d "$tools" ]; then
	step "unpacks the programs of Debian $suite that make file systems, this once"
	rm -rf "$tools.new"
	mmdebstrap --variant=minbase --include=e2fsprogs,dosfstools,mtools,fdisk,xz-utils,bmap-tools \
		"$suite" "$tools.new" >"$work/tools.log" 2>&1 || { cat "$work/tools.log" >&2; exit 1; }
	mv "$tools.new" "$tools"
fi
# in_tools runs one of these programs, which finds the work folder at /image.
in_tools() {
	mkdir -p "$tools/image"
	unshare --mount sh -c 'mount --bind "$1" "$2/image" && mount --rbind /proc "$2/proc" && shift && r=$1 && shift && exec chroot "$r" "$@"' sh "$work" "$tools" "$@"
}

# Two programs would take most of the time in the emulator: dpkg-deb uncompresses each package,
# and cp runs for each kernel module in the initrd. While the packages are installed, they are
# replaced by the programs of Debian 13 for this machine's architecture.
cat >"$work/own_programs" <<'HOOK'
#!/bin/sh
set -eu
tools=$1 root=$2
# systemd can be installed only if each /lib* is a link.
mkdir "$root/usr/lib64"
ln -s usr/lib64 "$root/lib64"
for program in /usr/bin/dpkg-deb /usr/bin/cp; do
	mv "$root$program" "$root$program.emulated"
	for file in "$program" $(chroot "$tools" ldd "$program" | grep -o '/[^ ]*'); do
		mkdir -p "$root$(dirname "$file")"
		cp -L "$tools$file" "$root$file"
	done
done
HOOK
cat >"$work/emulated_programs" <<'HOOK'
#!/bin/sh
set -eu
tools=$1 root=$2
for program in /usr/bin/dpkg-deb /usr/bin/cp; do
	for file in $(chroot "$tools" ldd "$program" | grep -o '/[^ ]*'); do
		rm -f "$root$file"
		rmdir --ignore-fail-on-non-empty -p "$root$(dirname "$file")" 2>/dev/null || true
	done
	mv "$root$program.emulated" "$root$program"
done
rm "$root/lib64"
rmdir --ignore-fail-on-non-empty "$root/usr/lib64" 2>/dev/null || true
HOOK
[ "$(dpkg --print-architecture)" != arm64 ] || printf '#!/bin/sh\n' | tee "$work/own_programs" >"$work/emulated_programs"
chmod 755 "$work"/*_programs

lock=packaging/image/packages.lock
: >"$work/pins"
if [ "${PERCH_LOCK:-}" != write ]; then
	awk '{printf "Package: %s\nPin: version %s\nPin-Priority: 1001\n\n", $1, $2}' "$lock" >"$work/pins"
fi

root=$work/root
step "installs Debian $suite for arm64; the first time takes many minutes"
packages=$(sed 's/#.*//' packaging/image/packages | tr -s '\n ' ',' | sed 's/^,//; s/,$//')
mmdebstrap --variant=minbase --architectures=arm64 --components="main contrib non-free-firmware" \
	--aptopt='APT::Install-Recommends "false"' --dpkgopt=force-confold \
	--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
	--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' --dpkgopt='path-include=/usr/share/doc/perch/*' \
	--setup-hook='sed -n "s/ '"$suite"' / '"$suite"'-backports /p" "$1/etc/apt/sources.list" >"$1/etc/apt/sources.list.d/backports.list"' \
	--setup-hook='mkdir -p "$1/boot/firmware" && cp -r packaging/image/root/. "$1"' \
	--setup-hook="cp '$work/pins' \"\$1/etc/apt/preferences.d/locked\"" \
	--essential-hook="'$work/own_programs' '$tools' \"\$1\"" \
	--dpkgopt=force-unsafe-io \
	--include="$packages" \
	--customize-hook="cp '$perch' \"\$1/tmp/perch.deb\"" \
	--customize-hook='chroot "$1" apt-get install -y --no-install-recommends /tmp/perch.deb' \
	--customize-hook='rm "$1/tmp/perch.deb" && cp -r packaging/image/root/. "$1"' \
	--customize-hook="install -m 755 '$work/perch-firstboot' \"\$1/usr/lib/perch/perch-firstboot\"" \
	--customize-hook="install -m 755 '$work/perch-portal' \"\$1/usr/lib/perch/perch-portal\"" \
	--customize-hook='chroot "$1" systemctl enable perch-grow.service perch-firstboot.service perch.service perch-portal.service' \
	--customize-hook='chroot "$1" systemctl disable ssh.service' \
	--customize-hook='rm "$1/etc/apt/preferences.d/locked"' \
	--customize-hook='sed -i /unsafe-io/d "$1/etc/dpkg/dpkg.cfg.d/99mmdebstrap"' \
	--customize-hook="'$work/emulated_programs' '$tools' \"\$1\"" \
	"$suite" "$root" ${PERCH_MIRROR:+"$PERCH_MIRROR"} >"$work/debian.log" 2>&1 || { tail -n 40 "$work/debian.log" >&2; exit 1; }

# Remove files that differ from build to build, or belong to a single machine.
rm -rf "$root"/etc/ssh/ssh_host_* "$root"/var/log/* "$root"/var/cache/* "$root"/var/lib/apt/lists/* "$root"/tmp/* "$root"/etc/resolv.conf
rm -f "$root"/etc/machine-id "$root"/var/lib/dbus/machine-id "$root"/var/lib/systemd/random-seed "$root"/usr/bin/qemu-aarch64-static
: >"$root/etc/machine-id"
mkdir -p "$root/var/cache/apt/archives/partial" "$root/var/lib/apt/lists/partial"
find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Package} ${Version} ${Architecture}\n' | LC_ALL=C sort >"$work/packages"
grep -v '^perch ' "$work/packages" >"$work/lock"
if [ "${PERCH_LOCK:-}" = write ]; then
	cp "$work/lock" "$lock"
elif ! diff "$lock" "$work/lock" >"$work/lock.diff"; then
	step "these packages differ from $lock (<), so the image differs from the one that was built with that list:"
	grep '^[<>]' "$work/lock.diff" >&2
	[ "${PERCH_LOCK:-}" != strict ] || exit 1
fi
go run ./packaging/spdx -name perch-pi -version "$version" "$root" >"$out/perch-pi_$version.spdx.json"

mv "$root/boot/firmware" "$work/boot"
mkdir "$root/boot/firmware"
touch -d "@$SOURCE_DATE_EPOCH" "$root/boot" "$root/boot/firmware"

root_mib=$(($(du -sm --apparent-size "$root" | cut -f1) * 108 / 100 + spare_mib))
start=8192 # sectors of 512 bytes
second=$((start + boot_mib * 2048))
step "makes an image of $((second / 2048 + root_mib)) MiB"
truncate -s $((second / 2048 + root_mib))M "$work/img"
# An MBR, because the boot ROMs of a Pi 3 and a Zero 2 W cannot read other partition tables.
cat >"$work/table" <<TABLE
label: dos
label-id: 0x50455243
start=$start,size=$((boot_mib * 2048)),type=c,bootable
start=$second,type=83
TABLE
uuid=50455243-4850-4900-8000-000000000001
in_tools sh -euc '
	export SOURCE_DATE_EPOCH=$1
	sfdisk -q /image/img </image/table
	# The log contains a warning that the image continues after this partition.
	mkfs.vfat --invariant -F 32 -s 2 -n PERCHBOOT -i 50455243 --offset "$2" /image/img "$(($3 * 1024))" >/image/vfat.log 2>&1 || { cat /image/vfat.log >&2; exit 1; }
	export MTOOLS_SKIP_CHECK=1
	for f in /image/boot/* ; do mcopy -m -s -i "/image/img@@$(($2 * 512))" "$f" ::/; done
	mkfs.ext4 -q -L PERCHROOT -U "$5" -E "offset=$(($4 * 512)),hash_seed=$5" -O ^metadata_csum_seed -d /image/root /image/img "$(($6 * 1024))k"
' sh "$SOURCE_DATE_EPOCH" "$start" "$boot_mib" "$second" "$uuid" "$root_mib"
in_tools bmaptool --quiet create -o /image/img.bmap /image/img
mv "$work/img" "$image"
sed "s/>img</>$(basename "$image")</" "$work/img.bmap" >"$out/perch-pi_$version.bmap"
step "packs it"
xz -T0 --block-size=16MiB -${PERCH_XZ:-6} -kf "$image"
cp "$work/packages" "$out/perch-pi_$version.packages"
# The manifest for Raspberry Pi Imager. Without PERCH_DOWNLOAD it refers to the local file.
packaging/image/manifest.py "$image" "${PERCH_DOWNLOAD:-file://$out}" "$SOURCE_DATE_EPOCH" >"$out/perch-pi_$version.rpi-imager-manifest"
(cd "$out" && sha256sum "$(basename "$image").xz" "perch-pi_$version.bmap" "perch-pi_$version.packages" "perch-pi_$version.spdx.json" >SHA256SUMS)
echo "$image.xz"
