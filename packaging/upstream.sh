#!/bin/sh
# Prints the fields Maintainer and Homepage of a package that is built from the
# repository in the current directory. As for any Debian package, DEBFULLNAME and
# DEBEMAIL set the maintainer; PERCH_HOMEPAGE sets the home page. By default the
# maintainer is the author of the commit, and the home page is the address that the
# repository was cloned from, if this is a web address.
set -eu

echo "Maintainer: ${DEBFULLNAME:-$(git log -1 --format=%aN)} <${DEBEMAIL:-$(git log -1 --format=%aE)}>"

# Print only the host and the path: the address may contain a password.
page=$(echo "${PERCH_HOMEPAGE:-$(git remote get-url origin 2>/dev/null || true)}" | sed -nE '
	s#^(https?|ssh|git)://([^/]*@)?([^/:@]+\.[^/:@]+)(:[0-9]+)?(/.*)?$#https://\3\5#p; t
	s#^([^/:@]+@)?([^/:@]+\.[^/:@]+):([^/].*)$#https://\2/\3#p' | sed 's#\.git/*$##')
if [ -n "$page" ]; then
	echo "Homepage: $page"
else
	echo "this repository was cloned from nowhere on the web: the packages have no Homepage; PERCH_HOMEPAGE=https://... names one" >&2
fi
