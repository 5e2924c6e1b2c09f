package appliancetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/config"
	"perch/cmd/perch/doctor"
	"perch/cmd/perch/engines"
	"perch/device/xiaozhi"
	"perch/gateway/owner/admin"
	"perch/must"
)

// Configured runs an appliance with a configuration file and an overlay that its owner can change, and
// with the doctor. The file has addresses to listen on, and then the text of more.
func Configured(t *testing.T, more string) *Appliance {
	t.Helper()
	text := fmt.Sprintf(`# Where this appliance is found.
listen: [%q]
local: [%q]
skins: {key: %q} # of the screens
mqtt: {broker: none}
robots: {mqtt: {listen: "127.0.0.1:0"}, udp: "127.0.0.1:0"}
%s`, FreeAddress(t), FreeAddress(t), Key, more)
	return configured(t, Written(t, text), t.TempDir())
}

func configured(t *testing.T, file, data string) *Appliance {
	t.Helper()
	from := config.Source{File: file, Overlay: filepath.Join(data, config.OverlayFile)}
	c := must.Value(from.Load())(t)
	var h *Appliance
	h = Start(t, c, data, func(o *appliance.Options) {
		o.Overlay = &config.Overlay{Source: from, Data: data, Judge: engines.CheckRecognizers, Now: time.Now}
		o.Doctor = func(ctx context.Context) ([]admin.Finding, error) {
			d := doctor.New(doctor.Options{Config: &c, File: file, Data: data, Version: "dev", Built: o.Built,
				Connect: h.Connect})
			defer d.Close()
			d.Examine(ctx)
			return d.Items(), ctx.Err()
		}
	})
	h.Again = func() *Appliance {
		t.Helper()
		if err := h.Wait(); !errors.Is(err, appliance.ErrRestart) {
			t.Fatalf("the appliance has ended with %v, and was to start anew", err)
		}
		h.Stop()
		return configured(t, file, data)
	}
	h.File = file
	return h
}

// Connect returns a connection to this appliance for the doctor.
func (h *Appliance) Connect(string) (doctor.Asker, error) { return asker{h}, nil }

type asker struct{ h *Appliance }

// Get implements doctor.Asker.
func (a asker) Get(_ context.Context, path string, into any) error {
	status, text := a.h.Owner(http.MethodGet, path, "")
	if status != http.StatusOK {
		return fmt.Errorf("%s: %d %s", path, status, text)
	}
	return json.Unmarshal([]byte(text), into)
}

// Idle returns the event that a robot with dotty's firmware sends when it connects, so that its tools
// are read before it talks.
func Idle() []xiaozhi.Event {
	return []xiaozhi.Event{{Name: "state_changed", Data: []byte(`{"state":"idle"}`)}}
}

// Asks sends the request of a coding agent for a permission, and returns once its owner can answer.
// answered is called with the answer; waiting ends after that.
func (h *Appliance) Asks(waiting *sync.WaitGroup, command string, answered func(answer string)) {
	h.T.Helper()
	waiting.Go(func() { answered(h.AskPermission(command)) })
	h.Eventually("it is asked", func() bool {
		var open []struct{ Text string }
		h.Admin(http.MethodGet, "/api/v1/permissions", "", &open)
		return slices.ContainsFunc(open, func(q struct{ Text string }) bool { return strings.Contains(q.Text, command) })
	})
}

// AskPermission sends the request of a coding agent for a permission, as Claude Code does, and
// returns the body of the answer or the error.
func (h *Appliance) AskPermission(command string) (answer string) {
	body, _ := json.Marshal(map[string]any{"hook_event_name": "PermissionRequest", "session_id": "one", "tool_name": "Bash",
		"tool_input": map[string]string{"command": command}}) // strings
	r, err := http.NewRequest(http.MethodPost, h.URL("/permission"), bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Authorization", "Bearer "+Key)
	r.Header.Set("Content-Type", "application/json")
	a, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return err.Error()
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(a.Body) // an appliance that has ended has sent a part of it
	return string(text)
}

// Here returns the URL for browsers and programs of this machine, which need no key.
func (h *Appliance) Here() string { return "http://" + h.Listeners.At("local")[0] + "/" }
