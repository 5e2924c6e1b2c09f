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

// Key checks the bearer tokens of requests.
type Key struct {
	secret  atomic.Pointer[secret]
	setting string        // the configuration key, or the file, that holds the secret, in words
	header  string        // another header the token may come in; may be empty
	tries   *peerLimiters // wrong keys
}

// secret is the right token, until it is changed.
type secret struct {
	text    string
	current context.Context // ends with the change
	end     context.CancelFunc
}

// NewKey returns a Key for a secret. With an empty secret every request is
// refused, and the error names the setting, but only the last part of a file's
// path: a client without a key need not know where files are on this machine.
func NewKey(text, setting, header string) *Key {
	if filepath.IsAbs(setting) {
		setting = fmt.Sprintf("the file %s in the data directory", filepath.Base(setting))
	}
	k := &Key{setting: setting, header: header, tries: newPeerLimiters(tryEvery, triesAtOnce)}
	k.Set(text)
	return k
}

// Set changes the secret, which ends all that Binds has bound to the earlier one.
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

// Binds is a handler before the guard that checks the key: the request, and the connection that
// Serving begins for it, end when the secret is changed.
func (k *Key) Binds(c *gin.Context) {
	current := k.secret.Load().current
	ctx, cancel := context.WithCancel(context.WithValue(c.Request.Context(), boundTo{}, current))
	defer cancel()
	defer context.AfterFunc(current, cancel)()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

// boundTo is the key of a request's context for the context that ends with its secret.
type boundTo struct{}

// Check refuses a request without the right token, and one from an address
// that has tried too often.
func (k *Key) Check(r *http.Request) error {
	return k.CheckToken(r, k.sent(r), nil)
}

// Or returns a check that the bearer token of another key passes as well. Wrong keys count for
// this one.
func (k *Key) Or(other *Key) func(*http.Request) error {
	return func(r *http.Request) error {
		return k.CheckToken(r, k.sent(r), func(string) bool { return other.opens(bearerOf(r)) })
	}
}

// Opened reports whether a request has the right token. It is for requests that were
// checked already: nothing is counted.
func (k *Key) Opened(r *http.Request) bool { return k.opens(k.sent(r)) }

// sent returns the token of a request.
func (k *Key) sent(r *http.Request) string {
	if token := bearerOf(r); token != "" {
		return token
	}
	return r.Header.Get(k.header)
}

// bearerOf returns the bearer token of a request, if any.
func bearerOf(r *http.Request) string {
	if scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " "); found && strings.EqualFold(scheme, "Bearer") {
		return token
	}
	return ""
}

// opens reports whether token is the secret. An empty secret has no token.
func (k *Key) opens(token string) bool {
	// Hashed first, so that the time taken does not show the length either.
	secret := k.secret.Load().text
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(secret))
	return secret != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// CheckToken is Check for a token that did not come in a header. If other is not nil, it may
// accept a token that is not the secret.
func (k *Key) CheckToken(r *http.Request, token string, other func(token string) bool) error {
	if k.secret.Load().text == "" {
		return &Fault{Word: "no_key_set",
			Sentence: fmt.Sprintf("this address is closed until a key is set in %s", k.setting), HTTP: http.StatusForbidden}
	}
	from := PeerOf(r.RemoteAddr)
	if k.tries.exhausted(from) {
		return &Fault{Word: "too_many_tries", Sentence: "too many wrong keys from this address; wait a minute", HTTP: http.StatusTooManyRequests}
	}
	if k.opens(token) || other != nil && other(token) {
		return nil
	}
	if token != "" { // a request without a key is no guess: a page's images could lock its reader out
		k.tries.allow(from)
	}
	return &Fault{Word: "wrong_key", Sentence: fmt.Sprintf("a bearer token is needed; it is in %s", k.setting), HTTP: http.StatusUnauthorized}
}

// An address may send ten wrong keys at once, then one in six seconds.
const (
	triesAtOnce = 10
	tryEvery    = 6 * time.Second
)

// Local refuses all but programs on this machine that use a loopback address or
// localhost: another peer, another Host, a web page, or a reverse
// proxy, behind which all clients seem local.
func Local(r *http.Request) error { return Origins{}.Local(r) }

// Local accepts what httpserver.Local does, and allowed web pages.
func (o Origins) Local(r *http.Request) error {
	if p := addressOf(r.RemoteAddr); !p.IsLoopback() {
		return notLocal("it comes from another machine")
	}
	// Any other name may be resolved to any address. localhost is not resolved
	// over the network: browsers and systems know it (RFC 6761 section 6.3).
	host := hostOnly(r.Host)
	if a, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !a.IsLoopback()) {
		return notLocal("its Host is neither localhost nor a loopback address such as 127.0.0.1")
	}
	// The Host is this machine's, so a page of the same address is this appliance's own.
	switch origin, site := r.Header["Origin"], r.Header["Sec-Fetch-Site"]; {
	case len(origin) == 1 && (slices.Contains(o.Allowed, origin[0]) || origin[0] == "http://"+r.Host):
	case len(origin) > 0:
		return notLocal(fmt.Sprintf("it comes from a web page of %q. The owner's addresses (/api/v1, /admin, /metrics) take no web page here, "+
			"and the others those whose origin is in allowed_origins", plain.Clip(origin[0], 80)))
	case len(site) > 0 && (len(site) > 1 || site[0] != "none" && site[0] != "same-origin"):
		return notLocal("a web page has a browser ask for it") // by a tag, which sends no Origin
	}
	for name := range r.Header {
		if forwards(name) { // an empty one, too, was set by a proxy
			return notLocal("it came through a proxy")
		}
	}
	if !r.ProtoAtLeast(1, 1) {
		return notLocal("it speaks HTTP/1.0, as a proxy does that says nothing else of itself")
	}
	return nil
}

// forwards reports whether proxies set a header. Its name is canonical.
func forwards(name string) bool {
	switch name {
	case "Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Host", "X-Original-Forwarded-For",
		"True-Client-Ip", "Cf-Connecting-Ip", "Cf-Ray", "Fastly-Client-Ip", "X-Envoy-External-Address", "X-Ingress-Path":
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded")
}

func notLocal(why string) error {
	return &Fault{Word: "not_local",
		Sentence: "this listener serves programs on this machine only, and this request is refused: " + why, HTTP: http.StatusForbidden}
}
