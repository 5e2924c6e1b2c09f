package web

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/big"
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
	cookieName = "perch_session"
	// secureCookieName is the name over https. It differs because a browser does not let an http response replace a Secure
	// cookie (RFC 6265bis section 5.7). With one name, a login over https would prevent logins over http.
	secureCookieName = "__Host-perch_session"

	sessionLifetime = 30 * 24 * time.Hour
	linkLifetime    = 10 * time.Minute // lifetime of a one-time link
	maxLinks        = 16               // unused links; another link replaces the oldest

	codeLifetime  = 5 * time.Minute  // lifetime of a link's six digits
	maxTries      = 5                // wrong codes after which the six digits of a link become invalid
	sayInterval   = time.Minute      // minimum interval between codes that robots say
	retryInterval = 5 * time.Second  // minimum interval after a failed try, which may have synthesized speech
	sayTimeout    = 30 * time.Second // for one try
)

// AuthMethod is the way an owner was authenticated.
type AuthMethod string

// Methods of authentication.
const (
	ByLocal   AuthMethod = "local"   // the client is a program or browser on this machine, and may load the pages and act as a robot
	ByCookie  AuthMethod = "cookie"  // the request has the cookie of a session
	ByIngress AuthMethod = "ingress" // a proxy has authenticated the owner
)

// authentication is the result of authenticating the owner who sent a request.
type authentication struct {
	how AuthMethod
	// wait blocks until the owner loses access, or until ctx ends. It is nil if the owner cannot lose access.
	wait func(ctx context.Context)
}

// authenticationKey is the key of the authentication in the context of a request.
type authenticationKey struct{}

// AuthMethodOf returns how the owner who sent a request was authenticated. It returns "" for all other requests, also
// for the requests of programs that send an access key.
func AuthMethodOf(r *http.Request) AuthMethod { return authenticationOf(r).how }

// authenticationOf returns the authentication of a request, or the zero value if the request was not authenticated here.
func authenticationOf(r *http.Request) authentication {
	a, _ := r.Context().Value(authenticationKey{}).(authentication)
	return a
}

// A cookie contains the time when the session began, 16 random bytes, and an HMAC over both and the epoch (see
// Options.Epoch). Sessions survive a restart, because a cookie is checked without any stored data about its session.
const (
	timeBytes   = 8
	cookieBytes = timeBytes + 16 + sha256.Size
)

// sessionID identifies a session: the part of its cookie that is signed.
type sessionID [cookieBytes - sha256.Size]byte

func (id sessionID) began() time.Time {
	return time.Unix(int64(binary.BigEndian.Uint64(id[:timeBytes])), 0)
}

// isOver reports whether the lifetime of the session has passed, or has not begun.
func (id sessionID) isOver(now time.Time) bool {
	age := now.Sub(id.began())
	return age < 0 || age >= sessionLifetime
}

// formatSessions returns sessions as the text that Options.StoreLoggedOut stores.
func formatSessions(all map[sessionID]bool) string {
	var words []string
	for id := range all {
		words = append(words, base64.RawURLEncoding.EncodeToString(id[:]))
	}
	return strings.Join(words, " ")
}

// parseSessions returns the sessions in a text of formatSessions.
func parseSessions(text string) map[sessionID]bool {
	all := map[sessionID]bool{}
	for word := range strings.FieldsSeq(text) {
		if id, err := base64.RawURLEncoding.DecodeString(word); err == nil && len(id) == len(sessionID{}) {
			all[sessionID(id)] = true
		}
	}
	return all
}

// newCookie returns the cookie of a new session.
func (s *Server) newCookie(secure bool) *http.Cookie {
	value := binary.BigEndian.AppendUint64(nil, uint64(s.o.Now().Unix()))
	random := make([]byte, 16)
	rand.Read(random) //nolint:errcheck // never fails, by its documentation
	value = append(value, random...)
	s.mu.Lock()
	value = append(value, s.sign(value)...)
	s.mu.Unlock()
	return sessionCookie(secure, base64.RawURLEncoding.EncodeToString(value), sessionLifetime)
}

// sessionCookie returns the cookie of a session. A negative lifetime removes it.
func sessionCookie(secure bool, value string, lifetime time.Duration) *http.Cookie {
	return &http.Cookie{Name: nameOfCookie(secure), Value: value, Path: "/", MaxAge: int(lifetime.Seconds()), HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode}
}

// nameOfCookie returns the cookie's name: over https if secure, otherwise over http.
func nameOfCookie(secure bool) string {
	if secure {
		return secureCookieName
	}
	return cookieName
}

