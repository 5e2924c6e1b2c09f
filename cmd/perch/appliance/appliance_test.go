package appliance_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/agent/reflex"
	"perch/cmd/perch/appliance"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/cmd/perch/machine"
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/socket"
	"perch/voice/sphinx"
)

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		serveAgent()
		return
	}
	appliancetest.RunChildProcess()
	appliancetest.RaiseGOMAXPROCS()
	goleak.VerifyTestMain(m)
}

// TestASpokenConversation tests a conversation with the default engines: the robot sends speech, which is
// recognized, and plays the synthesized answers.
func TestASpokenConversation(t *testing.T) {
	t.Parallel()
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	r := h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it", "set the volume to forty percent", "look left",
		"remember that my keys are in the kitchen", "where are my keys", "good night"), Record: true})
	r.CheckComplete(t)
	all := fmt.Sprint(appliancetest.ObservationsOf[simrobot.Called](r))
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
	h.Eventually("the robot sleeps", func() bool {
		var d struct {
			State     string
			Connected bool
		}
		h.Admin(http.MethodGet, "/api/v1/devices/a0b1c2d3e4f5", "{}", &d)
		return d.State == "sleeping" || d.State == "attention" && !d.Connected
	})
	var kept []struct {
		Heard  string
		Stages map[string]int64
	}
	h.Admin(http.MethodGet, "/api/v1/turns", "{}", &kept)
	if len(kept) != 6 || kept[0].Heard != "good night" || kept[0].Stages["first_packet"] == 0 {
		t.Errorf("kept turns %+v", kept)
	}
	log := h.Logged.String()
	if strings.Contains(log, "level=ERROR") {
		t.Errorf("errors were logged:\n%s", log)
	}
	for _, kind := range []string{"robot_online", "heard", "said", "turn_ended"} { // logged because the level is debug
		if !strings.Contains(log, "kind="+kind+" robot=a0b1c2d3e4f5") {
			t.Errorf("the log has no event %s", kind)
		}
	}
	if strings.Contains(log, "keys are in the kitchen") {
		t.Errorf("the log has the words of a conversation:\n%s", log)
	}
}

// loudness returns the mean square of samples divided by 300. It is 300 for a root mean square of 300.
func loudness(pcm []int16) float64 {
	sum := 0.0
	for _, s := range pcm {
		sum += float64(s) * float64(s)
	}
	return sum / float64(max(1, len(pcm))) / 300
}

// TestCommitsOfATurn checks the number of commits of the database: none for a robot that connects, at most
// two for a spoken turn, and none for an idle appliance.
func TestCommitsOfATurn(t *testing.T) {
	t.Parallel()
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	before := h.DB.Commits()
	h.RunRobot(simrobot.Options{})
	if n := h.DB.Commits() - before; n != 0 {
		t.Errorf("%d commits for a check-in", n)
	}
	must.Succeed(t, h.DB.Flush())
	before, began := h.DB.Commits(), time.Now()
	const turns = 2
	r := h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it", "remember that my keys are in the kitchen")})
	r.CheckComplete(t)
	h.Eventually("the end of the session is recorded", func() bool { return !h.Records.Sessions(1)[0].Closed.IsZero() })
	must.Succeed(t, h.DB.Flush())
	// Changes are written after at most five seconds, so a slow machine needs more commits for a turn.
	if n, late := h.DB.Commits()-before, int(time.Since(began)/(5*time.Second)); int(n) > 2*turns+late {
		t.Errorf("%d commits for %d turns in %s", n, turns, time.Since(began))
	}
	before = h.DB.Commits()
	time.Sleep(6 * time.Second) // changes are written after at most five seconds
	if n := h.DB.Commits() - before; n != 0 {
		t.Errorf("%d commits of an idle appliance", n)
	}
}

