package perception

import "time"

// danceReflector has the robot say something after a dance. The firmware
// reports a dance by its events, by its state, or by both.
type danceReflector struct {
	DanceTuning
	never
	since time.Time // it dances; zero is not
	said  time.Time
}

func (*danceReflector) name() string { return "dance" }

func (d *danceReflector) step(m moment) []Act {
	if m.state.Dancing {
		if d.since.IsZero() {
			d.since = m.now
		}
		return nil
	}
	since := d.since
	d.since = time.Time{}
	ended := m.perceived() == danceEnded || m.perceived() == stateChanged
	if since.IsZero() || !ended || m.now.Sub(since) < d.After || d.Text == "" || m.quiet || m.state.asleep() || !m.free(0) ||
		!m.passed(d.said, d.Every) {
		return nil
	}
	d.said = m.now
	return []Act{Say{Text: d.Text}}
}
