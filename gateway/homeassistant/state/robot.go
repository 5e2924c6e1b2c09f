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

// Robot is the state of a robot. Its methods update the state with events and with values read from the robot.
type Robot struct {
	Registered device.Robot
	Character  string // ID of the character
	State      agent.State
	Shown      agent.Shown      // the published agent_state
	Transport  device.Transport // used if the owner has not chosen a transport for the robot
	Seen       time.Time        // time of the latest event
	Senses     discovery.Senses
	Tools      []device.Tool // the tools in the published discovery

	// In the following fields, a nil pointer means that the value is unknown.

	Mute      bool
	Face      *bool
	Identity  *string
	LastHeard *string
	Light     *Light
	Readings  Readings

	Mood Mood
	Channel
	Installing bool // a command asked for a firmware update, which the robot installs when it checks in next

	Changed       bool      // Document may differ from the published document
	HasMusic      bool      // the owner has music
	MoodChanged   bool      // Mood may differ from the published mood
	Published     time.Time // when Document was published last; zero if it was not
	MoodPublished time.Time // when Mood was published last; zero if it was not

	Held      []HeldEvent // events whose entity Home Assistant may not have yet, oldest first
	HeldUntil time.Time   // when to publish Held; zero if new events are published at once

	touched   time.Time // when a hand was put on the head; zero while the head is not touched
	longPress bool      // the present touch was reported as a long press
	download  download

	gesture     *string // name of the present gesture; nil between gestures
	gestureEnds time.Time
}

// HeldEvent is an event that is published later.
type HeldEvent struct {
	Thing    string // last level of its topic
	Document any
}

// Channel records what has happened since a robot opened its channel, which is the connection for a conversation.
type Channel struct {
	Listed    bool // the robot has listed its tools
	UsedTools bool // a tool call has ended in the current turn
	woken     bool // the robot has started to listen
}

// download is the progress of a firmware download.
type download struct {
	percent int       // 0 to 100
	until   time.Time // when the download stops counting as in progress; zero if there is no download
}

const (
	longPressTime = 2 * time.Second // a touch of the head that lasts this long is a long press
	maxIdentity   = 100             // maximum length of an identity, in bytes

	// MaxGesture bounds how long a gesture is shown.
	MaxGesture = time.Minute

	// DownloadTimeout is how long a download counts as in progress after the latest report of its progress. This time
	// is longer than a robot needs to write the image, restart and check in. The limit is needed because a robot may
	// be switched off during a download, and Home Assistant installs nothing while a download is in progress.
	DownloadTimeout = 2 * time.Minute
)

// Online reports whether the robot counts as online, which is true of every robot that can be reached now
// (State.Online). A robot opens its channel only for a conversation. So a robot that cannot be reached also counts as
// online if its latest event or check-in is less than away ago, unless its MQTT connection has ended. If away is 0,
// the time of the latest event does not matter.
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

// NextChange returns the next time at which the state changes without an event: a download or a gesture ends, or a
// touch becomes a long press. It returns the zero time if there is no such time.
func (r *Robot) NextChange() time.Time {
	press := time.Time{}
	if !r.touched.IsZero() && !r.longPress {
		press = r.touched.Add(longPressTime)
	}
	return Earliest(r.download.until, r.gestureEnds, press)
}

// Earliest returns the earliest of the times that are not zero, or the zero time if all times are zero.
func Earliest(times ...time.Time) (earliest time.Time) {
	for _, t := range times {
		if !t.IsZero() && (earliest.IsZero() || t.Before(earliest)) {
			earliest = t
		}
	}
	return earliest
}

// SetState sets the state of the robot's session after an event.
func (r *Robot) SetState(s agent.State, at time.Time) {
	old := r.State
	r.State, r.Seen = s, at
	r.Changed = r.Changed || old.Emotion != s.Emotion || old.Session != s.Session || old.Online != s.Online || old.Talking != s.Talking || old.Music != s.Music
}

