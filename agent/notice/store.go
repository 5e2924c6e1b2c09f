// Package notice keeps notifications and timers, and has robots announce them.
// Each is announced at least once, through restarts of the appliance, jumps of
// the wall clock and a store that fails.
package notice

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"perch/agent"
	"perch/device"
	"perch/event"
)

// How much a notification matters.
const (
	UrgencyLow    = "low"
	UrgencyNormal = "normal"
	UrgencyHigh   = "high" // interrupts
)

// Steps in the life of a notification. The last two end it.
const (
	Received     = "received"
	Shown        = "shown"
	Spoken       = "spoken"
	Acknowledged = "acknowledged"
	Expired      = "expired"
)

// Notice is something to tell people. It is kept until somebody has
// acknowledged it or its time is over.
type Notification struct {
	ID        string    `json:"id"`
	Text      string    `json:"text"`
	Urgency   string    `json:"urgency"`
	ActionURL string    `json:"action_url,omitempty"`
	Robot     device.ID `json:"robot,omitempty"`      // for this one,
	SessionID string    `json:"session_id,omitempty"` // or for this session; without either for all
	Speak     bool      `json:"speak"`                // else it is only shown
	State     string    `json:"state"`
	Received  time.Time `json:"received"`
	Expires   time.Time `json:"expires,omitzero"`
}

// Event is that there is such a notification.
func (n Notification) Event() event.Notification {
	return event.Notification{ID: n.ID, Text: n.Text, Urgency: n.Urgency, ActionURL: n.ActionURL, Speak: n.Speak, ExpiresAt: n.Expires}
}

// told reports whether it has reached somebody, and need not be offered again.
func (n Notification) told() bool {
	return n.State == Spoken || n.State == Shown && !n.Speak
}

// notices is where they are kept; Put is durable when it returns.
type notices interface {
	Get(key string) (Notification, bool, error)
	Put(key string, n Notification) error
	PutSoon(key string, n Notification)
	DeleteSoon(key string)
	All() iter.Seq2[string, Notification]
}

// Errors of the notices.
var (
	// ErrNotice is wrapped by Accept and ParseNotice for what cannot be a
	// notification.
	ErrInvalid = errors.New("not a notification")
	// ErrNoNotice is returned by Change for one that is not there.
	ErrNotFound = errors.New("no such notification")
)

const (
	mostNotice  = 1000 // bytes of text
	mostURL     = 2048 // bytes
	mostID      = 64   // bytes; of a session's id too
	mostNotices = 500
	mostUntold  = 20             // for one robot, one session, or all
	noticeLives = 24 * time.Hour // where it does not say
)

// Notices keeps what there is to tell. Its methods may be called from any
// goroutine.
type Store struct {
	kept notices
	mu   sync.Mutex
	here map[string]bool // those accepted in this run
}

// NewNotices returns the notices kept in a table.
func NewStore(kept notices) *Store { return &Store{kept: kept, here: map[string]bool{}} }

// Accept keeps a notification durably and returns it with its id. One of the
// same id takes the earlier one's place. Where too many wait, the oldest of
// low urgency is given up, and else the oldest. It wraps ErrNotice for what
// cannot be one.
func (s *Store) Accept(n Notification, now time.Time) (Notification, error) {
	n, err := n.prepare(now)
	if err != nil {
		return Notification{}, err
	}
	_, err = s.keep(n, now)
	return n, err
}

