#!/bin/sh
# Shows a first conversation: starts an appliance with its default settings, and a simulated
# robot that finds the appliance, boots, talks, and reconnects after the appliance was killed.
# It leaves no files behind.
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
		cat "$work/log" || true
	fi
	rm -rf "$work"
	exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM

bold="" plain=""
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
	bold=$(printf '\033[1m') plain=$(printf '\033[0m')
fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }

# Use the default ports, unless another appliance uses them.
port=8003
local=8004
while curl -s -o /dev/null --max-time 1 "http://127.0.0.1:$port/" || curl -s -o /dev/null --max-time 1 "http://127.0.0.1:$local/"; do
	port=$((port + 10000)); local=$((local + 10000))
done
url="http://127.0.0.1:$port/xiaozhi/ota/"

start() {
	"$perch" serve --data "$work/data" --listen ":$port" --local "127.0.0.1:$local" >>"$work/log" 2>&1 &
	server=$!
	tries=0
	until curl -s -o /dev/null "http://127.0.0.1:$port/health"; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || { echo "the appliance does not start"; exit 1; }
		sleep 0.1
	done
}

# The robot finds the appliance by mDNS if a network interface supports multicast. Otherwise it
# gets the address.
robot() {
	if "$tools" robot --picture "$@" 2>"$work/robot"; then
		return 0
	fi
	grep -q multicast "$work/robot" || { cat "$work/robot"; return 1; }
	echo "(no network of this machine carries multicast: the robot gets the address)"
	"$tools" robot --picture --ota "$url" "$@"
}

say "Perch starts on its defaults, on port $port"
start

say "A robot made of software boots, finds it, and you talk to it"
robot --say "what time is it" --say "set the volume to forty percent" --say "look left" \
	--say "remember that my keys are in the kitchen"

say "Perch is killed and started again; the robot comes back"
kill -9 "$server"
wait "$server" 2>/dev/null || true
start
robot --say "where are my keys"

say "What Perch knows of the robot"
"$perch" robot list --data "$work/data"

say "That was it; nothing of it is left. What to try next"
cat <<NEXT
  make run                 runs it until Ctrl-C, with its data in ./data. It prints a link: open it in a browser of this
                           machine. The page has a robot of its own to talk with. bin/perch open lets in other devices.
                           In another terminal:
  bin/perch-tools robot --picture --say "tell me a joke"
                           says what you like; docs/reflex.md has what it knows
  bin/perch doctor         says what works here, and what to do about the rest
  docs/onboarding.md       brings a robot of yours here
  docs/how-to/             connects Ollama, whisper, piper and Home Assistant
  make deb                 makes the package for a Raspberry Pi
NEXT
