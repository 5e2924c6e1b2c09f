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
	"time"

	"perch/gateway/httpserver"
)

const (
	cookieName = "perch_session"
	// goodFor is how long a session lasts that nobody ends.
	goodFor = 30 * 24 * time.Hour
	// linkGoodFor is how long a one-time link may be used.
	linkGoodFor = 10 * time.Minute
	// mostLinks bounds the links that wait; the oldest gives way.
	mostLinks = 16
)

// How is how an owner has come in.
type How string

// Ways in.
const (
	ByLocal   How = "local"   // a program or browser of this machine, which may only read
	ByCookie  How = "cookie"  // a session
	ByIngress How = "ingress" // a proxy that knows the owner
)

// entry is an owner who has come in.
type entry struct {
	how How
	// wait returns when the owner has access no more, or ctx ends; nil is that this does
	// not happen.
	wait func(ctx context.Context)
}

type entryKey struct{}

// HowOf is how the owner came in who sent a request; empty is nobody, or a program
// with a key.
func HowOf(r *http.Request) How { return entryOf(r).how }

func entryOf(r *http.Request) entry {
	e, _ := r.Context().Value(entryKey{}).(entry)
	return e
}

// A cookie is when the session began, 16 random bytes and an HMAC over both and the
// epoch. So nothing is kept for a session, and a restart ends none.
const (
	stampBytes  = 8
	cookieBytes = stampBytes + 16 + sha256.Size
)

// newCookie begins a session. Its epoch is the present one.
func (d *Server) newCookie(secure bool) *http.Cookie {
	value := binary.BigEndian.AppendUint64(nil, uint64(d.o.Now().Unix()))
	random := make([]byte, 16)
	rand.Read(random) //nolint:errcheck // never fails, by its documentation
	value = append(value, random...)
	d.mu.Lock()
	value = append(value, d.sign(value)...)
	d.mu.Unlock()
	return &http.Cookie{Name: cookieName, Value: base64.RawURLEncoding.EncodeToString(value), Path: "/", MaxAge: int(goodFor.Seconds()),
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode}
}

// sign is called with the lock held.
func (d *Server) sign(value []byte) []byte {
	mac := hmac.New(sha256.New, d.secret)
	mac.Write(value)
	mac.Write([]byte(d.epoch)) // the value has one length
	return mac.Sum(nil)
}

// session reports whether a request has a session, and returns what is closed when
// that ends.
func (d *Server) session(r *http.Request) (ended <-chan struct{}, ok bool) {
	for _, c := range r.CookiesNamed(cookieName) { // another program of this host may have set one of the same name
		value, err := base64.RawURLEncoding.DecodeString(c.Value)
		if err != nil || len(value) != cookieBytes {
			continue
		}
		began := time.Unix(int64(binary.BigEndian.Uint64(value)), 0)
		signed := value[:cookieBytes-sha256.Size]
		d.mu.Lock()
		good := hmac.Equal(d.sign(signed), value[len(signed):])
		ended = d.ended
		d.mu.Unlock()
		if age := d.o.Now().Sub(began); good && age >= 0 && age < goodFor {
			return ended, true
		}
	}
	return nil, false
}

// endAll ends every session: their cookies are good no more, and their streams are
// closed. The error is that this could not be stored, so that it holds until a restart.
func (d *Server) endAll() error {
	d.ending.Lock()
	defer d.ending.Unlock()
	epoch := rand.Text()
	err := d.o.KeepEpoch(epoch) // without mu, for which every request with a cookie waits
	d.mu.Lock()
	d.epoch = epoch
	close(d.ended) // and with it all that is answered, and all WebSockets
	d.ended = make(chan struct{})
	d.mu.Unlock()
	if err != nil {
		return &httpserver.Fault{Word: "end_not_stored", HTTP: http.StatusInternalServerError, Err: err,
			Sentence: "all sessions are ended, but a restart of Perch makes them good again, because that could not be stored (" + err.Error() +
				"); correct that, log in and log out once more"}
	}
	return nil
}

// ownedConn is a WebSocket's connection, which ends with its owner's access.
type ownedConn struct {
	net.Conn
	stop func()
}

// closeAfter has a connection closed when wait returns.
func closeAfter(conn net.Conn, wait func(context.Context)) net.Conn {
	ctx, cancel := context.WithCancel(context.Background())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		wait(ctx)
		_ = conn.Close() // its owner's next read or write fails
	}()
	return &ownedConn{conn, func() {
		cancel()
		<-watched
	}}
}

// Close implements net.Conn.
func (c *ownedConn) Close() error {
	err := c.Conn.Close()
	c.stop()
	return err
}

// until returns a request that is cancelled when wait returns. stop is to be called once it
// has been answered.
func until(r *http.Request, wait func(context.Context)) (known *http.Request, stop func()) {
	ctx, cancel := context.WithCancel(r.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		wait(ctx)
		cancel()
	}()
	return r.WithContext(ctx), func() {
		cancel()
		<-watched
	}
}

