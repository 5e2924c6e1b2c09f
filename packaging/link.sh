#!/bin/sh
# Links a program with the command in LINKER. It leaves out the folder of Go modules as a place of
# libraries, which a package of Go adds: that is a folder of the building machine.
for argument; do
	shift
	case $argument in
	-Wl,-rpath,/*) set -- "$@" "-Wl,-rpath,\$ORIGIN" ;; # beside the program
	*) set -- "$@" "$argument" ;;
	esac
done
# shellcheck disable=SC2086 # a command with options
exec $LINKER "$@"
