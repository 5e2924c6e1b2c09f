package main

import (
	"testing"
	"time"
)

func TestStep(t *testing.T) {
	type span struct {
		is    observation
		lasts time.Duration
	}
	radio := observation{radio: true}
	home := observation{radio: true, network: true, saved: true}
	known := observation{radio: true, saved: true}
	talking := observation{radio: true, saved: true, talking: true}
	form := observation{radio: true, form: true}
	type done struct {
		at  time.Duration
		act action
	}
	for name, c := range map[string]struct {
		ago   time.Duration // time since the start of the machine
		spans []span
		want  []done
	}{
		"no network at the start":         {10 * time.Second, []span{{radio, 2 * time.Minute}}, []done{{50 * time.Second, raise}}},
		"a slow machine":                  {2 * time.Minute, []span{{radio, 2 * time.Minute}}, []done{{45 * time.Second, raise}}},
		"no radio":                        {0, []span{{observation{}, time.Hour}}, nil},
		"a radio that comes later":        {0, []span{{observation{}, time.Hour}, {radio, time.Minute}}, []done{{time.Hour, raise}}},
		"a network in time":               {0, []span{{radio, 50 * time.Second}, {home, time.Hour}}, nil},
		"a network after ten minutes":     {0, []span{{home, time.Hour}, {known, 9 * time.Minute}, {home, time.Hour}}, nil},
		"a network that is gone for long": {0, []span{{home, time.Hour}, {known, 11 * time.Minute}}, []done{{70 * time.Minute, raise}}},
		"somebody talks": {0, []span{{home, time.Hour}, {talking, time.Hour}, {known, time.Minute}},
			[]done{{2 * time.Hour, raise}}},
		"a cable comes": {0, []span{{radio, 2 * time.Minute}, {home, time.Minute}}, []done{{time.Minute, raise}, {2 * time.Minute, lower}}},
		"a form": {0, []span{{radio, 2 * time.Minute}, {form, time.Second}, {home, time.Hour}},
			[]done{{time.Minute, raise}, {2 * time.Minute, join}}},
		"a form whose network cannot be joined": {0, []span{{radio, 2 * time.Minute}, {form, time.Second}, {radio, time.Minute}},
			[]done{{time.Minute, raise}, {2 * time.Minute, join}, {2*time.Minute + time.Second, raise}}},
		"a router that boots later": {0, []span{{known, 6*time.Minute + 10*time.Second}, {home, time.Minute}},
			[]done{{time.Minute, raise}, {6 * time.Minute, lower}}},
		"a router that stays away": {0, []span{{known, 8 * time.Minute}},
			[]done{{time.Minute, raise}, {6 * time.Minute, lower}, {6*time.Minute + 45*time.Second, raise}}},
		"nobody knows a network, so it stays up": {0, []span{{radio, time.Hour}}, []done{{time.Minute, raise}}},
	} {
		began := time.Unix(0, 0)
		s, now := initialState(c.ago), began
		var got []done
		for _, span := range c.spans {
			for end := now.Add(span.lasts); now.Before(end); now = now.Add(time.Second) {
				var what action
				span.is.raised = s.up
				if s, what = step(s, now, span.is); what != stay {
					got = append(got, done{now.Sub(began), what})
				}
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	}
}

func TestAccessPointStaysWhilePageIsUsed(t *testing.T) {
	now := time.Unix(0, 0)
	s, _ := step(state{}, now, observation{radio: true, saved: true})
	for i := range 3600 {
		at := now.Add(time.Duration(i) * time.Second)
		var what action
		if s, what = step(s, at, observation{radio: true, raised: true, saved: true, used: at}); what != stay {
			if what != lower || at.Sub(now) != searchAtLatest {
				t.Errorf("%s after %s", what, at.Sub(now))
			}
			return
		}
	}
	t.Error("it never looks for what it knows")
}
