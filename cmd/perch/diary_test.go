package main

import (
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"perch/agent/diary"
	"perch/cmd/perch/appliance"
	"perch/cmd/perch/appliancetest"
	"perch/device"
	"perch/event"
	"perch/store"
	"perch/store/archive"
)

// asDiarist, in the environment, names the data directory in which the test program keeps a
// diary until it is killed.
const asDiarist = "PERCH_TEST_DIARIST"

func TestDiaryCommands(t *testing.T) {
	data := t.TempDir()
	h := open(t, appliancetest.Config(), data)
	h.command("diary verify", 0, "the diary is whole and has no entries")
	h.Bus.Publish("", "skin:1", event.LoadEnded{URI: "robot.glb"})
	for deadline := time.Now().Add(20 * time.Second); len(h.Diary.Newest(1)) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("nothing is kept")
		}
		time.Sleep(20 * time.Millisecond)
	}
	h.command("diary verify", 0, "the diary is whole: 1 entries, 1 to 1")
	h.command("diary list", 0, "load-end  {")
	h.command("diary list -n 0", 2, "-n is a number from 1 to 1000")
}

// TestARestoredDiary on another machine, which has a key of its own, is no broken one: the
// command says whose it is and what to do, before the appliance has gone on with it and after.
func TestARestoredDiary(t *testing.T) {
	old, file, fresh := t.TempDir(), t.TempDir()+"/perch.tar", t.TempDir()+"/data"
	kept := func(data string, n int) (h *running) {
		h = open(t, appliancetest.Config(), data)
		h.Bus.Publish("", "skin:1", event.LoadEnded{URI: "robot.glb"})
		for deadline := time.Now().Add(20 * time.Second); len(h.Diary.Newest(n)) < n; {
			if time.Now().After(deadline) {
				t.Fatal("nothing is kept")
			}
			time.Sleep(20 * time.Millisecond)
		}
		return h
	}
	before := kept(old, 1)
	before.command("backup "+file, 0)
	theirs := before.Signer.Address()
	if code, out := perch(t, "restore", file, "--data", fresh); code != 0 {
		t.Fatal(out)
	}
	h := kept(fresh, 2)
	for _, says := range []string{
		"entries 1 to 1 fit, and are signed with another appliance's key, " + theirs, "after a restore of its backup",
		"nothing in it was changed: 2 entries, 1 to 2", "perch diary verify --key KEY", "not this appliance's alone",
	} {
		h.command("diary verify", 1, says)
	}
	h.command("diary verify --key "+theirs, 0, "nothing in it was changed")
	h.command("diary verify --key "+h.Signer.Address(), 1, "not this appliance's alone")
}

// TestDiaryKeeps is the program that is killed.
func TestDiaryKeeps(t *testing.T) {
	data := os.Getenv(asDiarist)
	if data == "" {
		t.Skip("it is for TestDiarySurvivesSIGKILL")
	}
	db, err := store.Open(archive.DatabasePath(data), appliance.StoreOptions(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	d := diaryOn(t, db)
	bus := event.NewBus()
	go d.Run(t.Context(), bus.ReadFrom(1))
	for {
		for range 70 { // more than a batch, which is then written at once
			bus.Publish("", "skin:1", event.Said{Text: "hello"})
		}
		for range d.Newest(1) {
			os.Stdout.WriteString("kept\n") //nolint:errcheck // a test program's
		}
	}
}

func diaryOn(t *testing.T, db *store.DB) *diary.Diary {
	t.Helper()
	key, err := diary.NewKey(strings.Repeat("a", 64))
	if err != nil {
		t.Fatal(err)
	}
	d, err := diary.Open(diary.Options{Entries: store.NewTable[diary.Entry](db, "diary"),
		Heads: store.NewTable[diary.Head](db, "diary-head"), Key: key, Begins: true, Keep: 500,
		Who: func(device.ID, string) string { return "default" }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDiarySurvivesSIGKILL kills a program a hundred times while it keeps a diary and cuts
// it, on one data directory: the chain is whole each time, in the file as it was left.
func TestDiarySurvivesSIGKILL(t *testing.T) {
	data := t.TempDir()
	secret := strings.Repeat("a", 64) + "\n"
	if err := os.WriteFile(data+"/diary-key", []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	seed := number(t, "PERCH_SEED", rand.Uint64())
	t.Logf("PERCH_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var last uint64
	grown := 0
	for kill := range int(number(t, "PERCH_KILLS", 100)) {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDiaryKeeps$")
		child.Env = append(os.Environ(), asDiarist+"="+data)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 5)); err != nil {
			t.Fatal("it keeps nothing: ", err)
		}
		time.Sleep(time.Duration(r.Int64N(int64(30 * time.Millisecond))))
		child.Process.Kill() //nolint:errcheck // it may have ended, which Wait tells
		if err := child.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatal("it was not killed: ", err)
		}
		report, err := appliance.CheckDiary(data)
		if err != nil || !report.Whole || report.To < last || report.Entries > 500 {
			t.Fatalf("after kill %d: %+v, %v", kill, report, err)
		}
		if report.To > last {
			grown++
		}
		last = report.To
	}
	t.Logf("%d entries were kept; it grew in %d runs", last, grown)
	if grown == 0 {
		t.Error("nothing was ever kept")
	}
}
