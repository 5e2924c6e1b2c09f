package feed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/must"
	"perch/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	robotA device.ID = "a0b1c2d3e4f5"
	robotB device.ID = "a0b1c2d3e4f6"
)

var noon = time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)

// screen returns a viewer of the RFC's kinds of frames. all selects Filter.AllStates.
func screen(f *Feed, all bool) *Viewer {
	return f.Join(Filter{Kinds: RFCKinds(), AllStates: all, Vocabulary: agent.VocabularyRFC})
}

// shows removes all queued frames, and returns the states among them as "session:state".
func (v *Viewer) shows(t testing.TB) (states []string) {
	t.Helper()
	for {
		f, late := v.Pop()
		if late {
			t.Fatal("it is late")
		}
		if f == nil {
			return states
		}
		valid(t, f.Data)
		var b State
		must.Succeed(t, json.Unmarshal(f.Data, &b))
		if b.Type == KindState {
			states = append(states, b.Session+":"+string(b.State))
		}
	}
}

func newFeedOf(bus *event.Bus, board *agent.Board) *Feed {
	return New(Options{Bus: bus, Board: board, Notices: notice.NewStore(&storetest.Table[notice.Notification]{}), Words: agent.StockWords(),
		Log: slog.New(slog.DiscardHandler)})
}

// valid checks a frame against the JSON Schema that package skin publishes.
func valid(t testing.TB, data []byte) {
	t.Helper()
	var v any
	must.Succeed(t, json.Unmarshal(data, &v))
	if err := schema().Validate(v); err != nil {
		t.Errorf("%s is no event of the schema: %v", data, err)
	}
}

var schema = sync.OnceValue(func() *jsonschema.Resolved {
	text, err := os.ReadFile("../skin/schema/vtuber.v1.json")
	var s jsonschema.Schema
	if err = cmp.Or(err, json.Unmarshal(text, &s)); err != nil {
		panic(err)
	}
	s.AnyOf, s.Ref = nil, "#/$defs/event"
	resolved, err := s.Resolve(nil)
	if err != nil {
		panic(err)
	}
	return resolved
})

// TestPassingStatesEnd checks that the states attention and error end after 4 s and 5 s.
func TestPassingStatesEnd(t *testing.T) {
	for end, want := range map[string]struct {
		state string
		after time.Duration
	}{event.EndDone: {"attention", 4 * time.Second}, event.EndFailed: {"error", 5 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			bus, board := event.NewBus(), agent.NewBoard()
			f := newFeedOf(bus, board)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				f.Run(t.Context())
			}()
			synctest.Wait()
			s := screen(f, false)
			bus.Publish("", "s", event.ThinkingStarted{})
			bus.Publish("", "s", event.TurnEnded{End: end})
			synctest.Wait()
			if got := fmt.Sprint(s.shows(t)); got != "[s:thinking s:"+want.state+"]" {
				t.Error(got)
			}
			time.Sleep(want.after - time.Millisecond)
			synctest.Wait()
			if got := s.shows(t); len(got) > 0 {
				t.Error("too early", got)
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if got := fmt.Sprint(s.shows(t)); got != "[s:idle]" || len(f.views) > 0 {
				t.Error(got, len(f.views))
			}
			bus.Close()
			<-ended
		})
	}
}