// sign returns the HMAC over a value and the epoch. s.mu must be held.
func (s *Server) sign(value []byte) []byte {
	mac := hmac.New(sha256.New, s.secret)
	mac.Write(value)
	mac.Write([]byte(s.epoch)) // needs no separator, because all values have the same length
	return mac.Sum(nil)
}

// openSession is the session of a request.
type openSession struct {
	id    sessionID
	epoch string // the epoch during the request
}

// session returns the session that the cookie of a request belongs to. ok is false if the request has no valid cookie,
// or if the session has ended.
func (s *Server) session(r *http.Request) (open openSession, ok bool) {
	for _, c := range r.CookiesNamed(nameOfCookie(r.TLS != nil)) { // another program on this host may use the same name
		value, err := base64.RawURLEncoding.DecodeString(c.Value)
		if err != nil || len(value) != cookieBytes {
			continue
		}
		id, signature := sessionID(value[:len(sessionID{})]), value[len(sessionID{}):]
		s.mu.Lock()
		valid := hmac.Equal(s.sign(id[:]), signature) && !s.loggedOut[id]
		open = openSession{id, s.epoch}
		s.mu.Unlock()
		if valid && !id.isOver(s.o.Now()) {
			return open, true
		}
	}
	return openSession{}, false
}

// waitEnded waits until a session is ended, or ctx ends.
func (s *Server) waitEnded(ctx context.Context, open openSession) {
	for {
		s.mu.Lock()
		over, ended := s.epoch != open.epoch || s.loggedOut[open.id], s.ended
		s.mu.Unlock()
		if over {
			return
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return
		}
	}
}

// maxLoggedOut is the maximum number of stored logged-out sessions. A further logout ends all sessions.
const maxLoggedOut = 200

// logOut ends a session: its cookie becomes invalid, and its streams and WebSockets are closed. It returns an error if
// that could not be stored; then the cookie becomes valid again at the next restart.
func (s *Server) logOut(id sessionID) error {
	s.ending.Lock()
	defer s.ending.Unlock()
	s.mu.Lock()
	next := maps.Clone(s.loggedOut)
	s.mu.Unlock()
	maps.DeleteFunc(next, func(id sessionID, _ bool) bool { return s.o.Now().Sub(id.began()) >= sessionLifetime }) // keeps sessions that seem to begin in the future, because the clock was set back
	if len(next) >= maxLoggedOut {
		return s.endAll()
	}
	next[id] = true
	err := s.o.StoreLoggedOut(formatSessions(next)) // called without mu, which every request with a cookie needs
	s.mu.Lock()
	s.loggedOut = next
	s.notifyEnded()
	s.mu.Unlock()
	return endError(err)
}

// endSessions ends all sessions, as logOut ends one.
func (s *Server) endSessions() error {
	s.ending.Lock()
	defer s.ending.Unlock()
	return s.endAll()
}

// endAll is endSessions for a caller that holds s.ending.
func (s *Server) endAll() error {
	epoch := rand.Text()
	err := s.o.StoreEpoch(epoch)
	if err == nil {
		_ = s.o.StoreLoggedOut("") // the new epoch ends these sessions in any case
	}
	s.mu.Lock()
	s.epoch, s.loggedOut = epoch, map[sessionID]bool{}
	s.notifyEnded()
	s.mu.Unlock()
	return endError(err)
}

// notifyEnded wakes all callers of waitEnded. s.mu must be held.
func (s *Server) notifyEnded() {
	close(s.ended)
	s.ended = make(chan struct{})
}

// endError returns the error for an end of sessions that could not be stored. It returns nil for nil.
func endError(err error) error {
	if err == nil {
		return nil
	}
	return &httpserver.Fault{Word: "end_not_stored", HTTP: http.StatusInternalServerError, Err: err,
		Sentence: "you are logged out, but a restart of Perch logs you in again, because the logout could not be stored (" + err.Error() +
			"); correct that, log in and log out once more"}
}

