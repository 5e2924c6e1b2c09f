package web

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/gateway/httpserver"
)

const (
	cookieName  = "perch_session"
	goodFor     = 30 * 24 * time.Hour // the lifetime of a session
	linkGoodFor = 10 * time.Minute    // the lifetime of a one-time link
	mostLinks   = 16                  // unused links; a new one replaces the oldest
)

// How is the way an owner was authenticated.
type How string

// Ways to authenticate an owner.
const (
	ByLocal   How = "local"   // a program or browser of this machine, which may only read
	ByCookie  How = "cookie"  // a session
	ByIngress How = "ingress" // a proxy that knows the owner
)

// entry is the authentication of a request's owner.
type entry struct {
	how How
	// wait returns when the owner loses access, or ctx ends. It is nil if access does not end.
	wait func(ctx context.Context)
}

type entryKey struct{}

// HowOf returns how the owner who sent a request was authenticated. It is empty for everyone else, and for a
// program with a key.
func HowOf(r *http.Request) How { return entryOf(r).how }

func entryOf(r *http.Request) entry {
	e, _ := r.Context().Value(entryKey{}).(entry)
	return e
}

// A cookie holds the time when the session began, 16 random bytes and an HMAC over both and the
// epoch. So nothing is stored for a session, and a restart ends none.
const (
	stampBytes  = 8
	cookieBytes = stampBytes + 16 + sha256.Size
)

// newCookie begins a session.
func (s *Server) newCookie(secure bool) *http.Cookie {
	value := binary.BigEndian.AppendUint64(nil, uint64(s.o.Now().Unix()))
	random := make([]byte, 16)
	rand.Read(random) //nolint:errcheck // never fails, by its documentation
	value = append(value, random...)
	s.mu.Lock()
	value = append(value, s.sign(value)...)
	s.mu.Unlock()
	return &http.Cookie{Name: cookieName, Value: base64.RawURLEncoding.EncodeToString(value), Path: "/", MaxAge: int(goodFor.Seconds()),
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode}
}

// sign is called with the lock held.
func (s *Server) sign(value []byte) []byte {
	mac := hmac.New(sha256.New, s.secret)
	mac.Write(value)
	mac.Write([]byte(s.epoch)) // the value has one length
	return mac.Sum(nil)
}

// session reports whether a request has a session, and returns what is closed when
// that ends.
func (s *Server) session(r *http.Request) (ended <-chan struct{}, ok bool) {
	for _, c := range r.CookiesNamed(cookieName) { // another program of this host may use the same name
		value, err := base64.RawURLEncoding.DecodeString(c.Value)
		if err != nil || len(value) != cookieBytes {
			continue
		}
		began := time.Unix(int64(binary.BigEndian.Uint64(value)), 0)
		signed := value[:cookieBytes-sha256.Size]
		s.mu.Lock()
		good := hmac.Equal(s.sign(signed), value[len(signed):])
		ended = s.ended
		s.mu.Unlock()
		if age := s.o.Now().Sub(began); good && age >= 0 && age < goodFor {
			return ended, true
		}
	}
	return nil, false
}

// endAll ends every session: their cookies become invalid, and their streams are
// closed. It returns an error if that could not be stored and only lasts until a restart.
func (s *Server) endAll() error {
	s.ending.Lock()
	defer s.ending.Unlock()
	epoch := rand.Text()
	err := s.o.KeepEpoch(epoch) // without mu, since every request with a cookie needs it
	s.mu.Lock()
	s.epoch = epoch
	close(s.ended) // ends streams and WebSockets as well
	s.ended = make(chan struct{})
	s.mu.Unlock()
	if err != nil {
		return &httpserver.Fault{Word: "end_not_stored", HTTP: http.StatusInternalServerError, Err: err,
			Sentence: "all sessions are ended, but a restart of Perch makes them good again, because that could not be stored (" + err.Error() +
				"); correct that, log in and log out once more"}
	}
	return nil
}

// after calls end when wait returns, at the latest by stop, which waits for that.
func after(ctx context.Context, wait func(context.Context), end func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		wait(ctx)
		end()
	})
	return func() {
		cancel()
		watching.Wait()
	}
}

// ownedConn is a WebSocket's connection, which ends with its owner's access.
type ownedConn struct {
	net.Conn
	stop func()
}

// Close implements net.Conn.
func (c *ownedConn) Close() error {
	err := c.Conn.Close()
	c.stop()
	return err
}

// until returns a request that is cancelled when wait returns. stop must be called after the answer.
func until(r *http.Request, wait func(context.Context)) (known *http.Request, stop func()) {
	ctx, cancel := context.WithCancel(r.Context())
	return r.WithContext(ctx), after(ctx, wait, cancel)
}

// link is a one-time link. It expires by the monotonic clock, so that setting the clock back
// makes no link valid again.
type link struct {
	hash [sha256.Size]byte
	made time.Time // by time.Now, which reads the monotonic clock as well
}

// good reports whether the link has not expired.
func (l link) good() bool { return time.Since(l.made) < linkGoodFor }

// newLink returns the code of a new link, and the time of its end by the present wall clock.
func (s *Server) newLink() (code string, until time.Time) {
	random := make([]byte, 15)
	rand.Read(random) //nolint:errcheck // never fails, by its documentation
	code = base32.StdEncoding.EncodeToString(random)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links = append(s.links[max(0, len(s.links)-mostLinks+1):], link{sha256.Sum256([]byte(code)), time.Now()})
	return code, s.o.Now().Add(linkGoodFor)
}

