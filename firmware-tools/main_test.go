package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/command/commandtest"
	"perch/device/xiaozhi"
	"perch/must"
	"perch/socket"
	"perch/voice"
)

func TestMain(m *testing.M) {
	commandtest.Main(main)
	goleak.VerifyTestMain(m)
}

// appliance is a fake appliance for robots in manual mode. It answers every utterance with the same
// ten packets of sound.
type appliance struct {
	t      *testing.T
	server *httptest.Server
	reply  string // body of the response to a check-in; empty for a valid one

	mu      sync.Mutex
	upgrade *http.Request // latest request to open a WebSocket
	hello   xiaozhi.Hello // latest hello of a robot
	woken   string        // latest wake word
	preroll int           // number of packets before the wake word
}

const token = "secret-token"

func newAppliance(t *testing.T) *appliance {
	a := &appliance{t: t}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /xiaozhi/ota/", func(w http.ResponseWriter, r *http.Request) {
		reply := a.reply
		if reply == "" {
			reply = fmt.Sprintf(`{"websocket":{"url":"ws://%s/xiaozhi/v1/","token":%q,"version":2}}`, r.Host, token)
		}
		_, _ = io.WriteString(w, reply)
	})
	mux.HandleFunc("/xiaozhi/v1/", a.channel)
	a.server = httptest.NewServer(mux)
	t.Cleanup(a.server.Close)
	return a
}

func (a *appliance) ota() string { return a.server.URL + "/xiaozhi/ota/" }

func (a *appliance) channel(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.upgrade = r
	a.mu.Unlock()
	c, err := socket.Accept(w, r, socket.Options{MaxMessage: xiaozhi.MaxMessage})
	if err != nil {
		a.t.Error(err)
		return
	}
	defer c.Close(socket.Normal, "")
	frames := 0
	for {
		isText, data, err := c.Receive()
		if err != nil {
			return
		}
		if !isText {
			if _, err := xiaozhi.Framing2.Parse(data); err != nil {
				a.t.Errorf("frame %x: %v", data, err)
			}
			frames++
			continue
		}
		m, err := xiaozhi.ParseFromRobot(data)
		if err != nil {
			a.t.Error(err)
		}
		switch m := m.(type) {
		case xiaozhi.ListenDetect:
			a.mu.Lock()
			a.woken, a.preroll, frames = m.Text, frames, 0
			a.mu.Unlock()
		case xiaozhi.Hello:
			a.mu.Lock()
			a.hello = m
			a.mu.Unlock()
			a.send(c, xiaozhi.Welcome{Session: "s1", Audio: xiaozhi.AudioParams{SampleRate: 24000, FrameDuration: 60}},
				xiaozhi.ToMCP{Payload: []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` +
					`{"capabilities":{"vision":{"url":"http://x/","token":"` + token + `"}}}}`)})
		case xiaozhi.ListenStop:
			if frames == 0 {
				a.t.Error("the microphone sent nothing")
			}
			a.answer(c)
		}
	}
}

func (a *appliance) send(c *socket.Conn, messages ...xiaozhi.ToRobot) {
	for _, m := range messages {
		if err := c.SendText(xiaozhi.AppendToRobot(nil, "s1", m)); err != nil {
			a.t.Error(err)
		}
	}
}

func (a *appliance) answer(c *socket.Conn) {
	a.send(c, xiaozhi.STT{Text: "hello\x1b[2J"}, xiaozhi.LLM{Emotion: "loving", Text: "😍"}, xiaozhi.TTSStart{}, xiaozhi.SentenceStart{Text: "Hi."},
		xiaozhi.ToMCP{Payload: []byte(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":` +
			`{"name":"self.audio_speaker.set_volume","arguments":{"volume":40}}}`)})
	time.Sleep(60 * time.Millisecond) // the robot enters its speaking state
	e, err := voice.NewEncoder(voice.SpeakerRate)
	if err != nil {
		a.t.Error(err)
		return
	}
	err = e.Encode(square(10*voice.SpeakerFrame), func(p []byte) error {
		return c.SendBinary(xiaozhi.Framing2.Append(nil, xiaozhi.Audio{Opus: p}))
	})
	if err != nil {
		a.t.Error(err)
	}
	time.Sleep(10 * voice.FrameDuration)
	a.send(c, xiaozhi.TTSStop{})
}

func square(n int) []int16 {
	pcm := make([]int16, n)
	for i := range pcm {
		pcm[i] = int16(8000 * (i / 40 % 2))
	}
	return pcm
}

func tools(args ...string) (code int, stdout, stderr string) {
	return toolsUntil(context.Background(), args...)
}

