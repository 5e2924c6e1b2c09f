#!/bin/sh
# The newcomer's conversation: the appliance on its defaults, and a robot made
# of software that finds it, boots, talks, and comes back after the appliance
# was killed. Nothing is left behind.
set -eu

perch=bin/perch
tools=bin/perch-tools
work=$(mktemp -d)
server=""

finish() {
	code=$?
	[ -n "$server" ] && kill "$server" 2>/dev/null
	wait 2>/dev/null || true
	if [ $code -ne 0 ]; then
		echo; echo "the demo failed; the appliance's log:"
		cat "$work/log"
	fi
	rm -rf "$work"
	exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM

say() { printf '\n== %s\n' "$*"; }

# The defaults, unless an appliance already has their ports.
port=8003
local=8004
while curl -s -o /dev/null --max-time 1 "http://127.0.0.1:$port/" || curl -s -o /dev/null --max-time 1 "http://127.0.0.1:$local/"; do
	port=$((port + 10000)); local=$((local + 10000))
done
url="http://127.0.0.1:$port/xiaozhi/ota/"

start() {
	"$perch" serve --data "$work/data" --listen ":$port" --local "127.0.0.1:$local" 2>>"$work/log" &
	server=$!
	tries=0
	until curl -s -o /dev/null "http://127.0.0.1:$port/health"; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || { echo "the appliance does not start"; exit 1; }
		sleep 0.1
	done
}

# Robots browse where they can. Where no interface carries multicast, the tool
# says so and they are given the address.
robot() {
	if "$tools" robot "$@" 2>"$work/robot"; then
		cat "$work/robot"
		return 0
	fi
	cat "$work/robot"
	grep -q multicast "$work/robot" || return 1
	echo "robot  is given the address instead"
	"$tools" robot --ota "$url" "$@"
}

say "the appliance starts on its defaults, with nothing else installed"
start
sed -n 's/.*msg="perch is ready".*/&/p' "$work/log"

say "a robot boots, finds it, and somebody talks to it"
robot --say "what time is it" --say "set the volume to forty percent" --say "look left" \
	--say "remember that my keys are in the kitchen"

say "the appliance is killed with SIGKILL and started again"
kill -9 "$server"
wait "$server" 2>/dev/null || true
start

say "the robot comes back: what was remembered is still there"
robot --say "where are my keys"

say "what the appliance knows of the robot"
"$perch" devices --data "$work/data"
