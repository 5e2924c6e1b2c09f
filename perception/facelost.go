package perception

import (
	"time"

	"perch/event"
)

// faceLostAborter stops a greeting if its face has left and does not come
// back. What a person has begun to talk about is not its to end.
type faceLostAborter struct {
	FaceLostTuning
	at time.Time // it breaks off; zero is not at all
}

func (*faceLostAborter) name() string     { return "face_lost" }
func (a *faceLostAborter) due() time.Time { return a.at }

func (a *faceLostAborter) step(m moment) []Act {
	switch m.event.(type) {
	case event.Heard, event.Asked, event.TurnEnded, event.RobotOnline, event.RobotOffline:
		a.at = time.Time{}
	}
	switch m.perceived() {
	case faceLost:
		if !m.greeted.IsZero() && m.now.Sub(m.greeted) <= a.Within && !m.state.talk.person {
			a.at = m.now.Add(a.Grace)
		}
	case faceDetected, faceRecognized:
		if m.state.Face.Present {
			a.at = time.Time{}
		}
	}
	if a.at.IsZero() || m.now.Before(a.at) {
		return nil
	}
	a.at = time.Time{}
	if !m.state.talk.turn || m.state.talk.person {
		return nil // it is over already
	}
	return []Act{Abort{}}
}
