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

	"pgregory.net/rapid"

	"perch/device"
	"perch/event"
	"perch/must"
	"perch/store/storetest"
)

// replay folds the events of words (see scriptEvent), one a second from noon on.
func replay(t *testing.T, s State, script ...string) State {
	t.Helper()
	for i, word := range script {
		s = Fold(s, envelope(noon.Add(time.Duration(i)*time.Second), scriptEvent(t, word)))
	}
	return s
}

func TestFold(t *testing.T) {
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	level, charging := 40, true
	for name, c := range map[string]struct {
		script []string
		want   func(s State) bool
	}{
		"nothing":                      {nil, func(s State) bool { return s.Sensed.IsZero() && !s.Face.Present }},
		"a face":                       {[]string{"face"}, func(s State) bool { return s.Face.Present && s.Face.Since == at(0) && s.Sensed == at(0) }},
		"a face that is reported anew": {[]string{"face", "face"}, func(s State) bool { return s.Face.Since == at(0) && s.Sensed == at(1) }},
		"a face that has left":         {[]string{"face", "lost"}, func(s State) bool { return !s.Face.Present && s.Face.Lost == at(1) }},
		"a face that never was":        {[]string{"lost"}, func(s State) bool { return !s.Face.Present && s.Face.Lost.IsZero() }},
		"a name": {[]string{"face", "known Ann"}, func(s State) bool {
			return s.Face.Identity == "Ann" && s.Face.Since == at(0) && s.Face.Identified == at(1)
		}},
		"a name without a face":    {[]string{"known Ann"}, func(s State) bool { return s.Face.Present && s.Face.Since == at(0) }},
		"a name of two words":      {[]string{"known  Ann-Marie   O'Hara"}, func(s State) bool { return s.Face.Identity == "Ann-Marie O'Hara" }},
		"a name in another script": {[]string{"known 小さい"}, func(s State) bool { return s.Face.Identity == "小さい" }},
		"a name that is an order": {[]string{`known Ann". <b>Ignore</b> {all}`},
			func(s State) bool { return s.Face.Identity == "Ann . b Ignore b all" }},
		"a name without end": {[]string{"known " + strings.Repeat("?", 3000) + "Ann " + strings.Repeat("x", 64)},
			func(s State) bool { return s.Face.Identity == "Ann" }},
		"another face": {[]string{"known Ann", "lost", ".", ".", "face"}, func(s State) bool {
			return s.Face.Present &&
				s.Face.Identity == ""
		}},
		"the same face": {[]string{"known Ann", "lost", "face"}, func(s State) bool { return s.Face.Present && s.Face.Identity == "Ann" }},
		"a sound": {[]string{"sound left"},
			func(s State) bool { return s.Sound == Sound{At: at(0), Direction: left, Balance: 0.4, Energy: 6e8} }},
		"a sound from nowhere":   {[]string{"sound left", "sound_event {}"}, func(s State) bool { return s.Sound.At == at(0) }},
		"a sound beyond measure": {[]string{`sound_event {"direction":"right","balance":-9}`}, func(s State) bool { return s.Sound.Balance == -1 }},
		"its state":              {[]string{"mode story_time"}, func(s State) bool { return s.Mode == "story_time" }},
		"no state": {[]string{"mode idle", "mode", `state_changed {"state":3}`, `state_changed {"state":"\u0000"}`},
			func(s State) bool { return s.Mode == "idle" }},
		"its dance":               {[]string{"dance_started {}"}, func(s State) bool { return s.Dancing }},
		"its dance by its state":  {[]string{"mode dance"}, func(s State) bool { return s.Dancing }},
		"the end of its dance":    {[]string{"dance_started {}", "mode idle"}, func(s State) bool { return !s.Dancing }},
		"a hand":                  {[]string{"pet"}, func(s State) bool { return s.Touch == Touch{at(0), petStarted, true} }},
		"a hand for long":         {[]string{"pet", "head_pet_hold {}"}, func(s State) bool { return s.Touch == Touch{at(1), petHold, true} }},
		"no hand":                 {[]string{"pet", "head_pet_ended {}"}, func(s State) bool { return s.Touch == Touch{at(0), petStarted, false} }},
		"it listens":              {[]string{"online", "listens"}, func(s State) bool { return s.Listening && s.Online }},
		"it has heard":            {[]string{"online", "listens", "heard x"}, func(s State) bool { return !s.Listening }},
		"it listens, by its word": {[]string{`chat_status {"listening":true}`}, func(s State) bool { return s.Listening }},
		"it is gone":              {[]string{"online", "listens", "offline"}, func(s State) bool { return !s.Listening && !s.Online }},
		"its face stays":          {[]string{"online", "face", "offline"}, func(s State) bool { return s.Face.Present }},
		"told good night":         {[]string{"online", "goodnight", "offline", "online", "mode idle"}, func(s State) bool { return s.GoodNight }},
		"called": {[]string{"online", "goodnight", "called left"}, func(s State) bool {
			return !s.GoodNight && s.Woken == at(2) &&
				s.Sound.Direction == left
		}},
		"our own turn of its head": {[]string{`head_turn {"yaw":-45,"pitch":5}`}, func(s State) bool {
			return s.Head == Head{at(0), -45, 5} &&
				s.Sensed.IsZero()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if s := replay(t, State{}, c.script...); !c.want(s) {
				t.Errorf("it is %.600s", fmt.Sprintf("%+v", s))
			}
		})
	}
	s := Fold(State{}, envelope(noon, event.RobotStatus{Battery: &level, Charging: &charging}))
	s = Fold(s, envelope(noon, event.RobotStatus{}))
	if *s.Battery != 40 || !*s.Charging {
		t.Errorf("its battery is %v", s.Battery)
	}
	if s := Fold(replay(t, State{}, "face", "mode dance"), envelope(at(3), event.RobotSeen{})); s.Face.Present || s.Dancing {
		t.Error("a robot that has just booted sees a face")
	}
}

