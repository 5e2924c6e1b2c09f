// Package web serves the pages of the appliance, and authenticates the owner in browsers. The pages are the dashboard, a
// robot in the browser, and a face for screens. They are written in TypeScript in the folder ui; bundle.sh makes the
// files that are embedded here.
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

// Options configures a Server.
type Options struct {
	Name     string        // name of the appliance
	Version  string        // version of Perch
	Language func() string // returns the configured default language as a BCP 47 tag
	Secret   string        // the admin token
	// Epoch is a random text on which the cookies of all sessions depend, so that a new epoch ends all sessions.
	// StoreEpoch stores a new epoch for the next run.
	Epoch      string
	StoreEpoch func(epoch string) error
	// LoggedOut is the text that StoreLoggedOut has stored: the sessions that were ended singly, by logOut. They stay
	// ended in the next run.
	LoggedOut      string
	StoreLoggedOut func(sessions string) error
	Key            *httpserver.Key // checks the admin token
	// Pace returns an error if the client has sent too many expensive requests.
	Pace func(*http.Request) error
	// Ingress holds the addresses of proxies that authenticate their users, such as Home Assistant's ingress.
	Ingress []netip.Addr
	// Administrators returns the user IDs of Home Assistant's administrators. It is needed because the ingress admits
	// all users of Home Assistant. It is nil if the proxies admit only owners.
	Administrators func(context.Context) ([]string, error)
	// Addresses returns the appliance's URLs on the network, such as "http://perch.local:8003", the best first.
	Addresses func() []string
	LocalURL  func() string // returns the URL for browsers on this machine
	// OpenHTTPS opens and describes the https address whose certificate Perch's authority signs. AuthorityFiles returns the
	// authority's certificate in DER and an Apple profile; both are nil until the https address is opened for the first time.
	// Both functions are nil if the configuration sets tls.listen or no listen address.
	OpenHTTPS      func() (HTTPSAddress, error)
	AuthorityFiles func() (certificate, profile []byte)
	Robots         Robots // nil if no robot can say codes
	Log            *slog.Logger
	Now            func() time.Time // time.Now if nil
}

// Robots makes robots say login codes aloud.
type Robots interface {
	// CanSayCode reports whether any robot may say codes.
	CanSayCode() bool
	// SayCode makes one robot say six digits. It returns an error if no robot can.
	SayCode(ctx context.Context, digits string) error
}

// Server serves the pages and authenticates the owner.
type Server struct {
	o      Options
	bundle func() bundle // reads the bundle at the first call
	secret []byte        // key for signing cookies

	ending sync.Mutex // held while sessions are being ended; locked before mu

	mu        sync.Mutex
	epoch     string             // the present epoch
	loggedOut map[sessionID]bool // sessions that were ended singly, by logOut
	ended     chan struct{}      // closed and replaced whenever sessions are ended
	links     []link             // oldest first
	said      time.Time          // when a robot last said a code; zero for never

	visits         visits
	administrators *administrators // nil if the proxies admit only owners
}

// Bundled reports whether this program was built with the bundle.
func (s *Server) Bundled() bool { return len(s.bundle().entries) > 0 }

// New returns a server. Its methods mount it on routers.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	// The key depends on the admin token, so that a new token ends all sessions.
	mac := hmac.New(sha256.New, []byte(o.Secret))
	mac.Write([]byte("sessions of the page"))
	s := &Server{o: o, bundle: sync.OnceValue(mustBundle), secret: mac.Sum(nil), epoch: o.Epoch, loggedOut: parseSessions(o.LoggedOut), ended: make(chan struct{})}
	if o.Administrators != nil {
		s.administrators = newAdministrators(o.Administrators, o.Now)
	}
	return s
}
