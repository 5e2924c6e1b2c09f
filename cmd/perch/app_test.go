package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/config"
	"perch/command"
	"perch/command/commandtest"
	"perch/firmware-tools/simrobot"
	"perch/socket"
)

// asProgram, in the environment, makes the test binary the program itself, so
// that a test can kill it.
const asProgram = "RUN_AS_PERCH"

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func TestMain(m *testing.M) {
	commandtest.Main(main)
	if os.Getenv(asAgent) != "" {
		serveAgent()
		return
	}
	if os.Getenv(asLoadTarget) != "" {
		serveScripted()
	}
	if os.Getenv(asProgram) != "" || len(os.Args) > 1 && os.Args[1] == appliance.BrokerCommand {
		os.Unsetenv(asProgram)
		main()
	}
	if flag.Parse(); flag.Lookup("test.bench").Value.String() == "" {
		// The robots of a test have processors of their own. With two for all,
		// both are now and then inside the recognizer, and a robot reads
		// nothing for 10 ms and more, until the scheduler takes one back.
		runtime.GOMAXPROCS(max(8, runtime.NumCPU()))
	}
	goleak.VerifyTestMain(m)
}

// house is an appliance that runs in a test, on ports of its own.
type house struct {
	*appliance.Appliance
	t    *testing.T
	log  *logBuffer
	stop func()
}

// logBuffer keeps what is logged.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// testConfig listens on loopback ports that the system chooses.
func testConfig() config.Config {
	c := config.Default()
	c.Listen, c.Local = []string{"127.0.0.1:0"}, []string{"127.0.0.1:0"}
	c.MQTT.Broker = "none"
	return c
}

func open(t *testing.T, c config.Config, data string) *house {
	t.Helper()
	if testing.Short() {
		t.Skip("make quick starts no whole appliance; make test does")
	}
	h := &house{t: t, log: &logBuffer{}}
	log := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	a, err := appliance.New(&c, appliance.Options{Version: "dev", Built: appliance.BuiltAt(""), Data: data, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	h.Appliance = a
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		a.Close()
	})
	t.Cleanup(h.stop)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the appliance's log:\n%s", h.log)
		}
	})
	return h
}

func (h *house) url(path string) string { return "http://" + h.Doors.Addresses()[0] + path }

func (h *house) ota() string { return h.url("/xiaozhi/ota/") }

// request sends a request and returns status and body.
func (h *house) request(method, path, body string, header ...string) (int, string) {
	h.t.Helper()
	r, err := http.NewRequest(method, h.url(path), strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// admin asks the admin API, and decodes its answer.
func (h *house) admin(method, path string, into any) {
	h.t.Helper()
	h.adminWith(method, path, "{}", into)
}

func (h *house) adminWith(method, path, body string, into any) {
	h.t.Helper()
	token, err := os.ReadFile(filepath.Join(h.Data, "admin-token"))
	if err != nil {
		h.t.Fatal(err)
	}
	status, text := h.request(method, path, body, "Authorization", "Bearer "+strings.TrimSpace(string(token)))
	if status >= 300 {
		h.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			h.t.Fatal(err)
		}
	}
}

// sentences are spoken by a synthesizer that is not the appliance's.
func sentences(t *testing.T, texts ...string) (all []simrobot.Sentence) {
	t.Helper()
	for _, text := range texts {
		pcm, err := simrobot.Speak(t.Context(), text, "slt")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, simrobot.Sentence{Text: text, PCM: pcm})
	}
	return all
}

// talker is a simulated robot that was switched on and has had its talk.
type talker struct {
	*simrobot.Robot
	punctual
	mu       sync.Mutex
	happened []simrobot.Observation
}

// punctual is how late this machine was at most while a robot talked. What has
// to come in time is nothing to judge an appliance by where others keep the
// machine from its work: gateway/robot's tests hold it on a clock of their own.
type punctual struct{ late time.Duration }

