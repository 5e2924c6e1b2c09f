#!/bin/sh
# Prints the fields Maintainer and Homepage of a package that is built from the
# repository in the current directory. Whoever builds it may name themselves
# with DEBFULLNAME and DEBEMAIL, as for any Debian package, and the page with
# PERCH_HOMEPAGE. Else it is the author of the commit, and where the repository
# was cloned from, if that is somewhere on the web.
set -eu

echo "Maintainer: ${DEBFULLNAME:-$(git log -1 --format=%aN)} <${DEBEMAIL:-$(git log -1 --format=%aE)}>"

# Only the host and the path are told: an address may have a password in it.
page=$(echo "${PERCH_HOMEPAGE:-$(git remote get-url origin 2>/dev/null || true)}" | sed -nE '
	s#^(https?|ssh|git)://([^/]*@)?([^/:@]+\.[^/:@]+)(:[0-9]+)?(/.*)?$#https://\3\5#p; t
	s#^([^/:@]+@)?([^/:@]+\.[^/:@]+):([^/].*)$#https://\2/\3#p' | sed 's#\.git/*$##')
if [ -n "$page" ]; then
	echo "Homepage: $page"
else
	echo "this repository was cloned from nowhere on the web: the packages have no Homepage; PERCH_HOMEPAGE=https://... names one" >&2
fi
