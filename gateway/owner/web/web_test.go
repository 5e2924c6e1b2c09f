package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
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

// byScript is the header that only the page's own scripts send.
const byScript = "X-Perch-Page"

const adminToken = "the-admin-token-of-a-test"

// epochs is the stored state of sessions, which outlives a server. The last element of all is the present epoch.
type epochs struct {
	all     []string
	out     string       // the sessions that were logged out
	storing func() error // called before anything is stored; may be nil
}

func (e *epochs) keepOut(out string) error {
	if e.storing != nil {
		if err := e.storing(); err != nil {
			return err
		}
	}
	e.out = out
	return nil
}

func (e *epochs) last() string { return strings.Join(e.all[max(0, len(e.all)-1):], "") }

func (e *epochs) keep(epoch string) error {
	if e.storing != nil {
		if err := e.storing(); err != nil {
			return err
		}
	}
	e.all = append(e.all, epoch)
	return nil
}

// server serves the page and the routes of serveOwned.
type server struct {
	*httptest.Server
	web *web.Server
	t   *testing.T
	now time.Time

	paced int // number of calls of Options.Pace

	robots  bool   // whether there is a robot that may say codes
	listens bool   // whether the robot listens
	said    string // the latest code that the robot has said
}

// CanSayCode implements web.Robots.
func (s *server) CanSayCode() bool { return s.robots }

// SayCode implements web.Robots.
func (s *server) SayCode(_ context.Context, digits string) error {
	if !s.listens {
		return errors.New("no robot listens")
	}
	s.said = digits
	return nil
}

func serve(t *testing.T, kept *epochs, token string, ingress ...netip.Addr) *server {
	t.Helper()
	s := &server{t: t, now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}
	owner := httpserver.NewKey(token, "admin-token", "X-Admin-Token")
	d := web.New(web.Options{Name: "perch", Language: func() string { return "en" }, Version: "1", Secret: token, Epoch: kept.last(),
		StoreEpoch: kept.keep, LoggedOut: kept.out, StoreLoggedOut: kept.keepOut, Key: owner, Ingress: ingress,
		Addresses: func() []string { return []string{"http://perch.local:8003"} },
		LocalURL:  func() string { return "http://127.0.0.1:8004" }, Now: func() time.Time { return s.now },
		Pace: func(*http.Request) error { s.paced++; return nil }, Robots: s, Log: slog.New(slog.DiscardHandler)})
	e, err := httpserver.NewEngine(slog.New(slog.DiscardHandler))
	must.Succeed(t, err)
	d.HomeAssistantRoutes(e)
	e.Use(d.Authenticate(), web.UnlessBy(web.ByIngress, httpserver.Origins{}.Admit()))
	d.Routes(e, e)
	owned := e.Group("", httpserver.Guard(web.OrOwner(owner.Check)))
	d.OwnerRoutes(owned)
	serveOwned(owned)
	s.Server, s.web = httptest.NewServer(e), d
	t.Cleanup(s.Close)
	return s
}

// ask sends a request. header holds names and values of headers, alternately.
func (s *server) ask(method, path, body string, header ...string) (*http.Response, string) {
	s.t.Helper()
	return httpservertest.Ask(s.t, method, s.URL+path, body, header...)
}

// enter logs in, and returns the value of the header Cookie for the session.
func (s *server) enter() string {
	s.t.Helper()
	answer, text := s.ask(http.MethodPost, "/session", `{"token":"`+adminToken+`"}`)
	if answer.StatusCode != http.StatusNoContent {
		s.t.Fatalf("%d %s", answer.StatusCode, text)
	}
	c := answer.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" {
		s.t.Errorf("the cookie is %v", c)
	}
	return c.Name + "=" + c.Value
}

func (s *server) expect(status int, method, path string, header ...string) {
	s.t.Helper()
	if answer, text := s.ask(method, path, "", header...); answer.StatusCode != status {
		s.t.Errorf("%s %s %q: %d %.200s, want %d", method, path, header, answer.StatusCode, text, status)
	}
}

