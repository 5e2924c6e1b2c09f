package perception

import (
	"time"

	"perch/device"
	"perch/event"
)

// Parameters of gestures.
const (
	minGestureInterval = 600 * time.Millisecond // between the starts of two gestures
	holdMargin         = 500 * time.Millisecond // how long the head stays reserved after the next keyframe is due
	restPitch          = 15                     // degrees; the default position of the head
	restSpeed          = 250                    // of the turn that restores the head, in the firmware's units
	neutralFace        = "neutral"
)

// gesturer performs gestures, one at a time, and restores the robot afterwards. A gesture ends
// early if a person speaks, strokes the robot or cancels a turn of a conversation, or if the
// robot's connection opens or ends.
type gesturer struct {
	gestures Gestures // the gestures that can be requested

	current   Gesture       // the gesture under way; its Frames are empty between gestures
	request   event.Gesture // the request for the current gesture
	started   time.Time     // start of the latest gesture
	stretch   float64       // factor for all times of the current gesture
	nextFrame int           // index of the next keyframe
	speed     int           // of the head, in the firmware's units
	from      Head          // position of the head before the gesture
	to        Head          // position of the latest keyframe
	moved     bool          // whether the gesture has moved the head
	faced     bool          // whether the gesture has changed the face
	lit       bool          // whether the gesture has changed the lights
}

func (*gesturer) name() string { return "gesture" }

func (g *gesturer) nextStep() time.Time {
	switch {
	case len(g.current.Frames) == 0:
		return time.Time{}
	case g.nextFrame < len(g.current.Frames):
		return g.started.Add(g.stretched(g.current.Frames[g.nextFrame].At))
	}
	return g.ends()
}

// ends returns when the gesture under way ends, or the zero time without a gesture.
func (g *gesturer) ends() time.Time {
	if len(g.current.Frames) == 0 {
		return time.Time{}
	}
	return g.started.Add(g.stretched(g.current.Duration))
}

// stretched returns a number of milliseconds multiplied by g.stretch.
func (g *gesturer) stretched(ms int64) time.Duration {
	return time.Duration(float64(ms) * g.stretch * float64(time.Millisecond))
}

func (g *gesturer) step(m moment) (acts []Act) {
	if e, ok := m.event.(event.Gesture); ok {
		g.start(m, e)
	}
	if len(g.current.Frames) == 0 {
		return nil
	}
	if interruptsGesture(m) || !m.state.Online {
		return g.restore(m)
	}
	for g.nextFrame < len(g.current.Frames) && !m.now.Before(g.nextStep()) {
		acts = append(acts, g.performFrame(m)...)
	}
	if !m.now.Before(g.ends()) {
		acts = append(acts, g.restore(m)...)
	}
	return acts
}

// interruptsGesture reports whether the event of m ends a gesture early.
func interruptsGesture(m moment) bool {
	switch e := m.event.(type) {
	case event.Heard, event.RobotOnline, event.RobotOffline:
		return true
	case event.TurnEnded:
		return e.End == event.EndCancelled
	}
	return m.perceived() == petStarted || m.perceived() == petHold
}

// start starts the requested gesture. It ignores a request that follows another gesture too
// soon. A request by the mood is also ignored during another gesture, a dance or the quiet
// hours. Only the owner can request a gesture while the robot sleeps.
func (g *gesturer) start(m moment, e event.Gesture) {
	gesture, ok := g.gestures.Named(e.Name)
	byMood := e.By == event.ByMood
	underWay := len(g.current.Frames) > 0
	if !ok || !m.hasPassed(g.started, minGestureInterval) || byMood && (underWay || m.quiet || m.state.Dancing) ||
		m.state.isAsleep() && e.By != event.ByOwner {
		return
	}
	from := Head{Yaw: m.state.Head.Yaw, Pitch: m.state.Head.Pitch}
	if from.Pitch < device.MinHeadPitch {
		from.Pitch = restPitch
	}
	if underWay {
		from = g.from
	}
	g.current, g.request, g.started, g.nextFrame, g.speed = gesture, e, m.now, 0, defaultGestureSpeed
	g.from, g.to = from, from
	g.stretch = gesture.stretchTo(time.Duration(min(e.Duration, maxGestureDuration.Milliseconds())) * time.Millisecond)
}

