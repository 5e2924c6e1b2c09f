#!/bin/sh
# Builds this machine's package of perch, unpacks it into dist/unpacked, and
# prints where its program is.
set -eu
cd "$(dirname "$0")/.."

deb=$(packaging/deb.sh dist "$(dpkg --print-architecture)" | grep '/perch_')
rm -rf dist/unpacked
dpkg-deb -x "$deb" dist/unpacked
echo "$PWD/dist/unpacked/usr/bin/perch"