// TestOnlyOwnPagesHaveSessions checks that a cookie alone does not authenticate a request, because browsers treat other
// ports of the same host as the same site.
func TestOnlyOwnPagesHaveSessions(t *testing.T) {
	s := serve(t, &epochs{}, adminToken)
	cookie := s.enter()
	own := s.URL
	for _, c := range []struct {
		name, method string
		status       int
		header       []string
	}{
		{"no cookie", http.MethodGet, 401, nil},
		{"the cookie alone", http.MethodGet, 401, []string{"Cookie", cookie}},
		{"a script of the page", http.MethodGet, 200, []string{"Cookie", cookie, byScript, "1"}},
		{"beside another of its name", http.MethodGet, 200, []string{"Cookie", "perch_session=other; " + cookie, byScript, "1"}},
		{"a changed cookie", http.MethodGet, 401, []string{"Cookie", cookie[:len(cookie)-2] + "AA", byScript, "1"}},
		{"an older one", http.MethodGet, 401, []string{"Cookie", strings.Replace(cookie, "=A", "=B", 1), byScript, "1"}},
		{"a change by the page", http.MethodPost, 200, []string{"Cookie", cookie, "Origin", own, "Sec-Fetch-Site", "same-origin", byScript, "1"}},
		{"a change by the page over plain http", http.MethodPost, 200, []string{"Cookie", cookie, "Origin", own, byScript, "1"}},
		{"a change by the page, but by no script", http.MethodPost, 401, []string{"Cookie", cookie, "Origin", own}},
		{"a change by nobody", http.MethodPost, 401, []string{"Cookie", cookie}},
		{"a change by nobody's script", http.MethodPost, 401, []string{"Cookie", cookie, byScript, "1"}},
		{"a script of another port", http.MethodGet, 403, []string{"Cookie", cookie, "Origin", "http://127.0.0.1:8123", byScript, "1"}},
		{"a script of another site", http.MethodGet, 401, []string{"Cookie", cookie, "Sec-Fetch-Site", "cross-site", byScript, "1"}},
		{"a change by another port of this host", http.MethodPost, 403, []string{"Cookie", cookie, "Origin", "http://127.0.0.1:8123"}},
		{"a tag of another port", http.MethodGet, 401, []string{"Cookie", cookie, "Sec-Fetch-Site", "same-site"}},
		{"a tag of another site", http.MethodGet, 401, []string{"Cookie", cookie, "Sec-Fetch-Site", "cross-site"}},
		{"a WebSocket of nobody", http.MethodGet, 401, []string{"Cookie", cookie, "Upgrade", "websocket"}},
		{"a WebSocket of the page", http.MethodGet, 200, []string{"Cookie", cookie, "Upgrade", "websocket", "Origin", own}},
		{"the token in a header", http.MethodPost, 200, []string{"Authorization", "Bearer " + adminToken}},
		{"a path of ingress from nobody's proxy", http.MethodGet, 401, []string{"X-Ingress-Path", "/api/hassio_ingress/x"}},
	} {
		answer, text := s.ask(c.method, "/owned", "", c.header...)
		if answer.StatusCode != c.status {
			t.Errorf("%s: %d %.200s, want %d", c.name, answer.StatusCode, text, c.status)
		}
		if answer.Header.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%s: a page of another origin may embed it: %v", c.name, answer.Header)
		}
	}
	// The owner's API requires the header for every request with a cookie, but not for one with a token.
	for _, c := range []struct {
		name   string
		status int
		header []string
	}{
		{"a change by the page, but by no script", 401, []string{"Cookie", cookie, "Origin", own}},
		{"a change by a script of the page", 201, []string{"Cookie", cookie, "Origin", own, byScript, "1"}},
		{"a change by a program", 201, []string{"Authorization", "Bearer " + adminToken}},
	} {
		if answer, text := s.ask(http.MethodPost, "/api/v1/link", "", c.header...); answer.StatusCode != c.status {
			t.Errorf("%s: %d %.200s, want %d", c.name, answer.StatusCode, text, c.status)
		}
	}
	for path, status := range map[string]int{"/admin/say": 401, "/xiaozhi/admin/say": 401, "/api/agents/leo": 401, "/v1/chat/completions": 401,
		"/xiaozhi/ota/": 200, "/xiaozhi/vision/explain": 200} { // the robot in the page sends the last two requests
		s.expect(status, http.MethodPost, path, "Cookie", cookie, "Origin", own)
		s.expect(200, http.MethodPost, path, "Cookie", cookie, "Origin", own, byScript, "1")
	}
	s.expect(401, http.MethodGet, "/api/v1/address", "Cookie", cookie)
	s.expect(200, http.MethodGet, "/api/v1/address", "Cookie", cookie, byScript, "1")
}

