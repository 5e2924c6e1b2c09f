package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/cmd/perch/listener"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
)

// lock names the key that a route requires.
type lock string

const (
	public      lock = "anyone, and pages of anyone"
	anyone      lock = "anyone"
	pages       lock = "anyone, from no other page"
	robotsToken lock = "a robot's token"
	cameraToken lock = "a camera's token"
	ticket      lock = "a ticket"
	ownersToken lock = "the owner's token"
	keyOfBridge lock = "the bridge's key"
	keyOfSkins  lock = "the skins' key"
	keyOfViewer lock = "the skins' key or the owner's token"
	talksBearer lock = "the bearer of a talk"
)

// routeLocks lists the routes of each lock. Every route of the appliance must be listed.
var routeLocks = map[lock][]string{
	public: {"GET /perch-card.js", "GET /blueprints/:name"},
	pages: {"GET /", "GET /robot", "GET /face", "GET /assets/:name", "GET /perch-authority.crt", "GET /perch-authority.mobileconfig", "GET /manifest.webmanifest", "GET /sw.js",
		"GET /session", "POST /session", "POST /session/code", "DELETE /session", "DELETE /sessions"},
	anyone: {"GET /health", "GET /ready",
		"GET /xiaozhi/ota", "POST /xiaozhi/ota", "GET /xiaozhi/ota/", "POST /xiaozhi/ota/", "POST /xiaozhi/ota/activate"},
	robotsToken: {"GET /xiaozhi/v1", "GET /xiaozhi/v1/"},
	cameraToken: {"POST /xiaozhi/vision/explain"},
	ticket: {"GET /xiaozhi/ota/firmware/:name", "HEAD /xiaozhi/ota/firmware/:name",
		"GET /xiaozhi/ota/assets/:name", "HEAD /xiaozhi/ota/assets/:name", "GET /xiaozhi/notify/:ticket"},
	ownersToken: append(bridgesAdmin("/admin", "/xiaozhi/admin"),
		"GET /metrics", "POST /api/v1/link", "POST /api/v1/https", "GET /api/v1/qr", "GET /api/v1/address",
		"GET /api/v1/status", "GET /api/v1/events", "GET /api/v1/turns", "GET /api/v1/days", "GET /api/v1/diary", "GET /api/v1/diary/verify", "POST /api/v1/adopt",
		"GET /api/v1/notifications", "POST /api/v1/notifications", "GET /api/v1/permissions", "POST /api/v1/permissions/:id",
		"GET /api/v1/memory", "GET /api/v1/memory/stats", "DELETE /api/v1/memory/:id", "DELETE /api/v1/conversations/*name",
		"GET /api/v1/devices", "POST /api/v1/devices", "GET /api/v1/devices/:id", "PUT /api/v1/devices/:id", "DELETE /api/v1/devices/:id", "POST /api/v1/devices/:id/abort", "POST /api/v1/devices/:id/ask", "POST /api/v1/devices/:id/leave",
		"POST /api/v1/devices/:id/alert", "POST /api/v1/devices/:id/assets", "GET /api/v1/devices/:id/firmware",
		"GET /api/v1/devices/:id/picture", "POST /api/v1/devices/:id/reboot", "GET /api/v1/devices/:id/record",
		"POST /api/v1/devices/:id/say", "GET /api/v1/devices/:id/tools", "POST /api/v1/devices/:id/tools/:name",
		"POST /api/v1/devices/:id/token", "POST /api/v1/devices/:id/upgrade", "GET /api/v1/firmware", "POST /api/v1/firmware",
		"DELETE /api/v1/firmware/:sha256",
		"POST /api/v1/firmware/:sha256/rollout", "GET /api/v1/assets", "POST /api/v1/assets/:name", "DELETE /api/v1/assets/:name",
		"GET /api/v1/backup", "POST /api/v1/restore", "DELETE /api/v1/strangers", "GET /api/v1/refused", "DELETE /api/v1/refused",
		"POST /api/v1/memory", "PUT /api/v1/memory/:id", "POST /api/v1/notifications/:id/ack", "GET /api/v1/sessions",
		"GET /api/agent-memory", "GET /api/agent-memory/stats", "POST /api/agent-memory", "PUT /api/agent-memory/:id", "DELETE /api/agent-memory/:id",
		"POST /api/v1/devices/:id/gesture", "GET /api/v1/gestures", "POST /api/v1/devices/:id/music", "DELETE /api/v1/devices/:id/music", "GET /api/v1/music",
		"GET /api/v1/characters", "GET /api/v1/characters/:id", "POST /api/v1/characters",
		"DELETE /api/v1/characters/:id", "GET /api/v1/characters/:id/card",
		"PUT /api/agents/:id", "POST /api/agents/:id/wallet", "DELETE /api/agents/:id/wallet",
		"POST /api/v1/devices/:id/identify", "GET /api/v1/connections", "GET /api/v1/found", "GET /api/v1/engines", "GET /api/v1/engines/kinds", "POST /api/v1/engines/try",
		"GET /api/v1/speech/models", "POST /api/v1/speech/models/:name", "DELETE /api/v1/speech/models/:name",
		"GET /api/v1/timers", "POST /api/v1/timers", "DELETE /api/v1/timers/:id", "GET /api/v1/config", "PUT /api/v1/config", "PUT /api/v1/config/:key",
		"DELETE /api/v1/config/:key", "POST /api/v1/config/check",
		"GET /api/v1/relays", "POST /api/v1/relays/:name/try", "POST /api/v1/restart", "GET /api/v1/doctor", "GET /api/v1/logs"),
	keyOfBridge: {"POST /api/message", "POST /api/voice/escalate", "POST /api/voice/memory_log", "POST /api/voice/remember",
		"POST /api/perception/event", "GET /api/perception/feed", "GET /api/perception/recent/:robot", "GET /api/perception/state"},
	keyOfViewer: {"GET /api/v1/actions", "GET /api/v1/actions/stream", "GET /api/agents/:id", "POST /api/agent-actions"},
	talksBearer: {"GET /mcp/talk", "POST /mcp/talk", "DELETE /mcp/talk"},
	keyOfSkins: {"GET /mcp", "POST /mcp", "DELETE /mcp", "GET /vccp", "GET /vccp/", "GET /vccp/:session", "GET /client-ws", "GET /ws",
		"GET /state", "POST /state", "POST /permission", "POST /v1/chat/completions", "POST /v1/responses", "GET /v1/models", "GET /v1/models/*id",
		"GET /v1/vtuber/ws", "GET /v1/vtuber/schema", "POST /v1/vtuber/notifications"},
}

