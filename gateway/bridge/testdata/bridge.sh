#!/bin/sh
# Asks the bridge for everything it does, as a program elsewhere would, and
# says what is not answered as it should be. Two robots are connected; the
# first one's camera never answers, and the second one speaks.
#   PUBLIC, LOCAL   addresses of the two listeners
#   KEY, TOKEN      the bridge key and the owner's token
#   RUN             names this run of the appliance
set -u
asked=0
failed=0

# expect STATUS PATTERN CURL-ARGUMENTS...: the body matches a shell pattern.
expect() {
	status=$1 pattern=$2
	shift 2
	answer=$(curl -sS --max-time 20 -w '\n%{http_code}' "$@")
	body=$(printf '%s' "$answer" | sed '$d')
	code=$(printf '%s' "$answer" | sed -n '$p')
	asked=$((asked + 1))
	# shellcheck disable=SC2254 # it is a pattern
	case "$code $body" in
	"$status "$pattern) ;;
	*)
		failed=$((failed + 1))
		echo "curl $*"
		echo "  answered $code $body"
		echo "  wanted   $status $pattern"
		;;
	esac
}

fault() { printf '{"error":{"code":"%s","message":"?*"}}' "$1"; }

first=a0:b1:c2:d3:e4:f5 second=a0:b1:c2:d3:e4:f6
big=$(mktemp)
trap 'rm -f "$big"' EXIT
{ printf '{"content":"' && head -c 70000 /dev/zero | tr '\0' x && printf '"}'; } >"$big"

# On the network of the house, with the key.
key="Authorization: Bearer $KEY"
expect 200 '{"response":"😊 Sure."}' -H "$key" -d '{"content":"hello","channel":"stackchan","session_id":"s"}' "$PUBLIC/api/message"
expect 200 '{"response":"Sure."}' -H "$key" -d '{"content":"hello","channel":"cli"}' "$PUBLIC/api/message"
expect 401 "$(fault wrong_key)" -d '{"content":"hello"}' "$PUBLIC/api/message"
expect 401 "$(fault wrong_key)" -H 'Authorization: Bearer guess' -d '{"content":"hello"}' "$PUBLIC/api/message"
expect 401 "$(fault wrong_key)" -H "$key" -d '{"text":"hello"}' "$PUBLIC/admin/say"
expect 200 "{\"ok\":true,\"device_id\":\"$first\"}" -H "X-Admin-Token: $TOKEN" -d '{"text":"hello"}' "$PUBLIC/admin/say"
expect 421 "$(fault unknown_host)" -H "$key" -H 'Host: evil.example' -d '{"content":"hello"}' "$PUBLIC/api/message"
expect 403 "$(fault foreign_origin)" -H "$key" -H 'Origin: https://evil.example' -d '{"content":"hello"}' "$PUBLIC/api/message"

# On this machine, without.
expect 403 "$(fault not_local)" -H 'Host: evil.example' -d '{"content":"hello"}' "$LOCAL/api/message"
expect 403 "$(fault not_local)" -H 'Origin: https://evil.example' -d '{"content":"hello"}' "$LOCAL/api/message"
expect 403 "$(fault not_local)" -H "Origin: http://127.0.0.1:1" -d '{"text":"hello"}' "$LOCAL/admin/say"

expect 400 "$(fault bad_body)" -d 'hello' "$LOCAL/api/message"
expect 400 "$(fault bad_body)" -d '{"channel":"stackchan"}' "$LOCAL/api/message"
expect 400 "$(fault bad_body)" -d '{"content":5}' "$LOCAL/api/message"
expect 413 "$(fault body_too_large)" --data-binary "@$big" "$LOCAL/api/message"
expect 405 "$(fault wrong_method)" "$LOCAL/api/message"
expect 404 "$(fault not_found)" -d '{}' "$LOCAL/api/nothing"

