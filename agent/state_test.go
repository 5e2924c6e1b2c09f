package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// log returns the events as envelopes of one session, one second apart.
func log(events ...event.Event) (all []event.Envelope) {
	for i, e := range events {
		all = append(all, event.Envelope{Seq: uint64(i + 1), At: noon.Add(time.Duration(i) * time.Second), Robot: "a0b1c2d3e4f5", Session: "s1",
			Event: e})
	}
	return all
}

func fold(s agent.State, all []event.Envelope) agent.State {
	for _, e := range all {
		s = agent.Fold(s, e)
	}
	return s
}

func running(id string) event.ToolStatus {
	return event.ToolStatus{ID: id, Name: "x", Status: event.ToolRunning}
}

func done(id string) event.ToolStatus {
	return event.ToolStatus{ID: id, Name: "x", Status: event.ToolDone}
}

func failed(id string) event.ToolStatus {
	return event.ToolStatus{ID: id, Name: "x", Status: event.ToolFailed}
}

func TestWhatShows(t *testing.T) {
	online, listening, heard := event.RobotOnline{}, event.ListeningStarted{}, event.Heard{Text: "x"}
	for name, c := range map[string]struct {
		events []event.Event
		after  time.Duration // time after the last event
		want   agent.Shown
	}{
		"nothing yet":         {nil, 0, agent.Idle},
		"channel open":        {[]event.Event{online}, 0, agent.Idle},
		"listening":           {[]event.Event{online, listening}, 0, agent.Listening},
		"heard":               {[]event.Event{online, listening, heard}, 0, agent.Thinking},
		"misheard":            {[]event.Event{online, listening, event.Misheard{}}, 0, agent.Listening},
		"thinking":            {[]event.Event{online, event.ThinkingStarted{}}, 0, agent.Thinking},
		"one tool":            {[]event.Event{online, heard, running("1")}, 0, agent.Working},
		"two tools":           {[]event.Event{online, heard, running("1"), running("2")}, 0, agent.Juggling},
		"one of two done":     {[]event.Event{online, heard, running("1"), running("2"), done("1")}, 0, agent.Working},
		"all tools done":      {[]event.Event{online, heard, running("1"), done("1")}, 0, agent.Thinking},
		"a tool failed":       {[]event.Event{online, heard, running("1"), failed("1")}, 4 * time.Second, agent.Failed},
		"failed long ago":     {[]event.Event{online, heard, running("1"), failed("1")}, 5 * time.Second, agent.Thinking},
		"tried again":         {[]event.Event{online, heard, running("1"), failed("1"), running("2")}, 0, agent.Working},
		"one of two failed":   {[]event.Event{online, heard, running("1"), running("2"), failed("1")}, 0, agent.Failed},
		"said that it failed": {[]event.Event{online, heard, running("1"), failed("1"), event.SpeakingStarted{}}, 0, agent.Speaking},
		"a sub-agent":         {[]event.Event{online, heard, event.ToolStatus{ID: "1", Status: event.ToolRunning, SubAgent: true}}, 0, agent.Juggling},
		"speaking":            {[]event.Event{online, heard, event.SpeakingStarted{}}, 0, agent.Speaking},
		"a question":          {[]event.Event{online, heard, event.SpeakingStarted{}, event.Asked{ID: "q"}, listening}, 0, agent.Notification},
		"answered":            {[]event.Event{online, event.Asked{ID: "q"}, listening, event.Answered{ID: "q"}, event.ThinkingStarted{}}, 0, agent.Thinking},
		"turn over":           {[]event.Event{online, heard, event.SpeakingStarted{}, event.TurnEnded{End: event.EndDone}}, 3 * time.Second, agent.Attention},
		"a while after":       {[]event.Event{online, heard, event.SpeakingStarted{}, event.TurnEnded{End: event.EndDone}}, 4 * time.Second, agent.Idle},
		"listening gives way": {[]event.Event{online, heard, event.TurnEnded{End: event.EndDone}, listening}, 0, agent.Listening},
		"hung up":             {[]event.Event{online, heard, event.TurnEnded{End: event.EndHangUp}, event.RobotOffline{}}, 0, agent.Attention},
		"hung up a while ago": {[]event.Event{online, heard, event.TurnEnded{End: event.EndHangUp}, event.RobotOffline{}}, 4 * time.Second,
			agent.Idle},
		"cancelled":               {[]event.Event{online, heard, event.SpeakingStarted{}, event.TurnEnded{End: event.EndCancelled}}, 0, agent.Idle},
		"failed":                  {[]event.Event{online, heard, event.Fault{}, event.TurnEnded{End: event.EndFailed}}, 4 * time.Second, agent.Failed},
		"failed a while ago":      {[]event.Event{online, heard, event.Fault{}, event.TurnEnded{End: event.EndFailed}}, 5 * time.Second, agent.Idle},
		"good night":              {[]event.Event{online, heard, event.TurnEnded{End: event.EndSleep}, event.RobotOffline{}}, 5 * time.Second, agent.Sleeping},
		"attention before sleep":  {[]event.Event{online, heard, event.TurnEnded{End: event.EndSleep}}, time.Second, agent.Attention},
		"woken":                   {[]event.Event{online, event.TurnEnded{End: event.EndSleep}, event.RobotOffline{}, online, listening}, 0, agent.Listening},
		"closed while listening":  {[]event.Event{online, listening, event.RobotOffline{}}, 0, agent.Idle},
		"music":                   {[]event.Event{online, listening, event.Music{Name: "jazz", State: event.MusicPlaying}}, 0, agent.Idle},
		"music pauses for a talk": {[]event.Event{online, event.Music{Name: "jazz", State: event.MusicPlaying}, event.Music{State: event.MusicPaused}, listening}, 0, agent.Listening},
		"music broken off": {[]event.Event{online, event.Music{Name: "jazz", State: event.MusicPlaying},
			event.Music{Name: "jazz", State: event.MusicStopped, Reason: "gone"}}, 4 * time.Second, agent.Failed},
		"a sound":         {[]event.Event{online, listening, event.SoundStarted{Name: "purr"}}, 0, agent.Speaking},
		"a sound over":    {[]event.Event{online, listening, event.SoundStarted{}, event.SoundEnded{End: event.EndDone}}, 0, agent.Idle},
		"a sound cut off": {[]event.Event{online, event.SoundStarted{}, event.SoundEnded{End: event.EndCancelled}}, 0, agent.Idle},
		"a sound over in realtime": {[]event.Event{online, listening, event.SoundStarted{}, event.SoundEnded{End: event.EndDone}, listening}, 0,
			agent.Listening},
		"a sound failed": {[]event.Event{online, event.SoundStarted{}, event.Fault{}, event.SoundEnded{End: event.EndFailed}}, 4 * time.Second,
			agent.Failed},
		"reported":                   {[]event.Event{event.StateTold{State: "working"}}, 0, agent.Working},
		"reported, and no tool left": {[]event.Event{event.StateTold{State: "working"}, running("1"), done("1")}, 0, agent.Working},
		"reported, and two tools":    {[]event.Event{running("1"), event.StateTold{State: "working"}, running("2")}, 0, agent.Working},
		"reported under a question": {[]event.Event{event.StateTold{State: "working"}, event.Asked{ID: "q"}, event.StateTold{State: "idle"}}, 0,
			agent.Notification},
		"reported, after the question": {[]event.Event{event.Asked{ID: "q"}, event.StateTold{State: "attention"}, event.Answered{ID: "q"}}, time.Hour,
			agent.Attention},
		"tools do not outlive turns": {[]event.Event{online, running("1"), event.TurnEnded{End: event.EndCancelled}, running("2")}, 0, agent.Working},
	} {
		t.Run(name, func(t *testing.T) {
			all := log(c.events...)
			last := noon
			if len(all) > 0 {
				last = all[len(all)-1].At
			}
			if got := fold(agent.State{}, all).At(last.Add(c.after)); got != c.want {
				t.Errorf("shows %s, want %s", got, c.want)
			}
		})
	}
}

