package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perch/command"
	"perch/device/xiaozhi"
	"perch/firmware-tools/simrobot"
	"perch/must"
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
		(&liveLog{out: output{to: &b}, mac: "aa:bb"}).observe(c.happens)
		if b.String() != c.want {
			t.Errorf("%#v:\n%swant\n%s", c.happens, b.String(), c.want)
		}
	}
}

func TestPicture(t *testing.T) {
	var b strings.Builder
	l := &liveLog{out: output{to: &b}, mac: "aa:bb", picture: &picture{screen: command.Screen{Width: 60}}}
	for _, h := range []simrobot.Observation{
		simrobot.CheckedIn{OTA: "http://h/", Boot: simrobot.Bootstrap{URL: "ws://h:1/"}},
		simrobot.Spoken{Text: "look left"},
		simrobot.Transcript{Text: "look left"},
		simrobot.EmotionShown{Emotion: "happy", Emoji: "😊", Face: "happy"},
		simrobot.Entered{State: simrobot.Speaking},
		simrobot.Called{Name: "self.robot.set_head_angles", Arguments: `{"pitch":0,"speed":150,"yaw":-45}`, Result: "true"},
		simrobot.HeadMoved{Yaw: -45},
		simrobot.Called{Name: "self.robot.get_head_angles", Arguments: "{}", Result: `{"yaw":-45,"pitch":0}`},
		simrobot.SentenceShown{Text: "Looking\x1b[31m left."},
		simrobot.Entered{State: simrobot.Listening},
		simrobot.TurnEnded{Turn: simrobot.Turn{Answered: true, FirstAudio: 714 * time.Millisecond, Length: 1020 * time.Millisecond}},
		simrobot.HeadMoved{Yaw: 10},
		simrobot.HungUp{Why: "every sentence was answered"},
	} {
		l.observe(h)
	}
	const want = ` (o_o)   boots      checked in at http://h/ -> ws://h:1/
 (o_o)   you say    "look left"
 (o_o)   it hears   look left
 (^u^)   it feels   😊 happy
 (^o^)   it does    self.robot.set_head_angles {"pitch":0,…
<(^o^)   it moves   its head to yaw -45, pitch 0
<(^o^)   it says    Looking[31m left.
<(o_o)   waited     first sound after 0.7 s, 1.0 s long
 (o_o)>  it moves   its head to yaw 10, pitch 0
 (-.-)>  hangs up   every sentence was answered
`
	if b.String() != want {
		t.Errorf("\n%swant\n%s", b.String(), want)
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(line)); n > 60 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestTruncate(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		want    string
	}{
		{"short", 5, "short"},
		{"longer", 5, "long…"},
		{"時間です", 8, "時間です"},
		{"時間です", 7, "時間で…"},
		{"時間です", 6, "時間…"},
		{"😊😊", 3, "😊…"},
		{"e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"},
		{"", 5, ""},
	} {
		if got := truncate(c.text, c.columns); got != c.want {
			t.Errorf("%q in %d columns is %q, want %q", c.text, c.columns, got, c.want)
		}
	}
}

// TestScreenOfATerminal runs the test binary again, in a terminal of 71 columns that script(1)
// provides. There the test only prints a line.
func TestScreenOfATerminal(t *testing.T) {
	if os.Getenv("PERCH_IN_TERMINAL") != "" {
		(&liveLog{out: output{to: os.Stdout}, picture: &picture{screen: command.ScreenOf(os.Stdout, os.Getenv)}}).line("perch", "says",
			strings.Repeat("x", 200))
		return
	}
	script, err := exec.LookPath("script")
	if err != nil {
		t.Skip("script is not installed: bsdutils has it")
	}
	in := func(env ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), script, "-qec", "stty cols 71 && exec "+os.Args[0]+" -test.run '^TestScreenOfATerminal$'", "/dev/null")
		c.Env = append(append(os.Environ(), "PERCH_IN_TERMINAL=1", "TERM=xterm"), env...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	line := " (o_o)   it says    " + strings.Repeat("x", 49) + "…"
	coloured := "\x1b[1;33m (o_o) \x1b[0m  \x1b[1;32mit says    " + strings.Repeat("x", 49) + "…\x1b[0m"
	if got := in("NO_COLOR="); !strings.Contains(got, coloured) {
		t.Errorf("%q, want %q", got, coloured)
	}
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		if got := in(env); !strings.Contains(got, line) || strings.Contains(got, "\x1b[") {
			t.Errorf("%s: %q, want %q", env, got, line)
		}
	}
}

