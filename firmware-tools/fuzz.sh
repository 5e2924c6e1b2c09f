#!/bin/sh
# Runs all fuzz targets, one after the other, each for the given time. The optional second
# argument selects the targets whose folder and name, such as "./gateway/broker
# FuzzAfterLogin", contain a text.
set -eu

ran=0
for file in $(grep -rl --include='*_test.go' '^func Fuzz' . | sort); do
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\)(.*/\1/p' "$file"); do
		case "$(dirname "$file") $target" in
		*"${2:-}"*) ;;
		*) continue ;;
		esac
		echo "== $(dirname "$file") $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" -fuzzminimizetime 1s "$(dirname "$file")"
		ran=$((ran + 1))
	done
done
if [ "$ran" = 0 ]; then
	echo "no fuzz target has \"${2:-}\" in its folder or name" >&2
	exit 1
fi