func TestExpiresAt(t *testing.T) {
	s := fold(agent.State{}, log(event.RobotOnline{}, event.TurnEnded{End: event.EndDone}))
	due := s.ExpiresAt()
	if s.At(due.Add(-1)) != agent.Attention || s.At(due) != agent.Idle {
		t.Errorf("due at %s: %s before, %s then", due, s.At(due.Add(-1)), s.At(due))
	}
	if !fold(agent.State{}, log(event.RobotOnline{})).ExpiresAt().IsZero() {
		t.Error("an idle state is due")
	}
}

// TestEventsOfOtherSessions tests that a late event of a replaced session changes nothing,
// and that RobotOffline of any session takes the robot offline.
func TestEventsOfOtherSessions(t *testing.T) {
	before := fold(agent.State{}, log(event.RobotOnline{}, event.ListeningStarted{}))
	late := agent.Fold(before, event.Envelope{Seq: 9, At: noon, Robot: "a0b1c2d3e4f5", Session: "s0", Event: event.SpeakingStarted{}})
	gone := agent.Fold(before, event.Envelope{Seq: 9, At: noon, Robot: "a0b1c2d3e4f5", Session: "s2", Event: event.RobotOffline{}})
	if !late.Online || late.At(noon) != agent.Listening || gone.Online || gone.At(noon) != agent.Idle {
		t.Errorf("late: %+v, gone: %+v", late, gone)
	}
}