func TestLoudspeakerPlaysBothVoices(t *testing.T) {
	file := filepath.Join(t.TempDir(), "raw")
	l := newLoudspeaker(t.Context(), []string{"dd", "status=none", "of=" + file})
	l.play(24000, []int16{1, -2, 3})
	l.play(16000, make([]int16, 16000))
	l.close()
	raw, err := os.ReadFile(file)
	if err != nil || !bytes.HasPrefix(raw, []byte{1, 0, 0xfe, 0xff, 3, 0}) || len(raw) < 2*23900 {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	// The loudspeaker does not block if there is no program, or if the program ends without playing.
	for _, args := range [][]string{nil, {"no-such-program"}, {"true"}} {
		silent := newLoudspeaker(t.Context(), args)
		for range 1000 {
			silent.play(24000, make([]int16, 1440))
		}
		silent.close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	stuck := newLoudspeaker(ctx, []string{"sleep", "600"})
	for range 1000 {
		stuck.play(24000, make([]int16, 1440))
	}
	cancel()
	stuck.close()
}

func TestPlayerOf(t *testing.T) {
	programs := t.TempDir()
	for _, name := range []string{"aplay", "pacat"} {
		must.Succeed(t, os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"), 0o755))
	}
	t.Setenv("PATH", programs)
	has := func(what string) func(string) bool { return func(pattern string) bool { return pattern == what } }
	none := func(string) string { return "" }
	runtime := func(name string) string { return map[string]string{"XDG_RUNTIME_DIR": "/run/user/1"}[name] }
	for want, got := range map[string][]string{
		"aplay": playerOf(none, has("/dev/snd/pcmC*p")),
		"pacat": playerOf(runtime, has("/run/user/1/pulse/native")),
		"":      playerOf(none, has("/dev/null")),
	} {
		if len(got) == 0 && want != "" || len(got) > 0 && got[0] != want {
			t.Errorf("%v, want %q", got, want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if got := playerOf(none, has("/dev/snd/pcmC*p")); got != nil {
		t.Errorf("%v is not installed", got)
	}
}

func TestTalkAsPicture(t *testing.T) {
	a := newAppliance(t)
	dir := t.TempDir()
	heard := filepath.Join(dir, "heard")
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "pacat"), []byte("#!/bin/sh\nexec cat >"+heard+"\n"), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("PULSE_SERVER", "here")
	t.Setenv("COLUMNS", "70")
	code, out, errs := tools("robot", "--ota", a.ota(), "--mac", "A0B1C2D3E4F5", "--mic", microphone(t), "--mode", "manual", "--picture")
	if code != 0 || errs != "" {
		t.Errorf("exit %d: %s", code, errs)
	}
	for _, want := range []string{
		" (o_o)   you say    \"mic.wav\"\n", " (o_o)   it feels   😍 loving (this robot shows neutral)\n", " (ooo)   it says    Hi.\n",
		"  waited     first sound after ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "turn 1:") || strings.Contains(out, "\x1b") || !strings.Contains(out, "played by ") {
		t.Errorf("it is a log, or does not say how it is played:\n%s", out)
	}
	if exists("/dev/snd/pcmC*p") {
		return // aplay has played the sound on this machine's sound device, instead of the script pacat
	}
	// The person spoke for 0.3 s, and the answer has ten packets of 60 ms. The script pacat has written
	// both to the file heard, at 24 kHz with 16 bits per sample.
	if raw, err := os.ReadFile(heard); err != nil || len(raw) < 2*24*(250+600) {
		t.Errorf("%d bytes were played, %v", len(raw), err)
	}
}