// keylessHere lists the owner's routes that need no key on the addresses in local, because they change
// nothing and show no secret. Through a proxy on this machine that adds no headers, all clients of the proxy
// can use these routes.
var keylessHere = []string{"GET /admin/devices", "GET /admin/songs", "GET /xiaozhi/admin/devices", "GET /xiaozhi/admin/songs",
	"GET /metrics", "GET /api/v1/qr", "GET /api/v1/address", "GET /api/v1/status", "GET /api/v1/events", "GET /api/v1/turns", "GET /api/v1/days", "GET /api/v1/diary",
	"GET /api/v1/diary/verify", "GET /api/v1/notifications", "GET /api/v1/permissions", "GET /api/v1/memory", "GET /api/v1/memory/stats",
	"GET /api/v1/devices", "GET /api/v1/devices/:id", "GET /api/v1/devices/:id/firmware", "GET /api/v1/devices/:id/picture",
	"GET /api/v1/devices/:id/record", "GET /api/v1/devices/:id/tools", "GET /api/v1/firmware", "GET /api/v1/assets", "GET /api/v1/refused",
	"GET /api/v1/gestures", "GET /api/v1/music", "GET /api/v1/characters", "GET /api/v1/characters/:id", "GET /api/v1/characters/:id/card",
	"GET /api/v1/connections", "GET /api/v1/found", "GET /api/v1/engines", "GET /api/v1/engines/kinds", "GET /api/v1/speech/models", "GET /api/v1/timers", "GET /api/v1/relays", "GET /api/v1/doctor",
	"GET /api/v1/logs", "GET /api/v1/sessions", "GET /api/agent-memory", "GET /api/agent-memory/stats"}

// sockets lists the routes that open a WebSocket.
var sockets = []string{"GET /xiaozhi/v1", "GET /xiaozhi/v1/", "GET /vccp", "GET /vccp/", "GET /vccp/:session", "GET /v1/vtuber/ws",
	"GET /client-ws", "GET /ws"}

func bridgesAdmin(prefixes ...string) (all []string) {
	for _, p := range prefixes {
		for _, name := range []string{"abort", "inject-text", "play-asset", "say", "set-face-identified", "set-head-angles", "set-state",
			"set-toggle", "take-photo"} {
			all = append(all, "POST "+p+"/"+name)
		}
		all = append(all, "GET "+p+"/devices", "GET "+p+"/songs")
	}
	return all
}

func lockOf(route string) (lock, bool) {
	for l, routes := range routeLocks {
		if slices.Contains(routes, route) {
			return l, true
		}
	}
	return "", false
}

// prober sends requests to routes, each from another loopback address, because the appliance counts wrong keys
// by address.
type prober struct {
	t     *testing.T
	h     *running
	known *tls.Config       // trusts the appliance's certificate
	from  int               // number of requests so far
	told  func(text string) // receives the responses; may be nil
}

