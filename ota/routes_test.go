package ota_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
	"perch/gateway/httpserver/httpservertest"
)

func TestHeadersAreEnough(t *testing.T) {
	for _, c := range []struct{ name, method, path, body string }{
		{"whole", http.MethodPost, "/xiaozhi/ota/", whole},
		{"without the slash", http.MethodPost, "/xiaozhi/ota", whole},
		{"with a query", http.MethodPost, "/xiaozhi/ota/?x=1", whole},
		{"a network with a quote in its name", http.MethodPost, "/xiaozhi/ota/", strings.Replace(whole, "home", `Bob"s`, 1)},
		{"a network with a backslash", http.MethodPost, "/xiaozhi/ota/", strings.Replace(whole, "home", `\x`, 1)},
		{"a number for a name", http.MethodPost, "/xiaozhi/ota/", strings.Replace(whole, `"language":"en-US"`, `"language":7`, 1)},
		{"half a body", http.MethodPost, "/xiaozhi/ota/", whole[:200]},
		{"deep", http.MethodPost, "/xiaozhi/ota/", strings.Repeat("[", 60<<10)},
		{"null", http.MethodPost, "/xiaozhi/ota/", "null"},
		{"an empty body", http.MethodPost, "/xiaozhi/ota/", ""},
		{"GET", http.MethodGet, "/xiaozhi/ota/", ""},
		{"GET without the slash", http.MethodGet, "/xiaozhi/ota", ""},
		{"as long as may be", http.MethodPost, "/xiaozhi/ota/", whole + strings.Repeat(" ", 64<<10-len(whole))},
	} {
		h := newFixture(t, device.AdoptOpen)
		w := h.ask(c.method, c.path, "perch.local:8003", headers(), c.body)
		if f := mustRead(t, w); f.token == "" || f.version != 1 {
			t.Errorf("%s: %+v", c.name, f)
		}
		if kind := w.Header().Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
			t.Errorf("%s: the reply is %q", c.name, kind)
		}
		if got := w.Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control %q", c.name, got)
		}
		if r, err := h.robots.Get("a0b1c2d3e4f5"); err != nil || r.Firmware != "1.2.4" {
			t.Errorf("%s: remembered %+v (%v)", c.name, r, err)
		}
	}
}

func TestBodyThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, device.AdoptOpen)
		robot := httpservertest.Serve(t, h.handler)
		began := time.Now()
		fmt.Fprint(robot, "POST /xiaozhi/ota/ HTTP/1.1\r\nHost: perch:8003\r\nDevice-Id: a0:b1:c2:d3:e4:f5\r\nContent-Length: 3000\r\n\r\n{")
		answer, err := http.ReadResponse(bufio.NewReader(robot), nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("answered %v (%v)", answer, err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it was waited for %v", took)
		}
	})
}

func TestTooLargeBody(t *testing.T) {
	for _, size := range []int{64<<10 + 1, 10 << 20} {
		h := newFixture(t, device.AdoptOpen)
		w := h.ask(http.MethodPost, "/xiaozhi/ota/", "perch:8003", headers(), whole+strings.Repeat(" ", size-len(whole)))
		want := `{"error":{"code":"body_too_large","message":"the check-in is larger than 64 kB, which no robot sends"}}`
		if w.Code != http.StatusRequestEntityTooLarge || w.Body.String() != want {
			t.Errorf("%d bytes: %d %s", size, w.Code, w.Body)
		}
		if len(h.robots.List()) != 0 {
			t.Errorf("%d bytes: the robot is remembered", size)
		}
	}
}

