package admin

import (
	"fmt"
	"net/http"
	"strings"

	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
)

// gesture is one that a robot is asked for.
type gesture struct {
	Name     string `json:"name"`
	Duration int64  `json:"duration_ms"` // milliseconds; 0 is the gesture's own
}

// mostGesture is how long a gesture may be asked to last, in milliseconds.
const mostGesture = 10_000

// gesture has an adopted robot make one. It is of this moment: a robot that is away
// does not make it later.
func (d *API) gesture(r device.Robot, g gesture) (any, error) {
	if !r.Adopted() {
		return nil, &httpserver.Fault{Word: "not_adopted", HTTP: http.StatusConflict,
			Sentence: fmt.Sprintf("the robot %s is not adopted; perch robot adopt %s does that", r.ID, r.ID)}
	}
	name, ok := event.GestureName(g.Name)
	if _, known := d.o.Gestures.Named(name); !ok || !known {
		return nil, &httpserver.Fault{Word: "unknown_gesture", HTTP: http.StatusNotFound,
			Sentence: fmt.Sprintf("there is no gesture %.40q; there are %s", g.Name, strings.Join(d.o.Gestures.Names(), ", "))}
	}
	if g.Duration < 0 || g.Duration > mostGesture {
		return nil, httpserver.BadBody(fmt.Sprintf("duration_ms is %d; it is from 0, the gesture's own, to %d", g.Duration, mostGesture))
	}
	state := d.o.Board.Robot(r.ID)
	if !state.Online {
		return nil, &httpserver.Fault{Word: "offline", HTTP: http.StatusConflict,
			Sentence: fmt.Sprintf("the robot %s is not connected, and a gesture is not kept for later; try again when it is", r.ID)}
	}
	d.o.Bus.Publish(r.ID, state.Session, event.Gesture{Name: name, Duration: g.Duration, By: event.ByOwner})
	return Taken{OK: true}, nil
}
