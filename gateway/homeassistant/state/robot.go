package state

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/homeassistant/discovery"
	"perch/limit"
)

// Robot is what is known of a robot. Its methods fold events and answers into it.
type Robot struct {
	Registered device.Robot
	Character  string // its id
	State      agent.State
	Shown      agent.Shown      // agent_state as it was last published
	Transport  device.Transport // of robots whose owner has chosen none
	Seen       time.Time        // of its latest event
	Senses     discovery.Senses
	Tools      []device.Tool // that its discovery was made from

	// Nil is unknown.

	Mute      bool
	Face      *bool
	Identity  *string
	LastHeard *string
	Light     *Light
	Readings  Readings

	Mood Mood
	Channel
	Installing bool // it was sent the command to install, and does when it next checks in

	Changed       bool      // Document is no longer what was published
	MoodChanged   bool      // Mood is no longer what was published
	Published     time.Time // of Document; zero if never
	MoodPublished time.Time

	touched   time.Time // since when a hand is on its head; zero is not
	longTouch bool      // and this was published as a long press
	download  download

	gesture     *string // that it is making
	gestureEnds time.Time
}

// Channel is what a robot has done since its channel opened.
type Channel struct {
	Listed    bool // its tools
	UsedTools bool // in the current turn
	woken     bool // it has listened
}

// download is the progress of an image that a robot downloads.
type download struct {
	percent int
	until   time.Time // when it no longer counts as in progress; zero without a download
}

const (
	longPress   = 2 * time.Second
	maxIdentity = 100 // bytes

	// MaxGesture bounds how long a gesture is shown.
	MaxGesture = time.Minute

	// DownloadTimeout is how long after its latest bytes a download counts as in progress. A robot
	// that has it all takes less to write it, restart and check in. Home Assistant installs nothing
	// while one is in progress, so a robot that was switched off must not leave it so.
	DownloadTimeout = 2 * time.Minute
)

// Online reports whether the robot counts as there. It opens its channel only to talk, so a quiet
// robot is there until it has not been seen for away (0 means for ever), unless its MQTT connection
// has ended.
func (r *Robot) Online(now time.Time, away time.Duration) bool {
	return r.State.Online || !r.State.Gone && (away == 0 || now.Before(r.LastSeen().Add(away)))
}

// LastSeen returns the time of the robot's latest event or check-in.
func (r *Robot) LastSeen() time.Time {
	if r.Registered.LastSeen.After(r.Seen) {
		return r.Registered.LastSeen
	}
	return r.Seen
}

// NextChange returns when the robot changes without an event, and the zero time if it does not.
func (r *Robot) NextChange() time.Time {
	press := time.Time{}
	if !r.touched.IsZero() && !r.longTouch {
		press = r.touched.Add(longPress)
	}
	return Earliest(r.download.until, r.gestureEnds, press)
}

// Earliest returns the earliest of some times. The zero time stands for never.
func Earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

// SetState sets the folded state of the robot's session after an event.
func (r *Robot) SetState(s agent.State, at time.Time) {
	before := r.State
	r.State, r.Seen = s, at
	r.Changed = r.Changed || before.Emotion != s.Emotion || before.Session != s.Session || before.Online != s.Online || before.Talking != s.Talking
}

// Register sets what the registry knows. Another board is another robot with the same MAC address.
func (r *Robot) Register(robot device.Robot) {
	if robot.Board != r.Registered.Board {
		r.Senses, r.Readings, r.Light = discovery.NewSenses(nil), Readings{}, nil
	}
	r.Registered, r.Changed = robot, true
}

// Report sets the values that a status event has.
func (r *Robot) Report(e event.RobotStatus) {
	s := &r.Readings
	s.Volume, s.Brightness, s.Battery = cmp.Or(e.Volume, s.Volume), cmp.Or(e.Brightness, s.Brightness), cmp.Or(e.Battery, s.Battery)
	s.Charging, s.Signal = cmp.Or(e.Charging, s.Charging), cmp.Or(e.Signal, s.Signal)
	r.Changed = true
}