// A robot that is told to speak can be sent to 14 ms later and takes 5 of them to
// get to it; once it speaks it has sound for longer than this.
const (
	tooLateToBegin = 9 * time.Millisecond
	tooLate        = 25 * time.Millisecond
)

// watch returns when ctx ends.
func (p *punctual) watch(ctx context.Context) {
	const every = 10 * time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		time.Sleep(every)
		p.late = max(p.late, time.Since(began)-every)
	}
}

// inTime checks that no packet came late, or before the robot was ready for it.
func (p *punctual) inTime(t *testing.T, s simrobot.Stats) {
	t.Helper()
	switch {
	case s.Ignored > 0 && p.late <= tooLateToBegin, s.Underruns > 0 && p.late <= tooLate:
		t.Errorf("the robot ran dry, or ignored packets: %+v", s)
	case s.Ignored+s.Underruns > 0:
		t.Logf("the robot ran dry %d times and ignored %d packets, on a machine that was late by %s", s.Underruns, s.Ignored, p.late)
	}
}

// talks has a robot talk, and returns what ended it.
func (h *house) talks(o simrobot.Options) (*talker, error) {
	h.t.Helper()
	r := &talker{}
	o.OTA, o.MAC = h.ota(), cmp.Or(o.MAC, "A0:B1:C2:D3:E4:F5")
	o.Observe = r.observe
	made, err := simrobot.New(o)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Robot = made
	ctx, cancel := context.WithTimeout(h.t.Context(), 2*time.Minute)
	var watch sync.WaitGroup
	watch.Go(func() { r.watch(ctx) })
	err = made.Run(ctx)
	cancel()
	watch.Wait()
	return r, err
}

func (h *house) robot(o simrobot.Options) *talker {
	h.t.Helper()
	r, err := h.talks(o)
	if err != nil {
		h.t.Fatalf("the robot: %v", err)
	}
	return r
}

func (r *talker) observe(e simrobot.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.happened = append(r.happened, e)
}

// whole checks that every sentence was answered, and not a packet lost.
func (r *talker) whole(t *testing.T) {
	t.Helper()
	s := r.Stats()
	r.inTime(t, s)
	if s.Dropped+s.Cut+s.Bad > 0 || s.Played+s.Ignored != s.Received || s.MaxQueue > 40 {
		t.Errorf("sound was lost: %+v", s)
	}
	for _, turn := range s.Turns {
		if turn.Transcript != turn.Text || !turn.Answered {
			t.Errorf("%q was heard as %q, answered %v", turn.Text, turn.Transcript, turn.Answer)
		}
	}
}

// TestASpokenConversation is the appliance's main job, with nothing scripted:
// real speech in, real recognition, real speech out.
func TestASpokenConversation(t *testing.T) {
	t.Parallel()
	h := open(t, testConfig(), t.TempDir())
	r := h.robot(simrobot.Options{Say: sentences(t, "what time is it", "set the volume to forty percent", "look left",
		"remember that my keys are in the kitchen", "where are my keys", "good night"), Record: true})
	r.whole(t)
	var calls []string
	for _, e := range r.happened {
		if c, ok := e.(simrobot.Called); ok {
			calls = append(calls, fmt.Sprint(c))
		}
	}
	all := strings.Join(calls, "\n")
	for _, want := range []string{"self.audio_speaker.set_volume", `{"volume":40}`, "self.robot.set_head_angles", `{"yaw":-45}`} {
		if !strings.Contains(all, want) {
			t.Errorf("no call with %s among\n%s", want, all)
		}
	}
	turns := r.Stats().Turns
	if got := strings.Join(turns[4].Answer, " "); got != "Your keys are in the kitchen." {
		t.Errorf("recalled %q", got)
	}
	if _, pcm := r.Sound(); loudness(pcm) < 300 {
		t.Errorf("what the robot played has an RMS of %.0f", loudness(pcm))
	}
	h.eventually("the robot sleeps", func() bool {
		var d struct {
			State     string
			Connected bool
		}
		h.admin(http.MethodGet, "/api/v1/devices/a0b1c2d3e4f5", &d)
		return d.State == "sleeping" || d.State == "attention" && !d.Connected
	})
	var kept []struct {
		Heard  string
		Stages map[string]int64
	}
	h.admin(http.MethodGet, "/api/v1/turns", &kept)
	if len(kept) != 6 || kept[0].Heard != "good night" || kept[0].Stages["first_packet"] == 0 {
		t.Errorf("kept turns %+v", kept)
	}
	if strings.Contains(h.log.String(), "level=ERROR") {
		t.Errorf("errors were logged:\n%s", h.log)
	}
}

