package ota_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"perch/device"
	"perch/event"
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/ota"
)

// TestAForeignCheckInRedirectsNothing checks that a request of another client with the robot's MAC address and
// another Host header does not change the address of the robot's server or of its firmware.
func TestAForeignCheckInRedirectsNothing(t *testing.T) {
	l := newAppliance(t)
	l.add(t, simrobot.Image("1.3.0", 5000), board)
	l.runs(t, mac, "1.2.4")
	before := must.Value(l.robots.Get("a0b1c2d3e4f5"))(t)
	foreign := headers()
	foreign.Set("Client-Id", "another")
	w := l.ask(http.MethodPost, "/xiaozhi/ota/", "10.9.1.66:8003", foreign, strings.Replace(whole, `"version":"1.2.4"`, `"version":"9.9.9"`, 1))
	if f := mustRead(t, w); f.token != "" || strings.Contains(w.Body.String(), ".bin") {
		t.Errorf("it got %s", w.Body)
	}
	after, err := l.robots.Get("a0b1c2d3e4f5")
	if err != nil || after.BaseURL != before.BaseURL || after.Firmware != before.Firmware || after.Address != before.Address {
		t.Errorf("the robot is %+v, and was %+v (%v)", after, before, err)
	}
	if u := l.Update("a0b1c2d3e4f5"); u.Installed != "1.2.4" {
		t.Errorf("its firmware is shown as %+v", u)
	}
}

// TestStrangersAgainstARollout checks that robots that are not adopted are offered no image, and that their
// reports do not stop a rollout.
func TestStrangersAgainstARollout(t *testing.T) {
	l := newAppliance(t)
	l.rollOut(t, simrobot.Image("1.3.0", 5000))
	for n := range 8 {
		for _, version := range []string{"1.2.4", "1.2.4", "1.3.0", "1.2.4", "1.2.4"} {
			header := headers()
			header.Set("Device-Id", fmt.Sprintf("02:00:00:00:00:%02x", n))
			w := l.ask(http.MethodPost, "/xiaozhi/ota/", "perch.local:8003", header,
				strings.Replace(whole, `"version":"1.2.4"`, fmt.Sprintf(`"version":%q`, version), 1))
			var reply struct{ Firmware offer }
			if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil || reply.Firmware != (offer{Version: "0"}) {
				t.Fatalf("stranger %d is offered %+v (%v)", n, reply.Firmware, err)
			}
		}
	}
	if len(l.units.Kept) != 0 {
		t.Errorf("%d strangers are remembered", len(l.units.Kept))
	}
	l.runs(t, mac, "1.2.4") // the first reply makes the robot confirm the running image
	if o := l.runs(t, mac, "1.2.4"); o.Version != "1.3.0" || l.List()[0].Stopped != "" {
		t.Errorf("the owner's robot is offered %+v, the rollout %+v", o, l.List()[0])
	}
}

// TestControlCharactersAtIntake checks that control characters are removed from the details in a check-in, which
// are later shown on terminals and in the log.
func TestControlCharactersAtIntake(t *testing.T) {
	const nasty = "m5\x1b[2J\x1b]0;owned\x07\r\nstack\u202echan\u2028\u0085x"
	body, err := json.Marshal(map[string]any{"application": map[string]string{"version": nasty}, "board": map[string]string{"name": nasty},
		"language": nasty})
	must.Succeed(t, err)
	for name, c := range map[string]struct{ agent, language, body string }{
		"in the body":    {"m5stack-stack-chan/1.2.4", "", string(body)},
		"in the headers": {nasty + "/" + nasty, nasty, ""},
	} {
		for _, adoption := range []device.Adoption{device.AdoptOpen, device.AdoptCode} {
			h := newFixture(t, adoption)
			header := headers()
			header.Set("User-Agent", c.agent)
			header.Set("Accept-Language", c.language)
			h.checkIn(t, header, c.body)
			r := must.Value(h.robots.Get("a0b1c2d3e4f5"))(t)
			kept, err := json.Marshal(r)
			if err != nil || !strings.Contains(string(kept), "m5[2J]0;ownedstackchanx") {
				t.Errorf("%s, %s: kept is %s (%v)", name, adoption, kept, err)
			}
			for _, text := range []string{r.Board, r.Firmware, r.Language, string(kept), h.log.String(), h.seen(t).Board} {
				if strings.ContainsAny(text, "\x1b\x07\r\u202e\u2028\u0085") || strings.Contains(text, `\u001b`) {
					t.Errorf("%s, %s: %q", name, adoption, text)
				}
			}
		}
	}
}

// TestLogOfStrangersIsLimited checks that a thousand strangers in a minute cause only a few lines of the log and
// a few events. Adopted robots are not limited.
func TestLogOfStrangersIsLimited(t *testing.T) {
	h := newFixture(t, device.AdoptOpen)
	now := time.Now()
	for n := range 1000 {
		r := ota.Request{Host: "perch:8003", DeviceID: fmt.Sprintf("0200000000%02x", n%256), ClientID: fmt.Sprint(n),
			Address: fmt.Sprintf("10.0.%d.%d", n/256, n%256)}
		must.Value(h.service.CheckIn(r, now.Add(time.Duration(n)*time.Millisecond)))(t)
	}
	if lines := strings.Count(h.log.String(), "\n"); lines == 0 || lines > 30 {
		t.Errorf("%d lines", lines)
	}
	must.Value(h.service.CheckIn(ota.Request{Host: "perch:8003", DeviceID: "020000000000"}, now.Add(2*time.Minute)))(t)
	if !strings.Contains(h.log.String(), "count=970") {
		t.Errorf("the log does not say how many were left out: %s", h.log.String()[max(0, h.log.Len()-400):])
	}
}

func TestFirstRobotIsAdopted(t *testing.T) {
	h := newFixture(t, device.AdoptOpen)
	h.robots.Welcome(time.Now().Add(time.Hour))
	h.boot(t, headers())
	if seen := h.seen(t); !seen.New || seen.Waiting || !h.robots.Trusts("a0b1c2d3e4f5") {
		t.Errorf("%+v", seen)
	}
	if e, err := h.events.Next(t.Context()); err != nil || e.Event != (event.RobotAdopted{}) || e.Robot != "a0b1c2d3e4f5" {
		t.Errorf("then %+v (%v)", e, err)
	}
}