// Register sets the registry's data of the robot. If the board differs, another robot with the same MAC address has
// replaced this one, so the senses and readings are reset.
func (r *Robot) Register(robot device.Robot) {
	if robot.Board != r.Registered.Board {
		r.Senses, r.Readings, r.Light = discovery.NewSenses(nil), Readings{}, nil
	}
	r.Registered, r.Changed = robot, true
}

// SetStatus sets the values of a status event. Values that are missing from the event stay unchanged.
func (r *Robot) SetStatus(e event.RobotStatus) {
	s := &r.Readings
	s.Volume, s.Brightness, s.Battery = cmp.Or(e.Volume, s.Volume), cmp.Or(e.Brightness, s.Brightness), cmp.Or(e.Battery, s.Battery)
	s.Charging, s.Signal = cmp.Or(e.Charging, s.Charging), cmp.Or(e.Signal, s.Signal)
	if e.Lights != nil {
		r.Light = new(NewLight(*e.Lights))
	}
	r.Changed = true
}

// SetReadings sets the values that were read from the robot, and reports whether they show a new sense.
func (r *Robot) SetReadings(read Readings) (newSense bool) {
	if read.HeadYaw == nil && read.HeadPitch == nil { // the angles could not be read, so the known angles stay
		read.HeadYaw, read.HeadPitch = r.Readings.HeadYaw, r.Readings.HeadPitch
	}
	r.Readings, r.Changed = read, true
	for sense, isKnown := range map[string]bool{
		"battery": read.Battery != nil, "charging": read.Charging != nil, "signal": read.Signal != "", "temperature": read.Temperature != nil,
	} {
		newSense = isKnown && r.Senses.Add(sense) || newSense
	}
	return newSense
}

// Perceive updates the state with a perception event. It returns the touch events to publish, and whether the
// event shows a new sense. It returns an error if the event is too big or its data is not JSON.
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
			r.touched, r.longPress = at, false
			touches = append(touches, Event{Type: "press_start"})
		}
	case "head_pet_ended":
		newSense = r.Senses.Add("touch") || newSense
		if !r.touched.IsZero() {
			if r.longPress {
				touches = append(touches, Event{Type: "long_press_end"})
			}
			r.touched = time.Time{}
			touches = append(touches, Event{Type: "press_end"})
		}
	}
	return touches, newSense, nil
}

// DetectLongPress returns true once for each touch, when it has lasted for longPressTime.
func (r *Robot) DetectLongPress(now time.Time) bool {
	long := !r.touched.IsZero() && !r.longPress && !r.touched.Add(longPressTime).After(now)
	r.longPress = r.longPress || long
	return long
}

// SetMood sets the mood. It returns true if the dominant feeling has changed, and also if the old or the new dominant
// feeling is nil; see Mood.
func (r *Robot) SetMood(m event.Mood) (changed bool) {
	next := Mood{Mood: optional(discovery.ListedOrOther(m.Dominant, discovery.Moods())), Face: optional(m.Face), Feelings: rounded(m.Feelings)}
	if *next.Mood == discovery.Other {
		next.Mood = nil
	}
	changed = r.Mood.Mood == nil || next.Mood == nil || *r.Mood.Mood != *next.Mood
	r.MoodChanged = r.MoodChanged || changed || r.Mood.Feelings != next.Feelings
	r.Mood = next
	return changed
}

// rounded returns the feelings rounded to hundredths.
func rounded(f event.Feelings) event.Feelings {
	for _, feeling := range []*float64{&f.Neutral, &f.Concern, &f.Celebration, &f.Patience, &f.Curiosity, &f.Empathy, &f.Uncertain} {
		*feeling = math.Round(*feeling*100) / 100
	}
	return f
}

// StartGesture sets the present gesture. Expire ends the gesture after duration, or after MaxGesture if that is shorter.
func (r *Robot) StartGesture(name string, duration time.Duration, at time.Time) {
	r.gesture, r.gestureEnds, r.Changed = &name, at.Add(min(duration, MaxGesture)), true
}

// Expire ends an expired gesture and an expired download. It reports whether it ended a download.
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

