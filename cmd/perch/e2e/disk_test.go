package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/store/storetest"
)

// fill fills the disk of dir with a file, and returns the path of the file.
func fill(t *testing.T, dir string) (file string) {
	t.Helper()
	file = filepath.Join(dir, "of-another-program")
	f, err := os.Create(file)
	must.Succeed(t, err)
	defer f.Close()
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	return file
}

// TestAFullDisk: on a full disk robots can still talk, and requests whose data cannot be stored are refused with the
// cause, which is logged once. When there is room again, the appliance recovers without a restart. Everything that
// was acknowledged is there after a restart.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	dir := storetest.SmallDisk(t, "8m")
	c := appliancetest.Config()
	c.Bridge.Key = appliancetest.Key
	h := open(t, c, dir)
	h.RunRobot(simrobot.Options{}) // registers the robot before the disk is full
	remember := func(n int) (int, string) {
		return h.Request(http.MethodPost, "/api/voice/remember", fmt.Sprintf(`{"fact":"fact %d %s"}`, n, strings.Repeat("x", 900)), "Authorization",
			"Bearer "+appliancetest.Key)
	}
	kept := 0
	for ; kept < 3; kept++ {
		if status, text := remember(kept); status != http.StatusOK {
			t.Fatalf("with room: %d %s", status, text)
		}
	}
	filler := fill(t, dir)
	status, text := http.StatusOK, ""
	for status == http.StatusOK && kept < 200 { // the database first uses free pages in its file
		if status, text = remember(kept); status == http.StatusOK {
			kept++
		}
	}
	if status != http.StatusInsufficientStorage || !strings.Contains(text, `"disk_full"`) || !strings.Contains(text, "free some space") {
		t.Fatalf("a fact that cannot be kept: %d %s", status, text)
	}
	for _, w := range [][3]string{
		{http.MethodPost, "/api/v1/notifications", `{"text":"It is full.","speak":false}`},
		{http.MethodPost, "/api/v1/adopt", `{"robot":"a0b1c2d3e4f5"}`},
		{http.MethodDelete, "/api/v1/devices/a0b1c2d3e4f5", ""},
	} {
		status, text := h.Owner(w[0], w[1], w[2])
		if fits := status < 300; !fits && (status != http.StatusInsufficientStorage || !strings.Contains(text, `"disk_full"`)) {
			t.Errorf("%s %s: %d %s", w[0], w[1], status, text)
		}
	}
	image := simrobot.Image("9.9.9", 1<<20)
	for _, path := range []string{"/api/v1/firmware?board=m5stack-stack-chan", "/api/v1/assets/fonts.bin"} {
		h.Expect(http.StatusInsufficientStorage, "disk", http.MethodPost, path, string(image), "Authorization", "Bearer "+h.OwnerToken())
	}
	if files, err := filepath.Glob(filepath.Join(dir, "firmware", "*")); err != nil || len(files) > 0 &&
		files[0] != filepath.Join(dir, "firmware", "assets") {
		t.Errorf("of an upload there is %v, %v", files, err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "firmware", "assets", "*")); len(files) > 0 {
		t.Errorf("of an upload there is %v", files)
	}

	for _, turn := range h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it")}).Stats().Turns {
		if !turn.Answered || !strings.HasPrefix(strings.Join(turn.Answer, " "), "It is ") {
			t.Errorf("a robot is answered %+v", turn)
		}
	}
	h.RunRobot(simrobot.Options{MAC: "A0:B1:C2:D3:E4:F6"}) // a new robot may talk, too

	if p := h.Part("disk"); p.OK || p.Vital || !strings.Contains(p.Note, "free some space") && !strings.Contains(p.Note, "make room") {
		t.Errorf("/ready says of the disk %+v", p)
	}
	h.Expect(http.StatusOK, "", http.MethodGet, "/health", "")
	if out := bare(t, "doctor --data "+dir, exitFailed); !strings.Contains(out, "FAIL  disk") || strings.Count(out, "  disk ") != 1 {
		t.Errorf("the doctor says %s", out)
	}
	full := func() int {
		status, _ := remember(kept)
		if status == http.StatusOK {
			kept++ // the database has used pages that have become free
		}
		return status
	}
	h.Eventually("it is logged", func() bool {
		return full() == http.StatusInsufficientStorage && strings.Contains(h.Logged.String(), "writing to the disk fails")
	})
	if n := strings.Count(h.Logged.String(), "level=ERROR"); n > 2 { // the store also logs its failure once
		t.Errorf("%d errors are logged", n)
	}

	h.Stop() // the next start is on a full disk
	h = open(t, c, dir)
	h.RunRobot(simrobot.Options{})
	h.Eventually("it is known to be full", func() bool {
		return full() == http.StatusInsufficientStorage && !h.Part("disk").OK && h.DB.Err() != nil
	})
	must.Succeed(t, os.Remove(filler))
	h.Eventually("it has recovered", func() bool { return h.DB.Err() == nil })
	for range 3 {
		if status, text := remember(kept); status != http.StatusOK {
			t.Fatalf("with room again: %d %s", status, text)
		}
		kept++
	}
	h.Stop()
	h = open(t, c, dir)
	var facts []struct{ Body string }
	h.Admin(http.MethodGet, "/api/v1/memory", "{}", &facts)
	for n := range kept {
		if !slices.ContainsFunc(facts, func(f struct{ Body string }) bool { return strings.HasPrefix(f.Body, fmt.Sprintf("fact %d ", n)) }) {
			t.Errorf("fact %d is not there", n)
		}
	}
	if len(facts) != kept || kept < 4 {
		t.Errorf("%d facts are there, and %d were acknowledged", len(facts), kept)
	}
	if list := h.Firmware.List(); len(list) > 0 {
		t.Errorf("the catalogue holds %+v", list)
	}
}
