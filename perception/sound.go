package perception

import "time"

// soundTurner turns the head to where a sound comes from, while there is
// no face to look at and no person to listen to.
type soundTurner struct {
	SoundTuning
	never
	turned time.Time
}

func (*soundTurner) name() string { return "sound" }

func (t *soundTurner) step(m moment) []Act {
	heard := m.state.Sound
	if m.perceived() != soundEvent || !heard.At.Equal(m.now) || m.quiet || m.state.asleep() || m.state.Dancing || m.state.Face.Present ||
		!m.free(t.AfterTalk) || !m.passed(m.played, t.AfterPlay) || !m.passed(t.turned, t.Every) {
		return nil
	}
	t.turned = m.now
	pitch := t.Pitch
	return []Act{TurnHead{Yaw: toSide(heard.Direction, t.Yaw), Pitch: &pitch, Speed: t.Speed, Priority: ToASound, Hold: t.Every}}
}

// toSide is the yaw to a direction.
func toSide(direction string, yaw int) int {
	switch direction {
	case left:
		return -yaw
	case right:
		return yaw
	}
	return 0
}
