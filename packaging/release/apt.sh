#!/bin/sh
# Adds packages to an apt repository in a folder, and signs it:
#
#   packaging/release/apt.sh FOLDER KEY [PACKAGE.deb...]
#
# KEY names the OpenPGP key, as gpg knows it (GNUPGHOME). The folder can be served by any
# web server. It keeps older packages, so that owners can go back. The same packages, key
# and SOURCE_DATE_EPOCH give the same bytes. The index is valid for two years from
# SOURCE_DATE_EPOCH. Without packages the script only renews the signature.
set -eu

fail() { echo "apt: $*" >&2 && exit 1; }
[ $# -ge 2 ] || { echo "usage: packaging/release/apt.sh FOLDER KEY [PACKAGE.deb...]" >&2 && exit 2; }
for program in apt-ftparchive gpg dpkg-deb python3; do
	command -v "$program" >/dev/null || fail "$program is not installed; packaging/deps.sh release installs it"
done
[ -n "${SOURCE_DATE_EPOCH:-}" ] || fail "SOURCE_DATE_EPOCH is the time of the release, in seconds; it is not set"
key=$2
gpg --batch --list-secret-keys "$key" >/dev/null 2>&1 ||
	fail "gpg has no secret key $key; make one with: gpg --quick-generate-key 'NAME <ADDRESS>' ed25519 sign never"
mkdir -p "$1"
cd "$1"
repository=$PWD
cd "$OLDPWD"
shift 2

suite=stable
pool=pool/main/p/perch
mkdir -p "$repository/$pool"
for deb; do
	[ -f "$deb" ] || fail "there is no package $deb"
	at=$repository/$pool/$(basename "$deb")
	# Machines that have installed the package know its checksum.
	if [ -f "$at" ] && ! cmp -s "$deb" "$at"; then fail "$(basename "$deb") is in the repository already, with other bytes; give the new one another version"; fi
	cp "$deb" "$at"
done

# Formats a time, in seconds since 1970, as apt does.
time_of() { LC_ALL=C date -u -d "@$1" '+%a, %d %b %Y %H:%M:%S UTC'; }
# Atomically exchanges two folders.
exchange() {
	python3 - "$1" "$2" <<'END'
import ctypes, os, sys
AT_FDCWD, RENAME_EXCHANGE = -100, 2
libc = ctypes.CDLL(None, use_errno=True)
if libc.renameat2(AT_FDCWD, os.fsencode(sys.argv[1]), AT_FDCWD, os.fsencode(sys.argv[2]), RENAME_EXCHANGE) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
END
}

cd "$repository"
new=dists/$suite.new
rm -rf "$new"
for arch in amd64 arm64; do
	to=$new/main/binary-$arch
	mkdir -p "$to"
	for deb in $(find "$pool" -name "*_$arch.deb" -o -name '*_all.deb' | LC_ALL=C sort); do apt-ftparchive packages "$deb"; done >"$to/Packages"
	gzip -9nk "$to/Packages"
done
apt-ftparchive -o APT::FTPArchive::Release::Origin=Perch -o APT::FTPArchive::Release::Label=Perch \
	-o APT::FTPArchive::Release::Suite=$suite -o APT::FTPArchive::Release::Codename=$suite \
	-o APT::FTPArchive::Release::Architectures="amd64 arm64" -o APT::FTPArchive::Release::Components=main \
	release "$new" |
	sed "s/^Date: .*/Date: $(time_of "$SOURCE_DATE_EPOCH")\nValid-Until: $(time_of $((SOURCE_DATE_EPOCH + 730 * 86400)))/" >Release.new
mv Release.new "$new/Release"
sign() { gpg --batch --yes --quiet --pinentry-mode loopback --faked-system-time "$SOURCE_DATE_EPOCH!" --digest-algo SHA512 --local-user "$key" "$@"; }
sign --clearsign --output "$new/InRelease" "$new/Release" || fail "gpg cannot sign with $key; is it younger than the release, or has it a passphrase that gpg-agent does not know?"
sign --armor --detach-sign --output "$new/Release.gpg" "$new/Release"
gpg --batch --export "$key" >perch-archive-keyring.gpg
# After the exchange, the other name refers to the old repository.
if [ -d dists/$suite ]; then
	exchange "$new" dists/$suite || fail "the new index cannot be exchanged with the old one in $repository/dists; do this on a file system of this machine, and copy it"
	rm -rf "$new"
else
	mv "$new" dists/$suite
fi
