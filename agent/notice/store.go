// Package notice stores notifications and timers and makes robots announce them. Each
// notification and each timer is announced at least once, despite restarts of the
// appliance, jumps of the wall clock and failures of the store, unless it expires or is
// acknowledged before a robot can be reached.
package notice

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/limit"
	"perch/store"
)

// The urgencies of a notification.
const (
	UrgencyLow    = "low"
	UrgencyNormal = "normal"
	UrgencyHigh   = "high" // may interrupt the robot
)

// The states of a notification, in order. Acknowledged and Expired are final.
const (
	Received     = "received"
	Shown        = "shown"
	Spoken       = "spoken"
	Acknowledged = "acknowledged"
	Expired      = "expired"
)

// Notification is a message for people. It is announced by the robot with the ID Robot, by
// the robot in the session SessionID, or by all robots if both are empty.
type Notification struct {
	ID        string    `json:"id"`
	Text      string    `json:"text"`
	Urgency   string    `json:"urgency"`
	ActionURL string    `json:"action_url,omitempty"` // for a link on screens
	Robot     device.ID `json:"robot,omitempty"`
	SessionID string    `json:"session_id,omitempty"`
	Speak     bool      `json:"speak"` // if false, the text is only shown
	State     string    `json:"state"`
	Received  time.Time `json:"received"`
	Expires   time.Time `json:"expires,omitzero"`
}

// Event returns the event that publishes the notification on the bus.
func (n Notification) Event() event.Notification {
	return event.Notification{ID: n.ID, Text: n.Text, Urgency: n.Urgency, ActionURL: n.ActionURL, Speak: n.Speak, ExpiresAt: n.Expires}
}

// isAnnounced reports whether a robot or a screen has announced the notification.
func (n Notification) isAnnounced() bool {
	return n.State == Spoken || n.State == Shown && !n.Speak
}

// Waits reports whether a notification still has to be announced. It returns true if the
// notification cannot be read.
func (s *Store) Waits(id string) bool {
	n, ok, err := s.lookup(id)
	return err != nil || ok && !n.isAnnounced()
}

// Errors of the notifications.
var (
	// ErrInvalid is wrapped by the errors for an invalid notification.
	ErrInvalid = errors.New("not a notification")
	// ErrNotFound is returned by Change and Acknowledge for an ID that is not stored.
	ErrNotFound = errors.New("no such notification")
)

const (
	maxStored  = 500            // stored notifications
	maxWaiting = 40             // unannounced notifications with the same Robot and SessionID
	lifetime   = 24 * time.Hour // time until a notification expires whose sender has set no time
)

// Store stores the notifications. It is safe for concurrent use.
type Store struct {
	table   store.Records[Notification] // by ID
	mu      sync.Mutex
	thisRun map[string]bool // IDs of the notifications stored in this run of the appliance; guarded by mu
}

// NewStore returns a store of the notifications in t.
func NewStore(t store.Records[Notification]) *Store {
	return &Store{table: t, thisRun: map[string]bool{}}
}

// Accept stores a notification durably and returns it with its ID. It replaces an earlier
// notification with the same ID. If too many are stored, it drops the oldest of low
// urgency, or else the oldest of all. Errors wrap ErrInvalid or come from the table.
func (s *Store) Accept(n Notification, now time.Time) (Notification, error) {
	n, err := n.prepare(now)
	if err != nil {
		return Notification{}, err
	}
	_, err = s.insert(n, now)
	return n, err
}

