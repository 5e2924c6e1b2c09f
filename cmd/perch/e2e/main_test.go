package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/firmware-tools/simrobot"
	"perch/must"
)

func TestMain(m *testing.M) {
	if os.Getenv(asLoadTarget) != "" {
		serveScripted()
	}
	appliancetest.RunChildProcess()
	appliancetest.RaiseGOMAXPROCS()
	dir, err := os.MkdirTemp("", "perch-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	build = sync.OnceValues(func() (string, error) { return buildProgram(dir) })
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// running is an appliance that runs in a test.
type running struct{ *appliancetest.Appliance }

// open starts an appliance with a data directory, and stops it at the end of the test.
func open(t *testing.T, c config.Config, data string) *running {
	t.Helper()
	return &running{appliancetest.Start(t, c, data)}
}

// TestWhatWasRememberedSurvivesSIGKILL: a fact is not lost if the power fails right after the robot has said that it
// will remember the fact.
func TestWhatWasRememberedSurvivesSIGKILL(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	flash := filepath.Join(t.TempDir(), "flash.json")
	talk := func(p *process, text string) []string {
		r, err := simrobot.New(simrobot.Options{OTA: p.ota(), MAC: "A0:B1:C2:D3:E4:F5", FlashFile: flash, Say: appliancetest.Sentences(t, text)})
		must.Succeed(t, err)
		must.Succeed(t, r.Run(t.Context()))
		return r.Stats().Turns[0].Answer
	}
	p := program(t, data)
	talk(p, "remember that my glasses are under the sofa")
	p.cut()
	p = program(t, data)
	if got := talk(p, "where are my glasses"); !slices.Equal(got, []string{"Your glasses are under the sofa."}) {
		t.Errorf("recalled %q", got)
	}
	p.stop()
}

// TestIdentityOfRobots: a client cannot connect as an adopted robot with another client's token, a forged token or
// none.
func TestIdentityOfRobots(t *testing.T) {
	h := open(t, appliancetest.Config(), t.TempDir())
	checkIn := func(client string) (token string) {
		return h.Token("/xiaozhi/ota/", "Device-Id", "a0:b1:c2:d3:e4:f5", "Client-Id", client)
	}
	connect := func(client, token string) int {
		header := []string{"Device-Id", "a0:b1:c2:d3:e4:f5", "Client-Id", client, "Connection", "Upgrade", "Upgrade", "websocket",
			"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="}
		if token != "" {
			header = append(header, "Authorization", "Bearer "+token)
		}
		status, _ := h.Request(http.MethodGet, "/xiaozhi/v1/", "", header...)
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
	out := h.command("robot list", 0)
	if !strings.Contains(out, "perch robot adopt CODE, or perch robot adopt --replace a0b1c2d3e4f5") {
		t.Errorf("perch robot list says\n%s", out)
	}
	if out := h.command("robot adopt a0b1c2d3e4f5 --replace", 0); !strings.Contains(out, "If it does, and it is yours, adopt it") ||
		h.Robots.Trusts("a0b1c2d3e4f5") {
		t.Errorf("perch robot adopt --replace says\n%s", out)
	}
	if other := checkIn("other"); other == "" {
		t.Error("an adopted robot got no token")
	}
	if status := connect("mine", mine); status != http.StatusUnauthorized {
		t.Errorf("the client that was replaced: status %d", status)
	}
	again := checkIn("other")
	h.command("robot forget a0b1c2d3e4f5", 0)
	if status := connect("other", again); status != http.StatusUnauthorized {
		t.Errorf("a forgotten robot: status %d", status)
	}
}

// TestCommandsSpeakToTheAppliance: the commands work on the appliance's machine without a token, and print errors with
// their causes.
func TestCommandsSpeakToTheAppliance(t *testing.T) {
	h := open(t, appliancetest.Config(), t.TempDir())
	h.command("robot list", 0, "no robot")
	h.command("status", 0, "perch dev, id "+h.ID+", runs since ", "robots: 0, connected: 0; notifications that wait: 0\n", "\nok    store  ")
	h.RunRobot(simrobot.Options{})
	h.Eventually("the channel is closed", func() bool { return len(h.Talk.List()) == 0 })
	h.command("robot list", 0, "a0b1c2d3e4f5  m5stack-stack-chan")
	for line, want := range map[string]string{
		"robot say nobody hello":    "not a MAC address",
		"robot forget 020000000001": "unknown robot",
		"robot adopt 123456":        "no robot waits",
	} {
		h.command(line, 1, want)
	}
	h.command("robot say a0b1c2d3e4f5 hello", 0, "queued until the robot next connects")
	h.command("robot say a0b1c2d3e4f5", 2, "perch robot say: it takes ROBOT TEXT..., but 1 argument was given")
	h.command("doctor --config "+elsewherePorts(t), 1, "ok    store")
	h.command(`robot say a0b1c2d3e4f5 😊`, 1, "nothing in the text")
	h.Stop()
	h.command("robot list", 1, "no appliance runs here", "systemctl status perch")
}
