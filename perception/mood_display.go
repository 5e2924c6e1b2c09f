package perception

import (
	"cmp"
	"math"
	"time"

	"perch/device"
	"perch/event"
)

// Parameters of moods.
const (
	minMoodInterval    = time.Second      // between two changes
	moodDelayAfterTurn = time.Second      // pause after a turn of a conversation, since the firmware clears the face when it listens again
	moodHeadSpeed      = 120              // of the head, in the firmware's units
	minMoodTurn        = 3                // degrees; smaller movements of the head are not worth the noise of the servos
	maxMoodYaw         = 30               // degrees to either side
	foreignFaceHold    = time.Minute      // how long another program's face has precedence
	foreignLightHold   = 10 * time.Minute // how long lights set by a rule, an agent or another program have precedence
	ownFaceTimeout     = 2 * time.Second  // longest time between the display's request for a face and the event about that face
	expressionDuration = 8 * time.Second  // how long an expression replaces the mood's face
)

// moodDisplay shows the agent's mood on a robot while nobody talks with the robot: by the
// face, the position of the head and the lights. A face, position or colour that an agent, a
// rule or another program has set has precedence for a while.
type moodDisplay struct {
	mood            event.Mood
	hasMood         bool
	expression      string    // face that replaces the mood's face until expressionUntil
	expressionUntil time.Time // zero without an expression

	next         time.Time // when to update the display; zero means never
	updated      time.Time // when the display last changed something
	pausedUntil  time.Time // until then nothing is changed
	foreignUntil time.Time // until then another program's face is not replaced
	requested    time.Time // when the display requested a face; zero once the event about the face has come

	face      string // latest face of the display; "" if unknown
	light     [3]int // latest colour of the display
	lightLost bool   // whether a gesture may have turned off the lights
	base      Head   // position of the head before the display turned it
	pose      Head   // position that the display last turned the head to, in degrees relative to base
}

func (*moodDisplay) name() string          { return "mood" }
func (w *moodDisplay) nextStep() time.Time { return w.next }

func (w *moodDisplay) step(m moment) []Act {
	changed := w.handleEvent(m)
	if !changed && (w.next.IsZero() || m.now.Before(w.next)) {
		return nil
	}
	w.next = time.Time{}
	switch {
	case !w.hasMood && w.expressionUntil.IsZero():
		return nil
	case !w.canShow(m):
		return w.turnOff(m)
	}
	for _, earliest := range []time.Time{w.pausedUntil, m.gestureEnds, w.updated.Add(minMoodInterval)} {
		if m.now.Before(earliest) && w.next.Before(earliest) {
			w.next = earliest
		}
	}
	if !w.next.IsZero() {
		return nil
	}
	if m.now.Before(w.expressionUntil) {
		w.next = w.expressionUntil
	} else {
		w.expressionUntil = time.Time{}
	}
	acts := w.update(m)
	if len(acts) > 0 {
		w.updated = m.now
	}
	return acts
}

// canShow reports whether a mood may be shown: if the robot is online, except during a turn of a
// conversation, a dance, sleep and the quiet hours.
func (w *moodDisplay) canShow(m moment) bool {
	s := m.state
	return s.Online && !m.quiet && !s.isAsleep() && !s.Dancing && m.idleFor(0)
}

// turnOff returns the act that turns off the display's lights during sleep and the quiet hours.
func (w *moodDisplay) turnOff(m moment) []Act {
	if w.light == ([3]int{}) || !m.quiet && !m.state.isAsleep() {
		return nil
	}
	w.light = [3]int{}
	return []Act{Lights{}}
}

// handleEvent applies an event, and reports whether to update the display.
func (w *moodDisplay) handleEvent(m moment) (update bool) {
	switch e := m.event.(type) {
	case event.Mood:
		w.mood, w.hasMood = e, true
		return w.next.IsZero()
	case event.Expression:
		w.expression, w.expressionUntil = expressionFace(e), m.now.Add(expressionDuration)
		return true
	case event.TurnEnded, event.ListeningStarted, event.RobotOnline:
		w.face, w.pausedUntil = "", m.now.Add(moodDelayAfterTurn)
		return true
	case event.RobotSeen:
		if !e.Waiting { // the robot has booted, not another machine with its MAC address
			w.light, w.pose, w.base = [3]int{}, Head{}, Head{}
		}
	case event.Emotion:
		w.handleEmotion(m)
	case event.Gesture:
		w.face, w.lightLost = "", true
		return true
	case event.Perceived:
		if f := decodeFields(e.Data); e.Name == headTurn && f.By != w.name() && f.By != (&gesturer{}).name() {
			w.base, w.pose = m.state.Head, Head{}
		}
	}
	return false
}