// Read sets the robot's answer to a request for its status, and reports whether it has a sense that
// was unknown.
func (r *Robot) Read(answer Readings) (newSense bool) {
	if answer.HeadYaw == nil && answer.HeadPitch == nil { // it cannot be asked: what it was set to is known
		answer.HeadYaw, answer.HeadPitch = r.Readings.HeadYaw, r.Readings.HeadPitch
	}
	r.Readings, r.Changed = answer, true
	for sense, there := range map[string]bool{
		"battery": answer.Battery != nil, "charging": answer.Charging != nil, "signal": answer.Signal != "", "temperature": answer.Temperature != nil,
	} {
		newSense = there && r.Senses.Add(sense) || newSense
	}
	return newSense
}

// Perceive folds what the robot sensed. It returns the touch events that follow from it, and whether
// the robot has a sense that was unknown.
func (r *Robot) Perceive(p event.Perceived, at time.Time) (touches []Event, newSense bool, err error) {
	if len(p.Name) > limit.Word || len(p.Data) > limit.Question || len(p.Data) > 0 && !json.Valid(p.Data) {
		return nil, false, errors.New("it is too big, or its data is not JSON")
	}
	newSense = r.Senses.Add("perception")
	switch p.Name {
	case "face_detected":
		r.Face, r.Changed = new(true), true
		newSense = r.Senses.Add("face") || newSense
	case "face_lost":
		r.Face, r.Identity, r.Changed = new(false), nil, true
		newSense = r.Senses.Add("face") || newSense
	case "face_recognized":
		var person struct{ Identity string }
		if json.Unmarshal(p.Data, &person) == nil && len(person.Identity) <= maxIdentity {
			r.Face, r.Identity, r.Changed = new(true), optional(person.Identity), true
			newSense = r.Senses.Add("identity") || newSense
		}
	case "head_pet_started":
		newSense = r.Senses.Add("touch") || newSense
		if r.touched.IsZero() {
			r.touched, r.longTouch = at, false
			touches = append(touches, Event{Type: "press_start"})
		}
	case "head_pet_ended":
		newSense = r.Senses.Add("touch") || newSense
		if !r.touched.IsZero() {
			if r.longTouch {
				touches = append(touches, Event{Type: "long_press_end"})
			}
			r.touched = time.Time{}
			touches = append(touches, Event{Type: "press_end"})
		}
	}
	return touches, newSense, nil
}

// LongTouch reports, once for each touch, that it has become a long press.
func (r *Robot) LongTouch(now time.Time) bool {
	long := !r.touched.IsZero() && !r.longTouch && !r.touched.Add(longPress).After(now)
	r.longTouch = r.longTouch || long
	return long
}

// Feel sets the robot's mood and reports whether another feeling dominates.
func (r *Robot) Feel(m event.Mood) (other bool) {
	next := Mood{Mood: optional(discovery.Listed(m.Dominant, discovery.Moods())), Face: optional(m.Face), Feelings: rounded(m.Feelings)}
	if *next.Mood == discovery.Other {
		next.Mood = nil
	}
	other = r.Mood.Mood == nil || next.Mood == nil || *r.Mood.Mood != *next.Mood
	r.MoodChanged = r.MoodChanged || other || r.Mood.Feelings != next.Feelings
	r.Mood = next
	return other
}

// rounded returns feelings to a hundredth.
func rounded(f event.Feelings) event.Feelings {
	for _, one := range []*float64{&f.Neutral, &f.Concern, &f.Celebration, &f.Patience, &f.Curiosity, &f.Empathy, &f.Uncertain} {
		*one = math.Round(*one*100) / 100
	}
	return f
}

// StartGesture shows a gesture for its duration.
func (r *Robot) StartGesture(name string, lasts time.Duration, at time.Time) {
	r.gesture, r.gestureEnds, r.Changed = &name, at.Add(min(lasts, MaxGesture)), true
}

// Expire ends a gesture and a download whose time is over. It reports whether a download ended.
func (r *Robot) Expire(now time.Time) (downloadEnded bool) {
	if !r.gestureEnds.IsZero() && !now.Before(r.gestureEnds) {
		r.gesture, r.gestureEnds, r.Changed = nil, time.Time{}, true
	}
	downloadEnded = !r.download.until.IsZero() && !r.download.until.After(now)
	if downloadEnded {
		r.EndDownload()
	}
	return downloadEnded
}