// SetProgress sets the progress of a firmware download. It ignores an event without the size of the image.
func (r *Robot) SetProgress(e event.FirmwareProgress, at time.Time) {
	if e.Size > 0 {
		r.download = download{int(100 * min(max(e.Bytes, 0), e.Size) / e.Size), at.Add(DownloadTimeout)}
	}
}

// EndDownload ends the firmware download, if any.
func (r *Robot) EndDownload() { r.download = download{} }

// Update returns the state of the robot's firmware update. The arguments are versions from the firmware catalogue,
// which learns of a check-in later than the registry. While installed differs from the version in the registry,
// latest is out of date and is ignored.
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

// Document returns the document with the robot's state. Its agent_state is Shown, even if State has changed since: a
// document that is published for another reason repeats the published agent_state.
func (r *Robot) Document() Document {
	d := Document{
		Name: optional(r.Registered.Settings.Name), Character: optional(r.Character),
		Brain: cmp.Or(r.Registered.Settings.Brain, discovery.DefaultOption), Voice: optional(r.Registered.Settings.Voice),
		Language:   cmp.Or(r.Registered.Settings.Language, discovery.DefaultOption),
		AgentState: r.Shown, Emotion: optional(r.State.Emotion.Name), Connected: r.State.Online, Talking: r.State.Talking,
		Transport: optional(string(cmp.Or(r.Registered.Settings.Transport, r.Transport))),
		Face:      r.Face, Identity: r.Identity, Volume: r.Readings.Volume, Brightness: r.Readings.Brightness, Mute: r.Mute,
		HeadYaw: degrees(r.Readings.HeadYaw), HeadPitch: degrees(r.Readings.HeadPitch), LED: r.Light, Battery: r.Readings.Battery,
		Charging: r.Readings.Charging, Signal: optional(r.Readings.Signal), Temperature: r.Readings.Temperature,
		Firmware: optional(r.Registered.Firmware), LastHeard: r.LastHeard, Gesture: r.gesture,
	}
	if r.HasMusic {
		d.Music = cmp.Or(r.State.Music, discovery.MusicOff)
	}
	if r.State.Talking {
		d.SessionID = optional(r.State.Session)
	}
	if !r.Registered.Booted.IsZero() {
		d.Booted = new(r.Registered.Booted.UTC().Truncate(time.Second))
	}
	if d.Battery != nil && (*d.Battery < 0 || *d.Battery > 100) {
		d.Battery = nil // the robot cannot measure its battery
	}
	for _, s := range d.sliders(r.Tools) {
		*s.value = new(min(max(**s.value, s.low), s.high))
	}
	return d
}

// degrees rounds an angle to whole degrees and limits it to ±discovery.MaxNumber, for a slider. It returns nil for nil.
func degrees(angle *float64) *int {
	if angle == nil {
		return nil
	}
	return new(int(math.Round(min(max(*angle, -discovery.MaxNumber), discovery.MaxNumber))))
}

// slider is a value of a document and the range that was announced for the value. Home Assistant rejects a value
// outside of the range. For example, the pitch of a head at rest may be below the range of commands.
type slider struct {
	value     **int
	low, high int
}

// sliders returns the values of the document that are known and that a tool can set within a range.
func (d *Document) sliders(tools []device.Tool) (sliders []slider) {
	add := func(value **int, low, high int, ok bool) {
		if ok && *value != nil {
			sliders = append(sliders, slider{value, low, high})
		}
	}
	for level, value := range map[string]**int{"volume": &d.Volume, "brightness": &d.Brightness} {
		if c, found := discovery.LevelControl(tools, level); found {
			low, high, ok := c.Percent()
			add(value, low, high, ok)
		}
	}
	if head, found := discovery.HeadControl(tools); found {
		for i, value := range []**int{&d.HeadYaw, &d.HeadPitch} {
			low, high, ok := head.Axis(i)
			add(value, low, high, ok)
		}
	}
	return sliders
}

// Within returns the document with null for each value that is outside of the range of its tool.
func (d Document) Within(tools []device.Tool) Document {
	for _, s := range d.sliders(tools) {
		if **s.value < s.low || **s.value > s.high {
			*s.value = nil
		}
	}
	return d
}