// redeem reports whether a code is valid, and invalidates it.
func (s *Server) redeem(code string) (found bool) {
	hash := sha256.Sum256([]byte(code))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links = slices.DeleteFunc(s.links, func(l link) bool {
		found = found || l.hash == hash && l.good()
		return l.hash == hash || !l.good()
	})
	return found
}

// recognize returns a request with the authentication of its owner, if the owner sent it. stop must
// be called after the answer. The error is of a user who comes through a proxy and is not the owner.
func (s *Server) recognize(r *http.Request) (known *http.Request, stop func(), err error) {
	if HowOf(r) != "" { // the listener has authenticated it
		return r, func() {}, nil
	}
	if byProxy(r, s.o.Ingress) {
		return s.admit(r)
	}
	ended, ok := s.session(r)
	if !ok || !ofThisPage(r, r.Host) {
		return r, func() {}, nil
	}
	wait := func(ctx context.Context) {
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
	known, stop = until(r, wait)
	return by(known, entry{ByCookie, wait}), stop, nil
}

func by(r *http.Request, e entry) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), entryKey{}, e))
}

// ofThisPage reports whether a browser sent a request for a page of ours at one of these
// hosts, rather than for another page that shares the browser's cookie, Perch's or the one of
// Home Assistant's ingress. SameSite does not tell: every port of a host is the
// same site (RFC 6265bis section 5.2). The page's scripts send scriptHeader, which all requests of the
// owner need. A browser sends Origin with every request that changes something and with
// every WebSocket, where scripts can set no header. Sec-Fetch-Site would tell in all
// cases, but is not sent over plain HTTP.
func ofThisPage(r *http.Request, hosts ...string) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || len(r.Header["Origin"]) > 1 ||
			!slices.ContainsFunc(hosts, func(host string) bool { return strings.EqualFold(u.Host, host) }) {
			return false
		}
	}
	byScript := r.Header.Get(scriptHeader) != ""
	get, upgrade := r.Method == http.MethodGet, r.Header.Get("Upgrade") != ""
	switch {
	case (get || r.Method == http.MethodHead) && !upgrade:
		// Over plain HTTP nothing else tells an <img> of another port from a script of the page.
		return byScript || isPage(r.URL.Path)
	case origin == "":
		return false
	case get:
		return true
	}
	return byScript || r.URL.Path == "/session" || isOfRobots(r.URL.Path)
}

// scriptHeader is a header that the page's own scripts send with every request of the owner.
// A page of another origin would have to send a preflight first (Fetch
// standard, section 4.8), and is refused; a tag, such as <img>, cannot send it.
const scriptHeader = "X-Perch-Page"

// isOfRobots reports whether robots post to a path, as the robot in the page does.
func isOfRobots(path string) bool {
	return path == "/xiaozhi/ota" || strings.HasPrefix(path, "/xiaozhi/ota/") || path == "/xiaozhi/vision/explain"
}

// isPage reports whether a browser itself asks for a path: a page, its files, or the state of its
// session. These hold nothing of the owner's.
func isPage(path string) bool {
	switch path {
	case "/", "/robot", "/face", "/session":
		return true
	}
	return strings.HasPrefix(path, "/assets/")
}

// ingressHeader has the path below which Home Assistant's ingress shows a page.
const ingressHeader = "X-Ingress-Path"

// byProxy reports whether a request came through one of these proxies, by its remote address.
func byProxy(r *http.Request, proxies []netip.Addr) bool {
	if r.Header.Get(ingressHeader) == "" || len(proxies) == 0 {
		return false
	}
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.Contains(proxies, at.Addr().Unmap())
}

// Or returns a check that an authenticated owner passes as well.
func Or(check func(*http.Request) error) func(*http.Request) error {
	return func(r *http.Request) error {
		if HowOf(r) != "" {
			return nil
		}
		return check(r)
	}
}

// Only is a check that only an authenticated owner passes. Everyone else gets 404.
func Only(r *http.Request) error {
	if HowOf(r) != "" {
		return nil
	}
	return &httpserver.Fault{Word: "not_found", Sentence: "there is nothing at this address", HTTP: http.StatusNotFound}
}

// enter begins a session for the admin token or the code of a link.
func (s *Server) enter(r *http.Request, token, code string) (*http.Cookie, error) {
	if (token == "") == (code == "") {
		return nil, httpserver.BadBody("either token or code is needed")
	}
	other := s.redeem
	if token != "" {
		other = func(string) bool { return false }
	}
	err := s.o.Key.CheckToken(r, token+code, other)
	if wrong := (*httpserver.Fault)(nil); errors.As(err, &wrong) && wrong.Word == "wrong_key" {
		// The message for programs, which send a header, does not help a person.
		why := "that is not the admin token; it is in the file admin-token in the data directory"
		if code != "" {
			why = "it has been used before, or is older than ten minutes; perch open makes another"
		}
		return nil, &httpserver.Fault{Word: wrong.Word, Sentence: why, HTTP: wrong.HTTP}
	}
	if err != nil {
		return nil, err
	}
	s.o.Log.Info("an owner has come in by the page", "from", r.RemoteAddr)
	return s.newCookie(r.TLS != nil), nil
}
