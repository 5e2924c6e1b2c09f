package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/appliancetest"
	"perch/device"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
	"perch/store"
	"perch/store/archive"
)

// logIn begins a session of the page, and returns the value of the Cookie header.
func (h *running) logIn() string {
	h.T.Helper()
	answer, text := httpservertest.Ask(h.T, http.MethodPost, h.URL("/session"), `{"token":"`+h.OwnerToken()+`"}`)
	if answer.StatusCode != http.StatusNoContent {
		h.T.Fatalf("%d %s", answer.StatusCode, text)
	}
	return answer.Cookies()[0].Name + "=" + answer.Cookies()[0].Value
}

// session checks that a cookie belongs to a valid session if good is true, and to none otherwise.
func (h *running) session(what, cookie string, good bool) {
	h.T.Helper()
	want := http.StatusUnauthorized
	if good {
		want = http.StatusOK
	}
	if status, text := h.Request(http.MethodGet, "/api/v1/status", "", "Cookie", cookie, "X-Perch-Page", "1"); status != want {
		h.T.Errorf("%s: %d %.100s, want %d", what, status, text, want)
	}
}

// TestAnotherDatabaseEndsSessions: a restore, a new database and a salvage end all sessions. A restart ends no session.
func TestAnotherDatabaseEndsSessions(t *testing.T) {
	c := appliancetest.Config()
	for name, replace := range map[string]func(h *running, backup string) *running{
		"a restore that is staged": func(h *running, backup string) *running {
			h.command("restore "+backup, 0, "restart to apply")
			h.Stop()
			return open(h.T, c, h.Data)
		},
		"a restore without an appliance": func(h *running, backup string) *running {
			h.Stop()
			h.command("restore "+backup, exitDone)
			return open(h.T, c, h.Data)
		},
		"a new database": func(h *running, _ string) *running {
			h.Stop()
			must.Succeed(h.T, os.Remove(archive.DatabasePath(h.Data)))
			return &running{appliancetest.Start(h.T, c, h.Data, func(o *appliance.Options) { o.NewDatabase = true })}
		},
		"a salvage": func(h *running, _ string) *running {
			h.Stop()
			info := must.Value(os.Stat(archive.DatabasePath(h.Data)))(h.T)
			for n := 2; n < int(info.Size()/page); n++ { // find a page whose damage makes the start salvage the database
				to := copyOf(h.T, h.Data)
				zero(h.T, archive.DatabasePath(to), n)
				again := open(h.T, c, to)
				if again.DB.Salvaged() != nil {
					return again
				}
				again.Stop()
			}
			h.T.Fatal("no page is read")
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, c, t.TempDir())
			backup := filepath.Join(t.TempDir(), "b.tar")
			ended := h.logIn()
			h.session("a new session", ended, true)
			h.command("backup "+backup, 0)
			h.Expect(http.StatusNoContent, "", http.MethodDelete, "/session", "", "Cookie", ended, "Origin", h.URL(""))
			lasting := h.logIn()
			h.Stop()
			h = open(t, c, h.Data)
			h.session("a session that was logged out", ended, false)
			h.session("a session over a restart", lasting, true)
			h = replace(h, backup)
			h.session("a session that was logged out before", ended, false)
			h.session("a session of before", lasting, false)
			lasting = h.logIn()
			h.Stop()
			h = open(t, c, h.Data)
			h.session("a session since", lasting, true)
		})
	}
}

// TestTheFirstHourEndsForGood: the first hour of an installation does not begin again when the clock is set back, after
// a restart, or when a backup of that hour is restored.
func TestTheFirstHourEndsForGood(t *testing.T) {
	c := appliancetest.Config()
	data, backup := t.TempDir(), filepath.Join(t.TempDir(), "b.tar")
	h := open(t, c, data)
	h.command("backup "+backup, 0)
	installed := store.NewTable[string](h.DB, "appliance")
	comes := func(n string) bool {
		h.Token("/xiaozhi/ota/", "Device-Id", "a0:b1:c2:d3:e4:"+n, "Client-Id", n)
		return h.Robots.Trusts(device.ID("a0b1c2d3e4" + n))
	}
	if !comes("01") {
		t.Error("a robot of the first hour is a stranger")
	}
	set := func(at time.Time) { // changes the installation time, which has the same effect as setting the clock
		must.Succeed(t, installed.Put("installed", at.UTC().Format(time.RFC3339)))
		h.Stop()
		h = open(t, c, data)
		installed = store.NewTable[string](h.DB, "appliance")
	}
	set(time.Now().Add(-2 * time.Hour))
	if comes("02") {
		t.Error("a robot that comes later is adopted")
	}
	set(time.Now().Add(-10 * time.Minute))
	if comes("03") {
		t.Error("a clock that was set back begins the first hour again")
	}
	h.command("restore "+backup, 0)
	h.Stop()
	h = open(t, c, data)
	if comes("04") {
		t.Error("a backup of the first hour begins it again")
	}
}