// handleEmotion handles a change of the robot's face. It ignores changes during a turn or a gesture, and takes
// a change soon after the display's request for the answer to it. Any other face stays for foreignFaceHold.
func (w *moodDisplay) handleEmotion(m moment) {
	switch {
	case !w.requested.IsZero() && m.now.Sub(w.requested) < ownFaceTimeout:
		w.requested = time.Time{}
	case !m.now.Before(m.gestureEnds) && m.idleFor(0):
		w.face, w.foreignUntil = "", m.now.Add(foreignFaceHold)
	}
}

// expressionFace returns the firmware's emotion for an expression. Weak expressions are
// neutral.
func expressionFace(e event.Expression) string {
	const minIntensity = 0.2
	switch {
	case e.Intensity < minIntensity:
		return neutralFace
	case e.Preset == "focused":
		return "thinking"
	}
	return e.Preset
}

// update returns the acts that make the face, the lights and the head express the mood.
func (w *moodDisplay) update(m moment) (acts []Act) {
	face := cmp.Or(w.mood.Face, neutralFace)
	if m.now.Before(w.expressionUntil) {
		face = cmp.Or(w.expression, neutralFace)
	}
	alreadyNeutral := w.face == "" && face == neutralFace
	if face != w.face && !alreadyNeutral && !m.now.Before(w.foreignUntil) {
		w.face, w.requested = face, m.now
		acts = append(acts, Feel{face})
	}
	light := moodColour(w.mood)
	mustRelight := w.lightLost && light != [3]int{}
	if (light != w.light || mustRelight) && m.hasPassed(m.litAt, foreignLightHold) {
		w.light, w.lightLost = light, false
		acts = append(acts, Lights{light[0], light[1], light[2]})
	}
	return append(acts, w.turnHead(m)...)
}

// turnHead returns a turn of the head relative to w.base, if the mood's pose has changed by
// minMoodTurn or has returned to zero. After an agent or another program has turned the head,
// turnHead returns nil until FindHead has found the position of the head.
func (w *moodDisplay) turnHead(m moment) []Act {
	h := w.mood.Head
	// The robot cannot tilt its head sideways: half of the tilt becomes a turn.
	pose := Head{Yaw: int(math.Round(min(max(h.Yaw+h.Tilt/2, -maxMoodYaw), maxMoodYaw))), Pitch: int(math.Round(-h.Lean))}
	change := max(pose.Yaw-w.pose.Yaw, w.pose.Yaw-pose.Yaw, pose.Pitch-w.pose.Pitch, w.pose.Pitch-pose.Pitch)
	if m.movedByClient || change < minMoodTurn && (pose != Head{} || w.pose == Head{}) {
		return nil
	}
	w.pose = pose
	base := w.base.Pitch
	if base < device.MinHeadPitch {
		base = restPitch
	}
	pitch := min(max(base+pose.Pitch, device.MinHeadPitch), device.MaxHeadPitch)
	yaw := min(max(w.base.Yaw+pose.Yaw, -maxYaw), maxYaw)
	return []Act{TurnHead{Yaw: yaw, Pitch: &pitch, Speed: moodHeadSpeed, Priority: PriorityMood}}
}

// moodColour returns the colour of the lights for a mood: red, green and blue. The brightness has
// four steps, because a fading feeling would otherwise change the lights every second.
func moodColour(m event.Mood) [3]int {
	const steps = 4
	f := m.Feelings
	dominant := map[string]struct {
		colour   [3]int  // at full strength, which is still dim
		strength float64 // 0-1
	}{
		"concern": {[3]int{64, 20, 0}, f.Concern}, "celebration": {[3]int{56, 48, 0}, f.Celebration}, "patience": {[3]int{0, 12, 56}, f.Patience},
		"curiosity": {[3]int{0, 52, 52}, f.Curiosity}, "empathy": {[3]int{60, 8, 36}, f.Empathy}, "uncertain": {[3]int{36, 0, 56}, f.Uncertain},
	}[m.Dominant]
	step := math.Ceil(min(max(dominant.strength, 0), 1) * steps)
	for i := range dominant.colour {
		dominant.colour[i] = int(float64(dominant.colour[i]) * step / steps)
	}
	return dominant.colour
}
