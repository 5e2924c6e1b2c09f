// Package web is the page: the dashboard, the robot in the browser, the face for
// screens, and how their owner comes in. The page itself is TypeScript in the folder
// ui; bundle.sh makes of it what is embedded here.
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
)

// key is the lock that the admin token opens.
type key interface {
	// CheckToken refuses a token that is not the secret and that another may not take for
	// it, and an address that has tried too often.
	CheckToken(r *http.Request, token string, other func(token string) bool) error
}

// Options are what the page shows, and who may come in.
type Options struct {
	Name, Version string
	Language      func() string // the household's, BCP 47
	Secret        string        // the admin token
	// Epoch is a random text of which the cookies of all sessions are made besides. Another
	// one ends them, and is given to KeepEpoch for the next run.
	Epoch     string
	KeepEpoch func(epoch string) error
	Key       key
	// Pace refuses an address that asks too often for what costs more than a file.
	Pace func(*http.Request) error
	// Ingress are the addresses of proxies that let in owners only, such as Home
	// Assistant's.
	Ingress []netip.Addr
	// Administrators lists the ids of Home Assistant's administrators, where its ingress is
	// such a proxy: that lets in every user of Home Assistant, and says who it is. nil is
	// that the proxies let in owners only.
	Administrators func(context.Context) ([]string, error)
	// Addresses are where this appliance is found on the network, the best first:
	// "http://perch.local:8003".
	Addresses func() []string
	Own       func() string // where this machine finds it
	Log       *slog.Logger
	Now       func() time.Time // nil is time.Now
}

// Server is the page.
type Server struct {
	o      Options
	bundle func() bundle // read when the page is first asked for
	secret []byte        // that cookies are signed with

	ending sync.Mutex // is held while all sessions are being ended, and is locked before mu

	mu    sync.Mutex
	epoch string        // of the sessions; ending them begins another
	ended chan struct{} // is closed when all sessions end
	links []link        // the oldest first

	visits         visits          // by a proxy
	administrators *administrators // nil where a proxy lets in owners only
}

// Bundled reports whether this program was built with its page.
func (d *Server) Bundled() bool { return len(d.bundle().entries) > 0 }

// New returns the page's door.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	// Another token, and no cookie is good any more.
	mac := hmac.New(sha256.New, []byte(o.Secret))
	mac.Write([]byte("sessions of the page"))
	d := &Server{o: o, bundle: sync.OnceValue(mustBundle), secret: mac.Sum(nil), epoch: o.Epoch, ended: make(chan struct{})}
	if o.Administrators != nil {
		d.administrators = newAdministrators(o.Administrators, o.Now)
	}
	return d
}
