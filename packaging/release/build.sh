#!/bin/sh
# Builds a release from a clean clone of this commit into a folder (default: dist/release/VERSION):
#
#   packaging/release/build.sh VERSION [FOLDER]
#
# VERSION is, for example, 1.2.0, or 1.2.0-rc1 for a release candidate. PERCH_SSH_KEY is the file
# of a private key from ssh-keygen, which signs the checksums. PERCH_GPG_KEY is the name of a key
# of gpg, which signs the apt repository. PERCH_PARTS selects what is built; the default is
# "deb container image". As long as Debian's packages do not change, the same commit and keys
# give the same bytes.
set -eu
cd "$(dirname "$0")/../.."

step() { echo "release: $*" >&2; }
fail() { echo "release: $*" >&2 && exit 1; }

version=${1:-}
[ -n "$version" ] || fail "which version? make release VERSION=1.2.0"
printf %s "$version" | tr '\n' '?' | grep -Eqx '[0-9]+\.[0-9]+\.[0-9]+(-rc[0-9]+)?' || fail "$version is no version such as 1.2.0 or 1.2.0-rc1"
parts=${PERCH_PARTS:-deb container image}
for part in $parts; do
	case $part in deb | container | image) ;; *) fail "PERCH_PARTS are deb, container and image, not $part" ;; esac
done
changed=$(git status --porcelain --untracked-files=normal | head -n 5)
[ -z "$changed" ] || fail "this tree is not what was committed; commit or remove:
$changed"
if tagged=$(git rev-parse -q --verify "refs/tags/v$version^{commit}") && [ "$tagged" != "$(git rev-parse HEAD)" ]; then
	fail "v$version is another commit, $tagged; check that out, or choose the next version"
fi
packaging/release/notes.sh "$version" >/dev/null
case " $parts " in *" image "*)
	[ -n "${PERCH_DOWNLOAD:-}" ] || fail "where will the image be downloaded from? Raspberry Pi Imager needs the address: PERCH_DOWNLOAD=https://... is the folder"
	;;
esac
[ -n "${PERCH_SSH_KEY:-}" ] || fail "nothing signs the checksums; PERCH_SSH_KEY names the file of a private key: ssh-keygen -t ed25519 -f FILE makes one"
PERCH_SSH_KEY=$(realpath -m "$PERCH_SSH_KEY")
ssh-keygen -y -P '' -f "$PERCH_SSH_KEY" >/dev/null 2>&1 || [ -n "${SSH_AUTH_SOCK:-}" ] ||
	fail "$PERCH_SSH_KEY cannot be used; it is no private key, or has a passphrase and no ssh-agent runs"
[ -n "${PERCH_GPG_KEY:-}" ] || fail "nothing signs the apt repository; PERCH_GPG_KEY names a key of gpg: gpg --quick-generate-key 'NAME <ADDRESS>' ed25519 sign never makes one"
gpg --batch --list-secret-keys "$PERCH_GPG_KEY" >/dev/null 2>&1 || fail "gpg has no secret key $PERCH_GPG_KEY (gpg --list-secret-keys)"
for program in apt-ftparchive mmdebstrap; do
	command -v "$program" >/dev/null || fail "$program is not installed; packaging/deps.sh deb release installs it"
done

mkdir -p dist
out=$(realpath -m "${2:-dist/release/$version}")
[ ! -e "$out" ] || fail "$out is there already; remove it first"
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
PERCH_VERSION=$(echo "$version" | sed 's/-/~/')
export SOURCE_DATE_EPOCH PERCH_VERSION
umask 022
work=$(mktemp -d "$PWD/dist/release.XXXXXX")
trap 'rm -rf "$work"' EXIT
PERCH_HOMEPAGE=${PERCH_HOMEPAGE:-$(git remote get-url origin 2>/dev/null || true)}
export PERCH_HOMEPAGE

step "clones $commit"
git clone -q --no-checkout . "$work/perch"
git -C "$work/perch" -c advice.detachedHead=false checkout -q "$commit"
mkdir "$work/perch/dist" "$work/out"
# Reuse the parts of Debian that were already unpacked.
for kept in dist/sysroot-amd64 dist/sysroot-arm64 dist/image.tools; do
	if [ -d "$kept" ]; then ln -s "$PWD/$kept" "$work/perch/$kept"; fi
done
here=$PWD
cd "$work/perch"
git archive --format=tar --prefix="perch-$version/" HEAD | gzip -9n >"$work/out/perch-$version.tar.gz"
made=$work/perch/dist
PERCH_PACKAGES="perch perch-tools perch-speech perch-speech-voice-en" packaging/deb.sh dist >/dev/null
go build -trimpath -o "$work/spdx" ./packaging/spdx
for deb in dist/*.deb; do
	case $deb in dist/perch-speech-voice-*) continue ;; esac # has no software
	name=$(basename "$deb" .deb)
	dpkg-deb -x "$deb" "$work/$name"
	"$work/spdx" -name "${name%%_*}" -version "$PERCH_VERSION" "$work/$name" >"$made/$name.spdx.json"
done
case " $parts " in *" container "*) packaging/container/build.sh dist >/dev/null ;; esac
case " $parts " in *" image "*) packaging/image/build.sh dist >/dev/null ;; esac
for file in "$made"/*.deb "$made"/*.spdx.json "$made"/*.oci.tar "$made"/perch-pi_*.img.xz "$made"/perch-pi_*.bmap "$made"/perch-pi_*.packages \
	"$made"/perch-pi_*.rpi-imager-manifest; do
	if [ -f "$file" ]; then mv "$file" "$work/out/"; fi
done
packaging/release/notes.sh "$version" >"$work/out/NOTES.md"
# PERCH_APT is the repository with the previous releases; without it, this release begins a new one.
if [ -n "${PERCH_APT:-}" ]; then cp -r "$(cd "$here" && realpath "$PERCH_APT")" "$work/out/apt"; fi
packaging/release/apt.sh "$work/out/apt" "$PERCH_GPG_KEY" "$work"/out/*.deb

cd "$work/out"
find . -type f -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum >"$work/SHA256SUMS"
mv "$work/SHA256SUMS" .
ssh-keygen -q -Y sign -n perch-release -f "$PERCH_SSH_KEY" SHA256SUMS 2>/dev/null || fail "ssh-keygen could not sign with $PERCH_SSH_KEY"
echo "perch $(ssh-keygen -y -f "$PERCH_SSH_KEY" 2>/dev/null || cut -d ' ' -f 1,2 "$PERCH_SSH_KEY.pub")" | cut -d ' ' -f 1-3 >allowed_signers
find . -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$(dirname "$out")"
mv "$work/out" "$out"
cd "$here"
step "give it its tag with: git tag -s v$version $commit"
echo "$out"