func loudness(pcm []int16) float64 {
	sum := 0.0
	for _, s := range pcm {
		sum += float64(s) * float64(s)
	}
	return sum / float64(max(1, len(pcm))) / 300
}

// Eventually waits for something that another goroutine does.
func (h *house) eventually(what string, done func() bool) {
	h.t.Helper()
	h.within(30*time.Second, what, done)
}

func (h *house) within(d time.Duration, what string, done func() bool) {
	h.t.Helper()
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for !done() {
		select {
		case <-every.C:
		case <-deadline.C:
			h.t.Fatalf("not within %s: %s", d, what)
		}
	}
}

// TestCommits: nothing is written before hello is answered, a spoken turn
// costs two commits at most, and an idle appliance none.
func TestCommits(t *testing.T) {
	t.Parallel()
	h := open(t, testConfig(), t.TempDir())
	before := h.DB.Commits()
	h.robot(simrobot.Options{})
	if n := h.DB.Commits() - before; n != 0 {
		t.Errorf("%d commits for a check-in", n)
	}
	if err := h.DB.Flush(); err != nil {
		t.Fatal(err)
	}
	before = h.DB.Commits()
	const turns = 2
	r := h.robot(simrobot.Options{Say: sentences(t, "what time is it", "remember that my keys are in the kitchen")})
	r.whole(t)
	h.eventually("the channel is closed", func() bool { return len(h.Talk.List()) == 0 })
	if err := h.DB.Flush(); err != nil {
		t.Fatal(err)
	}
	if n := h.DB.Commits() - before; n > 2*turns {
		t.Errorf("%d commits for %d turns", n, turns)
	}
	before = h.DB.Commits()
	time.Sleep(6 * time.Second) // real time: longer than anything waits to be written
	if n := h.DB.Commits() - before; n != 0 {
		t.Errorf("%d commits of an idle appliance", n)
	}
}

// program runs the appliance as a process of its own.
func program(t *testing.T, data string, env ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "serve", "--data", data, "--listen", "127.0.0.1:0", "--local", "127.0.0.1:0")
	ours := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PERCH_") }) // such as PERCH_KILLS
	cmd.Env = append(append(ours, asProgram+"=1", "PERCH_MQTT_BROKER=none"), env...)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var seen []byte
	buf := make([]byte, 4096)
	for {
		n, err := log.Read(buf)
		seen = append(seen, buf[:n]...)
		if _, after, ready := strings.Cut(string(seen), "listen=["); ready && strings.Contains(after, "]") {
			address, _, _ := strings.Cut(after, "]")
			go io.Copy(io.Discard, log) // until the process ends
			return cmd, "http://" + address + "/xiaozhi/ota/"
		}
		if err != nil {
			t.Fatalf("the program did not start: %s", seen)
		}
	}
}

// TestWhatWasRememberedSurvivesSIGKILL kills the program as soon as it has
// said that it will remember.
func TestWhatWasRememberedSurvivesSIGKILL(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	flash := filepath.Join(t.TempDir(), "flash.json")
	talk := func(ota, text string) []string {
		r, err := simrobot.New(simrobot.Options{OTA: ota, MAC: "A0:B1:C2:D3:E4:F5", FlashFile: flash, Say: sentences(t, text)})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return r.Stats().Turns[0].Answer
	}
	cmd, ota := program(t, data)
	talk(ota, "remember that my glasses are under the sofa")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("it was not killed")
	}
	cmd, ota = program(t, data)
	if got := talk(ota, "where are my glasses"); !slices.Equal(got, []string{"Your glasses are under the sofa."}) {
		t.Errorf("recalled %q", got)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM it ended with %v", err)
	}
}