// TestPresence tests that a robot that is connected by MQTT is online between its talks, and
// is gone when the connection ends between talks.
func TestPresence(t *testing.T) {
	b := agent.NewBoard()
	for i, step := range []struct {
		session       string
		event         event.Event
		online, talks bool
		gone          bool
	}{
		{"", event.RobotConnected{}, true, false, false},
		{"s1", event.RobotOnline{}, true, true, false},
		{"s1", event.ListeningStarted{}, true, true, false},
		{"s1", event.RobotOffline{}, true, false, false},
		{"s2", event.RobotOnline{}, true, true, false},
		{"", event.RobotDisconnected{}, true, true, false}, // the talk continues
		{"s2", event.RobotOffline{}, false, false, false},
		{"", event.RobotConnected{}, true, false, false},
		{"", event.RobotDisconnected{}, false, false, true},
		{"", event.RobotConnected{}, true, false, false},
	} {
		b.HandleEvent(event.Envelope{Seq: uint64(i + 1), At: noon, Robot: "a0b1c2d3e4f5", Session: step.session, Event: step.event})
		if s := b.Robot("a0b1c2d3e4f5"); s.Online != step.online || s.Talking != step.talks || s.Gone != step.gone {
			t.Errorf("step %d, %T: online %v, talking %v, gone %v", i, step.event, s.Online, s.Talking, s.Gone)
		}
	}
}

// TestDisconnectionOfAnUnknownRobot tests that Fold creates no state for the disconnection of
// an unknown robot, because the board creates none either.
func TestDisconnectionOfAnUnknownRobot(t *testing.T) {
	s := agent.Fold(agent.State{}, event.Envelope{Seq: 1, At: noon, Robot: "a0b1c2d3e4f5", Event: event.RobotDisconnected{}})
	if s.Gone || s.Robot != "" {
		t.Errorf("%+v", s)
	}
}

// anEvent draws a random event of a robot or session.
func anEvent(t *rapid.T) event.Event {
	id := rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "id")
	return rapid.SampledFrom([]event.Event{
		event.RobotOnline{}, event.RobotOffline{}, event.RobotConnected{}, event.RobotDisconnected{},
		event.ListeningStarted{}, event.Heard{}, event.Misheard{}, event.ThinkingStarted{},
		running(id), done(id), failed(id), event.ToolStatus{ID: id, Status: event.ToolRunning, SubAgent: true},
		event.SpeakingStarted{}, event.Said{}, event.SoundStarted{}, event.SoundEnded{End: event.EndDone}, event.Emotion{Name: "happy"},
		event.Asked{ID: id}, event.Answered{ID: id},
		event.TurnEnded{End: event.EndDone}, event.TurnEnded{End: event.EndSleep}, event.TurnEnded{End: event.EndCancelled},
		event.TurnEnded{End: event.EndFailed}, event.Fault{}, event.StateTold{State: "juggling", SubAgents: 2},
	}).Draw(t, "event")
}

// sessionOf returns the session to publish with an event, and the event. The session is ""
// for events about a robot's MQTT connection.
func sessionOf(session string, e event.Event) (string, event.Event) {
	switch e.(type) {
	case event.RobotConnected, event.RobotDisconnected:
		return "", e
	}
	return session, e
}