// stretchTo returns the factor for the times of a gesture that gives the gesture a duration, or
// the nearest duration that the limits of gestures permit. The duration 0 means the gesture's own
// duration.
func (g Gesture) stretchTo(d time.Duration) float64 {
	if d <= 0 {
		return 1
	}
	factor := min(max(d, minGestureDuration), maxGestureDuration).Seconds() * 1000 / float64(g.Duration)
	for i := 1; i < len(g.Frames); i++ {
		gap := g.Frames[i].At - g.Frames[i-1].At
		factor = max(factor, float64(minKeyframeGap.Milliseconds())/float64(gap))
	}
	return factor
}

// performFrame returns the acts of the next keyframe. It leaves the face unchanged during a
// turn of a conversation, because the conversation sets the face.
func (g *gesturer) performFrame(m moment) (acts []Act) {
	f := g.current.Frames[g.nextFrame]
	g.nextFrame++
	if f.Speed != 0 {
		g.speed = f.Speed
	}
	if f.Yaw != nil || f.Pitch != nil {
		if f.Yaw != nil {
			g.to.Yaw = g.from.Yaw + *f.Yaw
		}
		if f.Pitch != nil {
			g.to.Pitch = *f.Pitch
		}
		g.moved = true
		acts = append(acts, g.turn(m, g.to, int(float64(g.speed)/g.stretch)))
	}
	if f.Face != "" && !m.state.conversation.turn {
		g.faced = true
		acts = append(acts, Feel{f.Face})
	}
	if f.Light != nil {
		g.lit = true
		acts = append(acts, Lights{f.Light[0], f.Light[1], f.Light[2]})
	}
	return acts
}

// turn returns a turn of the head, limited to the range of the servos.
func (g *gesturer) turn(m moment, to Head, speed int) TurnHead {
	pitch := min(max(to.Pitch, device.MinHeadPitch), device.MaxHeadPitch)
	hold := time.Duration(0)
	if due := g.nextStep(); due.After(m.now) {
		hold = due.Sub(m.now) + holdMargin
	}
	return TurnHead{Yaw: min(max(to.Yaw, -maxYaw), maxYaw), Pitch: &pitch, Speed: min(max(speed, minSpeed), maxSpeed),
		Priority: priorityOfRequest(g.request.By), Hold: hold}
}

// restore ends the gesture and returns the acts that restore the head, the lights and the
// face.
func (g *gesturer) restore(m moment) (acts []Act) {
	g.current = Gesture{}
	if g.moved {
		acts = append(acts, g.turn(m, g.from, restSpeed))
	}
	if g.lit {
		acts = append(acts, Lights{})
	}
	if g.faced && !m.state.conversation.turn {
		acts = append(acts, Feel{neutralFace})
	}
	g.moved, g.lit, g.faced = false, false, false
	return acts
}

// lookAtTurner turns the head to a requested target.
type lookAtTurner struct{ noTimer }

func (*lookAtTurner) name() string { return "look_at" }

// Parameters of looks. A person is assumed to be above the robot, on the side of the latest
// sound if that sound is recent.
const (
	lookHold    = 2 * time.Second
	lookSpeed   = 250                 // in the firmware's units
	lookAside   = 35                  // yaw in degrees
	lookUp      = 30                  // pitch in degrees
	lookDown    = device.MinHeadPitch // pitch in degrees
	recentSound = 30 * time.Second    // maximum age of a sound that is assumed to be the person's
)

func (*lookAtTurner) step(m moment) []Act {
	e, ok := m.event.(event.LookAt)
	if !ok || e.By == event.ByRobot || m.state.isAsleep() && e.By != event.ByOwner || e.By == event.ByMood && m.quiet {
		return nil
	}
	yaw, pitch := 0, restPitch
	switch e.Target {
	case "user":
		pitch = lookUp
		if !m.state.Sound.At.IsZero() && m.now.Sub(m.state.Sound.At) < recentSound {
			yaw = yawTo(m.state.Sound.Direction, lookAside)
		}
	case "camera", "up": // the camera means the face of a person in front of the robot, who is above the robot
		pitch = lookUp
	case "down":
		pitch = lookDown
	case "center", "model":
	default:
		return nil // only a drawn avatar can look there
	}
	return []Act{TurnHead{Yaw: yaw, Pitch: &pitch, Speed: lookSpeed, Priority: priorityOfRequest(e.By), Hold: lookHold}}
}
