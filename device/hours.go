package device

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrHours is wrapped by the errors of ParseHours.
var ErrHours error = errors.New("not hours of a day")

// Hours is a daily period of wall-clock time. The zero value is empty.
type Hours struct {
	From, To time.Duration // since midnight
	err      error         // error of UnmarshalText
}

// Err returns the error of the last UnmarshalText.
func (h Hours) Err() error { return h.err }

// MarshalText implements encoding.TextMarshaler with the format of ParseHours.
func (h Hours) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler with the format of ParseHours. It always returns
// nil. Callers check Err instead, because the message must name the configuration key, which
// UnmarshalText does not know.
func (h *Hours) UnmarshalText(text []byte) error {
	parsed, err := ParseHours(string(text))
	*h = parsed
	h.err = err
	return nil
}

// ParseHours parses a period such as "22:00-07:00". Empty text gives the zero Hours.
func ParseHours(s string) (Hours, error) {
	if s == "" {
		return Hours{}, nil
	}
	from, to, _ := strings.Cut(s, "-")
	a, err1 := time.Parse("15:04", strings.TrimSpace(from))
	b, err2 := parseEnd(strings.TrimSpace(to))
	if err1 != nil || err2 != nil {
		return Hours{}, fmt.Errorf("%w: %.40q; write them as 22:00-07:00", ErrHours, s)
	}
	h := Hours{From: sinceMidnight(a), To: b}
	if h.From == h.To {
		return Hours{}, fmt.Errorf("%w: %q begins when it ends; leave it empty for none, or write 00:00-24:00 for all day", ErrHours, s)
	}
	return h, nil
}

func parseEnd(s string) (time.Duration, error) {
	if s == "24:00" {
		return 24 * time.Hour, nil
	}
	t, err := time.Parse("15:04", s)
	return sinceMidnight(t), err
}

// sinceMidnight returns the time of day, without fractions of a second.
func sinceMidnight(t time.Time) time.Duration {
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second
}

// Contains reports whether a time in the owner's time zone is within h. From is within h, and To is not.
func (h Hours) Contains(local time.Time) bool {
	now := sinceMidnight(local)
	if h.From <= h.To {
		return h.From <= now && now < h.To
	}
	return now >= h.From || now < h.To
}

// String returns the period in the format of ParseHours.
func (h Hours) String() string {
	if h == (Hours{}) {
		return ""
	}
	clock := func(d time.Duration) string { return fmt.Sprintf("%02d:%02d", int(d.Hours()), int(d.Minutes())%60) }
	return clock(h.From) + "-" + clock(h.To)
}