// TestBadMessagesDisturbNothing checks that messages that cannot be decoded are ignored, that a message that is
// too large ends the session, and that another session is not affected.
func TestBadMessagesDisturbNothing(t *testing.T) {
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	dial := func(mac string) *socket.Conn {
		token := h.Token("/xiaozhi/ota/", "Device-Id", mac, "Client-Id", "c")
		c, err := socket.Dial(t.Context(), strings.Replace(h.URL("/xiaozhi/v1/"), "http", "ws", 1), socket.Options{MaxMessage: 1 << 16,
			Header: http.Header{"Device-Id": {mac}, "Client-Id": {"c"}, "Authorization": {"Bearer " + token}}})
		must.Succeed(t, err)
		t.Cleanup(func() { c.Close(socket.Normal, "") })
		return c
	}
	ask := func(c *socket.Conn, text, want string) {
		t.Helper()
		must.Succeed(t, c.SendText([]byte(text)))
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
		must.Succeed(t, bad.SendText([]byte(text)))
	}
	for _, frame := range [][]byte{{}, {1}, bytes.Repeat([]byte{0xff}, 5000)} {
		must.Succeed(t, bad.SendBinary(frame))
	}
	ask(bad, `{"type":"abort"}`, `"stop"`)
	_ = bad.SendText(bytes.Repeat([]byte("x"), 70000)) // fails if the connection is closed before all bytes are sent
	if _, _, err := bad.Receive(); err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after 70 000 bytes: %v", err)
	}
	h.Eventually("the log says so", func() bool { return strings.Contains(h.Logged.String(), "too large; the channel is closed") })
	ask(other, `{"type":"abort"}`, `"stop"`)
}

func TestWhatDoesNotStart(t *testing.T) {
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	file := filepath.Join(t.TempDir(), "file")
	must.Succeed(t, os.WriteFile(file, nil, 0o600))
	for name, c := range map[string]struct {
		change func(*config.Config)
		data   string
		says   []string
	}{
		"a port in use": {func(c *config.Config) { c.Listen = h.Listeners.Addresses() }, t.TempDir(),
			[]string{"in use by another program", "listen in the configuration"}},
		"no address of ours": {func(c *config.Config) { c.Listen = []string{"203.0.113.9:8003"} }, t.TempDir(),
			[]string{"is not an address of this machine"}},
		"data in use":         {func(*config.Config) {}, h.Data, []string{"in use", "perch.db"}},
		"data under a file":   {func(*config.Config) {}, filepath.Join(file, "data"), []string{"data directory", "--data"}},
		"sentences not there": {func(c *config.Config) { c.Brains[0].Options.(*reflex.Keys).Sentences = "/nowhere.yaml" }, t.TempDir(), []string{"/nowhere.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			conf := appliancetest.Config()
			c.change(&conf)
			a, err := appliance.New(&conf, appliance.Options{Version: "dev", Built: machine.BuiltAt(""), Data: c.data,
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

// TestAMissingSpeechEngine checks that without the recognizer's model the robot says that it cannot hear, the
// log names the package to install, and the appliance is healthy.
func TestAMissingSpeechEngine(t *testing.T) {
	t.Parallel()
	c := appliancetest.Config()
	c.Speech.Recognizers[0].Options.(*sphinx.Keys).Model = filepath.Join(t.TempDir(), "nothing")
	h := appliancetest.Start(t, c, t.TempDir())
	r, err := h.TryRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it"), AnswerWithin: 15 * time.Second})
	if err != nil && !errors.Is(err, simrobot.ErrUnanswered) {
		t.Fatal(err)
	}
	if turn := r.Stats().Turns[0]; !turn.Answered || !slices.Contains(turn.Answer, "I cannot hear right now.") {
		t.Errorf("answered %+v", turn)
	}
	if log := h.Logged.String(); !strings.Contains(log, "apt install pocketsphinx-en-us") {
		t.Errorf("the log does not name the cure:\n%s", log)
	}
	h.Expect(http.StatusOK, "", http.MethodGet, "/health", "")
}
