package perception

import "time"

// idleGazer has a robot look around that senses, but has nothing to do. One
// that looks around by itself is left alone.
type idleGazer struct {
	GazeTuning
	next time.Time
	idle bool
	n    int
}

func (*idleGazer) name() string     { return "gaze" }
func (g *idleGazer) due() time.Time { return g.next }

func (g *idleGazer) step(m moment) []Act {
	s := m.state
	before := g.idle
	g.idle = s.Online && !s.Stale && !s.Face.Present && !s.Touch.Petting && !s.Listening && !s.Dancing && !s.asleep() && !m.quiet &&
		(s.Mode == "" || s.Mode == modeIdle) && m.free(g.AfterTalk) && m.passed(s.OwnGaze, g.AfterOwn) && m.passed(s.Sound.At, g.Every)
	switch {
	case !s.Online:
		g.next = time.Time{}
		return nil
	case !g.idle || !before:
		g.next = m.now.Add(g.Every) // it sees then whether it still has nothing to do
		return nil
	case m.now.Before(g.next):
		return nil
	}
	g.next = m.now.Add(g.Every)
	yaw := gaze()[g.n%len(gaze())] * g.Yaw / 100
	g.n++
	return []Act{TurnHead{Yaw: yaw, Speed: g.Speed, Priority: Idly}}
}

// gaze is where a robot looks one after the other, in parts of a hundred of
// the farthest. It comes back to the middle, where people are.
func gaze() []int { return []int{-60, 0, 40, 100, 0, -100, -20, 0, 70, 0} }
