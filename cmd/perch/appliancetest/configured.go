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

// Configured runs an appliance with a configuration file, which its owner may
// change, and with the doctor. It begins with where it listens, and goes on with
// more.
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

// Connect has the doctor ask this appliance.
func (h *Appliance) Connect(string) (doctor.Asker, error) { return asker{h}, nil }

// asker is how the doctor asks the appliance.
type asker struct{ h *Appliance }

func (a asker) Get(_ context.Context, path string, into any) error {
	status, text := a.h.Owner(http.MethodGet, path, "")
	if status != http.StatusOK {
		return fmt.Errorf("%s: %d %s", path, status, text)
	}
	return json.Unmarshal([]byte(text), into)
}

// Idle is what a robot of dotty's build tells on connecting, so that its tools are
// read before it talks.
func Idle() []xiaozhi.Event {
	return []xiaozhi.Event{{Name: "state_changed", Data: []byte(`{"state":"idle"}`)}}
}

// Asks has a coding agent ask for a permission, and returns once the owner can
// answer. The agent is told the answer; waiting ends after that.
func (h *Appliance) Asks(waiting *sync.WaitGroup, command string, told func(answer string)) {
	h.T.Helper()
	body, err := json.Marshal(map[string]any{"hook_event_name": "PermissionRequest", "session_id": "one", "tool_name": "Bash",
		"tool_input": map[string]string{"command": command}})
	must.Succeed(h.T, err)
	r := must.Value(http.NewRequest(http.MethodPost, h.URL("/permission"), bytes.NewReader(body)))(h.T)
	r.Header.Set("Authorization", "Bearer "+Key)
	r.Header.Set("Content-Type", "application/json")
	waiting.Go(func() {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := client.Do(r)
		if err != nil {
			told(err.Error())
			return
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body) // of one that has ended it is a part
		told(string(text))
	})
	h.Eventually("it is asked", func() bool {
		var open []struct{ Text string }
		h.Admin(http.MethodGet, "/api/v1/permissions", "", &open)
		return slices.ContainsFunc(open, func(q struct{ Text string }) bool { return strings.Contains(q.Text, command) })
	})
}

// Here is the address for browsers and programs of this machine, who need no key.
func (h *Appliance) Here() string {
	for _, s := range h.Listeners.Servers {
		if s.Key == "local" {
			return "http://" + s.Listener.Addr().String() + "/"
		}
	}
	h.T.Fatal("it has no local address")
	return ""
}
