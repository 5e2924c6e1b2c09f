package idlememory_test

import (
	"log/slog"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	_ "perch/cmd/perch/appliance" // makes this program as large as one that rests
	"perch/idlememory"
	"perch/must"
)

// TestCodeIsReleasedAndLoadedAgain releases and maps the code of the test program itself.
func TestCodeIsReleasedAndLoadedAgain(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	idlememory.Advise(idlememory.PopulateRead, log)
	whole := resident(t)
	if whole < 1000 {
		t.Skipf("%d kB of the program are in memory: the kernel is older than Linux 5.14", whole)
	}
	idlememory.Advise(syscall.MADV_DONTNEED, log)
	if left := resident(t); left > whole/2 {
		t.Errorf("%d of %d kB are left", left, whole)
	}
	idlememory.Advise(idlememory.PopulateRead, log)
	if back := resident(t); back < whole*9/10 {
		t.Errorf("%d of %d kB are back", back, whole)
	}
}

// resident returns how much of the program's code is in memory, in kB.
func resident(t *testing.T) (kB int) {
	t.Helper()
	program, err := os.Executable()
	must.Succeed(t, err)
	smaps, err := os.ReadFile("/proc/self/smaps")
	must.Succeed(t, err)
	of := false
	for line := range strings.Lines(string(smaps)) {
		if words := strings.Fields(line); strings.HasSuffix(line, program+"\n") {
			of = words[1] == "r-xp"
		} else if of && words[0] == "Rss:" {
			n, err := strconv.Atoi(words[1])
			must.Succeed(t, err)
			return n
		}
	}
	t.Fatal("the program is not in its memory")
	return 0
}
