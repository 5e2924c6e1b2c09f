package web_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/gateway/httpserver"
	"perch/gateway/httpserver/httpservertest"
	"perch/gateway/owner/web"
	"perch/must"
)

// throughIngress serves the page for Home Assistant's ingress, with a fake list of administrators.
type throughIngress struct {
	http.Handler
	mu     sync.Mutex // guards admins, err and asked while a stream is open
	admins []string
	err    error
	asked  int
	slow   time.Duration // how long Home Assistant takes to return the list
	log    strings.Builder
}

// says changes the result of Options.Administrators while a stream is open.
func (h *throughIngress) says(admins []string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.admins, h.err = admins, err
}

// times returns how often the list was fetched.
func (h *throughIngress) times() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked
}

func newThroughIngress(t *testing.T) *throughIngress {
	t.Helper()
	h := &throughIngress{}
	log := slog.New(slog.NewTextHandler(&h.log, &slog.HandlerOptions{Level: slog.LevelError}))
	d := web.New(web.Options{Secret: adminToken, Key: httpserver.NewKey(adminToken, "admin-token", ""), Log: log,
		Administrators: func(ctx context.Context) ([]string, error) {
			h.mu.Lock()
			h.asked++
			h.mu.Unlock()
			select {
			case <-time.After(h.slow):
				h.mu.Lock()
				defer h.mu.Unlock()
				return h.admins, h.err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}})
	e, err := httpserver.NewEngine(log)
	must.Succeed(t, err)
	e.Use(d.ProxiesOnly([]netip.Addr{netip.MustParseAddr("172.30.32.2")}), d.Authenticate())
	d.Routes(e, e)
	serveOwned(e.Group("", httpserver.Guard(web.OrOwner(func(*http.Request) error { return errors.New("nobody") }))))
	h.Handler = e
	return h
}

// from returns a request of a user through the ingress. An empty user is one that Home Assistant does not name.
func from(user, path string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.RemoteAddr = "172.30.32.2:4000"
	r.Header.Set("X-Ingress-Path", "/api/hassio_ingress/x")
	r.Header.Set(byScript, "1")
	if user != "" {
		r.Header.Set("X-Remote-User-Id", user)
	}
	return r
}

func (h *throughIngress) answer(r *http.Request) (status int, text string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// hijackable is a response recorder whose connection can be hijacked, as for a WebSocket.
type hijackable struct {
	*httptest.ResponseRecorder
	conn net.Conn
}

func (w hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.conn, nil, nil }

// socket opens a WebSocket of a user in the background, and returns a reader of the client's end.
func (h *throughIngress) socket(t *testing.T, streams *sync.WaitGroup, user string) *bufio.Reader {
	t.Helper()
	ours, theirs := net.Pipe()
	streams.Go(func() { h.ServeHTTP(hijackable{httptest.NewRecorder(), theirs}, from(user, "/socket")) })
	lines := bufio.NewReader(ours)
	if line, err := lines.ReadString('\n'); line != "open\n" {
		t.Fatalf("%q %v", line, err)
	}
	return lines
}

// TestAdministratorsAreAskedAgain checks that the list of administrators is fetched again after half a minute. A
// former administrator then loses access, and the streams and WebSockets of that user end. Nobody has access while
// the list cannot be fetched.
func TestAdministratorsAreAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newThroughIngress(t)
		h.admins = []string{"1f", "0a"}
		expect := func(user string, want int, code string, asked int) {
			t.Helper()
			if status, text := h.answer(from(user, "/owned")); status != want || !strings.Contains(text, code) || h.times() != asked {
				t.Errorf("user %q: %d %s, want %d %s; asked %d times, not %d", user, status, text, want, code, h.times(), asked)
			}
		}
		expect("", 403, `"no_user"`, 0)
		for range 3 {
			expect("1f", 200, "", 1)
			expect("2b", 403, `"not_administrator"`, 1)
		}
		two := from("2b", "/owned")
		two.Header.Add("X-Remote-User-Id", "1f")
		if status, text := h.answer(two); status != 403 {
			t.Errorf("two users at once: %d %s", status, text)
		}
		var streams sync.WaitGroup
		streams.Go(func() { h.answer(from("1f", "/stream")) })
		lines := h.socket(t, &streams, "1f")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		asked := h.times()
		h.says([]string{"0a"}, nil)
		expect("1f", 200, "", asked) // the list is used for half a minute
		began := time.Now()
		if _, err := lines.ReadString('\n'); !errors.Is(err, io.EOF) {
			t.Errorf("the WebSocket: %v", err)
		}
		streams.Wait()
		if took := time.Since(began); took > time.Minute {
			t.Errorf("the streams ended after %v", took)
		}
		expect("1f", 403, `"not_administrator"`, h.times())

		h.says([]string{"0a"}, errors.New("Home Assistant is away"))
		time.Sleep(30 * time.Second)
		asked = h.times()
		for range 3 {
			expect("0a", 503, "Home Assistant is away", asked+1)
		}
		h.says([]string{"0a"}, nil)
		time.Sleep(3 * time.Second)
		expect("0a", 200, "", asked+2)
	})
}