// TestFoldOfALogIsTheFoldOfAnySplit tests that folding a log in two steps gives the same state
// as folding it at once. The state after the first step must not change when other events are
// folded onto it, which finds states that share memory.
func TestFoldOfALogIsTheFoldOfAnySplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var events []event.Event
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			events = append(events, anEvent(t))
		}
		all := log(events...)
		split := rapid.IntRange(0, len(all)).Draw(t, "split")
		kept := fold(agent.State{}, all[:split])
		before := fmt.Sprintf("%+v", kept)
		for range 3 { // fold other events onto the same state
			fold(kept, log(anEvent(t), anEvent(t)))
		}
		if after := fmt.Sprintf("%+v", kept); after != before {
			t.Fatalf("a kept state changed from %s to %s", before, after)
		}
		whole, parts := fold(agent.State{}, all), fold(kept, all[split:])
		if fmt.Sprintf("%+v", whole) != fmt.Sprintf("%+v", parts) {
			t.Fatalf("whole %+v, in parts %+v", whole, parts)
		}
	})
}

// TestBoardAgreesWithTheFold tests that a snapshot and the events after its sequence number
// give the same state as all events from the beginning.
func TestBoardAgreesWithTheFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bus := event.NewBus()
		defer bus.Close()
		board, all := agent.NewBoard(), bus.Read()
		follow := bus.Read()
		publish := func(n int) {
			for range n {
				session, e := sessionOf(rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "session"), anEvent(t))
				bus.Publish("a0b1c2d3e4f5", session, e)
				taken := must.Value(follow.Next(t.Context()))(t)
				board.HandleEvent(taken)
			}
		}
		publish(rapid.IntRange(0, 20).Draw(t, "before"))
		states, seq := board.Snapshot()
		late, rest := agent.State{}, bus.ReadFrom(seq+1)
		if len(states) > 0 {
			late = states[0]
		}
		publish(rapid.IntRange(0, 20).Draw(t, "after"))
		whole := agent.State{}
		for range bus.Seq() {
			e, _ := all.Next(t.Context())
			whole = agent.Fold(whole, e)
		}
		for range bus.Seq() - seq {
			e, _ := rest.Next(t.Context())
			late = agent.Fold(late, e)
		}
		if fmt.Sprintf("%+v", whole) != fmt.Sprintf("%+v", late) {
			t.Fatalf("from the beginning %+v, from the snapshot %+v", whole, late)
		}
	})
}

// TestANotificationMakesNoState tests that a notification creates no state, because it may
// name any session and the number of states is limited.
func TestANotificationMakesNoState(t *testing.T) {
	b := agent.NewBoard()
	b.HandleEvent(event.Envelope{Seq: 1, Session: "unknown", Event: event.Notification{ID: "a"}})
	if states, seq := b.Snapshot(); len(states) > 0 || seq != 1 {
		t.Errorf("%+v at %d", states, seq)
	}
}

// TestSessionsThatAreOverMakeRoom tests that idle sessions without a robot are removed when
// new sessions begin, and that busy sessions are not removed.
func TestSessionsThatAreOverMakeRoom(t *testing.T) {
	b, seq := agent.NewBoard(), uint64(0)
	happens := func(session string, at time.Time, e event.Event) {
		seq++
		b.HandleEvent(event.Envelope{Seq: seq, At: at, Session: session, Event: e})
	}
	happens("busy", noon, event.ThinkingStarted{})
	for i := range 3000 {
		name := fmt.Sprint(i)
		happens(name, noon, event.ThinkingStarted{})
		happens(name, noon, event.TurnEnded{End: event.EndCancelled})
	}
	happens("late", noon, event.ThinkingStarted{})
	states, _ := b.Snapshot()
	thinking := 0
	for _, s := range states {
		if s.At(noon) == agent.Thinking {
			thinking++
		}
	}
	if len(states) > 101 || thinking != 2 {
		t.Errorf("%d states, of which %d think", len(states), thinking)
	}
}

