package supervisor_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/must"
	"perch/remote/supervisor"
	"perch/remote/supervisor/supervisortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, s *supervisortest.Supervisor, within time.Duration) *supervisor.Client {
	t.Helper()
	o, is := supervisor.FromEnvironment(s.Environ())
	if !is {
		t.Fatal("this is no environment of an app")
	}
	o.Within = within
	c, err := supervisor.New(o)
	must.Succeed(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestFromEnvironment(t *testing.T) {
	for _, environ := range [][]string{nil, {"SUPERVISOR_TOKEN="}, {"SUPERVISOR_API=http://x"}, {"HASSIO_TOKEN=x"}} {
		if o, is := supervisor.FromEnvironment(environ); is {
			t.Errorf("%q: %+v", environ, o)
		}
	}
	o, is := supervisor.FromEnvironment([]string{"PATH=/bin", "SUPERVISOR_TOKEN=abc"})
	if !is || o.URL != supervisor.Home || o.Token != "abc" || o.Core() != "http://supervisor/core" {
		t.Errorf("%+v, %v", o, is)
	}
	for _, at := range []string{"ftp://x", "supervisor", "http://user@x", "http://[", ""} {
		if _, err := supervisor.New(supervisor.Options{URL: at, Token: "x"}); err == nil {
			t.Errorf("%q is taken for an address", at)
		}
	}
}

func TestBroker(t *testing.T) {
	s := supervisortest.New(t)
	c := client(t, s, 0)
	if _, err := c.MQTT(t.Context()); !errors.Is(err, supervisor.ErrNoBroker) {
		t.Errorf("without a broker: %v", err)
	}
	for _, port := range []any{1883, "1883"} {
		s.Offer(map[string]any{"host": "core-mosquitto", "port": port, "ssl": false, "username": "addons", "password": "p", "protocol": "3.1.1",
			"app": "x"})
		b, err := c.MQTT(t.Context())
		if want := (supervisor.Broker{URL: "mqtt://core-mosquitto:1883", User: "addons", Password: "p"}); err != nil || b != want {
			t.Errorf("port %#v: %+v, %v", port, b, err)
		}
	}
	s.Offer(map[string]any{"host": "172.30.33.1", "port": 8883, "ssl": true, "addon": "x"})
	if b, err := c.MQTT(t.Context()); err != nil || b.URL != "mqtts://172.30.33.1:8883" {
		t.Errorf("%+v, %v", b, err)
	}
	for _, odd := range []map[string]any{{}, {"host": "x"}, {"host": "x", "port": 0}, {"host": "a b", "port": 1}, {"host": "u:p@x", "port": 1},
		{"host": "x", "port": 65536}, {"host": "x", "port": "a"}, {"host": 7, "port": 1}} {
		s.Offer(odd)
		if b, err := c.MQTT(t.Context()); err == nil || errors.Is(err, supervisor.ErrNoBroker) {
			t.Errorf("%v: %+v, %v", odd, b, err)
		}
	}
	s.Services = nil
	if _, err := c.MQTT(t.Context()); err == nil || !strings.Contains(err.Error(), "services: [mqtt:want]") {
		t.Errorf("without the right: %v", err)
	}
}

func TestAnnouncements(t *testing.T) {
	s := supervisortest.New(t)
	c := client(t, s, 0)
	id, err := c.Announce(t.Context(), "wyoming", map[string]any{"uri": "tcp://172.30.32.1:10700"})
	if err != nil || s.Announced()["wyoming"]["uri"] != "tcp://172.30.32.1:10700" {
		t.Fatalf("%v, %v", s.Announced(), err)
	}
	again, err := c.Announce(t.Context(), "wyoming", map[string]any{"uri": "tcp://172.30.32.1:10701"})
	if err != nil || again != id || len(s.Announced()) != 1 {
		t.Errorf("a changed one is %q, was %q: %v", again, id, err)
	}
	for range 2 { // the second time there is no announcement to withdraw
		must.Succeed(t, c.Withdraw(t.Context(), id))
	}
	if err := c.Withdraw(t.Context(), "../services/mqtt"); err != nil || len(s.Deleted()) != 1 {
		t.Errorf("%v, %v", err, s.Deleted())
	}
	s.Discovery = nil
	if _, err := c.Announce(t.Context(), "mqtt", map[string]any{}); err == nil || !strings.Contains(err.Error(), "list that service in discovery") {
		t.Errorf("what is not listed: %v", err)
	}
}

// TestABadSupervisor checks that every invalid response causes, within the time limit, a one-sentence
// error that does not contain the token and is not ErrNoBroker.
func TestABadSupervisor(t *testing.T) {
	says := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	release := make(chan struct{})
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		within time.Duration
		want   string
	}{
		"fails":            {says(500, `{"result":"error","message":"`+supervisortest.Token+`"}`), 0, "has failed (HTTP 500"},
		"is starting":      {says(503, ""), 0, "is not ready"},
		"another 400":      {says(400, `{"result":"error","message":"System is not healthy"}`), 0, "refuses the request"},
		"does not know us": {says(401, `{"result":"error","message":"unauthorized"}`), 0, "refuses the key"},
		"nonsense":         {says(200, `<html>`), 0, "not part of its API"},
		"another shape":    {says(200, `{"result":"ok","data":[7]}`), 0, "unexpected data"},
		"no data":          {says(200, `{"result":"ok"}`), 0, "unexpected data"},
		"an error as 200":  {says(200, `{"result":"error","message":"no"}`), 0, "has failed: no"},
		"a gigabyte":       {supervisortest.Endless, time.Minute, "an answer that is too long"},
		"elsewhere":        {http.RedirectHandler("http://192.0.2.1/", http.StatusFound).ServeHTTP, 0, "sends elsewhere"},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-release:
			}
		}, 50 * time.Millisecond, "answer"},
		"cuts": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, "cut the connection"},
	} {
		t.Run(name, func(t *testing.T) {
			s := supervisortest.New(t)
			s.Answer(c.answer)
			one := client(t, s, c.within)
			_, err := one.MQTT(t.Context())
			if err == nil || errors.Is(err, supervisor.ErrNoBroker) || !strings.Contains(err.Error(), c.want) ||
				strings.Contains(err.Error(), supervisortest.Token) {
				t.Errorf("%v, and want %q", err, c.want)
			}
		})
	}
	close(release)
	s := supervisortest.New(t)
	away := client(t, s, 0)
	s.Close()
	if _, err := away.MQTT(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing listens") {
		t.Errorf("one that is away: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := away.MQTT(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
