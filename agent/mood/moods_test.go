package mood

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"perch/device"
	"perch/event"
	"perch/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func words(t testing.TB) Words {
	w := must.Value(ReadWords(""))(t)
	return w
}

// feeling calls f while a Moods handles the events of the bus, with virtual time.
func feeling(t *testing.T, f func(bus *event.Bus, m *Moods)) {
	synctest.Test(t, func(t *testing.T) {
		bus, ended := event.NewBus(), make(chan struct{})
		m := New(Options{Bus: bus, Words: words(t)})
		go func() { m.Run(t.Context()); close(ended) }()
		f(bus, m)
		bus.Close()
		<-ended
	})
}

// seen returns the published events of one type.
func seen[E event.Event](bus *event.Bus) (all []event.Envelope) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	r := bus.ReadFrom(1)
	for last := bus.Seq(); last > 0; {
		e, err := r.Next(ctx)
		if err != nil {
			break
		}
		if _, is := e.Event.(E); is {
			all = append(all, e)
		}
		if e.Seq == last {
			break
		}
	}
	return all
}

// TestAMoodIsHeardSeenAndFades tests that a mood is published at most ten times a second, only
// while it changes, and until it is neutral.
func TestAMoodIsHeardSeenAndFades(t *testing.T) {
	feeling(t, func(bus *event.Bus, _ *Moods) {
		bus.Publish("r1", "s1", event.Said{Text: "Great, it worked!"})
		time.Sleep(time.Minute)
		synctest.Wait()
		moods := seen[event.Mood](bus)
		if len(moods) < 10 {
			t.Fatalf("only %d moods", len(moods))
		}
		for i, e := range moods {
			if e.Robot != "r1" || e.Session != "s1" {
				t.Errorf("a mood of %q, %q", e.Robot, e.Session)
			}
			if i > 0 && e.At.Sub(moods[i-1].At) < publishInterval {
				t.Errorf("two moods within %s", e.At.Sub(moods[i-1].At))
			}
		}
		if got := moods[0].Event.(event.Mood); got.Dominant != "celebration" || got.Face != "happy" {
			t.Errorf("it begins with %+v", got)
		}
		if got := moods[len(moods)-1].Event.(event.Mood); got != (State{}).Mood() {
			t.Errorf("it ends with %+v", got)
		}
		before := bus.Seq()
		time.Sleep(time.Hour)
		synctest.Wait()
		if bus.Seq() != before {
			t.Error("something is published while nothing happens")
		}
	})
}

// TestToolCalls tests that the repeated start of a tool call has no effect.
func TestToolCalls(t *testing.T) {
	feeling(t, func(bus *event.Bus, _ *Moods) {
		for range 3 {
			bus.Publish("", "s", event.ToolStatus{ID: "1", Status: event.ToolRunning})
		}
		time.Sleep(publishInterval + 1)
		synctest.Wait()
		if got := seen[event.Mood](bus)[0].Event.(event.Mood).Feelings.Patience; got < .39 || got > .4 {
			t.Errorf("patience is %v", got)
		}
		for i := range 3 {
			bus.Publish("", "s", event.ToolStatus{ID: fmt.Sprint(i), Status: event.ToolFailed})
		}
		time.Sleep(publishInterval)
		synctest.Wait()
		moods := seen[event.Mood](bus)
		if got := moods[len(moods)-1].Event.(event.Mood); got.Feelings.Empathy < .98 || got.Dominant != "concern" {
			t.Errorf("three failures are %+v", got)
		}
	})
}

// TestASkillThatAModelUsesIsFeltOnce tests that a skill that is performed through a tool call has
// the same effect as a viewer's skill, which has no tool call.
func TestASkillThatAModelUsesIsFeltOnce(t *testing.T) {
	glad := .9
	call := func(status string) event.Event { return event.ToolStatus{ID: "1", Status: status} }
	running, began, failed := call(event.ToolRunning), event.SkillStarted{}, call(event.ToolFailed)
	well, badly := event.SkillDone{Sentiment: &glad}, event.SkillFailed{}
	for name, c := range map[string]struct {
		events  []event.Event
		feeling Feeling
		want    float64
		streak  int
	}{
		"it begins":     {[]event.Event{running, began}, Patience, .4, 0},
		"it ends well":  {[]event.Event{running, began, well, call(event.ToolDone)}, Celebration, .72, 0},
		"it fails":      {[]event.Event{running, began, badly, failed}, Concern, .7, 1},
		"it is refused": {[]event.Event{running, failed}, Concern, .7, 1},
		"the next tool": {[]event.Event{running, began, badly, failed, running, failed}, Empathy, .75, 2},
		"a viewer's":    {[]event.Event{began, well}, Celebration, .72, 0},
	} {
		feeling(t, func(bus *event.Bus, m *Moods) {
			for _, e := range c.events {
				bus.Publish("r", "s", e)
			}
			synctest.Wait()
			s := m.agents["r"].state
			if got := s.feelings[c.feeling]; got < c.want-.01 || got > c.want+.01 || s.streak != c.streak {
				t.Errorf("%s: %v is %v, not %v, after %d failures", name, c.feeling, got, c.want, s.streak)
			}
		})
	}
}

