package e2e

import (
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
)

// TestJSON: with --json, a command prints one JSON value and nothing else.
func TestJSON(t *testing.T) {
	t.Parallel()
	h := open(t, appliancetest.Config(), t.TempDir())
	h.RunRobot(simrobot.Options{})
	h.Eventually("the channel is closed", func() bool { return len(h.Talk.List()) == 0 })
	file := filepath.Join(t.TempDir(), "perch.tar")
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"robot list", 0, `{"refused":[],"robots":[{`},
		{"robot show a0b1c2d3e4f5", 0, `"id":"a0b1c2d3e4f5"`},
		{"robot say a0b1c2d3e4f5 hello", 0, `{"queued":true}`},
		{"robot adopt a0b1c2d3e4f5", 0, `"adopted":true`},
		{"robot token a0b1c2d3e4f5", 0, `"address":"ws://`},
		{"robot rename a0b1c2d3e4f5 kitchen", 0, `"name":"kitchen"`},
		{"robot set kitchen voice=en-gb", 0, `"voice":"en-gb"`},
		{"robot forget --strangers", 0, `{"forgotten":0}`},
		{"robot forget kitchen", 0, `{"forgotten":1}`},
		{"set name x --data " + t.TempDir(), 0, `{"restart":false}`},
		{"unset name --data " + t.TempDir(), 0, `{"restart":false}`},
		{"notification send tea", 0, `{"id":"`},
		{"notification list", 0, `"text":"tea"`},
		{"memory list", 0, `[]`},
		{"status", 0, `"parts":[{`},
		{"doctor --config " + elsewherePorts(t), 1, `"is":"fail"`},
		{"backup " + file, 0, `"files":[{`},
		{"restore " + file, 0, `"restarting":false`},
		{"restore " + file + " --data " + t.TempDir(), 0, `"files":[{`},
	} {
		args := strings.Fields(c.line)
		if !strings.Contains(c.line, "--data") {
			args = append(args, "--data", h.Data)
		}
		wantJSON(t, args, c.code, c.want)
	}
	wantJSON(t, []string{"version"}, 0, `"version":"dev"`)
	wantJSON(t, []string{"check-config", appliancetest.WriteConfig(t, "name: kitchen")}, 0, `"faults":[]`)
	wantJSON(t, []string{"check-config", appliancetest.WriteConfig(t, "nmae: x\nadoption: maybe")}, 2, `"warnings":[]`)
}

// wantJSON runs a command with --json, and checks its exit code and that its JSON, without white space, contains want.
func wantJSON(t *testing.T, args []string, code int, want string) {
	t.Helper()
	var out strings.Builder
	got := execute(t.Context(), t, &out, io.Discard, append(args, "--json")...)
	var value any
	d := json.NewDecoder(strings.NewReader(out.String()))
	err := d.Decode(&value)
	compact, _ := json.Marshal(value)
	if got != code || err != nil || !errors.Is(d.Decode(new(any)), io.EOF) || !strings.Contains(string(compact), want) {
		t.Errorf("%q: exit code %d, %v\n%s", args, got, err, &out)
	}
}