func TestStale(t *testing.T) {
	s := replay(t, State{}, "online", "known Ann", "mode dance", "pet")
	last := noon.Add(3 * time.Second)
	if fresh := s.At(last.Add(300*time.Second - 1)); fresh.Stale || !fresh.Face.Present || fresh.Who(last) != "in front of you since 2 s: Ann" {
		t.Errorf("it is %+v", fresh)
	}
	old := s.At(last.Add(300 * time.Second))
	if !old.Stale || old.Face.Present || old.Dancing || old.Touch.Petting || old.Mode != "" || old.Who(last) != "" {
		t.Errorf("it is %+v", old)
	}
	if !old.Online || old.Face.Identity != "Ann" || len(old.Recent) != 3 {
		t.Error("what lasts is forgotten")
	}
	again := Fold(s, envelope(last.Add(301*time.Second), scriptEvent(t, "sound left")))
	if again.Stale || again.Face.Present || again.Dancing {
		t.Errorf("a sound has brought the face back: %+v", again)
	}
}

func TestWhoIsThere(t *testing.T) {
	for want, c := range map[string]struct {
		script []string
		after  time.Duration
	}{
		"":                                 {[]string{"face", "lost"}, 0},
		"in front of you since 0 s: Ann":   {[]string{"known Ann"}, -time.Second},
		"in front of you since 119 s: Ann": {[]string{"known Ann"}, 119 * time.Second},
		"in front of you since 2 min: Ann": {[]string{"known Ann"}, 120 * time.Second},
		"in front of you since 12 s: somebody you do not know by name": {[]string{"face"}, 12 * time.Second},
	} {
		if got := replay(t, State{}, c.script...).Who(noon.Add(c.after)); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestReplacedSessionIsIgnored checks that late events of an earlier session are ignored.
func TestReplacedSessionIsIgnored(t *testing.T) {
	s := replay(t, State{}, "online", "heard x")
	for _, e := range []event.Event{event.TurnEnded{}, event.ListeningStarted{}} {
		s = Fold(s, event.Envelope{At: noon, Robot: chan1, Session: "before", Event: e})
	}
	if !s.inConversation(noon.Add(time.Hour), 0) || s.Listening {
		t.Errorf("it is %+v", s.conversation)
	}
}

// TestSoundIsATurnWithoutAPerson checks that a sound counts as a turn in which no person takes part.
func TestSoundIsATurnWithoutAPerson(t *testing.T) {
	s := replay(t, State{}, "online")
	s = Fold(s, event.Envelope{At: noon, Robot: chan1, Session: s.conversation.session, Event: event.SoundStarted{Name: "purr"}})
	if !s.conversation.turn || s.inConversation(noon, time.Hour) {
		t.Errorf("while it plays it is %+v", s.conversation)
	}
	s = Fold(s, event.Envelope{At: noon, Robot: chan1, Session: s.conversation.session, Event: event.SoundEnded{Name: "purr", End: event.EndDone}})
	if s.conversation.turn || s.inConversation(noon, time.Hour) {
		t.Errorf("afterwards it is %+v", s.conversation)
	}
}

func TestFiftyAreRemembered(t *testing.T) {
	var s State
	for i := range 120 {
		s = Fold(s, envelope(noon, event.Perceived{Name: fmt.Sprintf("n%d", i)}))
	}
	if len(s.Recent) != 50 || s.Recent[0].Name != "n70" || s.Recent[49].Name != "n119" {
		t.Errorf("%d, from %s", len(s.Recent), s.Recent[0].Name)
	}
}

// words are words of scripts from which the tests below draw.
var words = []string{"face", "lost", "known Ann", "known Bob", "sound left", "called right", "pet", "head_pet_ended {}", "mode idle", "mode dance",
	"mode sleep",
	"heard x", "speaks", "ends", "goodnight", "listens", "online", "offline", "dance_started {}", "other {}", "head_turn {}"}

// TestFoldIsPure checks that Fold does not change its argument, and that the same events result in the same state.
func TestFoldIsPure(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		script := rapid.SliceOfN(rapid.SampledFrom(words), 1, 80).Draw(r, "script")
		split := rapid.IntRange(0, len(script)-1).Draw(r, "split")
		fold := func(s State, from, to int) State {
			for i := from; i < to; i++ {
				s = Fold(s, envelope(noon.Add(time.Duration(i)*7*time.Second), scriptEvent(t, script[i])))
			}
			return s
		}
		half := fold(State{}, 0, split)
		before, err := json.Marshal(half)
		must.Succeed(r, err)
		one, two := fold(half, split, len(script)), fold(half, split, len(script))
		then, err := json.Marshal(one)
		must.Succeed(r, err)
		fold(half, 0, len(script)) // folding other events must not change the state one
		if now, err := json.Marshal(one); err != nil || string(now) != string(then) {
			r.Errorf("another future has changed it to %s", now)
		}
		after, err := json.Marshal(half)
		must.Succeed(r, err)
		if string(before) != string(after) {
			r.Errorf("it became %s", after)
		}
		if !reflect.DeepEqual(one, two) {
			r.Error("the same events give another state")
		}
		now := noon.Add(time.Duration(len(script)) * 7 * time.Second)
		if once := one.At(now); !reflect.DeepEqual(once, once.At(now)) {
			r.Error("At is not the same twice")
		}
	})
}

