package perception

import "time"

// identifiedRefresher keeps the mark of a known face alight, which the
// firmware puts out after 4 s.
type identifiedRefresher struct {
	IdentifiedTuning
	next time.Time
}

func (*identifiedRefresher) name() string     { return "identified" }
func (r *identifiedRefresher) due() time.Time { return r.next }

func (r *identifiedRefresher) step(m moment) []Act {
	face := m.state.Face
	here := face.Present || m.now.Sub(face.Lost) <= r.Gone
	if face.Identity == "" || !here || m.now.Sub(face.Identified) > r.For || m.state.asleep() || m.state.Dancing {
		r.next = time.Time{}
		return nil
	}
	if r.next.IsZero() {
		r.next = m.now.Add(r.Every)
		return nil
	}
	if m.now.Before(r.next) {
		return nil
	}
	r.next = m.now.Add(r.Every)
	return []Act{RefreshFace{}}
}
