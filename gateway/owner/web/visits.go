package web

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"perch/limit"
	"perch/plain"
)

const (
	visitTimeout = 30 * time.Minute // a visit ends after this time without a request
	maxVisits    = 100              // users remembered
)

// visits logs the users of Home Assistant who use the page: each visit once, and each change during a visit.
type visits struct {
	mu   sync.Mutex
	last map[string]time.Time // time of the latest request; key: name of the user
}

// log records a request, and logs it if it starts a visit, or else if it changes something.
func (v *visits) log(r *http.Request, now time.Time, log *slog.Logger) {
	user := visitor(r)
	v.mu.Lock()
	last, known := v.last[user]
	if v.last == nil || len(v.last) >= maxVisits && !known {
		v.last = map[string]time.Time{} // all users will be logged again
	}
	v.last[user] = now
	v.mu.Unlock()
	if !known || now.Sub(last) > visitTimeout {
		log.Info("an owner uses the page through Home Assistant", "name", user)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		log.Info("an owner changes something through Home Assistant", "name", user, "verb", r.Method, "path", plain.Clip(plain.Text(r.URL.Path), limit.Word))
	}
}

// visitor returns the name of the Home Assistant user who sent a request, or "somebody".
func visitor(r *http.Request) string {
	for _, header := range []string{"X-Remote-User-Display-Name", "X-Remote-User-Name", "X-Remote-User-Id"} {
		if name := plain.Clip(plain.Text(r.Header.Get(header)), limit.Word); name != "" {
			return name
		}
	}
	return "somebody"
}
