package admin

import (
	"fmt"
	"net/http"
	"strings"

	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
)

// gesture is the body of a request for a gesture.
type gesture struct {
	Name     string `json:"name"`
	Duration int64  `json:"duration_ms"` // milliseconds; 0 for the gesture's default
}

// maxGesture is the maximum duration of a gesture, in milliseconds.
const maxGesture = 10_000

// makeGesture makes a robot perform a gesture. It returns an error if the robot is not adopted or not connected,
// or if the name or the duration is not valid.
func (a *API) makeGesture(r device.Robot, g gesture) (any, error) {
	if !r.Adopted() {
		return nil, &httpserver.Fault{Word: "not_adopted", HTTP: http.StatusConflict,
			Sentence: fmt.Sprintf("the robot %s is not adopted; perch robot adopt %s does that", r.ID, r.ID)}
	}
	name, ok := event.GestureName(g.Name)
	if _, known := a.o.Gestures.Named(name); !ok || !known {
		return nil, &httpserver.Fault{Word: "unknown_gesture", HTTP: http.StatusNotFound,
			Sentence: fmt.Sprintf("there is no gesture %.40q; there are %s", g.Name, strings.Join(a.o.Gestures.Names(), ", "))}
	}
	if g.Duration < 0 || g.Duration > maxGesture {
		return nil, httpserver.BadBody(fmt.Sprintf("duration_ms is %d; it has to be from 0, for the usual duration, to %d", g.Duration, maxGesture))
	}
	state := a.o.Board.Robot(r.ID)
	if !state.Online {
		return nil, &httpserver.Fault{Word: "offline", HTTP: http.StatusConflict,
			Sentence: fmt.Sprintf("the robot %s is not connected, and a gesture is not kept for later; try again when it is", r.ID)}
	}
	a.o.Bus.Publish(r.ID, state.Session, event.Gesture{Name: name, Duration: g.Duration, By: event.ByOwner})
	return Accepted{OK: true}, nil
}
