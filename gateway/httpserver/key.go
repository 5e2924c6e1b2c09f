package httpserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"perch/plain"
)

// Key checks the bearer tokens of requests against a secret.
type Key struct {
	secret  atomic.Pointer[secret]
	setting string        // where the secret is set, for error messages: an option of the configuration, or a file
	header  string        // name of another header that may hold the token; may be empty
	tries   *peerLimiters // limits how many wrong tokens a peer may try
}

// secret is the current secret of a Key.
type secret struct {
	text    string
	current context.Context // ends when the secret is changed
	end     context.CancelFunc
}

// NewKey returns a Key with a secret. If the secret is empty, every request is refused. header is another
// header that may hold the token, or empty. setting names where the secret is set: an option of the
// configuration, or the absolute path of a file. Error messages show only the last element of the path,
// because clients without the secret should not learn where files are.
func NewKey(text, setting, header string) *Key {
	if filepath.IsAbs(setting) {
		setting = fmt.Sprintf("the file %s in the data directory", filepath.Base(setting))
	}
	k := &Key{setting: setting, header: header, tries: newPeerLimiters(tryEvery, triesAtOnce)}
	k.Set(text)
	return k
}

// Set changes the secret. A change ends the requests and connections that Binds has bound to the earlier
// secret.
func (k *Key) Set(text string) {
	before := k.secret.Load()
	if before != nil && before.text == text {
		return
	}
	next := &secret{text: text}
	next.current, next.end = context.WithCancel(context.Background())
	k.secret.Store(next)
	if before != nil {
		before.end()
	}
}

// Binds is a gin handler to put before the guard that checks the key. When the secret is changed, Binds ends
// the request, and the connection that a Serving counts for the request.
func (k *Key) Binds(c *gin.Context) {
	current := k.secret.Load().current
	ctx, cancel := context.WithCancel(context.WithValue(c.Request.Context(), boundTo{}, current))
	defer cancel()
	defer context.AfterFunc(current, cancel)()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

// boundTo is the key under which a bound request's context holds another context, which ends when the secret
// is changed.
type boundTo struct{}

// Check returns an error for a request without the right token, and for any request from a peer that has sent
// too many wrong tokens.
func (k *Key) Check(r *http.Request) error {
	return k.CheckToken(r, k.tokenOf(r), nil)
}

// Or returns a check that accepts the tokens of k and of another key. Wrong tokens count toward the limit of
// k. If the secret of k is empty, the check refuses every request.
func (k *Key) Or(other *Key) func(*http.Request) error {
	return func(r *http.Request) error {
		return k.CheckToken(r, k.tokenOf(r), func(string) bool { return other.isSecret(bearerOf(r)) })
	}
}

// Opened reports whether a request has the right token. It is meant for requests that were checked already,
// and does not count wrong tokens.
func (k *Key) Opened(r *http.Request) bool { return k.isSecret(k.tokenOf(r)) }

// tokenOf returns the token of a request, or "".
func (k *Key) tokenOf(r *http.Request) string {
	if token := bearerOf(r); token != "" {
		return token
	}
	return r.Header.Get(k.header)
}

// bearerOf returns the bearer token of a request, or "".
func bearerOf(r *http.Request) string {
	if scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " "); found && strings.EqualFold(scheme, "Bearer") {
		return token
	}
	return ""
}

// isSecret reports whether a token is the secret. It returns false if the secret is empty.
func (k *Key) isSecret(token string) bool {
	// Token and secret are hashed, so that the time of the comparison does not depend on their lengths
	// either.
	secret := k.secret.Load().text
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(secret))
	return secret != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// CheckToken is like Check, but checks the given token instead of the token in the headers. If other is not nil,
// CheckToken also accepts a token if other returns true for it.
func (k *Key) CheckToken(r *http.Request, token string, other func(token string) bool) error {
	if k.secret.Load().text == "" {
		return &Fault{Word: "no_key_set",
			Sentence: fmt.Sprintf("this address is closed until a key is set in %s", k.setting), HTTP: http.StatusForbidden}
	}
	from := PeerOf(r.RemoteAddr)
	if k.tries.exhausted(from) {
		return &Fault{Word: "too_many_tries", Sentence: "too many wrong keys from this address; wait a minute", HTTP: http.StatusTooManyRequests}
	}
	if k.isSecret(token) || other != nil && other(token) {
		return nil
	}
	if token != "" { // a missing token does not count: otherwise a web page could lock its reader out by loading images from here
		k.tries.allow(from)
	}
	return &Fault{Word: "wrong_key", Sentence: fmt.Sprintf("a bearer token is needed; it is in %s", k.setting), HTTP: http.StatusUnauthorized}
}

// Limits of wrong tokens: a peer may send ten at once, and then one every six seconds.
const (
	triesAtOnce = 10
	tryEvery    = 6 * time.Second
)

// Local returns an error unless a request comes from a program on this machine and is sent to localhost or a
// loopback address. It refuses web pages of other origins. It also refuses reverse proxies, because all
// clients of a proxy look local.
func Local(r *http.Request) error { return Origins{}.Local(r) }

// Local is like the function Local, but also accepts web pages of the allowed origins.
func (o Origins) Local(r *http.Request) error {
	if p := addressOf(r.RemoteAddr); !p.IsLoopback() {
		return notLocal("it comes from another machine")
	}
	// Any other name may resolve to any address. localhost is not looked up on the network: browsers and
	// operating systems resolve it themselves (RFC 6761 section 6.3).
	host := hostOnly(r.Host)
	if a, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !a.IsLoopback()) {
		return notLocal("its Host is neither localhost nor a loopback address such as 127.0.0.1")
	}
	// The Host header names this machine, so a page whose origin has the same host comes from this
	// appliance.
	switch origin, site := r.Header["Origin"], r.Header["Sec-Fetch-Site"]; {
	case len(origin) == 1 && (slices.Contains(o.Allowed, origin[0]) || origin[0] == "http://"+r.Host):
	case len(origin) > 0:
		return notLocal(fmt.Sprintf("it comes from a web page of %q. The owner's addresses (/api/v1, /admin, /metrics) accept no web page here, "+
			"and the others only pages whose origin is in allowed_origins", plain.Clip(origin[0], 80)))
	case len(site) > 0 && (len(site) > 1 || site[0] != "none" && site[0] != "same-origin"):
		return notLocal("a browser sends it for a web page") // such as for <img>, without an Origin header
	}
	for name := range r.Header {
		if isProxyHeader(name) { // even if the value is empty
			return notLocal("it came through a proxy")
		}
	}
	if !r.ProtoAtLeast(1, 1) {
		return notLocal("it uses HTTP/1.0, which shows a proxy that sets no headers")
	}
	return nil
}

// isProxyHeader reports whether a header shows that a request came through a proxy. The name must be in
// canonical form.
func isProxyHeader(name string) bool {
	switch name {
	case "Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Host", "X-Original-Forwarded-For",
		"True-Client-Ip", "Cf-Connecting-Ip", "Cf-Ray", "Fastly-Client-Ip", "X-Envoy-External-Address", "X-Ingress-Path":
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded")
}

// notLocal returns the error of Local. why is the reason.
func notLocal(why string) error {
	return &Fault{Word: "not_local",
		Sentence: "this listener serves programs on this machine only, and this request is refused: " + why, HTTP: http.StatusForbidden}
}