# Facts, turns, and the tools of a small model.
expect 200 '{"ok":true}' -d '{"fact":"her favourite colour is blue","session_id":"s"}' "$LOCAL/api/voice/remember"
expect 400 "$(fault bad_body)" -d '{"session_id":"s"}' "$LOCAL/api/voice/remember"
expect 400 "$(fault bad_body)" -d '{"fact":["x"]}' "$LOCAL/api/voice/remember"
expect 413 "$(fault body_too_large)" --data-binary "@$big" "$LOCAL/api/voice/remember"
expect 200 '{"ok":true}' -d '{"user":"who sells violins","assistant":"Tom does.","session_id":"s"}' "$LOCAL/api/voice/memory_log"
expect 400 "$(fault bad_body)" -d '{"user":7,"assistant":"x"}' "$LOCAL/api/voice/memory_log"
expect 400 "$(fault bad_body)" -d '{}' "$LOCAL/api/voice/memory_log"
expect 200 '{"result":"- her favourite colour is blue (????-??-??)"}' -d '{"tool":"memory_lookup","args":{"query":"favourite colour"},"session_id":"s"}' "$LOCAL/api/voice/escalate"
expect 200 '{"result":"- Heard \\"who sells violins\\", answered \\"Tom does.\\" (*"}' -d '{"tool":"memory_lookup","args":{"query":"violins"}}' "$LOCAL/api/voice/escalate"
expect 200 '{"result":"Sure."}' -d '{"tool":"think_hard","args":{"question":"why?"}}' "$LOCAL/api/voice/escalate"
expect 200 '{"result":"Playing purr."}' -d '{"tool":"play_song","args":{"name":"Purr"}}' "$LOCAL/api/voice/escalate"
expect 409 "$(fault robot_speaking)" -d '{"tool":"play_song","args":{"name":"purr"},"session_id":"speaks"}' "$LOCAL/api/voice/escalate"
expect 504 "$(fault tool_timeout)" -d '{"tool":"take_photo","args":{"question":"who?"}}' "$LOCAL/api/voice/escalate"
expect 400 "$(fault unknown_tool)" -d '{"tool":"self_destruct","args":{}}' "$LOCAL/api/voice/escalate"
expect 400 "$(fault bad_body)" -d '{"args":{"query":"x"}}' "$LOCAL/api/voice/escalate"
expect 400 "$(fault bad_body)" -d '{"tool":"memory_lookup","args":{}}' "$LOCAL/api/voice/escalate"
expect 400 "$(fault bad_body)" -d '{"tool":"memory_lookup","args":"x"}' "$LOCAL/api/voice/escalate"

# What is sensed.
expect 200 '{"ok":true}' -d "{\"name\":\"face_detected\",\"data\":{},\"device_id\":\"$first\",\"session_id\":\"x\",\"ts\":1715000000.0}" "$LOCAL/api/perception/event"
expect 400 "$(fault bad_body)" -d '{"data":{}}' "$LOCAL/api/perception/event"
expect 400 "$(fault bad_body)" -d '{"name":"face_lost","data":[]}' "$LOCAL/api/perception/event"
expect 400 "$(fault bad_robot_id)" -d '{"name":"face_lost","device_id":"kitchen"}' "$LOCAL/api/perception/event"
expect 200 "{\"$first\":{*},\"$second\":{*}}" "$LOCAL/api/perception/state"
expect 200 "\[{\"name\":*,\"device_id\":\"$first\",\"ts\":*}\]" "$LOCAL/api/perception/recent/$first"
expect 404 "$(fault unknown_robot)" "$LOCAL/api/perception/recent/a0:b1:c2:d3:e4:f7"
expect 400 "$(fault bad_robot_id)" "$LOCAL/api/perception/recent/kitchen"
expect 400 "$(fault bad_robot_id)" "$LOCAL/api/perception/feed?device_id=kitchen"

