package event_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"perch/device"
	"perch/event"
	"perch/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newBus(t testing.TB) *event.Bus {
	b := event.NewBus()
	t.Cleanup(b.Close)
	return b
}

func next(t testing.TB, r *event.Reader) event.Envelope {
	t.Helper()
	return must.Value(r.Next(t.Context()))(t)
}

func TestSlowReaderReceivesMissed(t *testing.T) {
	b := newBus(t)
	r := b.Read()
	for range 5000 {
		b.Publish("", "", event.Misheard{})
	}
	e := next(t, r)
	if missed, ok := e.Event.(event.Missed); !ok || missed.N != 5000-4096 {
		t.Fatalf("first event is %v %v, want 904 missed", event.Kind(e.Event), e.Event)
	}
	if e := next(t, r); e.Seq != 905 {
		t.Errorf("reading goes on at %d, want 905", e.Seq)
	}
}

func TestSensorsDoNotPushOutSpeech(t *testing.T) {
	b := newBus(t)
	r := b.Read()
	b.Publish("", "", event.Heard{Text: "kept"})
	for range 5000 {
		b.Publish("", "", event.Perceived{Name: "sound_event"})
	}
	if e := next(t, r); event.Kind(e.Event) != "missed" {
		t.Fatalf("first event is %v, want missed", e.Event)
	}
	if e := next(t, r); e.Event != (event.Heard{Text: "kept"}) {
		t.Errorf("second event is %v, want the speech", e.Event)
	}
}

func TestReadingFromALostEvent(t *testing.T) {
	b := newBus(t)
	for range 4096 + 10 {
		b.Publish("", "", event.Misheard{})
	}
	if e := next(t, b.ReadFrom(7)); e.Event != (event.Missed{N: 4}) {
		t.Errorf("reading from a lost event begins with %v %v, want 4 missed", event.Kind(e.Event), e.Event)
	}
}

func TestCloseEndsReadersAfterTheLastEvent(t *testing.T) {
	b := event.NewBus()
	r := b.Read()
	b.Publish("", "", event.Misheard{})
	b.Close()
	b.Close()
	b.Publish("", "", event.Misheard{})
	next(t, r)
	if _, err := r.Next(t.Context()); err != event.ErrClosed {
		t.Errorf("after the last event: %v, want ErrClosed", err)
	}
}

func TestNextEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := event.NewBus()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := b.Read().Next(ctx)
			ended <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Errorf("Next returned %v", err)
		}
		b.Close()
	})
}

// TestConcurrentPublishersAndReaders publishes from eight goroutines while eight readers read. For every
// reader, Seq must rise, and the events it received and those that Missed counts must add up to all events.
func TestConcurrentPublishersAndReaders(t *testing.T) {
	const publishers, each, readers = 8, 2000, 8
	b := newBus(t)
	var wg sync.WaitGroup
	for range readers {
		r := b.Read()
		wg.Go(func() {
			var last, seen uint64
			for seen < publishers*each {
				e, err := r.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if m, ok := e.Event.(event.Missed); ok {
					seen += m.N
					continue
				}
				if e.Seq <= last {
					t.Errorf("seq %d after %d", e.Seq, last)
					return
				}
				last = e.Seq
				seen++
			}
			if seen != publishers*each {
				t.Errorf("saw %d events of %d", seen, publishers*each)
			}
		})
	}
	for p := range publishers {
		wg.Go(func() {
			robot := device.ID(fmt.Sprintf("%012x", p))
			for i := range each {
				if i%3 == 0 {
					b.Publish(robot, "", event.Perceived{})
				} else {
					b.Publish(robot, "", event.Misheard{})
				}
			}
		})
	}
	wg.Wait()
}

// TestReaderProperties checks, for random events and a random first number, that a reader of ReadFrom
// receives all events from that number on, in order.
func TestReaderProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := event.NewBus()
		defer b.Close()
		sensed := rapid.SliceOfN(rapid.Bool(), 1, 200).Draw(t, "sensed")
		for _, s := range sensed {
			if s {
				b.Publish("", "", event.Perceived{})
			} else {
				b.Publish("", "", event.Misheard{})
			}
		}
		from := rapid.IntRange(0, len(sensed)+1).Draw(t, "from")
		r := b.ReadFrom(uint64(from))
		for want := max(from, 1); want <= len(sensed); want++ {
			e, err := r.Next(context.Background())
			if err != nil || e.Seq != uint64(want) {
				t.Fatalf("read %d (%v), want %d", e.Seq, err, want)
			}
		}
	})
}

func TestEnvelopeJSON(t *testing.T) {
	b := newBus(t)
	r := b.Read()
	b.Publish("a0b1c2d3e4f5", "s1", event.Heard{Text: "hello"})
	text := must.Value(json.Marshal(next(t, r)))(t)
	for _, want := range []string{`"seq":1`, `"robot":"a0b1c2d3e4f5"`, `"session":"s1"`, `"kind":"heard"`, `"data":{"text":"hello"}`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
}

// TestEventsEnd: the channel of Events is closed by stop, even if nobody receives from the channel, and
// after the last event of a closed bus.
func TestEventsEnd(t *testing.T) {
	b := event.NewBus()
	defer b.Close()
	held, stop := b.ReadFrom(1).Events(t.Context())
	b.Publish("a0b1c2d3e4f5", "", event.Misheard{})
	stop()
	if _, open := <-held; open {
		t.Error("an event came after the end")
	}
	taken, stop := b.ReadFrom(1).Events(t.Context())
	defer stop()
	b.Close()
	if e, open := <-taken; !open || e.Event != (event.Event)(event.Misheard{}) {
		t.Errorf("got %+v", e)
	}
	if _, open := <-taken; open {
		t.Error("it is still open")
	}
}

// TestStrangersAreOnlyKnown: RobotSeen is the only one of these events that the bus carries for a robot
// that is not adopted.
func TestStrangersAreOnlyKnown(t *testing.T) {
	trusted := map[device.ID]bool{"a0b1c2d3e4f5": true}
	b := event.NewBusFor(func(id device.ID) bool { return trusted[id] })
	defer b.Close()
	r := b.Read()
	for range 10_000 {
		b.Publish("0200000000ff", "s", event.Heard{Text: "open the door"})
		b.Publish("0200000000ff", "s", event.Perceived{Name: "face_detected"})
	}
	b.Publish("0200000000ff", "s", event.RobotOnline{})
	b.Publish("0200000000ff", "", event.RobotSeen{})
	b.Publish("a0b1c2d3e4f5", "s", event.Misheard{})
	b.Publish("", "s", event.Misheard{})
	trusted["0200000000ff"] = true
	b.Publish("0200000000ff", "s", event.Misheard{})
	var got []string
	for range 4 {
		e := must.Value(r.Next(t.Context()))(t)
		got = append(got, string(e.Robot)+" "+event.Kind(e.Event))
	}
	want := []string{"0200000000ff robot_seen", "a0b1c2d3e4f5 misheard", " misheard", "0200000000ff misheard"}
	if !slices.Equal(got, want) {
		t.Errorf("it carries %q", got)
	}
}

// TestAtIsOfTheRunningClock: At has a monotonic clock reading, so that durations since an event remain
// correct when the wall clock is set.
func TestAtIsOfTheRunningClock(t *testing.T) {
	bus := event.NewBus()
	defer bus.Close()
	reader := bus.Read()
	bus.Publish("", "", event.Fault{})
	e, err := reader.Next(t.Context())
	if err != nil || !strings.Contains(e.At.String(), " m=") {
		t.Errorf("At is %s, %v; want a monotonic reading", e.At, err)
	}
}
