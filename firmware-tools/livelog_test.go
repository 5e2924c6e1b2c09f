package main

import (
	"strings"
	"testing"
	"time"

	"perch/device/xiaozhi"
	"perch/firmware-tools/simrobot"
)

func TestLiveLog(t *testing.T) {
	for _, c := range []struct {
		happens simrobot.Observation
		want    string
	}{
		{simrobot.CheckedIn{OTA: "http://h/", Boot: simrobot.Bootstrap{URL: "ws://h:1/", Upgrade: "http://h/f.bin", Oddities: []string{"that"}}},
			"robot  aa:bb     checked in at http://h/ -> ws://h:1/\nrobot  upgrades  a real one would install http://h/f.bin now\nrobot  ignores   that\n"},
		{simrobot.AwaitsAdoption{Code: "123456", Message: "adopt me"}, "robot  waits     for its owner, and shows the code 123456 (adopt me)\n"},
		{simrobot.Welcomed{Audio: xiaozhi.AudioParams{SampleRate: 24000, FrameDuration: 60}, Latency: 1234 * time.Microsecond},
			"perch  hello     24000 Hz, 60 ms, after 1.2ms\n"},
		{simrobot.Entered{State: simrobot.Listening}, ""},
		{simrobot.Listed{Tools: 11}, "robot  lists     11 tools\n"},
		{simrobot.Spoken{Text: "what time is it"}, "robot  says      \"what time is it\"\n"},
		{simrobot.Transcript{Text: "what\ntime\x07"}, "perch  heard     what time\n"},
		{simrobot.EmotionShown{Emotion: "happy", Emoji: "😊", Face: "happy"}, "perch  feels     😊 happy\n"},
		{simrobot.EmotionShown{Emotion: "cool", Face: "neutral"}, "perch  feels     cool (this robot shows neutral)\n"},
		{simrobot.SentenceShown{Text: "It is noon."}, "perch  says      It is noon.\n"},
		{simrobot.Alerted{Status: "Warning", Message: "Battery low", Emotion: "sad"}, "perch  alerts    Warning: Battery low (sad)\n"},
		{simrobot.Called{Name: "self.x", Arguments: "{}", Result: "true"}, "robot  tool      self.x {} -> true\n"},
		{simrobot.Called{Name: "self.x", Arguments: "{}", Err: "no"}, "robot  tool      self.x {} -> error: no\n"},
		{simrobot.VolumeChanged{Volume: 40}, "robot  sets      its volume to 40\n"},
		{simrobot.HeadMoved{Yaw: -45, Pitch: 20}, "robot  moves     its head to yaw -45, pitch 20\n"},
		{simrobot.Woken{Phrase: "Hi"}, "robot  wakes     by \"Hi\"\n"},
		{simrobot.WakeLost{Phrase: "Hi"}, "robot  misses    \"Hi\", a fault of this build\n"},
		{simrobot.WentStale{}, "robot  forgets   its channel, quiet for more than 120 s\n"},
		{simrobot.Reminded{ID: 1, Message: "tea"}, "robot  rings     tea\n"},
		{simrobot.Stopped{}, ""},
		{simrobot.Stopped{Cut: 9}, "robot  cuts off  9 packets that it had not played\n"},
		{simrobot.MessageIgnored{Why: "nonsense"}, "robot  ignores   nonsense\n"},
		{simrobot.HungUp{Why: "the robot was tapped"}, "robot  hangs up  the robot was tapped\n"},
		{simrobot.HungUp{ByServer: true, Why: "EOF"}, "perch  hangs up\n"},
	} {
		var b strings.Builder
		(&liveLog{out: lines{to: &b}, mac: "aa:bb"}).observe(c.happens)
		if b.String() != c.want {
			t.Errorf("%#v:\n%swant\n%s", c.happens, b.String(), c.want)
		}
	}
}

func TestReport(t *testing.T) {
	var b strings.Builder
	report(lines{to: &b}, simrobot.Stats{
		HelloLatency: time.Millisecond, Sent: 1, Underruns: 8, MaxQueue: 9,
		Downlink: simrobot.Downlink{Received: 2, Played: 3, Dropped: 4, Ignored: 5, Cut: 6, Bad: 7},
		Gaps:     []time.Duration{60 * time.Millisecond},
		Turns: []simrobot.Turn{
			{Answered: true, FirstAudio: 669400 * time.Microsecond, Length: 2 * time.Second, Packets: 37, Underruns: 1, Dropped: 2},
			{Text: "hello"},
		},
	})
	const want = `turn 1: first sound after 669ms, 2s long, 37 packets, 1 underruns, 2 dropped
turn 2: "hello" was not answered
sound: 1 sent, 2 received, 3 played, 4 dropped, 5 ignored, 6 cut, 7 bad, 8 underruns, at most 9 queued, gaps p50 60ms p99 60ms
`
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
}
