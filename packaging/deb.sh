#!/bin/sh
# Builds the Debian packages of perch and perch-tools into a folder (dist):
#
#   packaging/deb.sh [FOLDER] [ARCHITECTURE...]
#
# PERCH_PACKAGES names other packages: perch-speech, and perch-speech-voice-en, whose voice is downloaded.
#
# The programs are linked against the libraries of the oldest supported Debian, which
# the script unpacks into dist. The packages therefore run on that Debian and on newer
# ones, and the building machine needs no foreign architecture in dpkg. The script prints
# the paths of the packages on standard output, and its progress on standard error.
set -eu
cd "$(dirname "$0")/.."

oldest=bookworm
libraries=libc6-dev,libopus-dev,libspeexdsp-dev,libpocketsphinx-dev,libstdc++6
packages=${PERCH_PACKAGES:-perch perch-tools}

mkdir -p dist
out=$(mkdir -p "${1:-dist}" && cd "${1:-dist}" && pwd)
[ $# -gt 0 ] && shift

# The packages for this machine come first, because most people wait for them.
own=$(dpkg --print-architecture)
[ $# -gt 0 ] || case $own in
arm64) set -- arm64 amd64 ;;
*) set -- amd64 arm64 ;;
esac

step() { echo "deb: $*" >&2; }

commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
# The version is 1.2.0 at a tag, and 1.2.0+3.gabc1234 three commits later. Before the first
# tag it contains the time of the commit, so that a later package counts as an upgrade.
if described=$(git describe --tags --match 'v[0-9]*' 2>/dev/null); then
	version=$(echo "${described#v}" | sed 's/-\([0-9]*\)-g/+\1.g/')
else
	version="0~$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d%H%M%S).g$(git rev-parse --short HEAD)"
fi
[ -n "${PERCH_VERSION:-}" ] && version=$PERCH_VERSION
upstream=$(packaging/upstream.sh)
ldflags="-s -w -X main.version=$version -X main.commit=$commit -X main.built=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)"

# sysroot ARCHITECTURE unpacks the libraries for an architecture into $root, unless they are there.
sysroot() {
	[ -e "$root/usr/lib/$triplet/libstdc++.so.6" ] && return
	step "downloads the libraries of Debian $oldest for $1 into ${root#"$PWD/"}, this once"
	log=$(mktemp)
	rm -rf "$root.new"
	if ! mmdebstrap --variant=extract --architectures="$1" --include="$libraries" \
		--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr "$oldest" "$root.new" >"$log" 2>&1; then
		cat "$log" >&2
		exit 1
	fi
	rm "$log"
	# Make absolute links relative, such as the one to the loader: they would lead to this machine's files.
	find "$root.new" -type l -lname '/*' | while read -r link; do
		ln -sfnr "$root.new$(readlink "$link")" "$link"
	done
	rm -rf "$root" # of an earlier version, with fewer libraries
	mv "$root.new" "$root"
}

case " $packages " in *" perch "*) gateway/owner/web/bundle.sh >&2 ;; esac

# The Makefile sets the same flags, but this script also runs without make.
GOFLAGS="-trimpath -tags=$(cat packaging/tags)"
export GOFLAGS

# build PROGRAM PACKAGE FOLDER compiles a program into a folder of $stage. -no-pie: by default gcc
# links position-independent programs, and the loader would have to change Go's code, which is not
# position-independent. -buildid: the default would depend on the path of this folder.
build() {
	step "compiles $1 for $arch"
	LINKER="$triplet-gcc --sysroot=$root" GOOS=linux GOARCH=$arch CGO_ENABLED=1 CC="$triplet-gcc --sysroot=$root" \
		PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$root/usr/lib/$triplet/pkgconfig \
		go build -ldflags "$ldflags -buildid=$1_${version}_$arch -extld=$PWD/packaging/link.sh '-extldflags=-no-pie -Wl,-rpath-link=$root/usr/lib/$triplet/blas:$root/usr/lib/$triplet/lapack'" \
		-o "$stage/$3/$1" "$2"
}

# licences PACKAGE prints the licences of Perch and of all Go modules in a program, as these require.
licences() {
	cat LICENSE
	go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' "$1" | sort -u |
		while read -r module release dir; do
			for file in "$dir"/LICEN[CS]E* "$dir"/COPYING* "$dir"/NOTICE*; do
				if [ -f "$file" ]; then printf '\n\n==== %s %s\n\n' "$module" "$release" && cat "$file"; fi
			done
		done
}

# bundled prints the licences of the npm packages in the owner's page.
bundled() {
	(cd gateway/owner/web/ui && npm ls --omit=dev --all --parseable --long 2>/dev/null) | grep /node_modules/ | LC_ALL=C sort | while IFS=: read -r dir named _; do
		for file in "$dir"/LICEN[CS]E* "$dir"/*NOTICE*; do
			if [ -f "$file" ]; then printf '\n\n==== %s %s\n\n' "${dir##*/node_modules/}" "${named##*@}" && cat "$file"; fi
		done
	done
}

# docs installs the documentation. It changes links to files that the package installs in other
# folders. The pages are not compressed, because a link to a compressed page would break.
docs() {
	doc=$stage/usr/share/doc/perch
	for page in $(git ls-files 'README*.md' 'docs/*.md') SECURITY.md CONTRIBUTING.md; do
		mkdir -p "$doc/$(dirname "$page")"
		sed -E 's#\]\(((\.\./)*)packaging/(homeassistant/)?#](\1examples/#g; s#\]\(((\.\./)*)cmd/perch/config/#](\1examples/#g; s#\]\(((\.\./)*)CHANGELOG\.md#](\1changelog.gz#g' "$page" >"$doc/$page"
	done
	for file in $(git ls-files 'docs/*.svg' 'docs/pictures' 'docs/avatars'); do install -D -m 644 "$file" "$doc/$file"; done
}

