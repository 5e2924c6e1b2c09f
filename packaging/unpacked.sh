#!/bin/sh
# Builds the package of perch for this machine, unpacks it into dist/unpacked, and
# prints the path of the program.
set -eu
cd "$(dirname "$0")/.."

deb=$(packaging/deb.sh dist "$(dpkg --print-architecture)" | grep '/perch_')
rm -rf dist/unpacked
dpkg-deb -x "$deb" dist/unpacked
echo "$PWD/dist/unpacked/usr/bin/perch"
