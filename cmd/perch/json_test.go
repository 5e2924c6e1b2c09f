package main

import (
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/command"
	"perch/firmware-tools/simrobot"
)

// TestJSON: with --json a command prints one value of JSON and nothing else.
func TestJSON(t *testing.T) {
	t.Parallel()
	h := open(t, appliancetest.Config(), t.TempDir())
	h.Robot(simrobot.Options{})
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
	wantJSON(t, []string{"check-config", appliancetest.Written(t, "name: kitchen")}, 0, `"faults":[]`)
	wantJSON(t, []string{"check-config", appliancetest.Written(t, "nmae: x\nadoption: maybe")}, 2, `"warnings":[]`)
}

// wantJSON runs a command, and looks for a text in its JSON without white space.
func wantJSON(t *testing.T, args []string, code int, want string) {
	t.Helper()
	var out strings.Builder
	got := run(t.Context(), append(args, "--json"), &out, io.Discard)
	var value any
	d := json.NewDecoder(strings.NewReader(out.String()))
	err := d.Decode(&value)
	compact, _ := json.Marshal(value)
	if got != code || err != nil || !errors.Is(d.Decode(new(any)), io.EOF) || !strings.Contains(string(compact), want) {
		t.Errorf("%q: exit code %d, %v\n%s", args, got, err, &out)
	}
}

// TestOnATerminal: titles and colour are for a terminal alone.
func TestOnATerminal(t *testing.T) {
	list := robotList{Robots: []deviceLine{{ID: "a0b1c2d3e4f5", Board: "m5stack-stack-chan", Firmware: "2.2.4", Address: "192.168.1.20",
		LastSeen: time.Date(2026, 11, 22, 12, 0, 0, 0, time.Local), Adopted: true}}}
	const report = "1 fault, with its cure:\nFAIL  disk  full\n\nThe rest works:\nWARN  tls   old\nok    mqtt  works\n"
	var plain, titled strings.Builder
	list.write(&plain, command.Screen{})
	list.write(&titled, command.Screen{Terminal: true})
	const titles = "ROBOT         BOARD                    FIRMWARE ADDRESS         STATE         LAST SEEN\n"
	const robot = "a0b1c2d3e4f5  m5stack-stack-chan       2.2.4    192.168.1.20    not connected seen 2026-11-22 12:00:00\n"
	if plain.String() != robot || titled.String() != titles+robot {
		t.Errorf("it prints\n%s\non a terminal\n%s", &plain, &titled)
	}
	if got := coloured(report, command.Screen{Terminal: true}); got != report {
		t.Errorf("without colour %q", got)
	}
	want := "1 fault, with its cure:\n\x1b[31mFAIL\x1b[m  disk  full\n\nThe rest works:\n\x1b[33mWARN\x1b[m  tls   old\n\x1b[32mok\x1b[m    mqtt  works\n"
	if got := coloured(report, command.Screen{Terminal: true, Colour: true}); got != want {
		t.Errorf("with colour %q", got)
	}
}
