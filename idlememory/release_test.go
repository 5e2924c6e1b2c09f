package idlememory

import (
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	_ "perch/gateway/admin" // makes this program as large as one that rests
	"perch/must"
)

// TestConstantPages: what the loader has written into, what can be written, what
// others share and what is of another file is not given back.
func TestConstantPages(t *testing.T) {
	const smaps = `00400000-0125a000 r-xp 00000000 fe:00 247278                             /usr/bin/perch
Size:              14696 kB
Rss:               12272 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
0125a000-023fe000 r--p 00e5a000 fe:00 247278                             /usr/bin/perch
Rss:               12984 kB
Anonymous:             0 kB
023fe000-023ff000 r--p 01ffd000 fe:00 247278                             /usr/bin/perch
Size:                  4 kB
Anonymous:             4 kB
023ff000-02400000 rw-p 01ffd000 fe:00 247278                             /usr/bin/perch
Anonymous:             0 kB
c000000000-c000800000 rw-p 00000000 00:00 0                              [anon: Go: heap]
Anonymous:             0 kB
7f0000000000-7f0000100000 r--s 00000000 fe:00 111                        /var/lib/perch/perch.db
Anonymous:             0 kB
7f1000000000-7f1000100000 r-xp 00000000 fe:00 112                        /usr/lib/perch
Anonymous:             0 kB
7f2000000000-7f2000100000 r--s 00000000 fe:00 247278                     /usr/bin/perch
Anonymous:             0 kB
`
	want := []pages{{0x400000, 0x125a000}, {0x125a000, 0x23fe000}}
	if got := unwritten([]byte(smaps), "/usr/bin/perch"); !slices.Equal(got, want) {
		t.Errorf("%x, not %x", got, want)
	}
}

// TestTheProgramLeavesTheMemoryAndComesBack is with this very program.
func TestTheProgramLeavesTheMemoryAndComesBack(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	advise(populateRead, log)
	whole := resident(t)
	if whole < 1000 {
		t.Skipf("%d kB of the program are in memory: the kernel is older than Linux 5.14", whole)
	}
	advise(syscall.MADV_DONTNEED, log)
	if left := resident(t); left > whole/2 {
		t.Errorf("%d of %d kB are left", left, whole)
	}
	advise(populateRead, log)
	if back := resident(t); back < whole*9/10 {
		t.Errorf("%d of %d kB are back", back, whole)
	}
}

// resident is how much of the program's code is in memory, in kB.
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