// TestBoardDropsOldStates tests that robots are removed after a week offline, and sessions
// without a robot after a day without an event. Online robots are not removed. If there are
// too many states, the robot that has been offline for longest is removed.
func TestBoardDropsOldStates(t *testing.T) {
	b, seq := agent.NewBoard(), uint64(0)
	happens := func(robot device.ID, session string, at time.Time, e event.Event) {
		seq++
		b.HandleEvent(event.Envelope{Seq: seq, At: at, Robot: robot, Session: session, Event: e})
	}
	names := func() (all []string) {
		states, _ := b.Snapshot()
		for _, s := range states {
			all = append(all, string(s.Robot)+s.Session)
		}
		return all
	}
	const here, gone, asleep device.ID = "a00000000001", "a00000000002", "a00000000003"
	for _, id := range []device.ID{here, gone, asleep} {
		happens(id, "s", noon, event.RobotOnline{})
	}
	happens(gone, "s", noon, event.RobotOffline{})
	happens(asleep, "s", noon, event.TurnEnded{End: event.EndSleep})
	happens(asleep, "s", noon, event.RobotOffline{})
	happens("", "stuck", noon, event.ThinkingStarted{})
	happens("", "alive", noon, event.ThinkingStarted{})
	happens("", "alive", noon.Add(23*time.Hour), event.ThinkingStarted{})
	happens("", "alive", noon.Add(25*time.Hour), event.ThinkingStarted{})
	if got := fmt.Sprint(names()); got != "[alive a00000000001s a00000000002s a00000000003s]" {
		t.Errorf("after a day there are %s", got)
	}
	if got := b.Robot(asleep).At(noon.Add(25 * time.Hour)); got != agent.Sleeping {
		t.Errorf("who sleeps is %s", got)
	}
	const left device.ID = "a00000000004"
	happens(left, "s", noon.Add(25*time.Hour), event.RobotOnline{})
	happens(left, "", noon.Add(25*time.Hour), event.RobotForgotten{})
	happens(left, "", noon.Add(25*time.Hour), event.RobotDisconnected{})
	if got := fmt.Sprint(names()); strings.Contains(got, string(left)) {
		t.Errorf("whom its owner has forgotten is there: %s", got)
	}
	happens("", "new", noon.Add(8*24*time.Hour), event.ThinkingStarted{})
	if got := fmt.Sprint(names()); got != "[new a00000000001s]" {
		t.Errorf("after a week there are %s", got)
	}
	for i := range 3000 {
		id, at := device.ID(fmt.Sprintf("b%011d", i)), noon.Add(8*24*time.Hour+time.Duration(i)*time.Millisecond)
		happens(id, "s", at, event.RobotOnline{})
		happens(id, "s", at, event.RobotOffline{})
	}
	all := names()
	if len(all) != 2000 || all[0] != "new" || !slices.Contains(all, "a00000000001s") || !slices.Contains(all, "b00000002999s") ||
		slices.Contains(all, "b00000000000s") {
		t.Errorf("there are %d, from %s to %s", len(all), all[0], all[len(all)-1])
	}
}

// TestFollowersAgreeWithTheBoard tests with random events that a follower that starts at any
// time, and may lose events, returns changes that lead to the board's states. A follower
// returns no change before its time.
func TestFollowersAgreeWithTheBoard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		board, now, seq := agent.NewBoard(), noon, uint64(0)
		type reader struct {
			*agent.Follower
			shown map[string]agent.Shown
			deaf  bool // whether the follower gets no events, as if they were lost
		}
		var readers []*reader
		take := func(r *reader, changes []agent.Change) {
			for _, c := range changes {
				if c.At.After(now) {
					t.Fatalf("%s at %s, which is to come", c.State.Key(), c.At)
				}
				r.shown[c.State.Key()] = c.State.At(c.At)
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			if rapid.IntRange(0, 7).Draw(t, "joins") == 0 {
				r := &reader{board.NewFollower(now), map[string]agent.Shown{}, false}
				for _, s := range r.States() {
					r.shown[s.Key()] = s.At(now)
				}
				readers = append(readers, r)
			}
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 3000, 4000, 5000, 90_000_000, 700_000_000}).Draw(t, "ms")) * time.Millisecond)
			seq++
			e := event.Envelope{Seq: seq, At: now, Event: anEvent(t), Session: rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "session")}
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1, 2, 3:
				e.Robot = "a0b1c2d3e4f5"
			case 4:
				e.Robot = "a0b1c2d3e4f6"
			case 5:
				e.Robot, e.Session, e.Event = "a0b1c2d3e4f5", "", event.RobotForgotten{}
			}
			e.Session, e.Event = sessionOf(e.Session, e.Event)
			board.HandleEvent(e)
			for _, r := range readers {
				switch rapid.IntRange(0, 9).Draw(t, "reader") {
				case 0:
					r.deaf = true
				case 1:
					take(r, r.HandleEvent(event.Envelope{Seq: 0, At: now, Event: event.Missed{N: 1}}))
					r.deaf = false
				case 2, 3:
					take(r, r.Expire(now))
				}
				if !r.deaf {
					take(r, r.HandleEvent(e))
				}
			}
		}
		want := map[string]agent.Shown{}
		states, at := board.Snapshot()
		for _, s := range states {
			want[s.Key()] = s.At(now)
		}
		for i, r := range readers {
			if r.deaf {
				take(r, r.HandleEvent(event.Envelope{At: now, Event: event.Missed{N: 1}}))
			}
			take(r, r.Expire(now))
			if due := r.NextExpiry(); !due.IsZero() && !due.After(now) {
				t.Fatalf("reader %d waits for %s, which is over", i, due)
			}
			if r.Seq() != at || fmt.Sprintf("%+v", r.States()) != fmt.Sprintf("%+v", states) {
				t.Fatalf("reader %d at %d has %+v, and the board at %d %+v", i, r.Seq(), r.States(), at, states)
			}
			for key, shown := range r.shown {
				if known := want[key]; shown != known && (known != "" || shown != agent.Idle) {
					t.Fatalf("reader %d was given %s of %s, which shows %q", i, shown, key, known)
				}
			}
			for key, shown := range want {
				if r.shown[key] != shown {
					t.Fatalf("reader %d was given %q of %s, which shows %s", i, r.shown[key], key, shown)
				}
			}
		}
	})
}

