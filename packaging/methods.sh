#!/bin/sh
# Fails where the linker has to keep every exported method of every type, and names
# the functions that are the cause: those that look a method up by a name that is
# not known when the program is built. They make the program two thirds larger.
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