// TestSkinsFollowTheBoard checks with random events that the latest state of each session that a viewer
// was sent is the state on the board, no matter when the viewer has joined.
func TestSkinsFollowTheBoard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bus, board := event.NewBus(), agent.NewBoard()
		defer bus.Close()
		f := newFeedOf(bus, board)
		at, seq := time.Now(), uint64(0) // Feed.Join uses the current time, too
		var skins []*Viewer
		sent := map[*Viewer]map[string]agent.Shown{}
		join := func() {
			s := screen(f, rapid.Bool().Draw(t, "all"))
			skins, sent[s] = append(skins, s), map[string]agent.Shown{}
		}
		join()
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			if rapid.IntRange(0, 9).Draw(t, "joins") == 0 {
				join()
			}
			at = at.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond)
			f.expire(at)
			seq++
			e := event.Envelope{Seq: seq, At: at, Event: anEvent(t)}
			switch rapid.IntRange(0, 2).Draw(t, "whose") {
			case 0:
				e.Robot, e.Session = robotA, rapid.SampledFrom([]string{"a1", "a2"}).Draw(t, "session")
			case 1:
				e.Session = "vtb_1"
				if _, is := e.Event.(event.RobotOnline); is {
					e.Event = event.Heard{} // there is no robot
				}
			case 2:
				e.Robot, e.Session = robotB, "b1"
			}
			board.HandleEvent(e)
			f.handleEvent(e)
			for _, s := range skins {
				for {
					made, _ := s.Pop()
					if made == nil {
						break
					}
					var b State
					if json.Unmarshal(made.Data, &b) == nil && b.Type == KindState {
						// A frame with the same state may differ in its detail. A session that has ended may
						// begin again as idle.
						if was := sent[s][b.Session]; was == b.State && b.State != agent.Working && b.State != agent.Juggling &&
							b.State != agent.Idle {
							t.Fatalf("%s is sent %s twice", b.Session, was)
						}
						sent[s][b.Session] = b.State
					}
				}
			}
		}
		states, _ := board.Snapshot()
		for _, state := range states {
			for _, s := range skins {
				want := ShownTo(s.filter.AllStates, state.At(at))
				if got := sent[s][state.Session]; got != want && (got != "" || want != agent.Idle) {
					t.Fatalf("%s shows %s, and a skin was sent %q", state.Session, want, got)
				}
			}
		}
	})
}

func anEvent(t *rapid.T) event.Event {
	id := rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "id")
	return rapid.SampledFrom([]event.Event{
		event.RobotOnline{}, event.RobotOffline{}, event.ListeningStarted{}, event.Misheard{}, event.Heard{}, event.ThinkingStarted{},
		event.ToolStatus{ID: id, Name: id, Status: event.ToolRunning}, event.ToolStatus{ID: id, Name: id, Status: event.ToolDone},
		event.ToolStatus{ID: id, Name: id, Status: event.ToolRunning, SubAgent: true}, event.ToolStatus{ID: id, Status: event.ToolFailed},
		event.SpeakingStarted{}, event.Said{}, event.Emotion{Name: "happy"}, event.Asked{ID: id}, event.Answered{ID: id}, event.Fault{},
		event.TurnEnded{End: event.EndDone}, event.TurnEnded{End: event.EndFailed}, event.TurnEnded{End: event.EndCancelled},
		event.TurnEnded{End: event.EndSleep},
		event.Perceived{Name: "face_detected"},
	}).Draw(t, "event")
}

// TestLongNamesAreCut checks that long names and texts are cut between characters.
func TestLongNamesAreCut(t *testing.T) {
	bus := event.NewBus()
	defer bus.Close()
	f := newFeedOf(bus, agent.NewBoard())
	s := screen(f, false)
	f.handleEvent(event.Envelope{Seq: 1, At: noon, Session: "s", Event: event.ToolStatus{
		ID: strings.Repeat("é", 500), Name: strings.Repeat("é", 500), Status: event.ToolRunning, Detail: strings.Repeat("é", 5000)}})
	for {
		made, _ := s.Pop()
		if made == nil {
			break
		}
		if valid(t, made.Data); len(made.Data) > 2000 || strings.Contains(string(made.Data), "\ufffd") {
			t.Errorf("%d bytes", len(made.Data))
		}
	}
}

// TestFaceIsSentAgain checks that the same face is sent again after its session was idle, even if only
// viewers of the RFC's seven states saw the session as idle.
func TestFaceIsSentAgain(t *testing.T) {
	for _, rest := range [][]event.Event{
		{event.TurnEnded{End: event.EndCancelled}}, {event.TurnEnded{}, event.ListeningStarted{}}, {event.RobotOffline{}, event.RobotOnline{}},
	} {
		bus, board := event.NewBus(), agent.NewBoard()
		f := newFeedOf(bus, board)
		v := f.Join(Filter{Kinds: []string{KindFace}})
		turn := []event.Event{event.RobotOnline{}, event.ThinkingStarted{}, event.Emotion{Name: "happy"}, event.Emotion{Name: "happy"}}
		for i, e := range slices.Concat(turn, rest, turn[1:]) {
			f.handleEvent(event.Envelope{Seq: uint64(i + 1), At: noon, Robot: robotA, Session: "s", Event: e})
		}
		n := 0
		for f, _ := v.Pop(); f != nil; f, _ = v.Pop() {
			n++
		}
		if n != 2 {
			t.Errorf("%v: the face is sent %d times, want 2", rest, n)
		}
		bus.Close()
	}
}