// probe describes a request.
type probe struct {
	route  string   // such as "GET /path/:id"
	header []string // names and values
	host   string   // empty for the listener's address
	query  string
	body   string // empty for {}
	old    bool   // whether to use HTTP/1.0
	from   net.IP // the client's address; nil for an unused one
}

func (k *prober) dial(s *listener.Server, from net.IP) net.Conn {
	k.t.Helper()
	at := s.Listener.Addr()
	d := net.Dialer{Timeout: 10 * time.Second}
	if at.Network() == "tcp" {
		if k.from++; from == nil {
			from = net.IPv4(127, 1, byte(k.from>>8), byte(k.from))
		}
		d.LocalAddr = &net.TCPAddr{IP: from}
	}
	conn := must.Value(d.DialContext(k.t.Context(), at.Network(), at.String()))(k.t)
	if s.Server.TLSConfig != nil {
		known := k.known.Clone()
		known.ServerName = "127.0.0.1"
		conn = tls.Client(conn, known)
	}
	return conn
}

// at sends a request to a listener, and returns the status and the code of the error.
func (k *prober) at(s *listener.Server, n probe) (status int, code string) {
	k.t.Helper()
	conn := k.dial(s, n.from)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	method, path, _ := strings.Cut(n.route, " ")
	for _, p := range []struct{ name, value string }{{":id", "a0b1c2d3e4f5"}, {":robot", "a0b1c2d3e4f5"}, {":sha256", strings.Repeat("0", 64)},
		{":session", "x"}, {":name", "x.bin"}, {"*name", "x"}, {"*id", "x"}} {
		path = strings.ReplaceAll(path, p.name, p.value)
	}
	r, err := http.NewRequest(method, "http://"+s.Listener.Addr().String()+path, nil)
	if s.Key == "" {
		r, err = http.NewRequest(method, "http://perch"+path, nil)
	}
	must.Succeed(k.t, err)
	r.Host, r.URL.RawQuery = n.host, n.query
	if method == http.MethodPost {
		switch {
		case n.body != "":
		case n.route == "POST /api/v1/restart":
			n.body = "{" // invalid, so that the appliance does not restart
		default:
			n.body = "{}"
		}
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(n.body)), int64(len(n.body))
		r.Header.Set("Content-Type", "application/json")
	}
	if slices.Contains(sockets, n.route) {
		n.header = append([]string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-Websocket-Version", "13", "Sec-Websocket-Key",
			"AAAAAAAAAAAAAAAAAAAAAA=="}, n.header...)
	}
	for i := 0; i < len(n.header); i += 2 {
		r.Header[n.header[i]] = append(r.Header[n.header[i]], n.header[i+1])
	}
	if err := n.write(conn, r); err != nil && len(n.body) < 1<<20 {
		k.t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		k.t.Fatalf("%s at %s: %v", n.route, s.Key, err)
	}
	var body []byte
	if endless := answer.StatusCode < 400 && (answer.ContentLength < 0 && k.told == nil || strings.HasPrefix(answer.Header.Get("Content-Type"),
		"text/")); !endless {
		body, _ = io.ReadAll(io.LimitReader(answer.Body, 1<<20)) // empty for HEAD
	}
	if k.told != nil {
		k.told(fmt.Sprintf("%s %s %v\n%s", n.route, answer.Status, answer.Header, body))
	}
	var shown struct{ Error struct{ Code string } }
	_ = json.Unmarshal(body, &shown) // a response without an error has no code
	return answer.StatusCode, shown.Error.Code
}

func (n probe) write(w io.Writer, r *http.Request) error {
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		return err
	}
	whole := text.String()
	if n.old {
		whole = strings.Replace(whole, " HTTP/1.1\r\n", " HTTP/1.0\r\n", 1)
	}
	_, err := io.WriteString(w, whole)
	return err
}

// allowedPage is the origin in allowed_origins.
const allowedPage = "https://panel.example"

// locked starts an appliance with keys for skins and the bridge, and returns the keys by their locks.
func locked(t *testing.T, change func(*config.Config)) (*running, *prober, map[lock]string) {
	c := appliancetest.Config()
	c.Skins.Key, c.Bridge.Key = "the-key-of-the-skins", "the-key-of-the-bridge"
	c.Skins.OpenClaw, c.Skins.VCCP = "127.0.0.1:0", "127.0.0.1:0"
	c.AllowedOrigins = []string{allowedPage}
	c.TLS = goodFor(t, t.TempDir(), "perch.local", month)
	if change != nil {
		change(&c)
	}
	h := open(t, c, t.TempDir())
	return h, &prober{t: t, h: h, known: trusts(t, c.TLS.Certificate)},
		map[lock]string{ownersToken: h.OwnerToken(), keyOfBridge: c.Bridge.Key, keyOfSkins: c.Skins.Key, keyOfViewer: c.Skins.Key}
}