// prepare checks a new notification and fills in its defaults.
func (n Notification) prepare(now time.Time) (Notification, error) {
	now = now.Round(0)
	if len(n.Text) > limit.Line {
		return Notification{}, fmt.Errorf("%w: the text has %d bytes, more than %d", ErrInvalid, len(n.Text), limit.Line)
	}
	n.Text = agent.Speakable(n.Text)
	switch {
	case n.Text == "":
		return Notification{}, fmt.Errorf("%w: it needs a text", ErrInvalid)
	case len(n.ID) > limit.Word || strings.ContainsFunc(n.ID, unicode.IsControl):
		return Notification{}, fmt.Errorf("%w: an id has at most %d bytes and no control characters", ErrInvalid, limit.Word)
	case len(n.SessionID) > limit.Word || strings.ContainsFunc(n.SessionID, unicode.IsControl):
		return Notification{}, fmt.Errorf("%w: a session_id has at most %d bytes and no control characters", ErrInvalid, limit.Word)
	case n.Robot != "" && n.SessionID != "":
		return Notification{}, fmt.Errorf("%w: name a robot or a session_id, not both", ErrInvalid)
	case !n.Expires.IsZero() && !now.Before(n.Expires):
		return Notification{}, fmt.Errorf("%w: expires_at %s is in the past; the time is now %s", ErrInvalid,
			n.Expires.Format(time.RFC3339), now.Format(time.RFC3339))
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
		n.Expires = now.Add(lifetime)
	}
	n.State, n.Received = Received, now
	return n, nil
}

// insert stores a prepared notification durably, and returns the notifications that it has
// dropped to make room.
func (s *Store) insert(n Notification, now time.Time) (dropped []Notification, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.table.Put(n.ID, n); err != nil {
		return nil, fmt.Errorf("store a notification: %w", err)
	}
	s.thisRun[n.ID] = true
	dropped = s.surplus(n, now)
	for _, d := range dropped {
		delete(s.thisRun, d.ID)
		s.table.DeleteSoon(d.ID)
	}
	return dropped, nil
}

// surplus returns the notifications to drop after n has been stored. The caller holds s.mu.
func (s *Store) surplus(n Notification, now time.Time) (dropped []Notification) {
	others := slices.DeleteFunc(s.open(now), func(o Notification) bool { return o.ID == n.ID })
	waiting := slices.DeleteFunc(slices.Clone(others), func(o Notification) bool {
		return o.isAnnounced() || o.Robot != n.Robot || o.SessionID != n.SessionID
	})
	if len(waiting) >= maxWaiting {
		dropped = append(dropped, leastImportant(waiting))
		others = slices.DeleteFunc(others, func(o Notification) bool { return o.ID == dropped[0].ID })
	}
	if len(others) >= maxStored {
		dropped = append(dropped, leastImportant(others))
	}
	return dropped
}

// leastImportant returns the oldest notification of low urgency, or else the oldest of all.
// The list is sorted by age and not empty.
func leastImportant(list []Notification) Notification {
	for _, n := range list {
		if n.Urgency == UrgencyLow {
			return n
		}
	}
	return list[0]
}

// Change changes the state of a notification and returns the notification. It ignores a
// state before the present one: a notification that one robot has spoken remains spoken
// when another robot shows it. Change deletes a notification in a final state. For
// Acknowledged the deletion is durable, because the caller reports success to a person.
// The error is ErrNotFound or comes from the table.
func (s *Store) Change(id, state string) (Notification, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok, err := s.table.Get(id)
	if err != nil {
		return Notification{}, fmt.Errorf("change a notification: %w", err)
	}
	if !ok {
		return Notification{}, ErrNotFound
	}
	if stateIndex(state) <= stateIndex(n.State) {
		return n, nil
	}
	n.State = state
	switch state {
	case Acknowledged:
		if err := s.table.Delete(id); err != nil {
			return Notification{}, fmt.Errorf("acknowledge a notification: %w", err)
		}
		delete(s.thisRun, id)
	case Expired: // if a power cut undoes the deletion, the notification expires again after the next start
		delete(s.thisRun, id)
		s.table.DeleteSoon(id)
	default:
		s.table.PutSoon(id, n)
	}
	return n, nil
}

// stateIndex returns the position of a state in the order of states.
func stateIndex(state string) int {
	return slices.Index([]string{Received, Shown, Spoken, Acknowledged, Expired}, state)
}