heard=$(curl -sN --max-time 1 -H "Last-Event-ID: $RUN.0" "$LOCAL/api/perception/feed")
asked=$((asked + 1))
case "$heard" in
": welcome"*"id: $RUN."*"event: message"*"data: {\"name\":\"face_detected\",\"data\":{},\"device_id\":\"$first\",\"ts\":"*) ;;
*)
	failed=$((failed + 1))
	echo "the feed sent $heard"
	;;
esac

# What robots are told, under both prefixes.
for admin in "$LOCAL/admin" "$LOCAL/xiaozhi/admin"; do
	expect 200 "{\"devices\":\[\"$first\",\"$second\"\]}" "$admin/devices"
	expect 200 '{"base":"/data/sounds","files":\["Happy Birthday.wav","purr"\]}' "$admin/songs"
	expect 200 "{\"ok\":true,\"device_id\":\"$first\"}" -d '{"text":"hello"}' "$admin/inject-text"
	expect 200 "{\"ok\":true,\"device_id\":\"$second\"}" -d "{\"text\":\"hello\",\"device_id\":\"$second\"}" "$admin/say"
	expect 200 "{\"ok\":true,\"device_id\":\"$first\"}" -X POST "$admin/abort"
	expect 200 "{\"ok\":true,\"device_id\":\"$first\",\"yaw\":-45,\"pitch\":0,\"speed\":250}" -d '{"yaw":-45,"pitch":0}' "$admin/set-head-angles"
	expect 200 "{\"ok\":true,\"device_id\":\"$first\",\"state\":\"sleep\"}" -d '{"state":"sleep"}' "$admin/set-state"
	expect 200 "{\"ok\":true,\"device_id\":\"$first\",\"name\":\"kid_mode\",\"enabled\":true}" -d '{"name":"kid_mode","enabled":true}' "$admin/set-toggle"
	expect 200 "{\"ok\":true,\"device_id\":\"$first\"}" -d '{}' "$admin/set-face-identified"
	expect 200 "{\"ok\":true,\"device_id\":\"$first\",\"asset\":\"purr\"}" -d '{"asset":"purr"}' "$admin/play-asset"

	expect 503 "$(fault no_robot)" -d '{"text":"hello","device_id":"a0:b1:c2:d3:e4:ff"}' "$admin/say"
	expect 400 "$(fault bad_robot_id)" -d '{"text":"hello","device_id":"kitchen"}' "$admin/inject-text"
	expect 400 "$(fault bad_body)" -d '{}' "$admin/inject-text"
	expect 400 "$(fault bad_body)" -d '{"text":["hello"]}' "$admin/say"
	expect 400 "$(fault bad_body)" -d '{"yaw":"left"}' "$admin/set-head-angles"
	expect 400 "$(fault bad_body)" -d '{"speed":250}' "$admin/set-head-angles"
	expect 400 "$(fault bad_body)" -d '{"state":"party"}' "$admin/set-state"
	expect 400 "$(fault bad_body)" -d '{"name":"kid_mode"}' "$admin/set-toggle"
	expect 400 "$(fault bad_body)" -d '{}' "$admin/take-photo"
	expect 504 "$(fault tool_timeout)" -d '{"question":"who?"}' "$admin/take-photo"
	expect 400 "$(fault bad_body)" -d '{}' "$admin/play-asset"
	expect 403 "$(fault outside_roots)" -d '{"asset":"/etc/passwd"}' "$admin/play-asset"
	expect 403 "$(fault outside_roots)" -d '{"asset":"/data/sounds/../token-key"}' "$admin/play-asset"
	expect 404 "$(fault unknown_sound)" -d '{"asset":"roar"}' "$admin/play-asset"
	expect 409 "$(fault robot_speaking)" -d "{\"asset\":\"purr\",\"device_id\":\"$second\"}" "$admin/play-asset"
	expect 413 "$(fault body_too_large)" --data-binary "@$big" "$admin/say"
done

echo "$asked asked, $failed failed"
[ "$failed" -eq 0 ]