func bearer(key string) []string { return []string{"Authorization", "Bearer " + key} }

// TestEveryRouteHasItsLock: every route of every listener refuses clients without its key.
func TestEveryRouteHasItsLock(t *testing.T) {
	t.Parallel()
	h, k, keys := locked(t, nil)
	seen := map[string]int{}
	for _, s := range h.Listeners.Servers {
		for _, r := range s.Server.Handler.(*gin.Engine).Routes() {
			route := r.Method + " " + r.Path
			l, known := lockOf(route)
			if !known {
				t.Errorf("%s at %q: nobody has said what its lock is; add it to routeLocks", route, s.Key)
				continue
			}
			seen[s.Key]++
			switch s.Key {
			case "listen", "tls.listen":
				k.fromTheNetwork(s, route, l, keys)
			case "local":
				key := ""
				if l == ownersToken && !slices.Contains(keylessHere, route) {
					key = keys[l]
				}
				k.fromThisMachine(s, route, l, key)
			case "skins.openclaw", "skins.vccp": // GET / is not the page here
				k.fromThisMachine(s, route, keyOfSkins, "")
			default:
				if l != ownersToken && l != anyone {
					t.Errorf("%s is on the socket of the commands", route)
				}
			}
		}
	}
	if seen["listen"] < 70 || seen["tls.listen"] < 60 || seen["local"] < 60 || seen[""] < 30 || seen["skins.openclaw"] != 1 || seen["skins.vccp"] != 6 {
		t.Errorf("the test sees %v routes only", seen)
	}
	if f, err := os.Stat(filepath.Join(h.Data, "perch.sock")); err != nil || f.Mode().Perm() != 0o660 {
		t.Errorf("the socket of the commands: %v, %v", f, err)
	}
}

// passed reports whether a response shows that the client had the right key.
func passed(status int, code string) bool {
	return status != 401 && status != 403 && status != 421 && status != 429 && code != "not_found" && code != "wrong_method"
}

// fromTheNetwork checks the lock of a route on an address for the network.
func (k *prober) fromTheNetwork(s *listener.Server, route string, l lock, keys map[lock]string) {
	k.t.Helper()
	expect := func(what string, n probe, want ...int) {
		k.t.Helper()
		n.route = route
		if status, code := k.at(s, n); !slices.Contains(want, status) {
			k.t.Errorf("%s at %s, %s: %d %s, want %v", route, s.Key, what, status, code, want)
		}
	}
	right := bearer(keys[l])
	if l == public {
		if status, code := k.at(s, probe{route: route, header: []string{"Origin", "https://evil.example"}}); !passed(status, code) {
			k.t.Errorf("%s at %s, which is public: %d %s", route, s.Key, status, code)
		}
		return
	}
	// All locks refuse requests of foreign pages, and requests for a host that is not the appliance's.
	expect("a foreign page", probe{header: append([]string{"Origin", "https://evil.example"}, right...)}, 403)
	expect("a page of a file", probe{header: append([]string{"Origin", "null"}, right...)}, 403)
	expect("a rebound name", probe{host: "evil.example:8003", header: right}, 421)
	expect("a rebound name of a page", probe{host: "evil.example:8003", header: append([]string{"Origin", "http://evil.example:8003"}, right...)},
		421)
	as := []string{"Device-Id", "a0:b1:c2:d3:e4:f5", "Client-Id", "c"}
	if s.Key == "tls.listen" && l != ownersToken && strings.Contains(route, " /xiaozhi/") {
		expect("a robot's route without a session", probe{header: append(right, as...)}, 404)
		return
	}
	switch l {
	case anyone, pages:
		if status, code := k.at(s, probe{route: route, header: as}); !passed(status, code) {
			k.t.Errorf("%s at %s, which is anybody's: %d %s", route, s.Key, status, code)
		}
		return
	case robotsToken, cameraToken, talksBearer:
		expect("no token", probe{header: as}, 401)
		expect("a wrong token", probe{header: append(bearer(strings.Repeat("A", 43)), as...)}, 401)
		expect("the owner's token", probe{header: append(bearer(keys[ownersToken]), as...)}, 401)
		expect("a wrong token in the query", probe{query: "device-id=a0b1c2d3e4f5&client-id=c&authorization=Bearer+wrong"}, 401)
		return
	case ticket:
		// Every client may learn that an image does not exist, because its name is its hash.
		expect("no ticket", probe{}, 403, 404)
		expect("a wrong ticket", probe{query: "r=a0b1c2d3e4f5.zzzzzzz.AAAAAAAAAAAAAAAAAAAAAA"}, 403, 404)
		expect("the owner's token", probe{header: bearer(keys[ownersToken])}, 403, 404)
		return
	}
	expect("no key", probe{}, 401)
	expect("an empty key", probe{header: bearer("")}, 401)
	expect("a wrong key", probe{header: bearer("a-wrong-one")}, 401)
	expect("as Basic", probe{header: []string{"Authorization", "Basic " + keys[l]}}, 401)
	expect("a key and forwarding headers of this machine", probe{header: []string{"X-Forwarded-For", "127.0.0.1", "X-Real-Ip", "127.0.0.1",
		"Forwarded", "for=127.0.0.1"}}, 401)
	expect("a local name", probe{host: "127.0.0.1:8004"}, 401)
	for _, name := range []string{"token", "key", "authorization", "access_token"} {
		expect("the key in the query as "+name, probe{query: name + "=" + url.QueryEscape(keys[l])}, 401)
	}
	for other, key := range keys {
		switch {
		case l == keyOfViewer && other == ownersToken:
			if status, code := k.at(s, probe{route: route, header: bearer(key)}); !passed(status, code) {
				k.t.Errorf("%s at %s with the owner's token: %d %s", route, s.Key, status, code)
			}
		case key != keys[l]:
			expect(string(other), probe{header: bearer(key)}, 401)
		}
	}
	for _, header := range [][]string{right, append([]string{"X-Forwarded-For", "127.0.0.1"}, right...)} {
		if status, code := k.at(s, probe{route: route, header: header}); !passed(status, code) {
			k.t.Errorf("%s at %s with %s: %d %s", route, s.Key, header, status, code)
		}
	}
	if l == ownersToken {
		if status, code := k.at(s, probe{route: route, header: []string{"X-Admin-Token", keys[l]}}); !passed(status, code) {
			k.t.Errorf("%s at %s with X-Admin-Token: %d %s", route, s.Key, status, code)
		}
		return
	}
	expect("the key as X-Admin-Token", probe{header: []string{"X-Admin-Token", keys[l]}}, 401)
}

