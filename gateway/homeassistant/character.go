package homeassistant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/homeassistant/discovery"
	"perch/limit"
	"perch/plain"
)

// moodEvery is the least time between two mood documents of a robot with the same
// feeling: each is an entry of Home Assistant's database.
const moodEvery = time.Second

// moodDocument is what a robot feels, as it is published. Nothing is known before
// the first change: mood and face are null then, and the feelings 0.
type moodDocument struct {
	Mood *string `json:"mood"` // the feeling that shows
	Face *string `json:"face"` // the emotion for it
	event.Feelings
}

// character is what is known of a robot's character.
type character struct {
	who         string // its id
	mood        moodDocument
	moodDirty   bool // mood is no longer what was published
	moodShown   time.Time
	gesture     *string // that is under way
	gestureEnds time.Time
}

// due is when the character is to be shown next, and the zero time for never.
func (c *character) due() time.Time {
	first := c.gestureEnds
	if c.moodDirty {
		first = earliest(first, c.moodShown.Add(moodEvery))
	}
	return first
}

// feel brings in a mood, and reports whether another feeling shows.
func (c *character) feel(m event.Mood) (other bool) {
	next := moodDocument{Mood: known(discovery.Listed(m.Dominant, discovery.Moods())), Face: known(m.Face), Feelings: rounded(m.Feelings)}
	if *next.Mood == discovery.Other {
		next.Mood = nil
	}
	other = c.mood.Mood == nil || next.Mood == nil || *c.mood.Mood != *next.Mood
	c.moodDirty = c.moodDirty || other || c.mood.Feelings != next.Feelings
	c.mood = next
	return other
}

// rounded are feelings to a hundredth, for people.
func rounded(f event.Feelings) event.Feelings {
	for _, one := range []*float64{&f.Neutral, &f.Concern, &f.Celebration, &f.Patience, &f.Curiosity, &f.Empathy, &f.Uncertain} {
		*one = math.Round(*one*100) / 100
	}
	return f
}

// choice is what a robot's character can be: the household's, all others, and its own
// where that is a file that only the configuration names.
func (h *hub) choice(v *view) []string {
	all := append([]string{agent.DefaultCharacter}, h.cast...)
	if v.who != "" && !slices.Contains(all, v.who) {
		all = append(all, v.who)
	}
	return all
}

// recast reads the characters again, and announces what has changed.
func (h *hub) recast(now time.Time) {
	h.cast = h.o.Characters.Names()
	h.look(now)
	for _, v := range h.views {
		h.announce(v)
	}
}

// gesture notes a gesture that is under way.
func (h *hub) gesture(v *view, e event.Gesture, at time.Time) {
	g, known := h.o.Gestures.Named(e.Name)
	if !known {
		return
	}
	lasts := time.Duration(g.Duration) * time.Millisecond
	if e.Duration > 0 {
		lasts = min(time.Duration(e.Duration)*time.Millisecond, mostGesture)
	}
	v.gesture, v.gestureEnds, v.dirty = &g.Name, at.Add(lasts), true
}

// mostGesture bounds how long a gesture is shown to be under way.
const mostGesture = time.Minute

// diary is an entry of the diary, as it was written.
func (h *hub) diary(e event.Recorded) happening {
	d := happening{Type: discovery.Listed(e.Type, discovery.DiaryTypes()), Seq: e.Seq, Hash: e.Hash, Agent: e.Character, Session: e.Session}
	var p struct {
		Text, Content, Message, Name, ID, Address, Skill, URI, Error string

		Result struct{ Output string }
	}
	_ = json.Unmarshal(e.Payload, &p) // of another form: there is less to say of it
	switch d.Type {
	case "speak":
		d.Text = h.shared(p.Text)
	case "remember":
		d.ID, d.Text = p.ID, h.shared(p.Content)
		if h.o.ShareTranscripts { // the name of what was said is mostly all of it
			d.Name = p.Name
		}
	case "sign":
		d.Name, d.Text = p.Address, h.shared(p.Message)
	case "skill-done":
		d.Name, d.Text = p.Skill, h.shared(p.Result.Output)
	case "validate":
		d.Data = e.Payload
	case "load-end":
		d.Name, d.Reason = plain.Clip(p.URI, limit.Name), p.Error
	default:
		d.Name = e.Type
	}
	return d
}

// passCharacter shows what has become due of a robot's character.
func (h *hub) passCharacter(v *view, now time.Time) {
	if !v.gestureEnds.IsZero() && !now.Before(v.gestureEnds) {
		v.gesture, v.gestureEnds, v.dirty = nil, time.Time{}, true
	}
	if v.moodDirty && now.Sub(v.moodShown) >= moodEvery {
		h.showMood(v, now)
	}
}

func (h *hub) showMood(v *view, at time.Time) {
	v.moodDirty, v.moodShown = false, at
	h.putJSON(h.names.Robot(v.robot.ID, "mood"), v.mood, true, 1)
}

func parseGesture(text string) (command, error) {
	g := gesture{}
	if strings.HasPrefix(text, "{") {
		var body struct {
			Name     string `json:"name"`
			Duration int64  `json:"duration_ms"`
		}
		if err := object(text, &body, true); err != nil {
			return nil, fmt.Errorf(`gesture is a name, or {"name":"wave","duration_ms":1500}: %w`, err)
		}
		if body.Duration < 0 || body.Duration > mostGesture.Milliseconds() {
			return nil, fmt.Errorf("duration_ms is %d; it is from 0, the gesture's own, to %d", body.Duration, mostGesture.Milliseconds())
		}
		text, g.duration = body.Name, body.Duration
	}
	name, ok := event.GestureName(text)
	if !ok {
		return nil, fmt.Errorf("%.40q is no gesture", text)
	}
	g.name = name
	return g, nil
}

// do has a robot make a gesture. It is of this moment, and is not kept for later.
func (c gesture) do(_ context.Context, h *hub, id device.ID) (func(context.Context, *view), error) {
	if _, known := h.o.Gestures.Named(c.name); !known {
		return nil, fmt.Errorf("there is no gesture %.40q; there are %s", c.name, strings.Join(h.o.Gestures.Names(), ", "))
	}
	state := h.o.Board.Robot(id)
	if !state.Online {
		return nil, errors.New("the robot is not connected, and a gesture is not kept for later")
	}
	h.o.Bus.Publish(id, state.Session, event.Gesture{Name: c.name, Duration: c.duration, By: event.ByOwner})
	return nil, nil
}