// TestSessionsEnd checks that sessions end after their lifetime, by a logout and with a new admin token, but not by a
// restart. A logout ends one session with its streams, also after a restart; DELETE /sessions ends all sessions.
func TestSessionsEnd(t *testing.T) {
	kept := &epochs{}
	s := serve(t, kept, adminToken)
	first, second := s.enter(), s.enter()
	again := serve(t, kept, adminToken)
	again.expect(200, http.MethodGet, "/owned", "Cookie", first, byScript, "1")
	other := serve(t, kept, "another-admin-token")
	other.expect(401, http.MethodGet, "/owned", "Cookie", first, byScript, "1")

	s.now = s.now.Add(31 * 24 * time.Hour)
	s.expect(401, http.MethodGet, "/owned", "Cookie", first, byScript, "1")
	s.now = s.now.Add(-31 * 24 * time.Hour)

	s.now = s.now.Add(-time.Second) // the session begins in the future
	s.expect(401, http.MethodGet, "/owned", "Cookie", first, byScript, "1")
	s.now = s.now.Add(time.Second)
	s.expect(200, http.MethodGet, "/owned", "Cookie", first, byScript, "1")

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/stream", nil)
	must.Succeed(t, err)
	r.Header.Set("Cookie", second)
	r.Header.Set(byScript, "1")
	stream, err := http.DefaultClient.Do(r)
	must.Succeed(t, err)
	defer stream.Body.Close()
	socket, err := net.Dial("tcp", s.Listener.Addr().String())
	must.Succeed(t, err)
	defer socket.Close()
	_ = socket.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(socket, "GET /socket HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nX-Perch-Page: 1\r\n\r\n", s.Listener.Addr(), second)
	lines := bufio.NewReader(socket)
	if line, err := lines.ReadString('\n'); line != "open\n" {
		t.Fatalf("%q %v", line, err)
	}
	s.expect(409, http.MethodDelete, "/session")
	s.expect(409, http.MethodDelete, "/sessions")
	third := s.enter()
	s.expect(204, http.MethodDelete, "/session", "Cookie", first, "Origin", s.URL)
	s.expect(204, http.MethodDelete, "/session", "Cookie", s.enter(), "Origin", s.URL)
	for _, s := range []*server{s, serve(t, kept, adminToken)} {
		s.expect(401, http.MethodGet, "/owned", "Cookie", first, byScript, "1")
		s.expect(200, http.MethodGet, "/owned", "Cookie", second, byScript, "1")
	}
	s.expect(204, http.MethodDelete, "/session", "Cookie", second, "Origin", s.URL)
	if _, err := io.Copy(&strings.Builder{}, stream.Body); err != nil {
		t.Errorf("the stream of an ended session goes on: %v", err)
	}
	if line, err := lines.ReadString('\n'); err != io.EOF {
		t.Errorf("the WebSocket of an ended session goes on: %q %v", line, err)
	}
	s.expect(200, http.MethodGet, "/owned", "Cookie", third, byScript, "1")
	fourth := s.enter()
	s.expect(204, http.MethodDelete, "/sessions", "Cookie", third, "Origin", s.URL, byScript, "1")
	for _, cookie := range []string{first, second, third, fourth} {
		s.expect(401, http.MethodGet, "/owned", "Cookie", cookie, byScript, "1")
	}
	serve(t, kept, adminToken).expect(401, http.MethodGet, "/owned", "Cookie", first, byScript, "1")
	s.expect(200, http.MethodGet, "/owned", "Cookie", s.enter(), byScript, "1")
}