// proxied lists headers that proxies add.
var proxied = []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server", "Forwarded", "X-Real-Ip",
	"Via",
	"X-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "X-Ingress-Path"}

// fromThisMachine checks the lock of a route on a loopback address. key is empty if the route needs no key there.
func (k *prober) fromThisMachine(s *listener.Server, route string, l lock, key string) {
	k.t.Helper()
	var right []string
	if key != "" {
		right = bearer(key)
		for what, header := range map[string][]string{"no key": nil, "a wrong key": bearer("a-wrong-one"), "an empty key": bearer(""),
			"a cookie of another's": {"Cookie", "perch_session=" + strings.Repeat("A", 75)}} {
			if status, code := k.at(s, probe{route: route, header: header}); status != 401 {
				k.t.Errorf("%s of a program here with %s: %d %s", route, what, status, code)
			}
		}
	}
	if l == ownersToken && key != "" {
		if status, code := k.at(s, probe{route: route, header: []string{"X-Admin-Token", key}}); !passed(status, code) {
			k.t.Errorf("%s of a program here with X-Admin-Token: %d %s", route, status, code)
		}
	}
	method, path, _ := strings.Cut(route, " ")
	if method == http.MethodHead {
		return // responses to HEAD contain no code; the lock is that of GET
	}
	here := passed
	switch l {
	case talksBearer: // only agents that take part in a talk have a bearer token
		here = func(status int, code string) bool { return status == 401 && code == "no_talk" }
	case robotsToken, cameraToken: // the robot in the page needs a token, too
		here = func(status int, code string) bool { return status == 401 || code == "no_device_id" }
	case ticket:
		here = func(status int, code string) bool {
			return (status == 403 || status == 404) && code != "not_local" && code != "not_found"
		}
	case anyone, pages:
		here = func(status int, code string) bool { return passed(status, code) || code == "bad_robot_id" }
	}
	if status, code := k.at(s, probe{route: route, header: right}); !here(status, code) {
		k.t.Errorf("%s of a program here: %d %s", route, status, code)
	}
	refused := func(what string, n probe) {
		k.t.Helper()
		n.route, n.header = route, append(n.header, right...)
		if status, code := k.at(s, n); status != 403 || code != "not_local" && !strings.HasPrefix(n.route[strings.Index(n.route, "/"):], "/v1/") {
			k.t.Errorf("%s, %s: %d %s", route, what, status, code)
		}
	}
	if status, code := k.at(s, probe{route: route, host: "localhost:8004", header: right}); !here(status, code) {
		k.t.Errorf("%s of a program here that asks for localhost: %d %s", route, status, code)
	}
	for _, host := range []string{"evil.example:8004", "evil.localhost:8004", "perch.local:8004", "192.168.1.2:8004", "[fe80::1]:8004"} {
		refused("as "+host, probe{host: host})
	}
	for _, origin := range []string{"https://evil.example", "null", "http://127.0.0.1:8123"} {
		refused("a page of "+origin, probe{header: []string{"Origin", origin}})
	}
	status, code := k.at(s, probe{route: route, header: append([]string{"Origin", allowedPage}, right...)})
	if may := l != ownersToken && l != pages && !strings.HasPrefix(path, "/xiaozhi/"); here(status, code) != may {
		k.t.Errorf("%s of an allowed page: %d %s, want let in %t", route, status, code, may)
	}
	own := "http://" + s.Listener.Addr().String()
	page := append([]string{"Origin", own, "Sec-Fetch-Site", "same-origin"}, right...)
	if status, code := k.at(s, probe{route: route, header: page}); !here(status, code) {
		k.t.Errorf("%s of the page itself: %d %s", route, status, code)
	}
	refused("a tag of a page", probe{header: []string{"Sec-Fetch-Site", "cross-site"}})
	for _, name := range proxied {
		refused("through a proxy that says "+name, probe{header: []string{name, "127.0.0.1"}})
	}
	refused("through a proxy that says nothing", probe{old: true})
	// A loopback listener receives no requests of other machines. If it did, the handler would refuse them.
	r := httptest.NewRequest(method, path, nil)
	r.RemoteAddr, r.Host = "192.168.1.66:4000", "127.0.0.1:8004"
	w := httptest.NewRecorder()
	if s.Server.Handler.ServeHTTP(w, r); w.Code != 403 {
		k.t.Errorf("%s from another machine: %d", route, w.Code)
	}
}

