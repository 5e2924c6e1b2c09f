package perception

import (
	"time"

	"perch/device"
	"perch/event"
)

// How gestures are carried out.
const (
	gestureEvery = 600 * time.Millisecond // the shortest interval between gestures
	holdsBeyond  = 500 * time.Millisecond // how long after a due keyframe a gesture reserves the head
	restPitch    = 15                     // degrees: the default position of the head
	restSpeed    = 250
	neutralFace  = "neutral"
)

// gesturer performs gestures, one at a time, and restores the robot afterwards.
// Speech, a touch or a new talk cancels a gesture.
type gesturer struct {
	known Gestures

	doing  Gesture // the gesture under way; without frames, none
	asked  event.Gesture
	began  time.Time
	slower float64 // factor for times
	next   int     // index of the next keyframe
	speed  int
	from   Head // where the head was
	to     Head // where it is
	moved  bool
	faced  bool
	lit    bool
}

func (*gesturer) name() string { return "gesture" }

func (g *gesturer) nextStep() time.Time {
	switch {
	case len(g.doing.Frames) == 0:
		return time.Time{}
	case g.next < len(g.doing.Frames):
		return g.began.Add(g.stretched(g.doing.Frames[g.next].At))
	}
	return g.ends()
}

// ends returns when the gesture under way has ended and the robot is restored, or the
// zero time.
func (g *gesturer) ends() time.Time {
	if len(g.doing.Frames) == 0 {
		return time.Time{}
	}
	return g.began.Add(g.stretched(g.doing.Duration))
}

func (g *gesturer) stretched(ms int64) time.Duration {
	return time.Duration(float64(ms) * g.slower * float64(time.Millisecond))
}

func (g *gesturer) step(m moment) (acts []Act) {
	if e, is := m.event.(event.Gesture); is {
		g.start(m, e)
	}
	if len(g.doing.Frames) == 0 {
		return nil
	}
	if interrupts(m) || !m.state.Online {
		return g.rest(m)
	}
	for g.next < len(g.doing.Frames) && !m.now.Before(g.nextStep()) {
		acts = append(acts, g.frame(m)...)
	}
	if !m.now.Before(g.ends()) {
		acts = append(acts, g.rest(m)...)
	}
	return acts
}

// interrupts reports whether a person has precedence over a gesture.
func interrupts(m moment) bool {
	switch e := m.event.(type) {
	case event.Heard, event.RobotOnline, event.RobotOffline:
		return true
	case event.TurnEnded:
		return e.End == event.EndCancelled
	}
	return m.perceived() == petStarted || m.perceived() == petHold
}

// start starts a gesture. It is dropped if it comes too soon after another. A gesture of
// the mood yields to any other gesture and to the quiet hours.
func (g *gesturer) start(m moment, e event.Gesture) {
	one, known := g.known.Named(e.Name)
	felt := e.By == event.ByMood
	under := len(g.doing.Frames) > 0
	if !known || !m.passed(g.began, gestureEvery) || felt && (under || m.quiet || m.state.Dancing) || m.state.asleep() && e.By != event.ByOwner {
		return
	}
	from := Head{Yaw: m.state.Head.Yaw, Pitch: m.state.Head.Pitch}
	if from.Pitch < device.MinHeadPitch {
		from.Pitch = restPitch
	}
	if under {
		from = g.from
	}
	g.doing, g.asked, g.began, g.next, g.speed = one, e, m.now, 0, gestureSpeed
	g.from, g.to = from, from
	g.slower = one.slower(time.Duration(min(e.Duration, mostGesture.Milliseconds())) * time.Millisecond)
}

// slower returns the factor that stretches a gesture to that duration, as far as a robot
// can follow; 0 means the gesture's default duration.
func (one Gesture) slower(lasts time.Duration) float64 {
	if lasts <= 0 {
		return 1
	}
	factor := min(max(lasts, leastGesture), mostGesture).Seconds() * 1000 / float64(one.Duration)
	for i := 1; i < len(one.Frames); i++ {
		gap := one.Frames[i].At - one.Frames[i-1].At
		factor = max(factor, float64(leastFrame.Milliseconds())/float64(gap))
	}
	return factor
}

// frame executes the next keyframe. While an answer is spoken its face has precedence.
func (g *gesturer) frame(m moment) (acts []Act) {
	f := g.doing.Frames[g.next]
	g.next++
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
		acts = append(acts, g.turn(m, g.to, int(float64(g.speed)/g.slower)))
	}
	if f.Face != "" && !m.state.talk.turn {
		g.faced = true
		acts = append(acts, Feel{f.Face})
	}
	if f.Light != nil {
		g.lit = true
		acts = append(acts, Lights{f.Light[0], f.Light[1], f.Light[2]})
	}
	return acts
}

// turn returns a turn of the head, within the range of its servos.
func (g *gesturer) turn(m moment, to Head, speed int) TurnHead {
	pitch := min(max(to.Pitch, device.MinHeadPitch), device.MaxHeadPitch)
	hold := time.Duration(0)
	if due := g.nextStep(); due.After(m.now) {
		hold = due.Sub(m.now) + holdsBeyond
	}
	return TurnHead{Yaw: min(max(to.Yaw, -mostYaw), mostYaw), Pitch: &pitch, Speed: min(max(speed, leastSpeed), mostSpeed),
		Priority: priorityOf(g.asked.By), Hold: hold}
}

// rest ends the gesture: it restores the head, the lights and the face.
func (g *gesturer) rest(m moment) (acts []Act) {
	g.doing = Gesture{}
	if g.moved {
		acts = append(acts, g.turn(m, g.from, restSpeed))
	}
	if g.lit {
		acts = append(acts, Lights{})
	}
	if g.faced && !m.state.talk.turn {
		acts = append(acts, Feel{neutralFace})
	}
	g.moved, g.lit, g.faced = false, false, false
	return acts
}

// looker turns the head to the target of a look.
type looker struct{ noTimer }

func (*looker) name() string { return "look_at" }

// Parameters of looks. A person is assumed to be above the robot, at the side of the
// last sound if that is recent.
const (
	lookHolds   = 2 * time.Second
	lookSpeed   = 250
	lookAside   = 35 // degrees
	lookUp      = 30
	lookDown    = device.MinHeadPitch
	soundIsWho  = 30 * time.Second
	lookAtUser  = "user"
	lookAtUpper = "up"
	lookAtLower = "down"
)

func (*looker) step(m moment) []Act {
	e, is := m.event.(event.LookAt)
	if !is || m.state.asleep() && e.By != event.ByOwner || e.By == event.ByMood && m.quiet {
		return nil
	}
	yaw, pitch := 0, restPitch
	switch e.Target {
	case lookAtUser:
		pitch = lookUp
		if !m.state.Sound.At.IsZero() && m.now.Sub(m.state.Sound.At) < soundIsWho {
			yaw = toSide(m.state.Sound.Direction, lookAside)
		}
	case "camera", lookAtUpper: // the camera is in its face: who looks into it is in front
		pitch = lookUp
	case lookAtLower:
		pitch = lookDown
	case "center", "model":
	default:
		return nil // possible only for a drawn avatar
	}
	return []Act{TurnHead{Yaw: yaw, Pitch: &pitch, Speed: lookSpeed, Priority: priorityOf(e.By), Hold: lookHolds}}
}
