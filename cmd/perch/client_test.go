package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"perch/cmd/perch/doctor"
)

// TestAnotherProgramAtTheAddress checks that the status 403 of another program is not reported as a wrong
// admin token.
func TestAnotherProgramAtTheAddress(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer s.Close()
	if out := bare(t, "robot list --url "+s.URL, exitFailed); strings.Contains(out, "admin token") {
		t.Error(out)
	}
}

// TestSimilarRobots checks that the error for a robot that does not exist suggests robots with similar names, and
// that the appliance's error for a robot that exists is printed unchanged.
func TestSimilarRobots(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/devices" {
			_, _ = io.WriteString(w, `[{"id":"a0b1c2d3e4f5","name":"living room"},{"id":"0a0a0a0a0a0a"}]`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":{"message":"it fails"}}`)
	}))
	defer s.Close()
	for typed, want := range map[string]string{"livin room": "; did you mean living room?", "A0B1C2D3E4F6": "; did you mean a0b1c2d3e4f5?",
		"Living Room": "", "garage": ""} {
		if _, _, errs := commandLine(t, "robot", "show", typed, "--url", s.URL); !strings.HasSuffix(errs, ": it fails"+want+"\n") {
			t.Errorf("%s: %q, want %q", typed, errs, want)
		}
	}
}

// TestEmptyLists checks that each list command prints a sentence if the list is empty.
func TestEmptyLists(t *testing.T) {
	url := answersWith(t, http.StatusOK, []string{})
	for _, list := range []string{"character", "diary", "memory", "notification", "relay", "robot"} {
		if out := bare(t, list+" list --url "+url, exitDone); strings.TrimSpace(out) == "" {
			t.Errorf("perch %s list says nothing", list)
		}
	}
}

// TestStateOfTheServiceIsSaid checks that the error of a command names the state of the systemd service, such as
// stopped or restarting again and again.
func TestStateOfTheServiceIsSaid(t *testing.T) {
	unit := func(text string, err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return text, err }
	}
	for name, c := range map[string]struct {
		withAppliance func(context.Context) (string, error)
		says          []string
	}{
		"it crashes": {unit("ActiveState=activating\nSubState=auto-restart\nNRestarts=12\n", nil), []string{"ends again and again (12 times so far)",
			"journalctl -u perch -n 50"}},
		"its faults": {unit("ActiveState=activating\nSubState=auto-restart\nNRestarts=1\nExecMainStatus=2\n", nil),
			[]string{"has ended, and is being restarted", "sudo perch check-config"}},
		"it has failed":    {unit("ActiveState=failed\nResult=timeout\n", nil), []string{"has failed (timeout)", "journalctl -u perch"}},
		"it is stopped":    {unit("ActiveState=inactive\nUnitFileState=enabled\n", nil), []string{"sudo systemctl start perch"}},
		"it starts":        {unit("ActiveState=activating\nSubState=start\nNRestarts=0\n", nil), []string{"is starting", "in a moment"}},
		"no such service":  {unit("ActiveState=inactive\nLoadState=not-found\n", nil), []string{"perch serve"}},
		"nobody to ask":    {unit("", errors.New("no systemd")), []string{"perch serve"}},
		"it runs, unasked": {unit("ActiveState=active\n", nil), []string{"perch serve"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := target{data: t.TempDir(), unitProperties: c.withAppliance}
			_, none := r.socket()
			err := r.explainNotRunning(t.Context(), none)
			if !errors.Is(err, doctor.ErrNotRunning) {
				t.Errorf("it is %v", err)
			}
			for _, word := range append(c.says, "no appliance runs here") {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("it says %q, not %q", err, word)
				}
			}
		})
	}
}
