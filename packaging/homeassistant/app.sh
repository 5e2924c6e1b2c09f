#!/bin/sh
# Makes the repository of the app of Home Assistant in a folder (dist): as a folder, and as
# an archive of that.
#
#   packaging/homeassistant/app.sh [FOLDER]
#
# IMAGE names the container image without its tag, which is the version. PERCH_VERSION is
# another version than that of the repository's tag, as for the packages.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p "${1:-dist}"
out=$(cd "${1:-dist}" && pwd)
image=${IMAGE:-local/perch}

# The version of the packages of this commit, which the container has: its image's tag has neither + nor ~.
if [ -n "${PERCH_VERSION:-}" ]; then
	version=$PERCH_VERSION
elif version=$(git describe --tags --match 'v[0-9]*' 2>/dev/null); then
	version=$(echo "${version#v}" | sed 's/-\([0-9]*\)-g/+\1.g/')
else
	version="0~$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d%H%M%S).g$(git rev-parse --short HEAD)"
fi
version=$(echo "$version" | tr '+~' '--')
case $version in
'' | *[!0-9A-Za-z._-]*) echo "\"$version\" is no version that an image can have" >&2 && exit 2 ;;
esac
case $image in
'' | *[!0-9a-z./:_-]*) echo "\"$image\" is no name of an image; IMAGE=registry.example/perch is one" >&2 && exit 2 ;;
esac

# Packed first, so that half a folder is never taken for a whole one.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
app=$work/perch-home-assistant
mkdir "$app"
cp -r packaging/homeassistant/repository.yaml packaging/homeassistant/perch "$app/"
cp CHANGELOG.md "$app/perch/CHANGELOG.md"
sed -i "s#^version: .*#version: \"$version\"#; s#^image: .*#image: $image#" "$app/perch/config.yaml"
packaging/upstream.sh | while IFS= read -r field; do
	value=$(echo "${field#*: }" | tr -d '"\\')
	case $field in
	Maintainer:*) echo "maintainer: \"$value\"" >>"$app/repository.yaml" ;;
	Homepage:*)
		echo "url: \"$value\"" >>"$app/repository.yaml"
		echo "url: \"$value\"" >>"$app/perch/config.yaml"
		;;
	esac
done
chmod -R u=rwX,go=rX "$app"
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -cf - perch-home-assistant | gzip -n -9 \
	>"$work/perch-home-assistant.tar.gz"
rm -rf "$out/perch-home-assistant"
mv "$app" "$out/perch-home-assistant"
mv "$work/perch-home-assistant.tar.gz" "$out/perch-home-assistant_$version.tar.gz"
echo "$out/perch-home-assistant"
echo "$out/perch-home-assistant_$version.tar.gz"
