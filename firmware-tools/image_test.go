package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perch/firmware-tools/simrobot"
	"perch/must"
)

func writeFile(t *testing.T, name string, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	must.Succeed(t, os.WriteFile(file, data, 0o640))
	return file
}

func TestImage(t *testing.T) {
	good := writeFile(t, "good.bin", simrobot.Image("1.2.4", 0))
	damaged := simrobot.Image("1.2.4", 0)
	damaged[len(damaged)-1] ^= 1
	bad := writeFile(t, "bad.bin", damaged)
	page := writeFile(t, "page.bin", []byte("<html>"))
	for _, c := range []struct {
		args   []string
		code   int
		out    string
		stderr string
	}{
		{[]string{good}, 0, "project   stack-chan 1.2.4", ""},
		{[]string{good, "--chip", "esp32s3", "--slot", "352"}, 0, "chip      esp32s3", ""},
		{[]string{"--chip", "esp32", good}, 1, "esp32s3", "built for esp32s3, and the robot has esp32"},
		{[]string{"--slot", "300", good}, 1, "esp32s3", "partition takes 300"},
		{[]string{bad}, 1, "stack-chan 1.2.4", "the file is damaged"},
		{[]string{page}, 1, "kind      unknown, 6 bytes", "this is not a firmware image"},
		{[]string{"--json", bad}, 1, `"code": "bad_hash"`, "the file is damaged"},
		{[]string{t.TempDir()}, 1, "", "is not a file"},
		{[]string{"/nowhere.bin"}, 1, "", "nowhere.bin"},
		{[]string{good, "--chip", "z80"}, 2, "", `"z80" is not a chip`},
		{nil, 2, "", "but 0 arguments were given"},
		{[]string{"--help"}, 0, "usage: perch-tools firmware image", ""},
	} {
		code, out, errs := tools(append([]string{"firmware", "image"}, c.args...)...)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(errs, c.stderr) || c.stderr == "" && errs != "" ||
			strings.Count(errs, "\n") > 1 {
			t.Errorf("%v: exit %d\n%s%s", c.args, code, out, errs)
		}
	}
	code, out, _ := tools("firmware", "image", "--json", good)
	var shown struct {
		Valid                  bool
		SHA256, Chip, Version  string
		Segments               []struct{ Length int }
		Length                 int
		Signed, Hashed, Absent bool
	}
	if err := json.NewDecoder(bytes.NewReader([]byte(out))).Decode(&shown); err != nil || code != 0 || !shown.Valid || len(shown.SHA256) != 64 ||
		shown.Chip != "esp32s3" || shown.Version != "1.2.4" || len(shown.Segments) != 1 || shown.Length != 336 || !shown.Hashed {
		t.Errorf("exit %d, %+v (%v)", code, shown, err)
	}
}
