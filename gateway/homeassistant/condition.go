package homeassistant

import (
	"fmt"
	"time"

	"perch/health"
)

// Condition returns whether the mirror is connected, and to which broker.
func (m *Mirror) Condition() health.Part {
	s := m.Status()
	part := health.Part{Name: "mqtt", OK: s.Connected, Since: s.Since}
	note := fmt.Sprintf("tells the broker at %s", s.Broker)
	switch {
	case s.Broker == "none":
		part.OK, note = true, "turned off by mqtt.broker"
	case s.Connecting:
		part.OK, note = true, fmt.Sprintf("is connecting to the broker at %s", s.Broker)
	case !s.Connected:
		note = s.Cause.Error()
	case s.Broker == "embedded":
		note = fmt.Sprintf("is the broker itself, on %s", m.o.Listen)
	}
	if s.Ends > 0 {
		note = fmt.Sprintf("%s; the embedded broker has ended %d times since perch was started, last at %s: %v", note, s.Ends,
			s.Ended.Format(time.DateTime), s.Why)
	}
	return part.Saying(note)
}