func TestInterruptionIsFelt(t *testing.T) {
	for end, want := range map[string]float64{event.EndCancelled: .5, event.EndDone: 0} {
		feeling(t, func(bus *event.Bus, m *Moods) {
			bus.Publish("r", "s", event.TurnEnded{End: event.EndCancelled}) // has no effect, because the agent has not spoken
			bus.Publish("r", "s", event.Said{Text: "The"})
			bus.Publish("r", "s", event.TurnEnded{End: end})
			synctest.Wait()
			if got := m.agents["r"].state.feelings[Curiosity]; got < want-.01 || got > want+.01 {
				t.Errorf("%s: curiosity is %v, not %v", end, got, want)
			}
		})
	}
}

func TestAGestureIsPublished(t *testing.T) {
	feeling(t, func(bus *event.Bus, _ *Moods) {
		bus.Publish("r", "s", event.SkillFailed{})
		time.Sleep(time.Second)
		synctest.Wait()
		made := seen[event.Gesture](bus)
		if len(made) != 1 || made[0].Event != (event.Gesture{Name: "concern", Duration: 2000, By: event.ByMood}) {
			t.Errorf("the gestures are %v", made)
		}
	})
}

// TestForgottenAndTooManyAgents tests that a forgotten robot has no mood, and that the number of
// agents with a mood is limited.
func TestForgottenAndTooManyAgents(t *testing.T) {
	feeling(t, func(bus *event.Bus, m *Moods) {
		bus.Publish("gone", "s", event.SkillFailed{})
		bus.Publish("gone", "", event.RobotForgotten{})
		synctest.Wait()
		if len(m.agents)+len(m.moving) != 0 {
			t.Error("a forgotten robot still feels")
		}
		for i := range maxAgents + 10 {
			bus.Publish(device.ID(fmt.Sprint(i)), "s", event.SkillStarted{})
			synctest.Wait()
			time.Sleep(time.Nanosecond)
		}
		synctest.Wait()
		if len(m.agents) != maxAgents || len(m.moving) > maxAgents || m.agents["0"] != nil {
			t.Errorf("%d agents feel, %d of them move", len(m.agents), len(m.moving))
		}
	})
}

// TestSessionsPushOutNoRobot tests that new sessions displace the moods of other sessions and not
// of robots, and that the neutral mood is published for a displaced one.
func TestSessionsPushOutNoRobot(t *testing.T) {
	feeling(t, func(bus *event.Bus, m *Moods) {
		for _, first := range []string{"r", ""} {
			bus.Publish(device.ID(first), "first", event.Emote{Trigger: "patience", Weight: 1})
		}
		time.Sleep(publishInterval + 1)
		for i := range maxAgents {
			bus.Publish("", fmt.Sprint("made up ", i), event.Emote{Trigger: "concern", Weight: .1})
			synctest.Wait()
		}
		told := map[device.ID]event.Mood{}
		for _, e := range seen[event.Mood](bus) {
			if e.Session == "first" {
				told[e.Robot] = e.Event.(event.Mood)
			}
		}
		if len(m.agents) != maxAgents || m.agents["r"] == nil || told["r"].Dominant != "patience" {
			t.Errorf("the robot is %+v, and shows %s", m.agents["r"], told["r"].Dominant)
		}
		if rest := (State{}).Mood(); m.agents["first"] != nil || told[""] != rest {
			t.Errorf("the session that gave way shows %+v", told[""])
		}
	})
}

// TestTheDefaultCharacterFeels tests that an event without a robot and a session causes a mood
// without a robot and a session.
func TestTheDefaultCharacterFeels(t *testing.T) {
	feeling(t, func(bus *event.Bus, m *Moods) {
		bus.Publish("", "", event.Emote{Trigger: "uncertain", Weight: .9})
		bus.Publish("", "s", event.Heard{})
		time.Sleep(time.Minute)
		synctest.Wait()
		var told []string
		for _, e := range seen[event.Mood](bus) {
			if e.Robot == "" && e.Session == "" {
				told = append(told, e.Event.(event.Mood).Dominant)
			}
		}
		if got := slices.Compact(told); !slices.Equal(got, []string{"uncertain", "neutral"}) || m.agents[""] == nil {
			t.Errorf("it feels %v", got)
		}
	})
}

// TestMoodsThatAreOff tests that events have no effect while moods are off, and that existing
// feelings fade.
func TestMoodsThatAreOff(t *testing.T) {
	off := false
	feeling(t, func(bus *event.Bus, m *Moods) {
		bus.Publish("r1", "s1", event.Said{Text: "Great, it worked!"})
		time.Sleep(time.Second)
		synctest.Wait()
		m.Off = func() bool { return off }
		off = true
		bus.Publish("r1", "s1", event.Said{Text: "Great, it worked!"})
		bus.Publish("r2", "s2", event.Said{Text: "Great, it worked!"})
		time.Sleep(time.Minute)
		synctest.Wait()
		moods := seen[event.Mood](bus)
		if last := moods[len(moods)-1]; last.Event != event.Event((State{}).Mood()) {
			t.Errorf("in the end it feels %+v", last)
		}
		for _, e := range moods {
			if e.Robot != "r1" {
				t.Errorf("%s feels %+v", e.Robot, e.Event)
			}
		}
	})
}
