package e2e

import (
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/event"
)

// TestDiaryCommands: the owner can verify and list the diary.
func TestDiaryCommands(t *testing.T) {
	data := t.TempDir()
	h := open(t, appliancetest.Config(), data)
	h.command("diary verify", 0, "the diary is whole and has no entries")
	h.Bus.Publish("", "skin:1", event.LoadEnded{URI: "robot.glb"})
	h.Eventually("the entry is kept", func() bool { return len(h.Diary.Newest(1)) == 1 })
	h.command("diary verify", 0, "the diary is whole: 1 entries, 1 to 1")
	h.command("diary list", 0, "load-end  {")
	h.command("diary list -n 0", 2, "-n is a number from 1 to 1000")
}

// TestARestoredDiary: a diary that was restored on another machine, which has another key, contains entries that are
// signed with the old key. perch diary verify states whose key it is and how to verify these entries.
func TestARestoredDiary(t *testing.T) {
	t.Parallel()
	old, file, fresh := t.TempDir(), t.TempDir()+"/perch.tar", t.TempDir()+"/data"
	kept := func(data string, n int) (h *running) {
		h = open(t, appliancetest.Config(), data)
		h.Bus.Publish("", "skin:1", event.LoadEnded{URI: "robot.glb"})
		h.Eventually("the entry is kept", func() bool { return len(h.Diary.Newest(n)) == n })
		return h
	}
	before := kept(old, 1)
	before.command("backup "+file, 0)
	theirs := before.Identity.Signer.Address()
	bare(t, "restore "+file+" --data "+fresh, exitDone)
	h := kept(fresh, 2)
	for _, says := range []string{
		"entries 1 to 1 are consistent, but signed with another appliance's key, " + theirs, "after a restore of its backup",
		"nothing in it was changed: 2 entries, 1 to 2", "perch diary verify --key KEY", "contains entries of another appliance",
	} {
		h.command("diary verify", 1, says)
	}
	h.command("diary verify --key "+theirs, 0, "nothing in it was changed")
	h.command("diary verify --key "+h.Identity.Signer.Address(), 1, "contains entries of another appliance")
}