// Open returns the notifications that have neither been acknowledged nor expired, oldest first.
func (s *Store) Open(now time.Time) []Notification {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open(now.Round(0))
}

// open is Open for a caller that holds s.mu.
func (s *Store) open(now time.Time) []Notification {
	list := []Notification{}
	for _, n := range s.table.All() {
		if now.Before(n.Expires) {
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(a, b Notification) int { return a.Received.Compare(b.Received) })
	return list
}

// lookup returns the notification with this ID. ok is false if it is not stored.
func (s *Store) lookup(id string) (n Notification, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Get(id)
}

// all returns all stored notifications, including expired ones.
func (s *Store) all() (list []Notification) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.table.All() {
		list = append(list, n)
	}
	return list
}

// clockJumped corrects the times of this run's notifications after a jump of the wall clock.
// Expiry times that the sender has set do not change.
func (s *Store) clockJumped(jump time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, n := range s.table.All() {
		if !s.thisRun[id] {
			continue
		}
		if n.Expires.Sub(n.Received) == lifetime {
			n.Expires = n.Expires.Add(jump)
		}
		n.Received = n.Received.Add(jump)
		s.table.PutSoon(id, n)
	}
}

// request is the JSON of a new notification.
type request struct {
	Text      string `json:"text"`
	Urgency   string `json:"urgency"`
	ActionURL string `json:"action_url"`
	ID        string `json:"id"`
	ExpiresAt string `json:"expires_at"` // RFC 3339
	Speak     *bool  `json:"speak"`      // true if absent
	Robot     string `json:"robot"`      // a MAC address in any notation, or a name
	SessionID string `json:"session_id"`
}

// Parse parses the JSON of a notification: {text, urgency: low|normal|high,
// action_url?, id?, expires_at?, speak?, robot?|session_id?}. find returns the ID of the
// robot with a name or MAC address. Unknown keys are ignored, because clients of other
// servers send more. Errors wrap ErrInvalid. Unlike Accept, Parse allows an expires_at in
// the past.
func Parse(body []byte, find func(robot string) (device.ID, error)) (Notification, error) {
	if len(body) > limit.Question {
		return Notification{}, fmt.Errorf("%w: its JSON has %d bytes, more than %d", ErrInvalid, len(body), limit.Question)
	}
	var b request
	if err := json.Unmarshal(body, &b); err != nil {
		return Notification{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	n := Notification{ID: b.ID, Text: b.Text, Urgency: b.Urgency, ActionURL: b.ActionURL, SessionID: b.SessionID, Speak: b.Speak == nil || *b.Speak}
	var err error
	if b.Robot != "" {
		if n.Robot, err = find(b.Robot); err != nil {
			return Notification{}, fmt.Errorf("%w: robot: %w", ErrInvalid, err)
		}
	}
	if b.ExpiresAt != "" {
		if n.Expires, err = time.Parse(time.RFC3339, b.ExpiresAt); err != nil {
			return Notification{}, fmt.Errorf("%w: expires_at is a time such as 2026-05-01T18:30:00Z, not %.40q", ErrInvalid, b.ExpiresAt)
		}
		if n.Expires.IsZero() {
			return Notification{}, fmt.Errorf("%w: expires_at is in the past", ErrInvalid)
		}
	}
	// At the zero time no notification has expired, so prepare checks only the other
	// fields.
	if _, err := n.prepare(time.Time{}); err != nil {
		return Notification{}, err
	}
	return n, nil
}

// checkActionURL checks that an action_url is empty or an http or https address.
func checkActionURL(text string) error {
	if text == "" {
		return nil
	}
	if len(text) > limit.Text {
		return fmt.Errorf("%w: action_url has %d bytes, more than %d", ErrInvalid, len(text), limit.Text)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Errorf("%w: action_url is an address that begins with http:// or https://, not %.60q", ErrInvalid, text)
	}
	return nil
}
