#!/bin/sh
# Prints every figure the appliance is held to, and the benchmarks of the
# parts. With BASE=FILE, an earlier output, it compares the two by benchstat.
set -eu

out=$(mktemp)
trap 'rm -f "$out"' EXIT
export PERCH_BINARY="$PWD/bin/perch"

echo "== the appliance as people run it"
go test -run '^$' -bench 'Start|Memory|Hello' -benchtime 20x ./cmd/perch ./cmd/perch/appliance | tee -a "$out"
# StartOfACrowdedOne is among these: 300 robots and 200 strangers with all that they may keep.
echo "== what a robot's check-in takes, and bringing the program's pages back after a quiet time"
go test -run '^$' -bench CheckIn -benchtime 2000x ./cmd/perch | tee -a "$out"
go test -run '^$' -bench ComeBack -benchtime 20x ./cmd/perch/appliance | tee -a "$out"
echo "== what it adds to the time of engines elsewhere that answer at once, and of a model that gives a word every 20 ms"
go test -run '^$' -bench Answer -benchtime 20x ./cmd/perch | tee -a "$out"
echo "== ten robots, ten turns each, a scripted recognizer"
go test -run '^$' -bench Talk -benchtime 1x -timeout 20m ./cmd/perch | tee -a "$out"
echo "== fifty robots at once, without and with one that does not read"
go test -run '^$' -bench Crowd -benchtime 1x -timeout 20m ./cmd/perch | tee -a "$out"
echo "== from a face to the greeting; twenty robots that sense fifty things a second, beside one that talks"
go test -run '^$' -bench Greeting -benchtime 10x ./cmd/perch | tee -a "$out"
go test -run '^$' -bench Senses -benchtime 1x ./cmd/perch | tee -a "$out"
echo "== thirty robots that are upgraded at once, beside one that talks"
go test -run '^$' -bench Upgrades -benchtime 1x ./cmd/perch | tee -a "$out"
echo "== a hundred robots that are connected by MQTT and idle: the memory of a connection, and what the process has more"
go test -run '^$' -bench Connected -benchtime 1x ./gateway/robot | tee -a "$out"
go test -run '^$' -bench IdleByMQTT -benchtime 1x ./cmd/perch | tee -a "$out"
echo "== ten robots that talk on WebSockets, without and with a flood of the robots' MQTT and UDP ports"
go test -run '^$' -bench Flood -benchtime 1x ./cmd/perch | tee -a "$out"
echo "== fifty pages that follow what happens, beside ten robots that talk; from opening the page to its first view"
go test -run '^$' -bench Pages -benchtime 1x ./cmd/perch | tee -a "$out"
go test -run '^$' -bench FirstView -benchtime 10x ./gateway/web | tee -a "$out"
echo "== twenty avatar programs of six kinds that show what happens, beside ten robots that talk"
go test -run '^$' -bench Relays -benchtime 1x ./cmd/perch | tee -a "$out"
echo "== a change of agent state to MQTT, twenty robots talking"
go test -run '^$' -bench StateToMQTT -benchtime 200x ./gateway/homeassistant | tee -a "$out"
echo "== a change of agent state to one, 100 and 500 skins, and what an idle one takes"
go test -run '^$' -bench 'EventToSkins|PublishToSkins' -benchtime 200x ./gateway/skin | tee -a "$out"
go test -run '^$' -bench IdleSkins -benchtime 3x ./gateway/skin | tee -a "$out"
echo "== the parts"
go test -run '^$' -bench . -benchtime 0.5s ./device/... ./event ./store ./voice ./socket/... ./gateway/admin ./agent/... | tee -a "$out"
if [ -n "${BASE:-}" ]; then
	go run "$BENCHSTAT" "$BASE" "$out"
fi