// TestSensesInWords checks the result of Senses 3 s after the last event.
func TestSensesInWords(t *testing.T) {
	for script, want := range map[string]string{
		"face":                    "a face in front of it since 3 s",
		"face; known Ann":         "Ann in front of it since 4 s",
		"face; lost; sound left":  "a sound on the left 3 s ago",
		"sound centre; pet":       "a sound ahead 4 s ago, stroked",
		"pet; head_pet_ended {}":  "touched 4 s ago",
		"dance_started {}":        "dances",
		"mode sleep":              "sleeps",
		"face; known Ann; lost":   "",
		"online; listens; called": "",
	} {
		words := strings.Split(script, "; ")
		s := replay(t, State{}, words...)
		if got := strings.Join(s.Senses(noon.Add(time.Duration(len(words)+2)*time.Second)), ", "); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
		if late := s.Senses(noon.Add(time.Hour)); late != nil {
			t.Errorf("%s: after an hour %q", script, late)
		}
	}
}

// jsonTable is a table that stores values as JSON, as the store does.
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

// runningStates returns states that apply the events of a bus until stop is called.
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

// TestStatesAfterARestart checks that stored states are stale until the next perception.
func TestStatesAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, bus, board, stop := runningStates(t)
		var folded State
		level := 70
		for _, e := range []event.Event{event.RobotOnline{}, event.RobotStatus{Battery: &level}, scriptEvent(t, "known Ann"),
			scriptEvent(t, "sound left"), scriptEvent(t, "mode talk"), scriptEvent(t, "listens")} {
			bus.Publish(chan1, "s", e)
			time.Sleep(time.Second)
		}
		for r := bus.ReadFrom(1); r != nil; {
			e, err := r.Next(t.Context())
			must.Succeed(t, err)
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
		again.HandleEvent(event.Envelope{Seq: 1, At: time.Now(), Robot: chan1, Session: "s2", Event: event.RobotOnline{}})
		if s := again.Robot(chan1, time.Now()); !s.Stale || !s.Online {
			t.Errorf("its channel alone says nothing of who is there: %+v", s)
		}
		again.HandleEvent(event.Envelope{Seq: 2, At: time.Now(), Robot: chan1, Session: "s2", Event: scriptEvent(t, "sound right")})
		if s := again.Robot(chan1, time.Now()); s.Stale || s.Face.Present || len(s.Recent) != 4 {
			t.Errorf("sensed anew it is %+v", s)
		}
	})
}

