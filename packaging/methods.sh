#!/bin/sh
# Fails if the linker has to keep all exported methods of all types in the program, which
# makes the program two thirds larger. The cause are functions that look up a method by a
# name that is not known at build time; the script prints these functions.
set -eu
cd "$(dirname "$0")/.."

links=$(mktemp)
trap 'rm -f "$links"' EXIT
go build -ldflags=-dumpdep -o /dev/null ./cmd/perch 2>"$links" || { tail -n 20 "$links" && exit 1; }
grep -q '^main\.main -> ' "$links" || { echo "methods: the linker has not said what it links" && exit 1; }
causes=$(sed -n 's/ <ReflectMethod>.*//p' "$links" | sort -u)
if [ -n "$causes" ]; then
	echo "every method is linked, because of:" && echo "$causes" && exit 1
fi
