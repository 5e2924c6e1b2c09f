package agent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/device"
)

// How much a notification matters.
const (
	UrgencyLow    = "low"
	UrgencyNormal = "normal"
	UrgencyHigh   = "high" // interrupts
)

// Steps in the life of a notification. The last two end it.
const (
	NoticeReceived     = "received"
	NoticeShown        = "shown"
	NoticeSpoken       = "spoken"
	NoticeAcknowledged = "acknowledged"
	NoticeExpired      = "expired"
)

// Notice is something to tell people. It is kept until somebody has
// acknowledged it or its time is over.
type Notice struct {
	ID        string    `json:"id"`
	Text      string    `json:"text"`
	Urgency   string    `json:"urgency"`
	ActionURL string    `json:"action_url,omitempty"`
	Robot     device.ID `json:"robot,omitempty"` // for this one; empty is for all
	Speak     bool      `json:"speak"`
	State     string    `json:"state"`
	Received  time.Time `json:"received"`
	Expires   time.Time `json:"expires,omitzero"`
}

// notices is where they are kept; Put is durable when it returns.
type notices interface {
	Get(key string) (Notice, bool, error)
	Put(key string, n Notice) error
	PutSoon(key string, n Notice)
	DeleteSoon(key string)
	All() iter.Seq2[string, Notice]
}

// Errors of the notices.
var (
	// ErrNotice is wrapped by Accept for what cannot be a notification.
	ErrNotice = errors.New("not a notification")
	// ErrNoNotice is returned by Change for one that is not there.
	ErrNoNotice = errors.New("no such notification")
)

const (
	mostNotice  = 1000 // characters of text
	mostNotices = 500
	noticeLives = 24 * time.Hour // where it does not say
)

// Notices keeps what there is to tell. Its methods may be called from any
// goroutine.
type Notices struct {
	kept notices
	mu   sync.Mutex
}

// NewNotices returns the notices kept in a table.
func NewNotices(kept notices) *Notices { return &Notices{kept: kept} }

// Accept keeps a notification durably and returns it with its id. One of the
// same id takes the earlier one's place. Where there are too many, the oldest
// of low urgency is given up, and else the oldest.
func (s *Notices) Accept(n Notice, now time.Time) (Notice, error) {
	n.Text = strings.TrimSpace(n.Text)
	if n.Text == "" || len(n.Text) > mostNotice || len(n.ID) > 64 {
		return Notice{}, fmt.Errorf("%w: a text of %d bytes, an id of %d", ErrNotice, len(n.Text), len(n.ID))
	}
	if n.Urgency == "" {
		n.Urgency = UrgencyNormal
	}
	if !slices.Contains([]string{UrgencyLow, UrgencyNormal, UrgencyHigh}, n.Urgency) {
		return Notice{}, fmt.Errorf("%w: urgency is low, normal or high, not %q", ErrNotice, n.Urgency)
	}
	if n.ID == "" {
		n.ID = rand.Text()[:12]
	}
	if n.Expires.IsZero() {
		n.Expires = now.Add(noticeLives)
	}
	n.State, n.Received = NoticeReceived, now
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeRoom(n.ID, now)
	if err := s.kept.Put(n.ID, n); err != nil {
		return Notice{}, fmt.Errorf("keep a notification: %w", err)
	}
	return n, nil
}

func (s *Notices) makeRoom(id string, now time.Time) {
	open := s.open(now)
	open = slices.DeleteFunc(open, func(n Notice) bool { return n.ID == id })
	if len(open) < mostNotices {
		return
	}
	least := 0
	for i, n := range open {
		if n.Urgency == UrgencyLow {
			least = i
			break
		}
	}
	s.kept.DeleteSoon(open[least].ID)
}

// Change takes a notification a step on. An end takes it away.
func (s *Notices) Change(id, state string) (Notice, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, there, err := s.kept.Get(id)
	if err != nil {
		return Notice{}, fmt.Errorf("change a notification: %w", err)
	}
	if !there {
		return Notice{}, ErrNoNotice
	}
	n.State = state
	if state == NoticeAcknowledged || state == NoticeExpired {
		s.kept.DeleteSoon(id)
	} else {
		s.kept.PutSoon(id, n)
	}
	return n, nil
}

// Open returns those that wait, oldest first.
func (s *Notices) Open(now time.Time) []Notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open(now)
}

// open also takes away those whose time is over.
func (s *Notices) open(now time.Time) []Notice {
	list := []Notice{}
	for id, n := range s.kept.All() {
		if !now.Before(n.Expires) {
			s.kept.DeleteSoon(id)
			continue
		}
		list = append(list, n)
	}
	slices.SortStableFunc(list, func(a, b Notice) int { return a.Received.Compare(b.Received) })
	return list
}
