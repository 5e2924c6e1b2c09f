package web

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"perch/limit"
	"perch/plain"
)

// Bounds of the memory for visitors.
const (
	visitLasts = 30 * time.Minute // without a request
	mostVisits = 100
)

// visits logs the users of a proxy: once a visit, and each change they make.
type visits struct {
	mu   sync.Mutex
	last map[string]time.Time // the times of the users' latest requests
}

// log logs the user who sends a request.
func (v *visits) log(r *http.Request, now time.Time, log *slog.Logger) {
	who := visitor(r)
	v.mu.Lock()
	last, known := v.last[who]
	if v.last == nil || len(v.last) >= mostVisits && !known {
		v.last = map[string]time.Time{} // they are logged again
	}
	v.last[who] = now
	v.mu.Unlock()
	switch {
	case !known || now.Sub(last) > visitLasts:
		log.Info("an owner has come in through Home Assistant", "name", who)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		log.Info("an owner changes something through Home Assistant", "name", who, "verb", r.Method, "path", plain.Clip(plain.Text(r.URL.Path), limit.Word))
	}
}

// visitor returns the name of the user in Home Assistant.
func visitor(r *http.Request) string {
	for _, name := range []string{"X-Remote-User-Display-Name", "X-Remote-User-Name", "X-Remote-User-Id"} {
		if who := plain.Clip(plain.Text(r.Header.Get(name)), limit.Word); who != "" {
			return who
		}
	}
	return "somebody"
}
