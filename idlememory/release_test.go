package idlememory

import (
	"slices"
	"testing"
)

// TestConstantPages checks that mappings with written pages, writable mappings, shared mappings and mappings
// of other files are not released.
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