// callAfter starts a goroutine that calls end once wait has returned. stop makes wait return, and waits until end has
// returned.
func callAfter(ctx context.Context, wait func(context.Context), end func()) (stop func()) {
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

// ownedConn is the connection of an owner's WebSocket. It is closed when the owner loses access.
type ownedConn struct {
	net.Conn
	stop func() // ends the goroutine that waits for the loss of access
}

// Close implements net.Conn.
func (c *ownedConn) Close() error {
	err := c.Conn.Close()
	c.stop()
	return err
}

// cancelAfter returns a copy of the request whose context is cancelled once wait has returned. stop must be called
// after the response.
func cancelAfter(r *http.Request, wait func(context.Context)) (cancellable *http.Request, stop func()) {
	ctx, cancel := context.WithCancel(r.Context())
	return r.WithContext(ctx), callAfter(ctx, wait, cancel)
}

// link is a one-time link, with six digits that people can type instead. It expires by the monotonic clock, so that
// setting the clock back does not make a link valid again.
type link struct {
	hash  [sha256.Size]byte // SHA-256 of the code in the link
	typed string            // the six digits; "" if they are invalid, or if the link has none
	tries int               // wrong codes since the link was made
	made  time.Time         // from time.Now, so that it has a monotonic clock reading
}

// isValid reports whether the link has not expired.
func (l link) isValid() bool { return time.Since(l.made) < linkLifetime }

// isTyped reports whether a code is the six digits of the link, and the digits have not expired.
func (l link) isTyped(code string) bool {
	return l.typed != "" && time.Since(l.made) < codeLifetime && subtle.ConstantTimeCompare([]byte(l.typed), []byte(code)) == 1
}

// newLink adds a link. If typed is not empty, people can type these six digits instead of opening the link. newLink
// returns the code of the link, and the wall clock time when the link expires.
func (s *Server) newLink(typed string) (code string, until time.Time) {
	random := make([]byte, 15)
	rand.Read(random) //nolint:errcheck // never fails, by its documentation
	code = base32.StdEncoding.EncodeToString(random)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links = append(s.links[max(0, len(s.links)-maxLinks+1):], link{hash: sha256.Sum256([]byte(code)), typed: typed, made: time.Now()})
	return code, s.o.Now().Add(linkLifetime)
}

// sixDigits returns random digits for newLink.
func sixDigits() string {
	digits, _ := rand.Int(rand.Reader, big.NewInt(1_000_000)) // never fails, by its documentation
	return fmt.Sprintf("%06d", digits)
}

// redeem reports whether a code is valid, and makes it invalid. A wrong code counts for every link. After maxTries
// wrong codes the six digits of a link are invalid. The link stays valid, because its random code cannot be guessed.
func (s *Server) redeem(code string) (found bool) {
	code = strings.ReplaceAll(code, " ", "") // people read and type the digits in groups
	hash := sha256.Sum256([]byte(code))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links = slices.DeleteFunc(s.links, func(l link) bool {
		is := l.hash == hash || l.isTyped(code)
		found = found || is && l.isValid()
		return is || !l.isValid()
	})
	for i := range s.links {
		if l := &s.links[i]; !found {
			if l.tries++; l.tries >= maxTries {
				l.typed = ""
			}
		}
	}
	return found
}

// sayCode makes a link, and makes a robot say its six digits. Anyone on the network can request this. Therefore robots say
// at most one code per sayInterval, and only people near the robot learn it.
func (s *Server) sayCode(ctx context.Context) error {
	if !s.canSayCode() {
		return &httpserver.Fault{Word: "no_robot", Sentence: "no adopted robot can say codes", HTTP: http.StatusNotFound}
	}
	s.mu.Lock()
	wait := sayInterval - time.Since(s.said)
	if s.said.IsZero() || wait <= 0 {
		wait, s.said = 0, time.Now()
	}
	s.mu.Unlock()
	if wait > 0 {
		return &httpserver.Fault{Word: "code_said", HTTP: http.StatusTooManyRequests,
			Sentence: fmt.Sprintf("a robot has said a code just now; it says another one in %d seconds", int(wait.Seconds())+1)}
	}
	typed := sixDigits()
	code, _ := s.newLink(typed)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayTimeout) // a client that disconnects must not end the try, or the next client could begin another
	defer cancel()
	if err := s.o.Robots.SayCode(ctx, typed); err != nil {
		s.redeem(code)
		s.mu.Lock()
		s.said = time.Now().Add(retryInterval - sayInterval) // nobody has heard the code
		s.mu.Unlock()
		return &httpserver.Fault{Word: "no_robot_listens", HTTP: http.StatusConflict, Err: err,
			Sentence: "no robot listens; wake one of yours, by a touch or its wake word, and try again within half a minute"}
	}
	s.o.Log.Info("a robot has said a code for the page")
	return nil
}

// canSayCode reports whether any robot may say codes.
func (s *Server) canSayCode() bool { return s.o.Robots != nil && s.o.Robots.CanSayCode() }