// link is a link that lets in once, for a time by the clock that only runs: one that was
// set back makes no link good again.
type link struct {
	hash [sha256.Size]byte
	made time.Time // by time.Now, whose reading of that clock time.Since goes by
}

// good reports whether the link is not too old.
func (l link) good() bool { return time.Since(l.made) < linkGoodFor }

// newLink makes the code of one. until is when it ends by the wall clock as it is.
func (d *Server) newLink() (code string, until time.Time) {
	random := make([]byte, 15)
	rand.Read(random) //nolint:errcheck // never fails, by its documentation
	code = base32.StdEncoding.EncodeToString(random)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.links = append(d.links[max(0, len(d.links)-mostLinks+1):], link{sha256.Sum256([]byte(code)), time.Now()})
	return code, d.o.Now().Add(linkGoodFor)
}

// redeem uses a code up.
func (d *Server) redeem(code string) bool {
	hash := sha256.Sum256([]byte(code))
	d.mu.Lock()
	defer d.mu.Unlock()
	before := len(d.links)
	found := false
	d.links = slices.DeleteFunc(d.links, func(l link) bool {
		found = found || l.hash == hash && l.good()
		return l.hash == hash || !l.good()
	})
	return found && len(d.links) < before
}

// recognize returns a request with how its owner has come in, where its sender is
// the owner. stop is to be called once it has been answered. The error is that its sender
// comes through a proxy and is not the owner.
func (d *Server) recognize(r *http.Request) (known *http.Request, stop func(), err error) {
	if HowOf(r) != "" { // the listener is for nobody else
		return r, func() {}, nil
	}
	if byProxy(r, d.o.Ingress) {
		return d.admit(r)
	}
	ended, ok := d.session(r)
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

// ofThisPage reports whether a browser sent a request for a page of ours, which it shows at one
// of these hosts, rather than for another page that shares the browser's cookie: Perch's, or that
// of Home Assistant's ingress. SameSite does not say so: it takes every port of a host for the
// same site (RFC 6265bis section 5.2). The page's scripts send scriptHeader, and everything of the
// owner's wants it. A browser names the Origin of every request that changes something and
// of every WebSocket, for which scripts can set no header. Sec-Fetch-Site would say it of
// all, but is not sent over plain HTTP.
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

// scriptHeader is a header that the page's own scripts send with every request for what is
// the owner's. A page of another origin would have to ask with a preflight first (Fetch
// standard, section 4.8), and is refused; a tag, such as <img>, cannot send it.
const scriptHeader = "X-Perch-Page"

// isOfRobots reports whether a path is one to which a robot posts, as the robot in the page does.
func isOfRobots(path string) bool {
	return path == "/xiaozhi/ota" || strings.HasPrefix(path, "/xiaozhi/ota/") || path == "/xiaozhi/vision/explain"
}

// isPage reports whether a path is one that a browser itself asks for: of a page, of its
// files, or of the state of its session, none of which holds anything of the owner's.
func isPage(path string) bool {
	switch path {
	case "/", "/robot", "/face", "/session":
		return true
	}
	return strings.HasPrefix(path, "/assets/")
}

// ingressHeader is the path below which Home Assistant's ingress shows a page.
const ingressHeader = "X-Ingress-Path"

// byProxy reports whether a request came through one of these proxies. Nobody else's
// word is taken for it.
func byProxy(r *http.Request, proxies []netip.Addr) bool {
	if r.Header.Get(ingressHeader) == "" || len(proxies) == 0 {
		return false
	}
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.Contains(proxies, at.Addr().Unmap())
}

// Or is a lock that its key opens, and an owner who has come in.
func Or(check func(*http.Request) error) func(*http.Request) error {
	return func(r *http.Request) error {
		if HowOf(r) != "" {
			return nil
		}
		return check(r)
	}
}

// Only is a lock that an owner who has come in opens, and nothing else. To all others
// there is nothing behind it.
func Only(r *http.Request) error {
	if HowOf(r) != "" {
		return nil
	}
	return &httpserver.Fault{Word: "not_found", Sentence: "there is nothing at this address", HTTP: http.StatusNotFound}
}

// enter begins a session for the admin token or the code of a link.
func (d *Server) enter(r *http.Request, token, code string) (*http.Cookie, error) {
	if (token == "") == (code == "") {
		return nil, httpserver.BadBody("either token or code is needed")
	}
	other := d.redeem
	if token != "" {
		other = func(string) bool { return false }
	}
	err := d.o.Key.CheckToken(r, token+code, other)
	if wrong := (*httpserver.Fault)(nil); errors.As(err, &wrong) && wrong.Word == "wrong_key" {
		// The sentence for programs, who send a header, says nothing to a person.
		why := "that is not the admin token; it is in the file admin-token in the data directory"
		if code != "" {
			why = "it has been used before, or is older than ten minutes; perch open makes another"
		}
		return nil, &httpserver.Fault{Word: wrong.Word, Sentence: why, HTTP: wrong.HTTP}
	}
	if err != nil {
		return nil, err
	}
	d.o.Log.Info("an owner has come in by the page", "from", r.RemoteAddr)
	return d.newCookie(r.TLS != nil), nil
}