// TestTheKeyInTheAddress: with skins.query_token, a key in the query opens the WebSockets of skins and no other route.
func TestTheKeyInTheAddress(t *testing.T) {
	h, k, keys := locked(t, func(c *config.Config) { c.Skins.QueryToken = true })
	for _, s := range h.Listeners.Servers {
		if s.Key != "listen" && s.Key != "tls.listen" {
			continue
		}
		for l, key := range keys {
			for _, route := range routeLocks[l] {
				if route == "GET /api/v1/backup" || route == "POST /api/v1/restore" {
					continue // TestRestoreWhileItRuns checks these
				}
				status, code := k.at(s, probe{route: route, query: "token=" + url.QueryEscape(key)})
				if may := l == keyOfSkins && slices.Contains(sockets, route); passed(status, code) != may {
					t.Errorf("%s at %s: %d %s, want let in %t", route, s.Key, status, code, may)
				}
			}
		}
	}
}

// TestTriesAreCountedTogether: wrong keys are counted together for all listeners for the network, and separately for
// each lock.
func TestTriesAreCountedTogether(t *testing.T) {
	h, k, keys := locked(t, nil)
	clear, encrypted := h.Listeners.Servers[0], h.Listeners.Servers[slices.IndexFunc(h.Listeners.Servers,
		func(s *listener.Server) bool { return s.Key == "tls.listen" })]
	guesser := net.IPv4(127, 0, 9, 66)
	for l, route := range map[lock]string{ownersToken: "GET /api/v1/status", keyOfBridge: "GET /api/perception/state", keyOfSkins: "GET /mcp"} {
		for n := range 10 {
			s := clear
			if n%2 == 1 {
				s = encrypted
			}
			if status, _ := k.at(s, probe{route: route, from: guesser, header: bearer(fmt.Sprint("guess-", n))}); status != 401 {
				t.Errorf("%s, guess %d: %d", l, n+1, status)
			}
		}
		for _, s := range []*listener.Server{clear, encrypted} {
			if status, code := k.at(s, probe{route: route, from: guesser, header: bearer(keys[l])}); status != 429 || code != "too_many_tries" {
				t.Errorf("%s at %s after ten guesses: %d %s", l, s.Key, status, code)
			}
			if status, code := k.at(s, probe{route: route, header: bearer(keys[l])}); !passed(status, code) {
				t.Errorf("%s at %s from elsewhere: %d %s", l, s.Key, status, code)
			}
		}
	}
}

