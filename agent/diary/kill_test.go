package diary_test

import (
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent/diary"
	"perch/device"
	"perch/event"
	"perch/must"
	"perch/store"
	"perch/store/storetest"
)

// asDiarist is the environment variable with the path of the database in which
// TestDiaristProcess records a diary.
const asDiarist = "PERCH_TEST_DIARIST"

// TestDiaristProcess is the program that TestSurvivesSIGKILL starts and kills.
func TestDiaristProcess(t *testing.T) {
	path := os.Getenv(asDiarist)
	if path == "" {
		t.Skip("it is for TestSurvivesSIGKILL")
	}
	db := must.Value(store.Open(path, store.Options{}))(t)
	d, err := diary.Open(diary.Options{Entries: store.NewTable[diary.Entry](db, "diary"),
		Heads: store.NewTable[diary.Head](db, "diary-head"), Key: key(t), Begins: true, Keep: 200,
		Who: func(device.ID, string) string { return "default" }, Log: slog.New(slog.DiscardHandler)})
	must.Succeed(t, err)
	bus := event.NewBus()
	go d.Run(t.Context(), bus.ReadFrom(1))
	last := func() (seq uint64) {
		for _, e := range d.Newest(1) {
			seq = e.Seq
		}
		return seq
	}
	for {
		for range 70 { // more than the 64 entries of a batch, so that it is written at once
			bus.Publish("a0b1c2d3e4f5", "s", event.Said{Text: "hello"})
		}
		for before := last(); last() == before; {
			time.Sleep(time.Millisecond)
		}
		os.Stdout.WriteString("kept\n") //nolint:errcheck // a test program's
	}
}

func key(t *testing.T) diary.Key {
	t.Helper()
	return must.Value(diary.NewKey(strings.Repeat("a", 64)))(t)
}

// check verifies the diary in a database file without opening the database for writing.
func check(t *testing.T, path string) diary.Report {
	t.Helper()
	f := must.Value(os.Open(path))(t)
	defer f.Close()
	var head *diary.Head
	var list []diary.Entry
	if _, err := store.Check(f, store.Options{}, func(table, key string, value []byte) error {
		if table == "diary-head" {
			return json.Unmarshal(value, &head)
		}
		var e diary.Entry
		err := json.Unmarshal(value, &e)
		list = append(list, diary.FromTable(key, e))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return diary.Check(key(t).Public(), head, slices.Values(list))
}

// TestSurvivesSIGKILL kills a program PERCH_KILLS times, by default 100, while the program
// records and cuts a diary in one database. Each time the chain in the file must be whole.
func TestSurvivesSIGKILL(t *testing.T) {
	path := t.TempDir() + "/perch.db"
	seed := storetest.Number(t, "PERCH_SEED", rand.Uint64())
	t.Logf("PERCH_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	kills := int(storetest.Number(t, "PERCH_KILLS", 100))
	var last uint64
	grown := 0
	for kill := range kills {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDiaristProcess$")
		child.Env = append(os.Environ(), asDiarist+"="+path)
		out := must.Value(child.StdoutPipe())(t)
		must.Succeed(t, child.Start())
		if _, err := out.Read(make([]byte, 5)); err != nil {
			t.Fatal("it keeps nothing: ", err)
		}
		time.Sleep(time.Duration(r.Int64N(int64(60 * time.Millisecond))))
		child.Process.Kill() //nolint:errcheck // it may have ended, which Wait tells
		if err := child.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatal("it was not killed: ", err)
		}
		report := check(t, path)
		if !report.Whole || report.To < last || report.Entries > 200 {
			t.Fatalf("after kill %d: %+v", kill, report)
		}
		if report.To > last {
			grown++
		}
		last = report.To
	}
	t.Logf("%d entries were kept; it grew in %d runs", last, grown)
	if grown < kills || last <= 200 {
		t.Errorf("it grew in %d of %d runs, to %d: it was not killed while it keeps and is cut", grown, kills, last)
	}
}