// authenticate authenticates the owner by the proxy or by a cookie. It returns a copy of the request with the
// authentication, or the request itself if it cannot be authenticated or is authenticated already. stop must be called
// after the response. err is not nil if a request that came through a proxy is refused.
func (s *Server) authenticate(r *http.Request) (authenticated *http.Request, stop func(), err error) {
	if AuthMethodOf(r) != "" { // a handler of the listener has authenticated the owner
		return r, func() {}, nil
	}
	if isFromProxy(r, s.o.Ingress) {
		return s.authenticateIngress(r)
	}
	open, ok := s.session(r)
	if !ok || !isFromPage(r, r.Host) {
		return r, func() {}, nil
	}
	wait := func(ctx context.Context) { s.waitEnded(ctx, open) }
	authenticated, stop = cancelAfter(r, wait)
	return withAuthentication(authenticated, authentication{ByCookie, wait}), stop, nil
}

// withAuthentication returns a copy of the request with an authentication.
func withAuthentication(r *http.Request, a authentication) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), authenticationKey{}, a))
}

// isFromPage reports whether a browser sent a request on behalf of one of Perch's own pages at one of the hosts. The
// cookie alone, of Perch or of Home Assistant's ingress, does not prove that: browsers also send it with the requests of
// a page on another port, because all ports of a host are the same site (RFC 6265bis section 5.2) and SameSite does not
// distinguish them. So the scripts of Perch's pages send scriptHeader. Scripts cannot set a header for a WebSocket, but
// browsers send Origin with every WebSocket and with every request that changes something. Sec-Fetch-Site would cover
// all cases, but browsers do not send it over plain HTTP.
func isFromPage(r *http.Request, hosts ...string) bool {
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
		// Over plain HTTP, only the header distinguishes a script of the page from an <img> on another port.
		return byScript || isPagePath(r.URL.Path)
	case origin == "":
		return false
	case get:
		return true
	}
	return byScript || r.URL.Path == "/session" || isRobotPath(r.URL.Path)
}

// scriptHeader is a header that the scripts of the page send with every request. A page of another origin could send
// it only after a preflight request (Fetch standard, section 4.8), which is refused. A tag such as <img> cannot send it.
const scriptHeader = "X-Perch-Page"

// isRobotPath reports whether robots send POST requests to a path. The page /robot sends them
// without scriptHeader.
func isRobotPath(path string) bool {
	return path == "/xiaozhi/ota" || strings.HasPrefix(path, "/xiaozhi/ota/") || path == "/xiaozhi/vision/explain"
}

// isPagePath reports whether browsers request a path without scriptHeader: a page, its files, or the state of the
// session. None of them contains private data.
func isPagePath(path string) bool {
	switch path {
	case "/", "/robot", "/face", "/session":
		return true
	}
	return strings.HasPrefix(path, "/assets/")
}

// ingressHeader contains the path below which Home Assistant's ingress serves a page.
const ingressHeader = "X-Ingress-Path"

// isFromProxy reports whether a request comes from one of the proxies.
func isFromProxy(r *http.Request, proxies []netip.Addr) bool {
	if r.Header.Get(ingressHeader) == "" || len(proxies) == 0 {
		return false
	}
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.Contains(proxies, remote.Addr().Unmap())
}

// OrOwner returns a check that is passed by an authenticated owner, and by any other request that passes the given check.
func OrOwner(check func(*http.Request) error) func(*http.Request) error {
	return func(r *http.Request) error {
		if AuthMethodOf(r) != "" {
			return nil
		}
		return check(r)
	}
}

// OwnerOnly is a check that only an authenticated owner passes. The response to everyone else is 404.
func OwnerOnly(r *http.Request) error {
	if AuthMethodOf(r) != "" {
		return nil
	}
	return &httpserver.Fault{Word: "not_found", Sentence: "there is nothing at this address", HTTP: http.StatusNotFound}
}

// logIn returns the cookie of a new session if the admin token or the code of a one-time link is valid. It returns an error
// unless exactly one of token and code is given.
func (s *Server) logIn(r *http.Request, token, code string) (*http.Cookie, error) {
	if (token == "") == (code == "") {
		return nil, httpserver.BadBody("either token or code is needed")
	}
	isCode := s.redeem
	if token != "" {
		isCode = func(string) bool { return false }
	}
	err := s.o.Key.CheckToken(r, token+code, isCode)
	if wrong := (*httpserver.Fault)(nil); errors.As(err, &wrong) && wrong.Word == "wrong_key" {
		// The sentence of the error is for programs, and does not help a person.
		why := "this is not the admin token; the token is in the file admin-token in the data directory"
		if code != "" {
			why = "this link or code is wrong, was used before or is too old: a link works for ten minutes, a code for five; sudo perch open makes another one"
		}
		return nil, &httpserver.Fault{Word: wrong.Word, Sentence: why, HTTP: wrong.HTTP}
	}
	if err != nil {
		return nil, err
	}
	s.o.Log.Info("an owner has logged in", "from", r.RemoteAddr)
	return s.newCookie(r.TLS != nil), nil
}