// TestOneFailedCheckEndsNoStream checks that one failed fetch of the list ends no stream, because Home Assistant may
// restart while its administrators use the page, and that two failures in a row end the streams.
func TestOneFailedCheckEndsNoStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newThroughIngress(t)
		h.admins = []string{"1f"}
		began := time.Now()
		done := make(chan struct{})
		go func() {
			h.answer(from("1f", "/stream"))
			close(done)
		}()
		ended := func() bool {
			synctest.Wait()
			select {
			case <-done:
				return true
			default:
				return false
			}
		}
		time.Sleep(15 * time.Second)
		for range 3 {
			h.says(nil, errors.New("Home Assistant restarts"))
			time.Sleep(30 * time.Second)
			if ended() {
				t.Fatalf("one failed question ends the stream after %v", time.Since(began))
			}
			h.says([]string{"1f"}, nil)
			time.Sleep(30 * time.Second)
		}
		h.says(nil, errors.New("Home Assistant is away"))
		time.Sleep(time.Minute)
		if !ended() {
			t.Error("two failed questions do not end the stream")
		}
	})
}

// TestAWebSocketIsWatchedOnce checks that one goroutine only watches for the loss of a WebSocket's access, although
// ProxiesOnly and Authenticate are both handlers of the ingress's listener.
func TestAWebSocketIsWatchedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newThroughIngress(t)
		h.admins = []string{"1f"}
		var served sync.WaitGroup
		lines := h.socket(t, &served, "1f")
		served.Wait()
		synctest.Wait()
		stacks := make([]byte, 1<<20)
		if n := strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "(*administrators).wait("); n != 1 {
			t.Errorf("%d goroutines wait for the end of one WebSocket's access", n)
		}
		h.says(nil, nil)
		if _, err := lines.ReadString('\n'); !errors.Is(err, io.EOF) {
			t.Errorf("the WebSocket: %v", err)
		}
	})
}

// TestSlowUploadsOfAnOwner checks that a handler can set a later deadline for a body than the usual 30 s.
func TestSlowUploadsOfAnOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newThroughIngress(t)
		h.admins = []string{"1f"}
		conn := httpservertest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.RemoteAddr = "172.30.32.2:4000"
			h.ServeHTTP(w, r)
		}))
		var sending sync.WaitGroup
		defer sending.Wait()
		sending.Go(func() {
			_, err := io.WriteString(conn,
				"POST /upload HTTP/1.1\r\nHost: perch\r\nX-Ingress-Path: /x\r\nX-Remote-User-Id: 1f\r\nOrigin: http://perch\r\nX-Perch-Page: 1\r\nContent-Length: 2\r\n\r\na")
			time.Sleep(time.Minute)
			if _, late := io.WriteString(conn, "b"); err != nil || late != nil {
				t.Errorf("send: %v, %v", err, late)
			}
		})
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		must.Succeed(t, err)
		defer answer.Body.Close()
		if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
			t.Errorf("an upload that takes a minute: %s %s", answer.Status, text)
		}
	})
}

// TestClientThatLeavesIsNoError checks that no error is logged if a client disconnects while the list is being fetched.
func TestClientThatLeavesIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newThroughIngress(t)
		h.slow = 10 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, text := h.answer(from("1f", "/owned").WithContext(ctx)); text != "" || h.log.Len() > 0 {
			t.Errorf("it is answered %q, and the log says %q", text, h.log.String())
		}
	})
}

// TestRefusalOfNonAdministrators checks that a browser gets a page without scripts, and a program the usual error.
func TestRefusalOfNonAdministrators(t *testing.T) {
	h := newThroughIngress(t)
	browser := from("2b", "/robot")
	browser.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	if status, text := h.answer(browser); status != 403 || !strings.Contains(text, "administrators of Home Assistant only") ||
		strings.Contains(text, "<script") {
		t.Errorf("%d %s", status, text)
	}
	for _, path := range []string{"/", "/session", "/owned", "/assets/icon.svg", "/nothing"} {
		if status, text := h.answer(from("2b", path)); status != 403 || !strings.Contains(text, `"code":"not_administrator"`) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}
