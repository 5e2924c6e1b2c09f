package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/must"
	"perch/waittest"
)

// TestServeEndsWithWhatToDoNext: after its start, the program prints the URL of its page and the command that checks
// the appliance.
func TestServeEndsWithWhatToDoNext(t *testing.T) {
	data := t.TempDir()
	p := program(t, data, "PERCH_MDNS_ENABLED=false")
	waittest.For(t, "it says so", func() bool { return strings.Contains(p.out.String(), "doctor") })
	p.stop()
	want := regexp.MustCompile(`^No robot can connect: only this machine reaches the addresses in listen\.
Open the page in a browser on this machine:
    http://127\.0\.0\.1:\d+/
See what works and what does not:
    perch doctor --data ` + regexp.QuoteMeta(data) + `
$`)
	if got := p.out.String(); !want.MatchString(got) {
		t.Errorf("it says %q, not %q", got, want)
	}
}

// TestWhyItDidNotStartIsAnErrorInTheJournal: if stderr is the journal, each line about a failed start begins with <3>,
// the priority of errors (sd-daemon(3)).
func TestWhyItDidNotStartIsAnErrorInTheJournal(t *testing.T) {
	stream := must.Value(os.Create(t.TempDir() + "/journal"))(t)
	defer stream.Close()
	about := must.Value(stream.Stat())(t)
	own := about.Sys().(*syscall.Stat_t)
	cmd := exec.CommandContext(t.Context(), perchBinary(t), "serve", "--config", appliancetest.WriteConfig(t, "nmae: x\nadoption: maybe"))
	cmd.Env = append(os.Environ(), fmt.Sprintf("JOURNAL_STREAM=%d:%d", own.Dev, own.Ino))
	cmd.Stderr = stream
	_ = cmd.Run() // the exit code is 2, as for every faulty configuration
	text, err := os.ReadFile(stream.Name())
	if lines := strings.Split(strings.TrimSpace(string(text)), "\n"); err != nil || len(lines) != 2 ||
		!strings.HasPrefix(lines[0], "<3>perch serve: ") || !strings.HasPrefix(lines[1], "<3>perch serve: ") {
		t.Errorf("in the journal is %q, %v", text, err)
	}
}