# pages PROGRAM PACKAGE installs the manual page, the changelog, the licences and the completions.
pages() {
	doc=$stage/usr/share/doc/$1
	mkdir -p "$doc" "$stage/usr/share/man/man1"
	licences "$2" >"$doc/copyright"
	[ "$1" != perch ] || bundled >>"$doc/copyright"
	gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
	gzip -9nc "packaging/man/$1.1" >"$stage/usr/share/man/man1/$1.1.gz"
	install -D -m 644 "packaging/completion/$1.bash" "$stage/usr/share/bash-completion/completions/$1"
	install -D -m 644 "packaging/completion/$1.zsh" "$stage/usr/share/zsh/vendor-completions/_$1"
	install -D -m 644 "packaging/completion/$1.fish" "$stage/usr/share/fish/vendor_completions.d/$1.fish"
}

# pack PACKAGE ARCHITECTURE builds the package from the files in $stage.
pack() {
	size=$(du -sk --apparent-size "$stage" | cut -f1)
	mkdir "$stage/DEBIAN"
	cp "packaging/deb/$1/"* "$stage/DEBIAN/"
	sed -i "s/@VERSION@/$version/; s/@ARCH@/$2/; s/@SIZE@/$size/" "$stage/DEBIAN/control"
	echo "$upstream" >>"$stage/DEBIAN/control"
	find "$stage" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	dpkg-deb --root-owner-group -Zxz -z"${PERCH_XZ:-6}" --build "$stage" "$out/$1_${version}_$2.deb" >/dev/null
	echo "$out/$1_${version}_$2.deb"
}

# Each package_NAME makes a package for the architecture $arch from files in $stage.
package_perch() {
	build perch ./cmd/perch usr/bin
	pages perch ./cmd/perch
	docs
	install -D -m 644 packaging/perch.service "$stage/usr/lib/systemd/system/perch.service"
	install -D -m 644 packaging/perch.sysusers "$stage/usr/lib/sysusers.d/perch.conf"
	mkdir -p "$stage/usr/share/doc/perch/examples"
	go run ./cmd/perch/drivers/manual -sample >"$stage/usr/share/doc/perch/examples/perch.yaml"
	cp -r packaging/homeassistant/blueprints "$stage/usr/share/doc/perch/examples/"
	install -D -m 644 packaging/perch-installed.yaml "$stage/etc/perch/perch.yaml"
	install -d -m 700 "$stage/etc/perch/secrets"
	pack perch "$arch"
}

package_perch_tools() {
	build perch-tools ./firmware-tools usr/bin
	pages perch-tools ./firmware-tools
	pack perch-tools "$arch"
}

# The libraries lie beside the program, which looks for them there. Their makers' module has no licences but its own.
package_perch_speech() {
	build perch-speech ./cmd/perch-speech usr/lib/perch-speech
	sherpa=$(go list -m -f '{{.Dir}}' github.com/k2-fsa/sherpa-onnx-go-linux)/lib/${triplet%-linux-gnu}-unknown-linux-gnu
	install -m 644 "$sherpa/libsherpa-onnx-c-api.so" "$sherpa/libonnxruntime.so" "$stage/usr/lib/perch-speech/"
	mkdir -p "$stage/usr/bin"
	ln -s ../lib/perch-speech/perch-speech "$stage/usr/bin/perch-speech"
	pages perch-speech ./cmd/perch-speech
	cat packaging/sherpa.copyright >>"$doc/copyright"
	install -D -m 644 packaging/perch-speech.service "$stage/usr/lib/systemd/system/perch-speech.service"
	pack perch-speech "$arch"
}

# The voice is prepared here, because the service may not write into the folder. models get checks its SHA-256, and
# downloads what packaging/speech.sh could not get.
package_perch_speech_voice_en() {
	[ "$arch" = "$first" ] || return 0 # it is for all architectures
	step "gets the voice en_US-joe-medium"
	models=$stage/usr/share/perch-speech/models
	packaging/speech.sh "$models" en_US-joe-medium >&2
	go run ./cmd/perch-speech models get en_US-joe-medium --models "$models" >&2
	doc=$stage/usr/share/doc/perch-speech-voice-en
	mkdir -p "$doc"
	cp packaging/voice-en.copyright "$doc/copyright"
	gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
	pack perch-speech-voice-en all
}

umask 022
step "makes $(echo "$packages" | sed 's/ / and /g') $version for $*; the first time takes minutes"
first=$1
for arch; do
	case $arch in
	amd64) triplet=x86_64-linux-gnu ;;
	arm64) triplet=aarch64-linux-gnu ;;
	*) echo "packages are for amd64 and arm64, not for $arch" >&2 && exit 2 ;;
	esac
	root=$PWD/dist/sysroot-$arch
	sysroot "$arch"
	for package in $packages; do
		stage=$out/stage-$package-$arch
		rm -rf "$stage"
		"package_$(echo "$package" | tr - _)"
	done
done
if [ -f "$out/perch_${version}_$own.deb" ]; then step "this machine's is installed with: sudo apt install $out/perch_${version}_$own.deb"; fi