// TestManyLogouts checks that the number of stored logged-out sessions is bounded, and that a logout beyond the bound
// ends all sessions.
func TestManyLogouts(t *testing.T) {
	kept := &epochs{}
	s := serve(t, kept, adminToken)
	first, other := s.enter(), s.enter()
	s.expect(204, http.MethodDelete, "/session", "Cookie", first, "Origin", s.URL)
	for range 200 {
		s.expect(200, http.MethodGet, "/owned", "Cookie", other, byScript, "1")
		s.expect(204, http.MethodDelete, "/session", "Cookie", s.enter(), "Origin", s.URL)
	}
	for _, s := range []*server{s, serve(t, kept, adminToken)} {
		s.expect(401, http.MethodGet, "/owned", "Cookie", first, byScript, "1")
		s.expect(401, http.MethodGet, "/owned", "Cookie", other, byScript, "1")
	}
	if len(kept.out) > 100 {
		t.Errorf("%d bytes are kept", len(kept.out))
	}
}

// TestLogoutDelaysNoRequest checks that other requests with a session are answered while a logout is being stored.
func TestLogoutDelaysNoRequest(t *testing.T) {
	storing, stored := make(chan struct{}), make(chan struct{})
	s := serve(t, &epochs{storing: func() error { close(storing); <-stored; return nil }}, adminToken)
	cookie := s.enter()
	var ending sync.WaitGroup
	ending.Go(func() { s.expect(204, http.MethodDelete, "/session", "Cookie", cookie, "Origin", s.URL) })
	<-storing
	answered := make(chan int, 1)
	ending.Go(func() {
		answer, _ := s.ask(http.MethodGet, "/owned", "", "Cookie", cookie, byScript, "1")
		answered <- answer.StatusCode
	})
	select {
	case <-answered:
	case <-time.After(5 * time.Second):
		t.Error("a request waits until the end of the sessions is stored")
	}
	close(stored)
	ending.Wait()
	s.expect(401, http.MethodGet, "/owned", "Cookie", cookie, byScript, "1")
}

// TestUnstoredLogoutIsReported checks that a logout that cannot be stored is reported, and ends the session anyway.
func TestUnstoredLogoutIsReported(t *testing.T) {
	s := serve(t, &epochs{storing: func() error { return errors.New("the disk is full") }}, adminToken)
	cookie := s.enter()
	answer, text := s.ask(http.MethodDelete, "/session", "", "Cookie", cookie, "Origin", s.URL)
	if answer.StatusCode != http.StatusInternalServerError || !strings.Contains(text, "restart") {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	s.expect(401, http.MethodGet, "/owned", "Cookie", cookie, byScript, "1")
}

// TestLinkExpiresByMonotonicClock checks that a link expires after ten minutes even if the wall clock is set.
func TestLinkExpiresByMonotonicClock(t *testing.T) {
	s := serve(t, &epochs{}, adminToken)
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name   string
			passes time.Duration
			clock  time.Duration // by how much the wall clock is set in addition
			status int
		}{
			{"a link in its time", 9 * time.Minute, 0, 204},
			{"a link in its time, by a clock that was set ahead", 9 * time.Minute, time.Hour, 204},
			{"a link after its time", 11 * time.Minute, 0, 401},
			{"a link after its time, by a clock that was set back", 11 * time.Minute, -time.Hour, 401},
		} {
			_, code, _ := strings.Cut(s.handle("/api/v1/link", "", "Authorization", "Bearer "+adminToken).Body.String(), "/#/in/")
			code, _, _ = strings.Cut(code, `"`)
			time.Sleep(c.passes)
			s.now = s.now.Add(c.passes + c.clock)
			if got := s.handle("/session", `{"code":"`+code+`"}`); got.Code != c.status {
				t.Errorf("%s: %d %s, want %d", c.name, got.Code, got.Body, c.status)
			}
		}
	})
}

