package perception

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
	"perch/event"
	"perch/store/storetest"
)

// jsonTable is a table as the store has them: values go through JSON.
type jsonTable struct{ storetest.Table[State] }

func newJSONTable() *jsonTable { return &jsonTable{} }

func (s *jsonTable) PutSoon(key string, v State) {
	text, err := json.Marshal(v)
	var back State
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil {
		panic(err)
	}
	s.Table.PutSoon(key, back)
}

// runningStates are states that follow a bus until stop.
func runningStates(t *testing.T) (kept *jsonTable, bus *event.Bus, board *States, stop func()) {
	kept, bus = newJSONTable(), event.NewBus()
	board = NewStates(kept)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { board.Run(ctx, bus.ReadFrom(1)) })
	return kept, bus, board, func() {
		cancel()
		running.Wait()
		bus.Close()
	}
}

// TestBoardThroughARestart: what was known is known again, but stale, and
// becomes true only by what is sensed anew.
func TestBoardThroughARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, bus, board, stop := runningStates(t)
		var folded State
		level := 70
		for _, e := range []event.Event{event.RobotOnline{}, event.RobotStatus{Battery: &level}, happening(t, "known Ann"),
			happening(t, "sound left"), happening(t, "mode talk"), happening(t, "listens")} {
			bus.Publish(chan1, "s", e)
			time.Sleep(time.Second)
		}
		for r := bus.ReadFrom(1); r != nil; {
			e, err := r.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			folded = Fold(folded, e)
			if e.Seq == bus.Seq() {
				r = nil
			}
		}
		synctest.Wait()
		states, seq := board.Snapshot(time.Now())
		if len(states) != 1 || seq != bus.Seq() || !reflect.DeepEqual(states[0], folded) {
			t.Errorf("at %d the board has %+v\nfolded it is %+v", seq, states, folded)
		}
		stop()

		again := NewStates(kept)
		s := again.Robot(chan1, time.Now())
		if !s.Stale || s.Face.Present || s.Online || s.Listening || s.Who(time.Now()) != "" {
			t.Errorf("after a restart it is %+v", s)
		}
		if s.Face.Identity != "Ann" || s.Sound.Direction != left || len(s.Recent) != 3 || *s.Battery != 70 || !s.Sensed.Equal(folded.Sensed) {
			t.Errorf("after a restart it has forgotten: %+v", s)
		}
		again.Take(event.Envelope{Seq: 1, At: time.Now(), Robot: chan1, Session: "s2", Event: event.RobotOnline{}})
		if s := again.Robot(chan1, time.Now()); !s.Stale || !s.Online {
			t.Errorf("its channel alone says nothing of who is there: %+v", s)
		}
		again.Take(event.Envelope{Seq: 2, At: time.Now(), Robot: chan1, Session: "s2", Event: happening(t, "sound right")})
		if s := again.Robot(chan1, time.Now()); s.Stale || s.Face.Present || len(s.Recent) != 4 {
			t.Errorf("sensed anew it is %+v", s)
		}
	})
}

// TestBoardSparesTheDisk: however much is sensed, little is written, and
// nothing while nothing is sensed.
func TestBoardSparesTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, bus, board, stop := runningStates(t)
		for range 600 {
			bus.Publish(chan1, "s", happening(t, "sound left"))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if kept.Puts > 2 {
			t.Errorf("10 minutes are %d writes", kept.Puts)
		}
		time.Sleep(keepEvery)
		before := kept.Puts
		for range 100 {
			bus.Publish(chan1, "s", event.SpeakingStarted{})
			time.Sleep(time.Minute)
		}
		if kept.Puts != before {
			t.Errorf("a talk is %d writes", kept.Puts-before)
		}
		board.Forget(chan1)
		if states, _ := board.Snapshot(time.Now()); len(states) != 0 || len(kept.Kept) != 0 {
			t.Error("a forgotten robot is remembered")
		}
		stop()
		if len(kept.Kept) != 0 {
			t.Error("a forgotten robot is kept")
		}
	})
}

// TestBoardAfterAGap: the end of a turn may be among what was missed.
func TestBoardAfterAGap(t *testing.T) {
	board := NewStates(nil)
	board.Take(event.Envelope{Seq: 1, At: noon, Robot: chan1, Event: happening(t, "face")})
	board.Take(event.Envelope{Seq: 2, At: noon, Robot: chan1, Event: event.Heard{Text: "x"}})
	if !board.Robot(chan1, noon).talking(noon, 0) {
		t.Fatal("nobody talks")
	}
	board.Take(event.Envelope{Seq: 9, At: noon, Event: event.Missed{N: 7}})
	if s := board.Robot(chan1, noon); s.talking(noon, 0) || !s.Face.Present {
		t.Errorf("it is %+v", s)
	}
	if states, seq := board.Snapshot(noon); seq != 9 || len(states) != 1 {
		t.Errorf("%d states at %d", len(states), seq)
	}
	if s := board.Robot(chan2, noon); !s.Stale || s.Robot != chan2 {
		t.Errorf("an unknown robot is %+v", s)
	}
}

func BenchmarkCreature(b *testing.B) {
	c := newCreature(Options{Tuning: DefaultTuning(), Zone: time.UTC})
	e := event.Envelope{At: noon, Robot: chan1, Event: event.Perceived{Name: soundEvent,
		Data: []byte(`{"direction":"left","balance":0.4,"energy":600000000}`)}}
	b.ReportAllocs()
	for b.Loop() {
		c.take(e)
		c.due()
	}
}

func BenchmarkStates(b *testing.B) {
	board := NewStates(nil)
	e := event.Envelope{At: noon, Robot: chan1, Event: event.Perceived{Name: soundEvent,
		Data: []byte(`{"direction":"left","balance":0.4,"energy":600000000}`)}}
	b.ReportAllocs()
	for b.Loop() {
		board.Take(e)
	}
}

// TestAllSensesAreBounded: however many robots sense however much, what is kept
// of their events is.
func TestAllSensesAreBounded(t *testing.T) {
	kept := newJSONTable()
	b := NewStates(kept)
	for n := range 500 {
		for range 5 {
			b.Take(event.Envelope{Robot: device.ID(fmt.Sprintf("a0000000%04x", n)), At: noon,
				Event: event.Perceived{Name: "big", Data: json.RawMessage(`{"x":"` + strings.Repeat("y", 4000) + `"}`)}})
		}
	}
	b.Flush()
	bytes, robots := 0, 0
	for _, s := range kept.All() {
		bytes += s.size()
		robots++
	}
	if bytes > 4<<20 || bytes < 3<<20 || robots != 500 {
		t.Errorf("%d bytes of %d robots are kept", bytes, robots)
	}
	if again := NewStates(kept); len(again.bytes) != 500 {
		t.Errorf("after a restart %d robots are counted", len(again.bytes))
	}
}
