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

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/config"
	"perch/cmd/perch/doctor"
	"perch/cmd/perch/engines"
	"perch/device/xiaozhi"
	"perch/gateway/owner/admin"
	"perch/must"
)

// Configured runs an appliance with a configuration file, an overlay (the file of changed settings) and
// the doctor, so that tests can change the configuration through the API. The file begins with addresses
// to listen on and ends with the text more. change changes where the configuration is read from.
func Configured(t *testing.T, more string, change ...func(*config.Source)) *Appliance {
	t.Helper()
	text := fmt.Sprintf(`# Where this appliance is found.
listen: [%q]
local: [%q]
skins: {key: %q} # of the screens
mqtt: {broker: none}
robots: {mqtt: {listen: "127.0.0.1:0"}, udp: "127.0.0.1:0"}
%s`, FreeAddress(t), FreeAddress(t), Key, more)
	data := t.TempDir()
	from := config.Source{File: WriteConfig(t, text), Overlay: filepath.Join(data, config.OverlayFile)}
	for _, f := range change {
		f(&from)
	}
	return configured(t, from, data)
}

// configured runs an appliance with a configuration and a data directory.
func configured(t *testing.T, from config.Source, data string) *Appliance {
	t.Helper()
	c := must.Value(from.Load())(t)
	var h *Appliance
	h = Start(t, c, data, func(o *appliance.Options) {
		o.Overlay = &config.Overlay{Source: from, Data: data, SlowCheck: engines.CheckRecognizers}
		o.Doctor = func(ctx context.Context) ([]admin.Finding, error) {
			d := doctor.New(doctor.Options{Config: &c, File: from.File, Data: data, Version: "dev", Built: o.Built,
				Speech: from.Speech, Connect: h.Connect})
			defer d.Close()
			d.Examine(ctx)
			return d.Items(), ctx.Err()
		}
	})
	h.Again = func() *Appliance {
		t.Helper()
		if err := h.Wait(); !errors.Is(err, appliance.ErrRestart) {
			t.Fatalf("the appliance ended with %v instead of a restart", err)
		}
		h.Stop()
		return configured(t, from, data)
	}
	h.File = from.File
	return h
}

// Connect returns a client of this appliance for the doctor.
func (h *Appliance) Connect(string) (doctor.APIClient, error) { return apiClient{h}, nil }

// apiClient is a client of the admin API.
type apiClient struct{ h *Appliance }

// Get implements doctor.APIClient.
func (a apiClient) Get(_ context.Context, path string, into any) error {
	status, text := a.h.Owner(http.MethodGet, path, "")
	if status != http.StatusOK {
		return fmt.Errorf("%s: %d %s", path, status, text)
	}
	return json.Unmarshal([]byte(text), into)
}

// Idle returns the event that a robot with the firmware of the project dotty sends when it connects. It
// makes the appliance read the robot's tools before the first turn.
func Idle() []xiaozhi.Event {
	return []xiaozhi.Event{{Name: "state_changed", Data: []byte(`{"state":"idle"}`)}}
}

// StartAskPermission calls AskPermission in a goroutine of wg, and returns once the owner can answer. The
// goroutine then calls done with the response.
func (h *Appliance) StartAskPermission(wg *sync.WaitGroup, command string, done func(response string)) {
	h.T.Helper()
	wg.Go(func() { done(h.AskPermission(command)) })
	h.Eventually("the owner is asked", func() bool {
		var open []struct{ Text string }
		h.Admin(http.MethodGet, "/api/v1/permissions", "", &open)
		return slices.ContainsFunc(open, func(q struct{ Text string }) bool { return strings.Contains(q.Text, command) })
	})
}

// AskPermission asks for a permission as the coding agent Claude Code does. It returns the body of the
// response, or the text of an error.
func (h *Appliance) AskPermission(command string) (response string) {
	body, _ := json.Marshal(map[string]any{"hook_event_name": "PermissionRequest", "session_id": "one", "tool_name": "Bash",
		"tool_input": map[string]string{"command": command}}) // encoding strings cannot fail
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
	text, _ := io.ReadAll(a.Body) // an appliance that ends may send only a part of the body
	return string(text)
}

// LocalURL returns the URL for browsers and programs on this machine, which need no key.
func (h *Appliance) LocalURL() string { return "http://" + h.Listeners.At("local")[0] + "/" }