// handle passes a POST request to the handler without the network, for tests in a synctest bubble. header holds names and
// values of headers, alternately.
func (s *server) handle(path, body string, header ...string) *httptest.ResponseRecorder {
	r, answer := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)), httptest.NewRecorder()
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	s.Config.Handler.ServeHTTP(answer, r)
	return answer
}

// code makes a link, and returns its code of six digits.
func (s *server) code(t *testing.T) string {
	t.Helper()
	var l web.Link
	must.Succeed(t, json.Unmarshal(s.handle("/api/v1/link", "", "Authorization", "Bearer "+adminToken).Body.Bytes(), &l))
	if len(l.Code) != 6 || strings.Trim(l.Code, "0123456789") != "" {
		t.Fatalf("the code is %q", l.Code)
	}
	return l.Code
}

// typeIn types a code on the page, and returns the status.
func (s *server) typeIn(code string) int { return s.handle("/session", `{"code":"`+code+`"}`).Code }

// TestTypedCode checks that six digits log in once, within five minutes, and not after five wrong codes.
func TestTypedCode(t *testing.T) {
	wrong := func(code string) string { // returns a code that differs in the last digit
		return code[:5] + string('0'+(code[5]-'0'+1)%10)
	}
	for name, c := range map[string]struct {
		before func(s *server, code string)
		want   int
	}{
		"at once":                {func(*server, string) {}, 204},
		"after four minutes":     {func(*server, string) { time.Sleep(4 * time.Minute) }, 204},
		"after five minutes":     {func(*server, string) { time.Sleep(5 * time.Minute) }, 401},
		"a second time":          {func(s *server, code string) { s.typeIn(code) }, 401},
		"after four wrong codes": {func(s *server, code string) { s.mistypes(wrong(code), 4) }, 204},
		"after five wrong codes": {func(s *server, code string) { s.mistypes(wrong(code), 5) }, 401},
		"after many wrong tokens": {func(s *server, _ string) {
			for range 6 {
				s.handle("/session", `{"token":"wrong"}`)
			}
		}, 204},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, &epochs{}, adminToken)
			synctest.Test(t, func(t *testing.T) {
				code := s.code(t)
				c.before(s, code)
				if got := s.typeIn(code[:3] + " " + code[3:]); got != c.want {
					t.Errorf("%d, want %d", got, c.want)
				}
			})
		})
	}
}

// TestWrongDigitsLeaveTheLink checks that wrong digits make the digits of a link invalid, but not the link.
func TestWrongDigitsLeaveTheLink(t *testing.T) {
	s := serve(t, &epochs{}, adminToken)
	synctest.Test(t, func(t *testing.T) {
		var l web.Link
		must.Succeed(t, json.Unmarshal(s.handle("/api/v1/link", "", "Authorization", "Bearer "+adminToken).Body.Bytes(), &l))
		s.mistypes("none", 5)
		if got := s.typeIn(l.Code); got != http.StatusUnauthorized {
			t.Errorf("the digits: %d", got)
		}
		_, code, _ := strings.Cut(l.URLs[0], "#/in/")
		if got := s.typeIn(code); got != http.StatusNoContent {
			t.Errorf("the link: %d", got)
		}
	})
}

