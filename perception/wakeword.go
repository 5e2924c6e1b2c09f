package perception

// wakeWordTurner turns the head to the side from which the wake word came.
type wakeWordTurner struct {
	WakeWordTuning
	never
}

func (*wakeWordTurner) name() string { return "wake_word" }

func (t *wakeWordTurner) step(m moment) []Act {
	heard := m.state.Sound
	if m.perceived() != wakeDetected || !heard.At.Equal(m.now) || heard.Direction == centre ||
		m.state.asleep() || m.state.Dancing || m.state.Face.Present || m.state.talk.person {
		return nil
	}
	return []Act{TurnHead{Yaw: toSide(heard.Direction, t.Yaw), Speed: t.Speed, Priority: ToACall, Hold: t.Hold}}
}
