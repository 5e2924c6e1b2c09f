package notice

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"perch/device"
)

// mostBody bounds a notification's JSON, in bytes.
const mostBody = 16 << 10

// request is the JSON of a new notification.
type request struct {
	Text      string `json:"text"`
	Urgency   string `json:"urgency"`
	ActionURL string `json:"action_url"`
	ID        string `json:"id"`
	ExpiresAt string `json:"expires_at"` // RFC 3339
	Speak     *bool  `json:"speak"`      // true where it is absent
	Robot     string `json:"robot"`      // a MAC in any spelling, or a name
	SessionID string `json:"session_id"`
}

// ParseBy reads the JSON of a notification: {text, urgency: low|normal|high,
// action_url?, id?, expires_at?, speak?, robot?|session_id?}. find finds the robot
// of a name. Unknown keys are ignored, because clients of other servers send more.
// Errors wrap ErrInvalid. ParseBy accepts all that Accept accepts, and an expires_at
// in the past besides.
func ParseBy(body []byte, find func(robot string) (device.ID, error)) (Notification, error) {
	if len(body) > mostBody {
		return Notification{}, fmt.Errorf("%w: its JSON has %d bytes, more than %d", ErrInvalid, len(body), mostBody)
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
	// The zero time is before every expiry, so that prepare checks all but the expiry.
	if _, err := n.prepare(time.Time{}); err != nil {
		return Notification{}, err
	}
	return n, nil
}

// checkActionURL accepts the http and https addresses of web pages only.
func checkActionURL(text string) error {
	if text == "" {
		return nil
	}
	if len(text) > mostURL {
		return fmt.Errorf("%w: action_url has %d bytes, more than %d", ErrInvalid, len(text), mostURL)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Errorf("%w: action_url is an address that begins with http:// or https://, not %.60q", ErrInvalid, text)
	}
	return nil
}
