package action_test

import (
	"testing"
	"time"

	"perch/agent/action"
	"perch/event"
)

// TestRates tests that gestures less than 600 ms apart are dropped, that of the emotes with
// one trigger within 150 ms only the strongest is published, and that a look is published if
// no other look arrives within 100 ms.
func TestRates(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(1, 0).Add(time.Duration(ms) * time.Millisecond) }
	gestures := action.NewRates[int]()
	for _, c := range []struct {
		ms   int
		pass bool
	}{{0, true}, {1, false}, {599, false}, {600, true}, {1199, false}, {1200, true}} {
		if pass, err := gestures.Admit(at(c.ms), 0, action.Gesture, event.Gesture{Name: "wave"}); err != nil || pass != c.pass {
			t.Errorf("a gesture after %d ms passes: %t, %v", c.ms, pass, err)
		}
	}
	little, much := event.Emote{Trigger: "concern", Weight: .2}, event.Emote{Trigger: "concern", Weight: .9}
	user, camera := event.LookAt{Target: "user"}, event.LookAt{Target: "camera"}
	for _, c := range []struct {
		kind                    action.Type
		first, second, together event.Event // the second arrives 60 ms after the first; together is published
		due                     int         // milliseconds after the first
	}{
		{action.Emote, much, little, much, 150},
		{action.Emote, little, much, much, 150},
		{action.LookAt, user, camera, camera, 160},
	} {
		r := action.NewRates[int]()
		for i, e := range []event.Event{c.first, c.second} {
			if pass, err := r.Admit(at(60*i), 0, c.kind, e); pass || err != nil {
				t.Errorf("%s passes at once: %t, %v", c.kind, pass, err)
			}
		}
		if early := r.Ready(at(c.due - 1)); len(early) > 0 || !r.NextReady().Equal(at(c.due)) {
			t.Errorf("%s is due after %s, and %v is ready before", c.kind, r.NextReady().Sub(at(0)), early)
		}
		if ready := r.Ready(at(c.due)); len(ready) != 1 || ready[0].Event != c.together {
			t.Errorf("%s: %v is ready", c.kind, ready)
		}
	}
}
