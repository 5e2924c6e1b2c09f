package ota_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
)

// refuse sends a check-in from an address, which the service must refuse.
func refuse(h *fixture, from, device, host, body string) {
	r := httptest.NewRequest(http.MethodPost, "/xiaozhi/ota/", strings.NewReader(body))
	r.Host, r.RemoteAddr = host, from+":50123"
	r.Header.Set("Device-Id", device)
	h.handler.ServeHTTP(httptest.NewRecorder(), r)
}

// TestRefusedCheckInsAreLogged checks that refusals are listed, and logged once a minute for each address and
// reason.
func TestRefusedCheckInsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, device.AdoptOpen)
		lines := func(want int, holding string) {
			t.Helper()
			if got := strings.Count(h.log.String(), holding); got != want {
				t.Errorf("%d lines with %q, want %d: %s", got, holding, want, h.log)
			}
		}
		if list := h.service.Refused(); len(list) != 0 {
			t.Errorf("before any: %+v", list)
		}
		for range 20 {
			refuse(h, "192.168.1.50", "my robot\x1b[2J", "perch:8003", "{}")
			time.Sleep(time.Second)
		}
		refuse(h, "192.168.1.51", "nobody", "perch:8003", "{}")
		refuse(h, "192.168.1.50", "a0b1c2d3e4f5", "a b", "{}")
		refuse(h, "192.168.1.50", "a0b1c2d3e4f5", "perch:8003", strings.Repeat(" ", 70000))
		lines(4, "refused")
		for n := range 4 { // one for each line
			if e, err := h.events.Next(t.Context()); err != nil || e.Event != (event.Changed{What: "refused"}) {
				t.Errorf("event %d is %+v (%v)", n, e, err)
			}
		}
		lines(2, "Device-Id header")
		lines(1, "Host header")
		lines(1, "64 kB")
		lines(1, "address=192.168.1.51")
		time.Sleep(time.Minute)
		refuse(h, "192.168.1.50", "my robot", "perch:8003", "{}")
		lines(5, "refused")
		list := h.service.Refused()
		if len(list) != 4 {
			t.Fatalf("%+v", list)
		}
		if r := list[0]; r.Address != "192.168.1.50" || r.Device != "my robot" || r.Code != "no_device_id" || r.Count != 21 ||
			!strings.Contains(r.Reason, "Device-Id header") || !r.At.Equal(time.Now()) {
			t.Errorf("the newest is %+v", r)
		}
		if list[1].Code != "body_too_large" || list[2].Code != "bad_host" || list[3].Address != "192.168.1.51" {
			t.Errorf("the others are %+v", list[1:])
		}
		h.service.ForgetRefused()
		if list := h.service.Refused(); len(list) != 0 {
			t.Errorf("forgotten: %+v", list)
		}
		if strings.ContainsAny(h.log.String(), "\x1b") {
			t.Error("the log holds an escape")
		}
	})
}

// TestManyRefusals checks that refusals of many addresses fill neither the list nor the log.
func TestManyRefusals(t *testing.T) {
	h := newFixture(t, device.AdoptOpen)
	for n := range 1000 {
		refuse(h, fmt.Sprintf("10.0.%d.%d", n/256, n%256), strings.Repeat("x", 5000), "perch:8003", "{}")
	}
	if lines := strings.Count(h.log.String(), "\n"); lines == 0 || lines > 31 || h.log.Len() > 31*1000 {
		t.Errorf("%d lines, %d bytes", lines, h.log.Len())
	}
	list := h.service.Refused()
	if len(list) != 10 || list[0].Address != "10.0.3.231" || list[9].Address != "10.0.3.222" || len(list[0].Device) > 100 {
		t.Errorf("%+v", list)
	}
}

func TestRefusalsAreBounded(t *testing.T) {
	h := newFixture(t, device.AdoptOpen)
	for n, long := range []string{
		strings.Repeat("x", 5000), strings.Repeat("\u202e", 1000), strings.Repeat("\xff\x00", 1000), "<script>%s%w%!</script>",
	} {
		refuse(h, fmt.Sprintf("10.0.0.%d", n), long, "perch:8003", "{}")
		refuse(h, fmt.Sprintf("10.0.1.%d", n), "a0b1c2d3e4f5", long, "{}")
	}
	list := h.service.Refused()
	if len(list) != 8 {
		t.Errorf("%+v", list)
	}
	for _, r := range list {
		if len(r.Reason) > 1000 {
			t.Errorf("%d bytes: %.200q", len(r.Reason), r.Reason)
		}
	}
}

// TestRefusedHandshakesFillNoLog checks that refused WebSockets of many invented MAC addresses from one address
// make one line of the log and one entry of the list.
func TestRefusedHandshakesFillNoLog(t *testing.T) {
	h := newFixture(t, device.AdoptOpen)
	for i := range 3000 {
		r := httptest.NewRequest(http.MethodGet, "/xiaozhi/v1/", nil)
		r.RemoteAddr = "192.168.1.66:1000"
		r.Header.Set("Device-Id", fmt.Sprintf("02:00:00:00:%02x:%02x", i/256, i%256))
		h.service.RecordRefusal(r, &httpserver.Fault{Word: "wrong_token", Sentence: "the token is missing or wrong", HTTP: http.StatusUnauthorized})
	}
	if lines := strings.Count(h.log.String(), "a robot's request was refused"); lines != 1 || len(h.service.Refused()) != 1 {
		t.Errorf("%d lines, listed are %+v", lines, h.service.Refused())
	}
}