// TestAProxyThatSaysNothing: Perch cannot tell a proxy that uses HTTP/1.1 and adds no headers, as nginx since 1.29.7,
// from another program on this machine. The clients of such a proxy can read, and have the rights of the keys of
// skins and bridge, but cannot use the other routes of the owner.
func TestAProxyThatSaysNothing(t *testing.T) {
	t.Parallel()
	h, _, keys := locked(t, nil)
	target := strings.TrimSuffix(h.LocalURL(), "/")
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = "http", strings.TrimPrefix(target, "http://")
			p.Out.Host = p.Out.URL.Host
		},
		Transport: &http.Transport{DisableKeepAlives: true},
	})
	defer proxy.Close()
	for _, route := range routeLocks[ownersToken] {
		if slices.Contains(keylessHere, route) {
			continue
		}
		method, path, _ := strings.Cut(route, " ")
		if answer, text := httpservertest.Ask(t, method, proxy.URL+path, "{"); answer.StatusCode != http.StatusUnauthorized ||
			!strings.Contains(text, "perch open") {
			t.Errorf("%s through a proxy: %d %.200s", route, answer.StatusCode, text)
		}
	}
	if answer, _ := httpservertest.Ask(t, http.MethodGet, proxy.URL+"/api/v1/config", "", bearer(keys[ownersToken])...); answer.StatusCode == 401 {
		t.Error("the owner's own key is refused")
	}
}

// TestThePageOfThisMachineComesIn: the page in a browser on this machine can read without a session. With the link
// of perch open it gets a session, and can change everything.
func TestThePageOfThisMachineComesIn(t *testing.T) {
	t.Parallel()
	h, _, _ := locked(t, nil)
	here := strings.TrimSuffix(h.LocalURL(), "/")
	remember := func(cookie string) int {
		answer, _ := httpservertest.Ask(t, http.MethodPost, here+"/api/v1/memory", `{"text":"The cat is called Miso."}`, "Origin", here,
			"Sec-Fetch-Site", "same-origin", "Cookie", cookie, "X-Perch-Page", "1")
		return answer.StatusCode
	}
	if _, text := httpservertest.Ask(t, http.MethodGet, here+"/session", ""); !strings.Contains(text, `"how":"local","in":true`) {
		t.Errorf("without a session it is %s", text)
	}
	if status := remember("other=1"); status != http.StatusUnauthorized {
		t.Errorf("without a session it changes something: %d", status)
	}
	var link struct{ URLs []string }
	h.Admin(http.MethodPost, "/api/v1/link", "", &link)
	_, code, _ := strings.Cut(link.URLs[len(link.URLs)-1], here+"/#/in/")
	entered, text := httpservertest.Ask(t, http.MethodPost, here+"/session", `{"code":"`+code+`"}`, "Origin", here, "Sec-Fetch-Site", "same-origin")
	if entered.StatusCode != http.StatusNoContent || len(entered.Cookies()) != 1 {
		t.Fatalf("%v by %q: %d %s", link.URLs, code, entered.StatusCode, text)
	}
	cookie := entered.Cookies()[0].Name + "=" + entered.Cookies()[0].Value
	if _, text := httpservertest.Ask(t, http.MethodGet, here+"/session", "", "Cookie", cookie); !strings.Contains(text, `"how":"cookie","in":true`) {
		t.Errorf("with a session it is %s", text)
	}
	if status := remember(cookie); status != http.StatusCreated {
		t.Errorf("with a session it is refused: %d", status)
	}
}

// uploads lists the routes that accept larger bodies than all others.
var uploads = []string{"POST /api/v1/firmware", "POST /api/v1/assets/:name", "POST /api/v1/restore"}

// TestSizesAreBounded: the sizes of requests' bodies and headers are limited, so that a client cannot fill the memory.
func TestSizesAreBounded(t *testing.T) {
	h, k, keys := locked(t, nil)
	large := func(n int) string { return `{"text":"` + strings.Repeat("x", n) + `"}` }
	most := map[string]int{"POST /state": 4 << 20, "POST /permission": 4 << 20, "POST /v1/chat/completions": 1 << 20, "POST /v1/responses": 1 << 20,
		"POST /api/v1/characters": 1 << 20}
	s := h.Listeners.Servers[0]
	for _, r := range s.Server.Handler.(*gin.Engine).Routes() {
		route := r.Method + " " + r.Path
		l, _ := lockOf(route)
		if r.Method != http.MethodPost || slices.Contains(uploads, route) || l == cameraToken || l == talksBearer ||
			r.Path == "/xiaozhi/ota/activate" ||
			slices.Contains([]string{"/api/v1/engines/try", "/api/v1/config/check"}, r.Path) || // they respond with another error
			strings.Contains(r.Path, "/devices/:id") { // the robot does not exist
			continue
		}
		status, _ := k.at(s, probe{route: route, body: large(max(most[route], 256<<10)),
			header: append(bearer(keys[l]), "Device-Id", "a0:b1:c2:d3:e4:f5")})
		if status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s takes more than belongs there: %d", route, status)
		}
	}
	for _, s := range h.Listeners.Servers {
		status, _ := k.at(s, probe{route: "GET /health", header: []string{"X-Large", strings.Repeat("x", 32<<10)}})
		if status != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("32 kB of headers at %q: %d", s.Key, status)
		}
		if s.Server.ReadHeaderTimeout == 0 || s.Server.IdleTimeout == 0 || s.Server.MaxHeaderBytes == 0 {
			t.Errorf("the server at %q waits for ever", s.Key)
		}
	}
}

