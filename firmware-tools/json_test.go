package main

import (
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"perch/firmware-tools/simrobot"
	"perch/ota/espimage/espimagetest"
)

// TestJSON checks that each command with --json prints one or more JSON values and nothing else.
func TestJSON(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	a := newAppliance(t)
	stackChan(t)
	_, page := configuring(t, false)
	_, url := newAdminAPI(t, adminAPI{})
	image, partition := writeFile(t, "app.bin", simrobot.Image("1.3.0", 0)), writeFile(t, "nvs.bin", robotSettings(t))
	damaged := robotSettings(t)
	damaged[64+32+24] ^= 1
	for _, c := range []struct {
		args []string
		want string // part of the last value, without white space
	}{
		{[]string{"robot", "--ota", a.ota(), "--say", "hi", "--mode", "manual"}, `"answered":1`},
		{[]string{"robot", "--ota", a.ota(), "--say", "hi", "--mode", "manual", "--robots", "2"}, `"robots":2`},
		{[]string{"robot", "flash", image, "--port", fakePort, "--dry-run"}, `"step":"dry run"`},
		{[]string{"robot", "provision", "--portal", page, "--ota", lasting, "--ssid", "Open"}, `"does":"leaves"`},
		{[]string{"robot", "nvs", partition}, `"namespace":"wifi"`},
		{[]string{"robot", "nvs", writeFile(t, "bad.bin", damaged)}, `"namespace":`},
		{[]string{"robot", "nvs", partition, "--set", "wifi/ssid=x", "--out", filepath.Join(t.TempDir(), "out.bin")}, `"bytes":16384`},
		{[]string{"firmware", "image", image}, `"valid":true`},
		{[]string{"firmware", "publish", image, "--board", "b", "--url", url, "--auto", "--percent", "10"}, `"percent":10`},
		{[]string{"firmware", "assets", writeFile(t, "de.bin", espimagetest.Assets("index.json", "{}")), "--url", url}, `"name":"de.bin"`},
		{[]string{"hooks", "install", "claude", "--write"}, `"changed":true`},
		{[]string{"hooks", "remove", "claude"}, `"changed":true`},
	} {
		code, out, errs := tools(append(c.args, "--json")...)
		var last json.RawMessage
		values, d := 0, json.NewDecoder(strings.NewReader(out))
		err := d.Decode(&last)
		for ; err == nil; err = d.Decode(&last) {
			values++
		}
		compact, _ := json.Marshal(last)
		if code != 0 || values == 0 || !errors.Is(err, io.EOF) || !strings.Contains(string(compact), c.want) {
			t.Errorf("%q: exit %d %s, %v\n%s", c.args, code, errs, err, out)
		}
	}
}
