package httpserver_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"perch/gateway/httpserver"
	"perch/must"
)

// try checks a request from an address. The request has the given header unless its name is "".
func try(k *httpserver.Key, address, header, value string) error {
	r := request(http.MethodGet, "/")
	r.RemoteAddr = address
	if header != "" {
		r.Header.Set(header, value)
	}
	return k.Check(r)
}

const secret = "s3cret-of-the-owner"

func TestKey(t *testing.T) {
	for name, c := range map[string]struct {
		header, value string
		status        int // 0 if the token is accepted
	}{
		"bearer":               {"Authorization", "Bearer " + secret, 0},
		"bearer in lower case": {"Authorization", "bearer " + secret, 0}, // RFC 9110 section 11.1
		"its own header":       {"X-Admin-Token", secret, 0},
		"nothing":              {"", "", 401},
		"an empty bearer":      {"Authorization", "Bearer ", 401},
		"no scheme":            {"Authorization", secret, 401},
		"basic":                {"Authorization", "Basic " + secret, 401},
		"wrong":                {"Authorization", "Bearer wrong", 401},
		"half":                 {"Authorization", "Bearer " + secret[:5], 401},
		"more":                 {"Authorization", "Bearer " + secret + "x", 401},
		"in capitals":          {"Authorization", "Bearer " + strings.ToUpper(secret), 401},
		"another header":       {"X-Token", secret, 401},
		"bearer in its header": {"X-Admin-Token", "Bearer " + secret, 401},
		"endless":              {"Authorization", "Bearer " + strings.Repeat("x", 1<<20), 401},
	} {
		k := httpserver.NewKey(secret, "/var/lib/perch/admin-token", "X-Admin-Token")
		err := try(k, "192.168.1.5:1", c.header, c.value)
		checkRefusal(t, name, err, c.status == 0, "wrong_key", c.status, "the file admin-token in the data directory")
		if err == nil {
			continue
		}
		if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "/var") {
			t.Errorf("%s: the answer holds the secret, or where it is: %v", name, err)
		}
	}
}

func TestKeyWithoutAHeaderOfItsOwn(t *testing.T) {
	k := httpserver.NewKey(secret, "skins.key", "")
	if err := try(k, "192.168.1.5:1", "X-Admin-Token", secret); err == nil {
		t.Error("the admin's header is accepted for a key without it")
	}
	if err := try(k, "192.168.1.5:1", "Authorization", "Bearer "+secret); err != nil {
		t.Error(err)
	}
}

// TestNoKeySet checks that every request is refused while no key is set, even one with an empty token.
func TestNoKeySet(t *testing.T) {
	k := httpserver.NewKey("", "skins.key", "X-Admin-Token")
	for _, header := range []string{"", "Authorization", "X-Admin-Token"} {
		code, status := refused(t, try(k, "192.168.1.5:1", header, "Bearer "))
		if err := try(k, "127.0.0.1:1", header, ""); code != "no_key_set" || status != http.StatusForbidden ||
			!strings.Contains(err.Error(), "skins.key") {
			t.Errorf("%q: %d %s %v", header, status, code, err)
		}
	}
}

// tryToken checks a request from an address with a bearer token, and returns the status.
func tryToken(t *testing.T, k *httpserver.Key, address, token string) (status int) {
	t.Helper()
	err := try(k, address, "Authorization", "Bearer "+token)
	if err == nil {
		return http.StatusOK
	}
	_, status = refused(t, err)
	return status
}

func TestWrongKeysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := httpserver.NewKey(secret, "skins.key", "")
		for n := range 10 {
			if got := tryToken(t, k, fmt.Sprintf("192.168.1.66:%d", n+1), "guess"); got != http.StatusUnauthorized {
				t.Fatalf("try %d: %d", n+1, got)
			}
		}
		for _, c := range []struct {
			name           string
			after          time.Duration
			address, token string
			want           int
		}{
			{"the eleventh try", 0, "192.168.1.66:99", "guess", http.StatusTooManyRequests},
			{"the right key among guesses", 0, "192.168.1.66:99", secret, http.StatusTooManyRequests}, // otherwise further guesses could succeed
			{"the same address in IPv6", 0, "[::ffff:192.168.1.66]:1", "guess", http.StatusTooManyRequests},
			{"another address", 0, "192.168.1.5:1", secret, http.StatusOK},
			{"another address in IPv6", 0, "[2001:db8::1]:1", secret, http.StatusOK},
			{"a unix socket", 0, "@", secret, http.StatusOK},
			{"after 5 s", 5 * time.Second, "192.168.1.66:1", "guess", http.StatusTooManyRequests},
			{"after 6 s", time.Second + time.Millisecond, "192.168.1.66:1", "guess", http.StatusUnauthorized},
			{"after one more", 0, "192.168.1.66:1", "guess", http.StatusTooManyRequests},
			{"the right key after a minute", time.Minute, "192.168.1.66:1", secret, http.StatusOK},
		} {
			time.Sleep(c.after)
			if got := tryToken(t, k, c.address, c.token); got != c.want {
				t.Errorf("%s: %d, want %d", c.name, got, c.want)
			}
		}
	})
}

