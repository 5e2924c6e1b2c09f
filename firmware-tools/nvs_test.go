package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perch/firmware-tools/nvs"
	"perch/must"
)

// robotSettings returns an NVS partition with settings of the firmware and with two unknown keys.
func robotSettings(t *testing.T) []byte {
	t.Helper()
	p := &nvs.Partition{}
	for _, text := range []string{
		"wifi/ssid=home", "wifi/password=correct horse", "board/uuid=3f1c8e5a", "audio/output_volume=70",
		"elsewhere/odd=blob:00ff", "elsewhere/text=string:\x1b[2J",
	} {
		must.Succeed(t, assign(p, text))
	}
	image := must.Value(p.Encode(0x4000))(t)
	return image
}

func TestSettings(t *testing.T) {
	file := writeFile(t, "nvs.bin", robotSettings(t))
	const shown = "wifi/ssid=string:home\nwifi/password=string:(hidden)\nboard/uuid=string:3f1c8e5a\naudio/output_volume=i32:70\n" +
		"elsewhere/odd=blob:00ff\nelsewhere/text=string:[2J\n"
	if code, out, errs := tools("robot", "nvs", file); code != 0 || out != shown || errs != "" {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	out := filepath.Join(t.TempDir(), "out.bin")
	code, _, errs := tools("robot", "nvs", file, "--ota", "http://perch.local:8003/xiaozhi/ota/", "--set", "elsewhere/odd=0102", "--delete", "wifi/password",
		"--out", out)
	if code != 0 {
		t.Fatalf("exit %d %s", code, errs)
	}
	want := strings.Replace(strings.Replace(shown, "wifi/password=string:(hidden)\n", "", 1), "00ff", "0102", 1) +
		"wifi/ota_url=string:http://perch.local:8003/xiaozhi/ota/\n"
	if _, got, _ := tools("robot", "nvs", out); got != want {
		t.Errorf("it has become\n%s", got)
	}
	if _, got, _ := tools("robot", "nvs", file, "--show-secrets"); !strings.Contains(got, "correct horse") || strings.Contains(got, "ota_url") {
		t.Errorf("the file that was read has become\n%s", got)
	}
	var items []struct{ Namespace, Key, Type, Value string }
	_, text, _ := tools("robot", "nvs", out, "--json")
	if err := json.Unmarshal([]byte(text), &items); err != nil || len(items) != 6 || items[5].Key != "ota_url" || items[5].Type != "string" {
		t.Errorf("%v %s", err, text)
	}
}

func TestSettingsMadeAndChangedInPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nvs.bin")
	check(t, "robot nvs "+file, call{[]string{"--new", "--set", "wifi/ssid=home", "--set", "wifi/password3=x"}, 0, ""},
		call{[]string{"--set", "wifi/ssid=other"}, 0, ""})
	if _, out, _ := tools("robot", "nvs", file, "--show-secrets"); out != "wifi/ssid=string:other\nwifi/password3=string:x\n" {
		t.Error(out)
	}
	if info, err := os.Stat(file); err != nil || info.Size() != 0x4000 || info.Mode().Perm() != 0o600 {
		t.Errorf("%v (%v)", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}

func TestSettingsRefused(t *testing.T) {
	file := writeFile(t, "nvs.bin", robotSettings(t))
	damaged := robotSettings(t)
	damaged[64+32+24] ^= 1
	bad := writeFile(t, "bad.bin", damaged)
	text := writeFile(t, "text.bin", []byte("<html>"))
	before, _ := os.ReadFile(file)
	check(t, "robot nvs", []call{
		{[]string{text}, 1, "not an NVS partition"},
		{[]string{"/nowhere.bin"}, 1, "--new creates one"},
		{[]string{"--new", file}, 1, "already exists"},
		{[]string{bad, "--set", "wifi/ssid=x"}, 1, "--drop-damaged"},
		{[]string{file, "--set", "wifi/ssid"}, 2, "is not NAMESPACE/KEY=VALUE"},
		{[]string{file, "--set", "ssid=x"}, 2, "is not NAMESPACE/KEY=VALUE"},
		{[]string{file, "--set", "wifi/new=x"}, 2, "wifi/new=string:x"},
		{[]string{file, "--set", "wifi/ssid=u8:1"}, 2, "the firmware would not find a u8"},
		{[]string{file, "--set", "audio/output_volume=loud"}, 2, `"loud" is not a valid i32`},
		{[]string{file, "--set", "wifi/a_key_of_20_letters_=string:x"}, 1, "1 to 15 bytes"},
		{[]string{file, "--delete", "wifi/none"}, 1, "no wifi/none to delete"},
		{[]string{file, "--ota", "perch.local"}, 2, "cannot use --ota"},
		{[]string{file, "--ota", "http://[::1]:8003/"}, 2, "cannot use --ota"},
		{[]string{file, "--ota", "http://perch.local:8003/?x=1"}, 2, "cannot use --ota"},
		{[]string{"--new", filepath.Join(t.TempDir(), "x.bin"), "--size", "8192"}, 1, "multiple of 4096"},
		{nil, 2, "but 0 arguments were given"},
	}...)
	if after, _ := os.ReadFile(file); string(after) != string(before) {
		t.Error("a refused change was written")
	}
	check(t, "robot nvs --drop-damaged --set wifi/ssid=x", call{[]string{bad}, 0, "damaged: page 0, entry 1"})
}