// TestAFollowerGivesAStateThatEndsBeforeWhatComesNext tests that HandleEvent first returns the
// end of an expired state, with the time of the expiry.
func TestAFollowerGivesAStateThatEndsBeforeWhatComesNext(t *testing.T) {
	const robot device.ID = "a0b1c2d3e4f5"
	f := agent.NewBoard().NewFollower(noon)
	take := func(seq uint64, after time.Duration, e event.Event) (got []string) {
		for _, c := range f.HandleEvent(event.Envelope{Seq: seq, At: noon.Add(after), Robot: robot, Session: "s", Event: e}) {
			got = append(got, fmt.Sprintf("%s at %s by itself %t", c.State.At(c.At), c.At.Sub(noon), c.By == nil))
		}
		return got
	}
	take(1, 0, event.TurnEnded{End: event.EndDone})
	if due := f.NextExpiry(); due != noon.Add(4*time.Second) {
		t.Errorf("it is due at %s", due)
	}
	if got := fmt.Sprint(take(2, time.Minute, event.ListeningStarted{})); got != "[idle at 4s by itself true listening at 1m0s by itself false]" {
		t.Error(got)
	}
	if got := take(2, time.Hour, event.ThinkingStarted{}); len(got) > 0 || f.Robot(robot).At(noon) != agent.Listening || !f.NextExpiry().IsZero() {
		t.Errorf("an event was taken twice: %q", got)
	}
}

// TestAMoodOutlivesATalk tests that a robot's mood is part of its state in later sessions, and
// that a mood causes no change.
func TestAMoodOutlivesATalk(t *testing.T) {
	b := agent.NewBoard()
	seq := uint64(0)
	follower := b.NewFollower(time.Now())
	take := func(robot device.ID, session string, e event.Event) []agent.Change {
		seq++
		envelope := event.Envelope{Seq: seq, At: time.Now(), Robot: robot, Session: session, Event: e}
		b.HandleEvent(envelope)
		return follower.HandleEvent(envelope)
	}
	glad, calm := event.Mood{Dominant: "celebration"}, event.Mood{Dominant: "neutral"}
	for _, session := range []string{"", "s1"} {
		if changes := take("a0b1c2d3e4f5", session, glad); len(changes) > 0 {
			t.Errorf("a mood changes %+v", changes)
		}
		if s := b.Robot("a0b1c2d3e4f5"); s.Mood == nil || *s.Mood != glad || s.At(time.Now()) != agent.Idle || s.Emotion != agent.Neutral {
			t.Errorf("felt is %+v", s)
		}
		take("a0b1c2d3e4f5", session, calm)
	}
	take("a0b1c2d3e4f5", "", glad)
	take("a0b1c2d3e4f5", "s2", event.RobotOnline{})
	if s := b.Robot("a0b1c2d3e4f5"); s.Mood == nil || *s.Mood != glad || !s.Online || s.Session != "s2" {
		t.Errorf("in the next talk it is %+v", s)
	}
	take("", "gone", glad)
	if all, _ := b.Snapshot(); len(all) != 1 {
		t.Errorf("a mood alone makes the session of %+v", all)
	}
	take("a0b1c2d3e4f5", "", event.RobotForgotten{})
	if all, _ := b.Snapshot(); len(all) != 0 {
		t.Errorf("forgotten is %+v", all)
	}
}
