#!/bin/sh
# Prints the notes of a release: its part of CHANGELOG.md.
#
#   packaging/release/notes.sh VERSION [FILE]
set -eu
version=$1
file=${2:-$(dirname "$0")/../../CHANGELOG.md}
notes=$(awk -v want="$version" '/^## / { on = ($2 == want) ; next } on' "$file" | sed -e '/./,$!d')
if [ -z "$notes" ]; then
	echo "CHANGELOG.md has no part \"## $version\"; rename its part \"Unreleased\" to \"$version\" and commit that" >&2
	exit 1
fi
printf '# Perch %s\n\n%s\n' "$version" "$notes"