// TestStrangersCannotGuessTheLinkAtATerminal checks that the link of LocalLink has no digits, and logs in once.
func TestStrangersCannotGuessTheLinkAtATerminal(t *testing.T) {
	s := serve(t, &epochs{}, adminToken)
	synctest.Test(t, func(t *testing.T) {
		_, code, _ := strings.Cut(s.web.LocalLink(), "#/in/")
		if n := s.web.TypedCodes(); n != 0 {
			t.Errorf("%d codes of six digits let in", n)
		}
		s.mistypes("", 5)
		for _, want := range []int{http.StatusNoContent, http.StatusUnauthorized} {
			if got := s.typeIn(code); got != want {
				t.Errorf("the link: %d, want %d", got, want)
			}
		}
	})
}

// mistypes types a wrong code the given number of times.
func (s *server) mistypes(code string, times int) {
	for range times {
		s.typeIn(code)
	}
}

// TestRobotSaysCode checks that a robot says a code at most once in a minute, only if a robot may say codes, and that each
// said code logs in once.
func TestRobotSaysCode(t *testing.T) {
	s := serve(t, &epochs{}, adminToken)
	synctest.Test(t, func(t *testing.T) {
		expect := func(status int, word string) {
			t.Helper()
			if got := s.handle("/session/code", ""); got.Code != status || !strings.Contains(got.Body.String(), word) {
				t.Errorf("%d %s, want %d %s", got.Code, got.Body, status, word)
			}
		}
		expect(404, "no_robot")
		s.robots = true
		expect(409, "no_robot_listens")
		s.listens = true
		expect(429, "code_said") // a try that fails may have synthesized speech
		time.Sleep(5 * time.Second)
		expect(204, "") // five seconds are enough after a failed try
		expect(429, "code_said")
		first := s.said
		time.Sleep(time.Minute)
		expect(204, "")
		if second := s.said; s.typeIn(second) != 204 || s.typeIn(first) != 204 || s.typeIn(first) != 401 {
			t.Error("the codes that were said do not let in, each once")
		}
		if got := s.handle("/session/code", "", "Origin", "http://elsewhere.example"); got.Code != 403 {
			t.Errorf("a page of another origin has a robot speak: %d", got.Code)
		}
	})
	for robots, want := range map[bool]string{false: `"says":false`, true: `"says":true`} {
		s.robots = robots
		if _, text := s.ask(http.MethodGet, "/session", ""); !strings.Contains(text, want) {
			t.Errorf("%s, want %s", text, want)
		}
	}
}

// TestLinkWorksOnce checks that a link logs in once, and that a new link replaces the oldest of sixteen unused links.
func TestLinkWorksOnce(t *testing.T) {
	s := serve(t, &epochs{}, adminToken)
	code := func() string {
		_, text := s.ask(http.MethodPost, "/api/v1/link", "", "Authorization", "Bearer "+adminToken)
		var l web.Link
		if err := json.Unmarshal([]byte(text), &l); err != nil || len(l.URLs) != 2 || len(l.QR) < 21 || len(l.QR) != len(l.QR[0]) {
			t.Fatalf("%s: %v", text, err)
		}
		_, code, _ := strings.Cut(l.URLs[0], "http://perch.local:8003/#/in/")
		return code
	}
	use := func(code string) int {
		answer, _ := s.ask(http.MethodPost, "/session", `{"code":"`+code+`"}`)
		return answer.StatusCode
	}
	one := code()
	if a, b := use(one), use(one); a != 204 || b != 401 {
		t.Errorf("a link answers %d, then %d", a, b)
	}
	oldest := code()
	for range 16 {
		code()
	}
	if status := use(oldest); status != 401 {
		t.Errorf("the oldest of 17 links answers %d", status)
	}
}