// TestOnlyWrongKeysAreTries checks that requests without a key, such as for the images of a web page, and requests
// with the right key, such as a dashboard's, do not lock an address out.
func TestOnlyWrongKeysAreTries(t *testing.T) {
	k := httpserver.NewKey(secret, "skins.key", "")
	for n := range 100 {
		if _, status := refused(t, try(k, "192.168.1.5:1", "", "")); status != http.StatusUnauthorized {
			t.Fatalf("without a key: %d", status)
		}
		if status := tryToken(t, k, "192.168.1.5:1", secret); status != http.StatusOK {
			t.Fatalf("request %d: %d", n, status)
		}
	}
}

// TestIPv6NetworkIsOneAddress checks that all addresses of a /64 network share the limit of one peer.
func TestIPv6NetworkIsOneAddress(t *testing.T) {
	k := httpserver.NewKey(secret, "skins.key", "")
	for n := range 10 {
		tryToken(t, k, fmt.Sprintf("[2001:db8::%x]:1", n), "guess")
	}
	if status := tryToken(t, k, "[2001:db8::ffff]:1", "guess"); status != http.StatusTooManyRequests {
		t.Errorf("from its eleventh address: %d", status)
	}
	if status := tryToken(t, k, "[2001:db8:0:1::1]:1", secret); status != http.StatusOK {
		t.Errorf("from another network: %d", status)
	}
}

// TestUnauthorizedNamesScheme checks that a response with status 401, and no other, has WWW-Authenticate (RFC 9110
// section 15.5.2).
func TestUnauthorizedNamesScheme(t *testing.T) {
	e, _ := newEngine(t)
	k := httpserver.NewKey(secret, "skins.key", "")
	e.GET("/x", httpserver.Guard(k.Check), func(*gin.Context) {})
	if w := serve(e, request(http.MethodGet, "/x")); w.Code != 401 || w.Header().Get("WWW-Authenticate") != `Bearer realm="perch"` {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	r := request(http.MethodGet, "/x")
	r.Header.Set("Authorization", "Bearer "+secret)
	if w := serve(e, r); w.Code != 200 || w.Header().Get("WWW-Authenticate") != "" {
		t.Errorf("with the key: %d %v", w.Code, w.Header())
	}
	if w := serve(e, request(http.MethodGet, "/y")); w.Code != 404 || w.Header().Get("WWW-Authenticate") != "" {
		t.Errorf("nothing there: %d %v", w.Code, w.Header())
	}
}

// TestChangedSecretEndsRequests checks that a change of the secret ends the requests and connections that are bound
// to the old secret, and no others, and that the old secret is refused afterwards.
func TestChangedSecretEndsRequests(t *testing.T) {
	k, serving := httpserver.NewKey(secret, "a setting", ""), httpserver.NewServing("clients", 9, 9)
	e, err := httpserver.NewEngine(slog.New(slog.DiscardHandler))
	must.Succeed(t, err)
	var underWay, connection, keyless context.Context
	begin := func(c *gin.Context) {
		ctx, leave, err := serving.Enter(c.Request)
		if err != nil {
			t.Error(err)
		}
		t.Cleanup(leave)
		if c.FullPath() == "/keyless" {
			keyless = ctx
			return
		}
		underWay, connection = c.Request.Context(), ctx
		k.Set(secret)
		if underWay.Err() != nil || connection.Err() != nil {
			t.Error("the same secret ends what it has let in")
		}
		k.Set("another secret")
		<-underWay.Done()
		<-connection.Done()
	}
	e.GET("/keyless", begin)
	e.Group("", k.Binds, httpserver.Guard(k.Check)).GET("/", begin)
	for _, path := range []string{"/keyless", "/"} {
		r := request(http.MethodGet, path)
		r.Header.Set("Authorization", "Bearer "+secret)
		e.ServeHTTP(httptest.NewRecorder(), r)
	}
	if connection == nil || keyless.Err() != nil {
		t.Error("what needs no key has ended, too")
	}
	if err := try(k, "192.0.2.1:1", "Authorization", "Bearer "+secret); err == nil {
		t.Error("the old secret opens still")
	}
	if err := try(k, "192.0.2.1:1", "Authorization", "Bearer another secret"); err != nil {
		t.Error(err)
	}
}