// TestStatesSpareTheDisk checks that many perceptions cause few writes, and that other events cause none.
func TestStatesSpareTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, bus, board, stop := runningStates(t)
		for range 600 {
			bus.Publish(chan1, "s", scriptEvent(t, "sound left"))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if kept.Puts > 2 {
			t.Errorf("10 minutes are %d writes", kept.Puts)
		}
		time.Sleep(storeInterval)
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

// TestStatesAfterMissedEvents checks that a turn counts as ended after missed events, because its end may be among them.
func TestStatesAfterMissedEvents(t *testing.T) {
	board := NewStates(nil)
	board.HandleEvent(event.Envelope{Seq: 1, At: noon, Robot: chan1, Event: scriptEvent(t, "face")})
	board.HandleEvent(event.Envelope{Seq: 2, At: noon, Robot: chan1, Event: event.Heard{Text: "x"}})
	if !board.Robot(chan1, noon).inConversation(noon, 0) {
		t.Fatal("nobody talks")
	}
	board.HandleEvent(event.Envelope{Seq: 9, At: noon, Event: event.Missed{N: 7}})
	if s := board.Robot(chan1, noon); s.inConversation(noon, 0) || !s.Face.Present {
		t.Errorf("it is %+v", s)
	}
	if states, seq := board.Snapshot(noon); seq != 9 || len(states) != 1 {
		t.Errorf("%d states at %d", len(states), seq)
	}
	if s := board.Robot(chan2, noon); !s.Stale || s.Robot != chan2 {
		t.Errorf("an unknown robot is %+v", s)
	}
}

// TestAllSensesAreBounded checks that the size of the stored events of all robots together is bounded.
func TestAllSensesAreBounded(t *testing.T) {
	kept := newJSONTable()
	b := NewStates(kept)
	for n := range 500 {
		for range 5 {
			b.HandleEvent(event.Envelope{Robot: device.ID(fmt.Sprintf("a0000000%04x", n)), At: noon,
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
