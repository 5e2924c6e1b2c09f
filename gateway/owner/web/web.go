// Package web serves the page: the dashboard, the robot in the browser and the face for
// screens, and authenticates its owner. The page is TypeScript in the folder
// ui; bundle.sh makes the files that are embedded here.
package web

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"perch/gateway/httpserver"
)

// Options are the content of the page, and its access.
type Options struct {
	Name, Version string
	Language      func() string // the household's, BCP 47
	Secret        string        // the admin token
	// Epoch is a random text that the cookies of all sessions depend on. A new epoch ends
	// them all; KeepEpoch stores it for the next run.
	Epoch     string
	KeepEpoch func(epoch string) error
	Key       *httpserver.Key // of the admin token
	// Pace refuses an address that sends too many requests that cost more than a file.
	Pace func(*http.Request) error
	// Ingress are the addresses of proxies that authenticate users, such as Home Assistant's.
	Ingress []netip.Addr
	// Administrators lists the ids of Home Assistant's administrators. Its ingress admits
	// every user of Home Assistant, and names the user. It is nil if the proxies
	// admit only owners.
	Administrators func(context.Context) ([]string, error)
	// Addresses are the appliance's URLs on the network, the best first:
	// "http://perch.local:8003".
	Addresses func() []string
	Own       func() string // the URL for this machine
	Log       *slog.Logger
	Now       func() time.Time // time.Now if nil
}

// Server is the page.
type Server struct {
	o      Options
	bundle func() bundle // read at the first request
	secret []byte        // signs cookies

	ending sync.Mutex // held while all sessions are being ended; locked before mu

	mu    sync.Mutex
	epoch string        // of the sessions
	ended chan struct{} // closed when all sessions end
	links []link        // the oldest first

	visits         visits          // through a proxy
	administrators *administrators // nil if the proxies admit only owners
}

// Bundled reports whether this program was built with its page.
func (s *Server) Bundled() bool { return len(s.bundle().entries) > 0 }

// New returns a server of the page.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	// The secret depends on the token, so that a new token ends all sessions.
	mac := hmac.New(sha256.New, []byte(o.Secret))
	mac.Write([]byte("sessions of the page"))
	d := &Server{o: o, bundle: sync.OnceValue(mustBundle), secret: mac.Sum(nil), epoch: o.Epoch, ended: make(chan struct{})}
	if o.Administrators != nil {
		d.administrators = newAdministrators(o.Administrators, o.Now)
	}
	return d
}