// prepare checks what somebody wants told, and fills in what was left out.
func (n Notification) prepare(now time.Time) (Notification, error) {
	now = now.Round(0)
	if len(n.Text) > mostNotice {
		return Notification{}, fmt.Errorf("%w: the text has %d bytes, more than %d", ErrInvalid, len(n.Text), mostNotice)
	}
	n.Text = agent.Speakable(n.Text)
	switch {
	case n.Text == "":
		return Notification{}, fmt.Errorf("%w: it needs a text", ErrInvalid)
	case len(n.ID) > mostID || strings.ContainsFunc(n.ID, unicode.IsControl):
		return Notification{}, fmt.Errorf("%w: an id has at most %d bytes and no control characters", ErrInvalid, mostID)
	case len(n.SessionID) > mostID || strings.ContainsFunc(n.SessionID, unicode.IsControl):
		return Notification{}, fmt.Errorf("%w: a session_id has at most %d bytes and no control characters", ErrInvalid, mostID)
	case n.Robot != "" && n.SessionID != "":
		return Notification{}, fmt.Errorf("%w: name a robot or a session_id, not both", ErrInvalid)
	case !n.Expires.IsZero() && !now.Before(n.Expires):
		return Notification{}, fmt.Errorf("%w: expires_at %s is in the past, it is %s", ErrInvalid, n.Expires.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	if err := checkActionURL(n.ActionURL); err != nil {
		return Notification{}, err
	}
	n.Urgency = cmp.Or(n.Urgency, UrgencyNormal)
	if !slices.Contains([]string{UrgencyLow, UrgencyNormal, UrgencyHigh}, n.Urgency) {
		return Notification{}, fmt.Errorf("%w: urgency is low, normal or high, not %.20q", ErrInvalid, n.Urgency)
	}
	n.ID = cmp.Or(n.ID, rand.Text()[:12])
	if n.Expires.IsZero() {
		n.Expires = now.Add(noticeLives)
	}
	n.State, n.Received = Received, now
	return n, nil
}

// keep writes one that is prepared, and returns those that had to give way.
func (s *Store) keep(n Notification, now time.Time) (gone []Notification, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.kept.Put(n.ID, n); err != nil {
		return nil, fmt.Errorf("keep a notification: %w", err)
	}
	s.here[n.ID] = true
	gone = s.tooMany(n, now)
	for _, g := range gone {
		s.drop(g.ID)
	}
	return gone, nil
}

// tooMany are those to give up now that n is there.
func (s *Store) tooMany(n Notification, now time.Time) (gone []Notification) {
	others := slices.DeleteFunc(s.open(now), func(o Notification) bool { return o.ID == n.ID })
	waiting := slices.DeleteFunc(slices.Clone(others), func(o Notification) bool {
		return o.told() || o.Robot != n.Robot || o.SessionID != n.SessionID
	})
	if len(waiting) >= mostUntold {
		gone = append(gone, least(waiting))
		others = slices.DeleteFunc(others, func(o Notification) bool { return o.ID == gone[0].ID })
	}
	if len(others) >= mostNotices {
		gone = append(gone, least(others))
	}
	return gone
}

// least is the oldest of low urgency, and else the oldest.
func least(list []Notification) Notification {
	for _, n := range list {
		if n.Urgency == UrgencyLow {
			return n
		}
	}
	return list[0]
}

func (s *Store) drop(id string) {
	delete(s.here, id)
	s.kept.DeleteSoon(id)
}

// Change takes a notification a step on and returns it. It never goes a step
// back: one that was spoken to somebody is not merely shown because somebody
// else saw it. An end takes it away.
func (s *Store) Change(id, state string) (Notification, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, there, err := s.kept.Get(id)
	if err != nil {
		return Notification{}, fmt.Errorf("change a notification: %w", err)
	}
	if !there {
		return Notification{}, ErrNotFound
	}
	switch {
	case state == Acknowledged || state == Expired:
		n.State = state
		s.drop(id)
	case step(state) > step(n.State):
		n.State = state
		s.kept.PutSoon(id, n)
	}
	return n, nil
}

// step numbers the states in the order they come in.
func step(state string) int {
	return slices.Index([]string{Received, Shown, Spoken, Acknowledged, Expired}, state)
}

// Open returns those that wait to be told or acknowledged, oldest first.
func (s *Store) Open(now time.Time) []Notification {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open(now.Round(0))
}

func (s *Store) open(now time.Time) []Notification {
	list := []Notification{}
	for _, n := range s.kept.All() {
		if now.Before(n.Expires) {
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(a, b Notification) int { return a.Received.Compare(b.Received) })
	return list
}

// get returns one that is there.
func (s *Store) get(id string) (Notification, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept.Get(id)
}

// all are those that are there, with those whose time is over.
func (s *Store) all() (list []Notification) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.kept.All() {
		list = append(list, n)
	}
	return list
}

// moved tells that the wall clock has jumped. What came in this run has
// waited as long as it has, whatever the clock said when it came; only a time
// that somebody named stays.
func (s *Store) moved(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, n := range s.kept.All() {
		if !s.here[id] {
			continue
		}
		if n.Expires.Sub(n.Received) == noticeLives {
			n.Expires = n.Expires.Add(by)
		}
		n.Received = n.Received.Add(by)
		s.kept.PutSoon(id, n)
	}
}
