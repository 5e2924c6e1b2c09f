package appliance_test

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/appliancetest"
	"perch/device"
	"perch/event"
	"perch/must"
	"perch/store/archive"
)

// crowded returns a data directory that robots have filled: 300 adopted robots and 1000 that are not adopted, each with
// large descriptions of tools and large sensor events.
func crowded(t testing.TB) (data string) {
	t.Helper()
	data = t.TempDir()
	c := appliancetest.Config()
	a := must.Value(appliance.New(&c, appliancetest.Options(data)))(t)
	tools := []device.Tool{{Name: "self.tool", Description: strings.Repeat("x", 60<<10)}}
	big := event.Perceived{Name: "big", Data: json.RawMessage(`{"x":"` + strings.Repeat("y", 4000) + `"}`)}
	now := time.Now()
	a.Robots.Welcome(time.Time{})
	for n := range 1300 {
		id := device.ID(fmt.Sprintf("a0000000%04x", n))
		a.Robots.CheckIn(device.CheckIn{ID: id, Board: "m5stack-stack-chan", Firmware: "1.2.4", Address: fmt.Sprintf("10.%d.%d.1", n/256, n%256)},
			now)
		if n < 300 {
			must.Value(a.Robots.Adopt(string(id), now))(t)
		}
		a.Robots.StoreTools(id, tools)
		for range 5 {
			a.Senses.HandleEvent(event.Envelope{Robot: id, At: now, Event: big})
		}
	}
	a.Senses.Flush()
	a.Close()
	return data
}

// TestAsMuchAsRobotsCanKeep checks that the data of robots is bounded: the size of the database file, the memory after
// a start, and the number of robots that are not adopted.
func TestAsMuchAsRobotsCanKeep(t *testing.T) {
	data := crowded(t)
	about := must.Value(os.Stat(archive.DatabasePath(data)))(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := appliancetest.Config()
	began := time.Now()
	a := must.Value(appliance.New(&c, appliancetest.Options(data)))(t)
	took := time.Since(began)
	defer a.Close()
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("a file of %d KB, started in %v, %d KB of heap", about.Size()>>10, took.Round(time.Millisecond), grown>>10)
	if about.Size() > 24<<20 || grown > 48<<20 {
		t.Errorf("the file has %d bytes, and memory %d", about.Size(), grown)
	}
	if n, s := len(a.Robots.List()), a.Robots.Strangers(); n != 300+s || s != 200 {
		t.Errorf("%d robots are known, %d strangers", n, s)
	}
}