// TestIdentityOfRobots: a token of another client, a stolen one and none.
func TestIdentityOfRobots(t *testing.T) {
	h := open(t, testConfig(), t.TempDir())
	checkIn := func(client string) (token string) {
		status, text := h.request(http.MethodPost, "/xiaozhi/ota/", "{}", "Device-Id", "a0:b1:c2:d3:e4:f5", "Client-Id", client)
		var reply struct{ WebSocket struct{ Token string } }
		if err := json.Unmarshal([]byte(text), &reply); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
		return reply.WebSocket.Token
	}
	connect := func(client, token string) int {
		header := []string{"Device-Id", "a0:b1:c2:d3:e4:f5", "Client-Id", client, "Connection", "Upgrade", "Upgrade", "websocket",
			"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="}
		if token != "" {
			header = append(header, "Authorization", "Bearer "+token)
		}
		status, _ := h.request(http.MethodGet, "/xiaozhi/v1/", "", header...)
		return status
	}
	mine := checkIn("mine")
	if mine == "" {
		t.Fatal("a new robot got no token")
	}
	if other := checkIn("other"); other != "" {
		t.Error("another client of the same MAC got a token")
	}
	for name, c := range map[string]struct{ client, token string }{
		"no token": {"mine", ""}, "a forged token": {"mine", strings.Repeat("A", 43)}, "another's token": {"other", mine},
	} {
		if status := connect(c.client, c.token); status != http.StatusUnauthorized {
			t.Errorf("%s: status %d", name, status)
		}
	}
	out := h.command(t, "devices", 0)
	if !strings.Contains(out, "perch adopt CODE, or perch adopt --replace a0b1c2d3e4f5") {
		t.Errorf("perch devices says\n%s", out)
	}
	if out := h.command(t, "adopt a0b1c2d3e4f5 --replace", 0); !strings.Contains(out, "If it does, and it is yours, adopt it") ||
		h.Robots.Trusts("a0b1c2d3e4f5") {
		t.Errorf("perch adopt --replace says\n%s", out)
	}
	if other := checkIn("other"); other == "" {
		t.Error("an adopted robot got no token")
	}
	if status := connect("mine", mine); status != http.StatusUnauthorized {
		t.Errorf("the client that was replaced: status %d", status)
	}
	again := checkIn("other")
	h.command(t, "forget a0b1c2d3e4f5", 0)
	if status := connect("other", again); status != http.StatusUnauthorized {
		t.Errorf("a forgotten robot: status %d", status)
	}
}

