package main

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"perch/firmware-tools/nvs"
	"perch/firmware-tools/simrobot"
)

// commandsOf returns the commands on a page, by their heading.
func commandsOf(t *testing.T, page string) map[string][]string {
	t.Helper()
	all, heading := map[string][]string{}, ""
	for line := range strings.Lines(content(t, page)) {
		if name, is := strings.CutPrefix(line, "## "); is {
			heading = name[:1]
		}
		if command, is := strings.CutPrefix(line, "    "); is {
			all[heading] = append(all[heading], strings.TrimSpace(command))
		}
	}
	return all
}

// follow runs a command with a simulated page, or port, in place of a robot's.
func follow(t *testing.T, command, page string) {
	t.Helper()
	if rest, is := strings.CutPrefix(command, "perch-tools "); is {
		args := strings.Fields(rest)
		switch args[1] {
		case "provision":
			args = append(args, "--portal", page)
		case "flash":
			args = append(args, "--port", page)
		}
		if code, out, errs := tools(args...); code != 0 {
			t.Fatalf("%s: exit %d %s%s", command, code, out, errs)
		}
		return
	}
	shell := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(command, portalAddress, page))
	if out, err := shell.CombinedOutput(); err != nil || !strings.Contains(string(out), `{"success":true}`) {
		t.Fatalf("%s: %v %s", command, err, out)
	}
}

// TestOnboardingPage follows docs/onboarding.md, and checks the robot's settings.
func TestOnboardingPage(t *testing.T) {
	commands := commandsOf(t, "../docs/onboarding.md")
	t.Chdir(t.TempDir())
	noError(t, os.WriteFile("wifi.txt", []byte("correct horse\n"), 0o600))
	arrived := func(p *simrobot.Portal) {
		t.Helper()
		if p.OTA() != lasting || !slices.Contains(p.Saved(), "Home") || !p.Left() {
			t.Errorf("URL %q, networks %q, left %v", p.OTA(), p.Saved(), p.Left())
		}
	}
	if len(commands["1"]) != 3 || len(commands["2"]) != 3 || len(commands["3"]) != 4 {
		t.Fatalf("the page has other commands now: %q", commands)
	}
	for n, command := range commands["1"] {
		o := simrobot.PortalOptions{Saved: []string{"Home"}}
		if strings.Contains(command, "--ssid") {
			o.Saved = nil
		}
		p, page := configuring(t, o)
		if n < 2 { // these browse, which a test does in no network of others
			air(t, "", "Xiaozhi-A1B2")
			command += " --ota " + lasting
		}
		follow(t, command, page)
		arrived(p)
	}
	p, page := configuring(t, simrobot.PortalOptions{})
	for _, command := range commands["2"] {
		follow(t, command, page)
	}
	arrived(p)
	byCable(t, commands["3"])
}

// byCable changes the settings of a robot at a cable, and then its firmware.
func byCable(t *testing.T, commands []string) {
	t.Helper()
	var settings nvs.Partition
	uuid := must(nvs.ParseValue(nvs.String, "3f1c8e5a-9b1d-4c7e-8a2f-0d6b5e4c3a21"))(t)
	noError(t, settings.Set("board", "uuid", uuid))
	image := must(settings.Encode(0x4000))(t)
	robot, app := stackChan(t), simrobot.Image("1.3.0", 10_000)
	before := robot.flash()
	copy(before[0x9000:], image)
	robot.put("flash", before)
	noError(t, os.WriteFile("stack-chan.bin", app, 0o600))
	for _, command := range commands {
		follow(t, command, fakePort)
	}
	flash := robot.flash()
	p := must(nvs.Decode(flash[0x9000:0xD000]))(t)
	url, _ := p.Get("wifi", "ota_url")
	if kept, _ := p.Get("board", "uuid"); url.String() != lasting || kept.String() != uuid.String() {
		t.Errorf("the URL is %v, the UUID %v", url, kept)
	}
	if !bytes.Equal(flash[0x20000:0x20000+len(app)], app) {
		t.Error("the firmware is another")
	}
}
