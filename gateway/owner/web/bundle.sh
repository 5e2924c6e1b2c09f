#!/bin/sh
# Makes the bundle of the page in gateway/owner/web/dist, which go:embed puts into the
# program. npm fetches the libraries of ui/package-lock.json; esbuild, a Go program,
# bundles. Its words are in the folder language. Nothing is done where dist is newer
# than its sources.
set -eu
cd "$(dirname "$0")"

esbuild=github.com/evanw/esbuild/cmd/esbuild@v0.28.2

[ -f dist/files.json ] && [ -z "$(find ui bundle.sh ../../../language -path ui/node_modules -prune -o -type f -newer dist/files.json -print | head -n 1)" ] && exit 0
if ! command -v npm >/dev/null; then
	echo "the page is not bundled: npm is missing; make deps installs it" >&2
	exit 1
fi
echo "bundling the page"
# npm's own record of what it installed is newer than the lockfile where nothing is to be done.
if [ ! ui/node_modules/.package-lock.json -nt ui/package-lock.json ]; then
	(cd ui && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
	touch ui/node_modules/.package-lock.json
fi
rm -rf dist/assets dist/files.json
build() { (cd ui && GOFLAGS=-trimpath go run $esbuild --format=esm "$@" --bundle --target=es2022 --minify --charset=utf8 --legal-comments=linked --log-level=warning); }
# What loads later is in files of its own. Names change with what is in a file, so
# that a browser may keep it for ever. The sound's library asks for node:module where
# it runs in Node only.
build src/app.ts src/robot.ts src/face.ts --splitting --external:node:module --entry-names='[name]-[hash]' --chunk-names='[name]-[hash]' \
	--metafile=../dist/files.json.new --outdir=../dist/assets
# The card is one file: Home Assistant loads it from another address.
build src/card.ts --outfile=../dist/assets/perch-card.js
# The audio thread loads its script by itself, beside the chunk that wants it.
build src/robot/worklet.ts --outfile=../dist/assets/worklet.js
# A browser runs a service worker as a script, not as a module.
build src/sw.ts --format=iife --outfile=../dist/assets/sw.js
cp ui/icon.svg ui/icon-*.png dist/assets/
# zopfli makes files that gzip can read, and that are a twentieth smaller.
$(command -v zopfli || echo gzip -9nk) dist/assets/*
find dist/assets -type f ! -name '*.gz' -delete
mv dist/files.json.new dist/files.json