// TestBadMessagesDisturbNothing: what cannot be read is passed over, what is
// too big ends that session, and no other one notices.
func TestBadMessagesDisturbNothing(t *testing.T) {
	h := open(t, testConfig(), t.TempDir())
	dial := func(mac string) *socket.Conn {
		_, text := h.request(http.MethodPost, "/xiaozhi/ota/", "{}", "Device-Id", mac, "Client-Id", "c")
		var reply struct{ WebSocket struct{ URL, Token string } }
		if err := json.Unmarshal([]byte(text), &reply); err != nil {
			t.Fatal(err)
		}
		c, err := socket.Dial(t.Context(), reply.WebSocket.URL, socket.Options{MaxMessage: 1 << 16, Header: http.Header{
			"Device-Id": {mac}, "Client-Id": {"c"}, "Authorization": {"Bearer " + reply.WebSocket.Token}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(socket.Normal, "") })
		return c
	}
	ask := func(c *socket.Conn, text, want string) {
		t.Helper()
		if err := c.SendText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		for {
			isText, data, err := c.Receive()
			if err != nil {
				t.Fatalf("waiting for %s: %v", want, err)
			}
			if isText && strings.Contains(string(data), want) {
				return
			}
		}
	}
	bad, other := dial("a0:b1:c2:d3:e4:f5"), dial("a0:b1:c2:d3:e4:f7")
	ask(bad, `{"type":"hello"}`, `"hello"`)
	ask(other, `{"type":"hello"}`, `"hello"`)
	for _, text := range []string{`[{"type":"abort"}]`, `{"type":"abort"`, `null`, `{"type":"listen","state":[]}`, `{"type":"mcp","payload":[1]}`,
		`{"type":"nonsense"}`} {
		if err := bad.SendText([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, frame := range [][]byte{{}, {1}, bytes.Repeat([]byte{0xff}, 5000)} {
		if err := bad.SendBinary(frame); err != nil {
			t.Fatal(err)
		}
	}
	ask(bad, `{"type":"abort"}`, `"stop"`)
	_ = bad.SendText(bytes.Repeat([]byte("x"), 70000)) // it may be closed before all of them are sent
	if _, _, err := bad.Receive(); err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after 70 000 bytes: %v", err)
	}
	h.eventually("the log says so", func() bool { return strings.Contains(h.log.String(), "too big") })
	ask(other, `{"type":"abort"}`, `"stop"`)
}

// command runs a command line against the appliance's socket.
func (h *house) command(t *testing.T, line string, code int) string {
	t.Helper()
	var out bytes.Buffer
	args := append(strings.Fields(line), "--data", h.Data)
	if got := run(t.Context(), args, &out, &out); got != code {
		t.Errorf("perch %s: exit code %d, want %d: %s", line, got, code, out.String())
	}
	return out.String()
}

// elsewherePorts is a configuration with ports that nobody serves, whatever else
// runs on this machine.
func elsewherePorts(t *testing.T) string {
	t.Helper()
	return written(t, "listen: [\"127.0.0.1:0\"]\nlocal: [\"127.0.0.1:0\"]\nmqtt: {broker: none}\n")
}

func TestCommandsSpeakToTheAppliance(t *testing.T) {
	h := open(t, testConfig(), t.TempDir())
	if out := h.command(t, "devices", 0); !strings.Contains(out, "no robot") {
		t.Errorf("devices says %s", out)
	}
	h.robot(simrobot.Options{})
	h.eventually("the channel is closed", func() bool { return len(h.Talk.List()) == 0 })
	if out := h.command(t, "devices", 0); !strings.Contains(out, "a0b1c2d3e4f5  m5stack-stack-chan") {
		t.Errorf("devices says %s", out)
	}
	for line, want := range map[string]string{
		"say nobody hello":    "not a MAC address",
		"forget 020000000001": "unknown robot",
		"adopt 123456":        "no robot waits",
	} {
		if out := h.command(t, line, 1); !strings.Contains(out, want) {
			t.Errorf("%s says %s", line, out)
		}
	}
	if out := h.command(t, "say a0b1c2d3e4f5 hello", 0); !strings.Contains(out, "queued until the robot next connects") {
		t.Errorf("say to a closed robot says %s", out)
	}
	if out := h.command(t, "say a0b1c2d3e4f5", 2); !strings.Contains(out, "perch say: it takes ROBOT TEXT..., not 1 arguments") {
		t.Errorf("wrong use says %s", out)
	}
	if out := h.command(t, "doctor --config "+elsewherePorts(t), 1); !strings.Contains(out, "ok    store") {
		t.Errorf("doctor says %s", out)
	}
	groups := command.Visible(commands())
	for _, c := range append(groups, command.Visible(groups[slices.IndexFunc(groups, (*cobra.Command).HasSubCommands)])...) {
		var out bytes.Buffer
		if code := run(t.Context(), append(strings.Fields(c.CommandPath())[1:], "--help"), &out, &out); code != exitDone ||
			!strings.Contains(out.String(), c.Short) {
			t.Errorf("%s --help: exit code %d: %s", c.CommandPath(), code, out.String())
		}
	}
	if out := h.command(t, `say a0b1c2d3e4f5 😊`, 1); !strings.Contains(out, "nothing in the text") {
		t.Errorf("a face without words: %s", out)
	}
	h.stop()
	if out := h.command(t, "devices", 1); !strings.Contains(out, "no appliance runs here") || !strings.Contains(out, "systemctl status perch") {
		t.Errorf("without an appliance, devices says %s", out)
	}
}

func TestForeignHostsAndOrigins(t *testing.T) {
	h := open(t, testConfig(), t.TempDir())
	for name, c := range map[string]struct {
		header []string
		status int
		says   string
	}{
		"its own address":  {nil, 200, "ok"},
		"a foreign host":   {[]string{"Host", "evil.example"}, 421, "allowed_hosts"},
		"a foreign origin": {[]string{"Origin", "https://evil.example"}, 403, "allowed_origins"},
	} {
		status, text := h.request(http.MethodGet, "/health", "", c.header...)
		if status != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, _ := h.request(http.MethodGet, "/api/v1/devices", ""); status != http.StatusUnauthorized {
		t.Errorf("the admin API without a token: %d", status)
	}
	if status, text := h.request(http.MethodPost, "/xiaozhi/ota/", strings.Repeat("x", 10<<20), "Device-Id",
		"a0:b1:c2:d3:e4:f5"); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a check-in of 10 MB: %d %s", status, text)
	}
}

func TestWhatDoesNotStart(t *testing.T) {
	h := open(t, testConfig(), t.TempDir())
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*config.Config)
		data   string
		says   []string
	}{
		"a port in use": {func(c *config.Config) { c.Listen = h.Doors.Addresses() }, t.TempDir(),
			[]string{"in use by another program", "listen in the configuration"}},
		"no address of ours": {func(c *config.Config) { c.Listen = []string{"203.0.113.9:8003"} }, t.TempDir(),
			[]string{"no address of this machine"}},
		"data in use":         {func(*config.Config) {}, h.Data, []string{"in use", "perch.db"}},
		"data under a file":   {func(*config.Config) {}, filepath.Join(file, "data"), []string{"data directory", "--data"}},
		"sentences not there": {func(c *config.Config) { c.Brains[0].Sentences = "/nowhere.yaml" }, t.TempDir(), []string{"/nowhere.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			conf := testConfig()
			c.change(&conf)
			a, err := appliance.New(&conf, appliance.Options{Version: "dev", Built: appliance.BuiltAt(""), Data: c.data,
				Log: slog.New(slog.DiscardHandler)})
			if err == nil {
				a.Close()
				t.Fatal("it starts")
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("says %q, not %q", err, want)
				}
			}
		})
	}
}

// TestAMissingSpeechEngine: the robot is told, the log names the cause once,
// and the rest of the appliance works.
func TestAMissingSpeechEngine(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Speech.Recognizers[0].Model = filepath.Join(t.TempDir(), "nothing")
	h := open(t, c, t.TempDir())
	made, err := simrobot.New(simrobot.Options{OTA: h.ota(), MAC: "A0:B1:C2:D3:E4:F5", Say: sentences(t, "what time is it"),
		AnswerWithin: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := made.Run(ctx); err != nil && !errors.Is(err, simrobot.ErrUnanswered) {
		t.Fatal(err)
	}
	if turn := made.Stats().Turns[0]; !turn.Answered || !slices.Contains(turn.Answer, "I cannot hear right now.") {
		t.Errorf("answered %+v", turn)
	}
	if log := h.log.String(); !strings.Contains(log, "apt install pocketsphinx-en-us") {
		t.Errorf("the log does not name the cure:\n%s", log)
	}
	if status, _ := h.request(http.MethodGet, "/health", ""); status != http.StatusOK {
		t.Errorf("health is %d", status)
	}
}

// ownerToken is the owner's.
func (h *house) ownerToken() string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.Data, "admin-token"))
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
