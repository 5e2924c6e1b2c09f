package skin

import (
	"fmt"
	"net/http"

	"perch/agent/notice"
	"perch/device"
	"perch/gateway/httpserver"
)

// notify takes a notification's JSON and returns the id it goes by.
func (s *Server) notify(body []byte) (id string, err error) {
	n, err := notice.ParseBy(body, s.o.Find)
	if err == nil && n.Robot != "" {
		_, err = s.o.Robots.Get(n.Robot) // it would wait for a robot that never comes
		if err == nil && !s.o.Robots.Trusts(n.Robot) {
			err = fmt.Errorf("%w: it is not adopted by name; perch robot adopt %s does that", device.ErrUnknownRobot, n.Robot)
		}
	}
	if err == nil {
		n, err = s.o.Notifier.Notify(n)
	}
	return n.ID, err
}

// fault gives the errors of other packages their status in HTTP. An error with a
// code of its own is left as it is.
func fault(err error) error {
	return httpserver.AsFault(err, []httpserver.Known{
		{Err: device.ErrID, Word: "bad_robot_id", HTTP: http.StatusBadRequest},
		{Err: device.ErrUnknownRobot, Word: "unknown_robot", HTTP: http.StatusNotFound},
		{Err: notice.ErrInvalid, Word: "bad_body", HTTP: http.StatusBadRequest},
	})
}