func TestDeviceID(t *testing.T) {
	for _, c := range []struct {
		name, header, body string
		status             int
	}{
		{"by header", "a0:b1:c2:d3:e4:f5", "", 200},
		{"in capitals", "A0:B1:C2:D3:E4:F5", "", 200},
		{"with dashes", "A0-B1-C2-D3-E4-F5", "", 200},
		{"by body", "", `{"mac_address":"A0:B1:C2:D3:E4:F5"}`, 200},
		{"header before body", "a0:b1:c2:d3:e4:f5", `{"mac_address":"02:00:00:00:00:01"}`, 200},
		{"nobody", "", "", 400},
		{"nobody in a broken body", "", `{"mac_address":"a0:b1:c2:d3:e4:f5"`, 400},
		{"no MAC", "robot", whole, 400},
		{"everybody", "ff:ff:ff:ff:ff:ff", "", 400},
		{"a number in the body", "", `{"mac_address":12}`, 400},
		{"too long", strings.Repeat("a0", 4000), "", 400},
	} {
		h := newFixture(t, device.AdoptOpen)
		header := headers()
		header.Set("Device-Id", c.header)
		w := h.ask(http.MethodPost, "/xiaozhi/ota/", "perch:8003", header, c.body)
		if w.Code != c.status {
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
			continue
		}
		if c.status == 400 {
			if !strings.Contains(w.Body.String(), `"no_device_id"`) || !strings.Contains(w.Body.String(), "Device-Id header") || w.Body.Len() > 400 {
				t.Errorf("%s: %s", c.name, w.Body)
			}
			continue
		}
		if _, err := h.robots.Get("a0b1c2d3e4f5"); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestNoClientIsAClient checks that a client without an ID and a client with an ID are different clients of the
// same MAC address, whichever of them checks in first.
func TestNoClientIsAClient(t *testing.T) {
	with, without := headers(), headers()
	without.Del("Client-Id")
	for name, order := range map[string][2]http.Header{"bound without": {without, with}, "bound with": {with, without}} {
		h := newFixture(t, device.AdoptOpen)
		first := h.checkIn(t, order[0], "{}") // without a uuid
		if first.token == "" {
			t.Errorf("%s: no token", name)
		}
		if f := h.checkIn(t, order[1], "{}"); f != (flash{code: f.code, clock: f.clock}) || f.code == "" {
			t.Errorf("%s: the other one got %+v, want a code and no websocket", name, f)
		}
		if f := h.checkIn(t, order[0], "{}"); f.token != first.token {
			t.Errorf("%s: the token changed from %q to %q", name, first.token, f.token)
		}
	}
}

func TestAdoption(t *testing.T) {
	h := newFixture(t, device.AdoptCode)
	other := headers()
	other.Set("Client-Id", "somebody else")
	h.activate(t, "", headers(), http.StatusNotFound) // the robot has not checked in
	f := h.boot(t, headers())
	if f.code == "" || f.token != "" {
		t.Fatalf("a stranger got %+v", f)
	}
	h.activate(t, "", headers(), http.StatusAccepted)
	if again := h.boot(t, headers()); again.code != f.code { // the robot checks in twice a minute
		t.Errorf("first the code %s, then %s", f.code, again.code)
	}
	h.activate(t, "", http.Header{"Device-Id": {"robot"}}, http.StatusBadRequest)
	h.adopt(t, f.code)
	h.activate(t, "", headers(), http.StatusOK)
	h.activate(t, "", other, http.StatusAccepted)
	if f := h.boot(t, headers()); f.code != "" || f.token == "" || strings.Contains(h.log.String(), f.token) {
		t.Errorf("after adoption it got %+v, which does not let it go on, or is in the log: %s", f, h.log)
	}
	if n := strings.Count(h.log.String(), "perch robot adopt a0b1c2d3e4f5"); n != 1 {
		t.Errorf("the log tells the cure %d times, not once: %s", n, h.log)
	}
}

// TestAnErasedRobotIsHeldBack checks that a robot whose flash was erased may connect only after its owner has
// adopted it, even if the appliance lets other robots talk without adoption. The robot repeats the activation
// request, and needs no restart.
func TestAnErasedRobotIsHeldBack(t *testing.T) {
	h := newFixture(t, device.AdoptOpen)
	h.boot(t, headers())
	erased := headers()
	erased.Set("Client-Id", "after the flash was erased")
	f := h.boot(t, erased)
	if f.code == "" || f.token != "" {
		t.Fatalf("it got %+v", f)
	}
	h.activate(t, "", erased, http.StatusAccepted)
	h.adopt(t, f.code)
	h.activate(t, "", erased, http.StatusOK)
	if f := h.boot(t, erased); f.code != "" || f.token == "" {
		t.Errorf("adopted, it got %+v", f)
	}
}

// TestRobotWithoutCodeGetsAChallenge checks that the activation has a challenge if all codes are in use. Without
// a challenge the robot would continue as if it were adopted.
func TestRobotWithoutCodeGetsAChallenge(t *testing.T) {
	h := newFixture(t, device.AdoptCode)
	for n := range 256 {
		c := device.CheckIn{ID: device.ID(fmt.Sprintf("0200000000%02x", n))}
		h.robots.CheckIn(c, time.Now())
		h.adopt(t, string(c.ID)) // a robot that is not adopted would be removed to make room
		c.Client = device.NewClient("another")
		h.robots.CheckIn(c, time.Now())
	}
	w := h.ask(http.MethodPost, "/xiaozhi/ota/", "perch:8003", headers(), "{}")
	want := `"activation":{"message":"Adopt this robot: perch robot adopt a0b1c2d3e4f5","challenge":"a0b1c2d3e4f5"}`
	if !strings.Contains(w.Body.String(), want) {
		t.Errorf("it got %s", w.Body)
	}
}