// Progress sets how much of an image the robot has downloaded. Without a size it is ignored.
func (r *Robot) Progress(e event.FirmwareProgress, at time.Time) {
	if e.Size > 0 {
		r.download = download{int(100 * min(max(e.Bytes, 0), e.Size) / e.Size), at.Add(DownloadTimeout)}
	}
}

// EndDownload ends a download.
func (r *Robot) EndDownload() { r.download = download{} }

// Update returns the state of the robot's firmware. The catalogue, which knows installed and latest,
// learns of a check-in after the registry: while they differ, its offer is not known yet.
func (r *Robot) Update(installed, latest string) Update {
	u := Update{Installed: r.Registered.Firmware, Latest: r.Registered.Firmware}
	if installed == u.Installed {
		u.Latest = latest
	}
	if !r.download.until.IsZero() {
		u.InProgress, u.Percentage = true, new(r.download.percent)
	}
	return u
}

// Document returns the robot's state. It has the agent_state that was published last, so that no
// document overtakes the order of these.
func (r *Robot) Document() Document {
	d := Document{
		Name: optional(r.Registered.Settings.Name), Character: optional(r.Character),
		AgentState: r.Shown, Emotion: optional(r.State.Emotion.Name), Connected: r.State.Online, Talking: r.State.Talking,
		Transport: optional(string(cmp.Or(r.Registered.Settings.Transport, r.Transport))),
		Face:      r.Face, Identity: r.Identity, Volume: r.Readings.Volume, Brightness: r.Readings.Brightness, Mute: r.Mute,
		HeadYaw: degrees(r.Readings.HeadYaw), HeadPitch: degrees(r.Readings.HeadPitch), LED: r.Light, Battery: r.Readings.Battery,
		Charging: r.Readings.Charging, Signal: optional(r.Readings.Signal), Temperature: r.Readings.Temperature,
		Firmware: optional(r.Registered.Firmware), LastHeard: r.LastHeard, Gesture: r.gesture,
	}
	if r.State.Talking {
		d.SessionID = optional(r.State.Session)
	}
	if !r.Registered.Booted.IsZero() {
		d.Booted = new(r.Registered.Booted.UTC().Truncate(time.Second))
	}
	if d.Battery != nil && (*d.Battery < 0 || *d.Battery > 100) {
		d.Battery = nil // the robot does not know it
	}
	for _, s := range d.sliders(r.Tools) {
		*s.value = new(min(max(**s.value, s.low), s.high))
	}
	return d
}

// degrees returns an angle as sliders show it.
func degrees(angle *float64) *int {
	if angle == nil {
		return nil
	}
	return new(int(math.Round(min(max(*angle, -discovery.MaxNumber), discovery.MaxNumber))))
}

// slider is a number with an announced range. Home Assistant rejects values outside it: a head at
// rest, for example, may point lower than a command can turn it.
type slider struct {
	value     **int
	low, high int
}

// sliders returns the document's known numbers that the tools have a range for.
func (d *Document) sliders(tools []device.Tool) (all []slider) {
	add := func(value **int, low, high int, ok bool) {
		if ok && *value != nil {
			all = append(all, slider{value, low, high})
		}
	}
	for what, value := range map[string]**int{"volume": &d.Volume, "brightness": &d.Brightness} {
		if c, found := discovery.Level(tools, what); found {
			low, high, ok := c.Percent()
			add(value, low, high, ok)
		}
	}
	if head, found := discovery.Head(tools); found {
		for i, value := range []**int{&d.HeadYaw, &d.HeadPitch} {
			low, high, ok := head.Axis(i)
			add(value, low, high, ok)
		}
	}
	return all
}

// Within returns the document without the numbers outside the ranges of tools.
func (d Document) Within(tools []device.Tool) Document {
	for _, s := range d.sliders(tools) {
		if **s.value < s.low || **s.value > s.high {
			*s.value = nil
		}
	}
	return d
}