// TestRobotsRoutesArePaced: an address that sends too many requests to routes without a lock is refused, and robots
// at other addresses are still served.
func TestRobotsRoutesArePaced(t *testing.T) {
	h, _, _ := locked(t, nil)
	e := h.Listeners.Servers[0].Server.Handler
	come := func(from, path string) int {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.RemoteAddr, r.Host = from, "perch.local:8003"
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		return w.Code
	}
	paced := func(path string) bool { // sends many requests, because a slow machine sends few per second
		for range 3000 {
			if come("192.168.1.66:1", path) == http.StatusTooManyRequests {
				return true
			}
		}
		return false
	}
	for _, path := range []string{"/xiaozhi/ota/", "/xiaozhi/v1/", "/xiaozhi/ota/firmware/x.bin", "/ready"} {
		if !paced(path) {
			t.Errorf("%s is open to who asks too often", path)
		}
		if got := come("192.168.1.7:1", path); got == http.StatusTooManyRequests {
			t.Errorf("%s from another: %d", path, got)
		}
	}
}

// TestStrangersAtThePageArePaced: an address without a session or key may load the page a few times. Further requests
// to the page, its files, the owner's routes and unknown paths are refused, each after a second. Robots at the same
// address and owners with a session are not refused.
func TestStrangersAtThePageArePaced(t *testing.T) {
	h, _, _ := locked(t, nil)
	e := h.Listeners.Servers[0].Server.Handler
	cookie := h.logIn()
	come := func(from, path string, header ...string) int {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, nil)
		r.RemoteAddr, r.Host = from+":1", "perch.local:8003"
		r.Header.Set("Accept-Encoding", "gzip")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		return w.Code
	}
	synctest.Test(t, func(t *testing.T) {
		for i, path := range []string{"/", "/face", "/session", "/assets/icon.svg", "/perch-card.js", "/api/v1/status", "/api/perception/state",
			"/v1/models", "/metrics", "/nothing"} {
			from := fmt.Sprintf("192.168.1.%d", 100+i)
			for n := range 150 { // as many requests as loading the page with all its files three times
				if status := come(from, path); status == http.StatusTooManyRequests {
					t.Errorf("%s is refused after %d requests", path, n)
					break
				}
			}
			began, refused := time.Now(), 0
			for range 150 {
				if come(from, path) == http.StatusTooManyRequests {
					refused++
				}
			}
			if took := time.Since(began); refused < 3 || took < time.Duration(refused)*time.Second {
				t.Errorf("%s refuses who asks too often %d times in %s", path, refused, took)
			}
			if status := come(from, "/xiaozhi/ota/"); status == http.StatusTooManyRequests {
				t.Errorf("after %s a robot of the address is refused", path)
			}
			if status := come("192.168.1.7", path); status == http.StatusTooManyRequests {
				t.Errorf("%s from another: %d", path, status)
			}
		}
	})
	for n := range 300 {
		if status := come("192.168.1.8", "/", "Cookie", cookie); status != http.StatusOK {
			t.Errorf("an owner gets %d after %d requests", status, n)
			break
		}
	}
}

// TestMQTTAndWyomingAreLocked: MQTT requires a password, which the program generates if none is configured. Wyoming
// has no key, and is off by default.
func TestMQTTAndWyomingAreLocked(t *testing.T) {
	if c := config.Default(); c.Wyoming.Listen != "" || c.Bridge.Key != "" || c.Skins.Key != "" {
		t.Errorf("something is open by default: %q, %q, %q", c.Wyoming.Listen, c.Bridge.Key, c.Skins.Key)
	}
	c := appliancetest.Config()
	c.MQTT.Broker, c.MQTT.Listen = config.EmbeddedBroker, appliancetest.FreeAddress(t)
	h := open(t, c, t.TempDir())
	h.Eventually("the broker runs", func() bool { return h.Mirror.Status().Connected })
	password := h.Secret(datadir.MQTTPasswordFile)
	for _, try := range []struct {
		user, password string
		let            bool
	}{{"", "", false}, {"perch", "wrong", false}, {"admin", password, false},
		{"perch", password, true}} {
		conn, err := mqttLogin(c.MQTT.Listen, 4, "a-client", try.user, try.password)
		if (err == nil) != try.let {
			t.Errorf("user %q with %d letters of password: %v", try.user, len(try.password), err)
		}
		if err == nil {
			conn.Close()
		}
	}
}