func toolsUntil(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

// call is a call of a command, with the expected result.
type call struct {
	args []string // arguments after those that check passes to every call
	code int      // exit code
	want string   // part of the output or, if code is not 0, of the single line on stderr
}

func check(t *testing.T, command string, calls ...call) {
	t.Helper()
	for _, c := range calls {
		code, text, errs := tools(append(strings.Fields(command), c.args...)...)
		if c.code != 0 {
			text = errs
		}
		if code != c.code || !strings.Contains(text, c.want) || strings.Count(errs, "\n") != min(c.code, 1) {
			t.Errorf("%q: exit %d %s%s", c.args, code, text, errs)
		}
	}
}

// microphone returns the path of a WAV file with 0.3 s of sound.
func microphone(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	must.Succeed(t, voice.WriteWAV(&b, 16000, square(4800)))
	return writeFile(t, "mic.wav", b.Bytes())
}

func TestConversation(t *testing.T) {
	a := newAppliance(t)
	dir := t.TempDir()
	speaker, script, flash := filepath.Join(dir, "speaker.wav"), filepath.Join(dir, "t.jsonl"), filepath.Join(dir, "flash.json")
	code, out, errs := tools("robot", "--ota", a.ota(), "--mac", "A0B1C2D3E4F5", "--mic", microphone(t), "--speaker", speaker, "--mode", "manual",
		"--transcript", script, "--flash", flash, "--event", `face_detected={"x":1}`)
	if code != 0 || errs != "" {
		t.Errorf("exit %d: %s", code, errs)
	}
	for _, want := range []string{
		"robot  A0B1C2D3E4F5 checked in at " + a.ota() + " -> ws://",
		"perch  hello     24000 Hz, 60 ms",
		`robot  senses    face_detected {"x":1}`,
		`robot  says      "mic.wav"`,
		"perch  heard     hello[2J\n", // without the escape character that the appliance sent
		"perch  feels     😍 loving (this robot shows neutral)",
		"perch  says      Hi.",
		`robot  tool      self.audio_speaker.set_volume {"volume":40} -> true`,
		"robot  hangs up  every sentence was answered",
		"turn 1: first sound after ", "10 packets, 0 underruns, 0 dropped",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	a.checkUpgrade()
	checkSound(t, speaker)
	text, err := os.ReadFile(script)
	if err != nil || bytes.Contains(text, []byte(token)) || bytes.Count(text, []byte("\n")) < 20 {
		t.Errorf("transcript %v\n%s", err, text)
	}
	var kept struct{ Volume int }
	text, _ = os.ReadFile(flash)
	if err := json.Unmarshal(text, &kept); err != nil || kept.Volume != 40 {
		t.Errorf("flash %s, %v", text, err)
	}
}

// checkUpgrade checks that the latest WebSocket upgrade request has the same headers as the firmware's.
func (a *appliance) checkUpgrade() {
	h := a.upgrade.Header
	for k, want := range map[string]string{
		"Authorization": "Bearer " + token, "Device-Id": "a0:b1:c2:d3:e4:f5", "Protocol-Version": "2",
		"User-Agent": "", "Origin": "", "Sec-Websocket-Extensions": "", "Sec-Websocket-Protocol": "", "Sec-Websocket-Version": "13",
	} {
		if got := h.Get(k); got != want {
			a.t.Errorf("%s: %q, want %q", k, got, want)
		}
	}
	if a.upgrade.Host != "127.0.0.1" || h.Get("Client-Id") == "" {
		a.t.Errorf("Host %q, Client-Id %q", a.upgrade.Host, h.Get("Client-Id"))
	}
}

func checkSound(t *testing.T, file string) {
	t.Helper()
	f := must.Value(os.Open(file))(t)
	defer f.Close()
	w := must.Value(voice.NewWAVReader(f))(t)
	info, _ := f.Stat()
	if n := (info.Size() - 44) / 2; w.Rate != 24000 || n != 10*voice.SpeakerFrame {
		t.Errorf("%d samples at %d Hz, want ten packets", n, w.Rate)
	}
}

func TestManyRobots(t *testing.T) {
	a := newAppliance(t)
	code, out, errs := tools("robot", "--ota", a.ota(), "--say", "hi", "--mode", "manual", "--robots", "3")
	if code != 0 || !strings.Contains(out, "3 robots: 3 of 3 turns answered") || !strings.Contains(out, "30 received, 30 played, 0 dropped") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	a.reply = "[]"
	check(t, "robot --say hi --robots 2 --ota", call{[]string{a.ota()}, 1, "2 of 2 robots failed, the first because of: check in"})
	if a, b := macAfter("00:00:00:00:00:ff", 2), macAfter("fefffffffffe", 2); a != "000000000101" || b != "ff0000000000" {
		t.Errorf("the third MACs are %s and %s", a, b)
	}
}

func TestWakeWordWithServerAEC(t *testing.T) {
	a := newAppliance(t)
	code, out, errs := tools("robot", "--ota", a.ota(), "--wake", "hi stack chan", "--aec", "server", "--firmware", "2.4")
	a.mu.Lock()
	defer a.mu.Unlock()
	if code != 0 || a.woken != "hi stack chan" || a.preroll != 33 || !a.hello.Features.AEC {
		t.Errorf("exit %d: woken by %q after %d packets, %+v\n%s%s", code, a.woken, a.preroll, a.hello, out, errs)
	}
}

func TestNumberedSentencesOfManyRobots(t *testing.T) {
	parsed := func(args ...string) *robotFlags {
		f := &robotFlags{}
		must.Succeed(t, errors.Join(robotCommand("robot", f).ParseFlags(args), f.check()))
		return f
	}
	f := parsed("--say", "robot %d", "--say", "hi", "--robots", "3", "--mac", "0200000000fe")
	if err := f.synthesize(t.Context()); err != nil || len(f.spoken) != 3 || len(f.options.Say) != 2 {
		t.Fatalf("%d robots speak, %v", len(f.spoken), err)
	}
	for i, say := range f.spoken {
		if len(say) != 2 || say[0].Text != fmt.Sprintf("robot %d", i+1) || say[1].Text != "hi" || len(say[0].PCM) == 0 {
			t.Fatalf("robot %d says %d sentences, first %+v", i+1, len(say), say)
		}
	}
	if &f.spoken[0][1].PCM[0] != &f.spoken[2][1].PCM[0] {
		t.Error("what is the same was spoken twice")
	}
	if f = parsed("--say", "robot %d"); f.synthesize(t.Context()) != nil || f.options.Say[0].Text != "robot 1" {
		t.Errorf("one robot: %+v", f)
	}
}

func TestExitCodes(t *testing.T) {
	a := newAppliance(t)
	crashing := newAppliance(t)
	crashing.reply = `{"websocket":{"url":"ws://h:1/","a_key_of_20_letters_":"x"}}`
	for _, c := range []struct {
		args   string
		code   int
		stderr string // part of the text on stderr; "" if nothing is expected there
	}{
		{"", 2, "usage: perch-tools COMMAND"},
		{"help", 0, ""},
		{"dance", 2, `unknown command "dance"`},
		{"completion", 2, "it takes bash|zsh|fish"},
		{"completion tcsh", 2, `"tcsh" is not one of`},
		{"completion --what", 2, "unknown flag: --what"},
		{"robot --help", 0, ""},
		{"robot flsh x.bin", 2, `unknown command "flsh"; did you mean flash?`},
		{"robot --mode loud", 2, `mode "loud"`},
		{"robot --nonsense", 2, "unknown flag: --nonsense"},
		{"robot stray", 2, `unknown command "stray"; perch-tools robot --help lists the commands`},
		{"robot --mode loud", 2, `mode "loud"`},
		{"robot --aec both", 2, `AEC "both"`},
		{"robot --framing 4", 2, "framing 4"},
		{"robot --framing x", 2, `invalid argument "x" for "--framing" flag`},
		{"robot --firmware 3", 2, `firmware "3"`},
		{"robot --mac 1", 2, "MAC"},
		{"robot --event {}", 2, "NAME=JSON"},
		{"robot --event x=[]", 2, "NAME=JSON"},
		{"robot --event x=null", 2, "NAME=JSON"},
		{"robot --robots 0", 2, "1 to 1000"},
		{"robot --robots 2 --speaker x.wav", 2, "for one robot"},
		{"robot --say x --mic y.wav", 2, "one microphone"},
		{"robot --mic /nowhere.wav --ota " + a.ota(), 1, "nowhere.wav"},
		{"robot --ota http://127.0.0.1:1/xiaozhi/ota/", 1, "connection refused"},
		{"robot --ota " + a.server.URL + "/elsewhere/", 1, "404"},
		{"robot --ota " + crashing.ota(), 1, "a real robot would crash"},
		{"robot --ota " + a.ota(), 0, ""},
	} {
		code, out, errs := tools(strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(errs, c.stderr) || c.stderr == "" && errs != "" {
			t.Errorf("%q: exit %d, stderr %q, want %d, %q", c.args, code, errs, c.code, c.stderr)
		}
		if strings.HasPrefix(c.args, "robot ") && c.code != 0 && strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: stderr is not one line: %q", c.args, errs)
		}
		if code == 0 && out == "" {
			t.Errorf("%q: says nothing", c.args)
		}
	}
}