// TestWrongTokensAreCounted checks that wrong tokens and codes of logins count toward the limit of the admin token.
func TestWrongTokensAreCounted(t *testing.T) {
	s := serve(t, &epochs{}, adminToken)
	for range 5 {
		s.ask(http.MethodPost, "/session", `{"token":"wrong"}`)
		s.ask(http.MethodPost, "/session", `{"code":"WRONG"}`)
	}
	answer, text := s.ask(http.MethodPost, "/session", `{"token":"`+adminToken+`"}`)
	if answer.StatusCode != http.StatusTooManyRequests {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	s.expect(http.StatusTooManyRequests, http.MethodGet, "/owned", "Authorization", "Bearer "+adminToken)
}

// TestIngress checks that only a configured proxy authenticates its users, and that the URLs of the page begin with the
// path that the proxy sends.
func TestIngress(t *testing.T) {
	s := serve(t, &epochs{}, adminToken, netip.MustParseAddr("127.0.0.1"))
	through := []string{"X-Ingress-Path", "/api/hassio_ingress/x\"><script>", "X-Forwarded-Host", "homeassistant.local:8123",
		"Origin", "http://homeassistant.local:8123"}
	s.expect(200, http.MethodPost, "/owned", append(through, byScript, "1")...)
	s.expect(403, http.MethodPost, "/owned", through...)
	s.expect(403, http.MethodPost, "/owned", append(through[:4], "Origin", "http://homeassistant.local:8080", byScript, "1")...)
	_, text := s.ask(http.MethodGet, "/", "", through...)
	if want := `<base href="/api/hassio_ingress/x&#34;&gt;&lt;script&gt;/">`; !strings.Contains(text, want) {
		t.Errorf("the page is %s, and has no %s", text, want)
	}
	serve(t, &epochs{}, adminToken, netip.MustParseAddr("192.0.2.9")).expect(401, http.MethodGet, "/owned", "X-Ingress-Path", "/x")
	_, text = s.ask(http.MethodGet, "/session", "", through...)
	if !strings.Contains(text, `"how":"ingress","in":true`) {
		t.Error(text)
	}
}

// TestUnzippingIsPaced checks that a request of a client that does not accept gzip is paced, because the file has to be
// decompressed for each such request.
func TestUnzippingIsPaced(t *testing.T) {
	s := serve(t, &epochs{}, adminToken)
	if answer, _ := s.ask(http.MethodGet, "/assets/icon.svg", ""); answer.StatusCode == http.StatusNotFound {
		t.Skip("the page is not bundled: make build bundles it")
	}
	zipped, _ := s.ask(http.MethodGet, "/assets/icon.svg", "", "Accept-Encoding", "gzip")
	_, plain := s.ask(http.MethodGet, "/perch-card.js", "", "Accept-Encoding", "identity")
	if zipped.Header.Get("Content-Encoding") != "gzip" || !strings.Contains(plain, "perch-card") || s.paced != 1 {
		t.Errorf("%v, %.40q, %d were paced", zipped.Header, plain, s.paced)
	}
}

// TestPages checks that a page without a login contains nothing of the appliance but its name.
func TestPages(t *testing.T) {
	s := serve(t, &epochs{}, adminToken)
	answer, text := s.ask(http.MethodGet, "/", "")
	if answer.StatusCode != 200 || strings.Contains(answer.Header.Get("Content-Security-Policy"), "unsafe-inline") ||
		!strings.Contains(answer.Header.Get("Content-Security-Policy"), "default-src 'none'") || !strings.Contains(text, `<base href="/">`) {
		t.Errorf("%d %v %s", answer.StatusCode, answer.Header, text)
	}
	for _, path := range []string{"/robot", "/face?robot=x"} {
		answer, _ := s.ask(http.MethodGet, path, "")
		if answer.StatusCode != http.StatusSeeOther || !strings.HasPrefix(answer.Header.Get("Location"), "/?next=") {
			t.Errorf("%s: %d %v", path, answer.StatusCode, answer.Header)
		}
		s.expect(200, http.MethodGet, path, "Cookie", s.enter())
	}
	s.expect(404, http.MethodGet, "/assets/..%2ffiles.json")
	s.expect(404, http.MethodGet, "/assets/missing.js")
}
