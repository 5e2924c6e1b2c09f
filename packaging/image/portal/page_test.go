package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"perch/must"
	"perch/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const host = "10.42.0.1"

func newTestPage() *page {
	p := newPage(func(_ context.Context, _, value string) (bool, error) { return value == "en", nil })
	p.setContent(host, content{accessPoint: "Perch-1A2B", name: "perch", language: "en", networks: []scanned{
		{SSID: "Home", Signal: 80, Key: true}, {SSID: "<script>alert(1)</script>", Signal: 60}, {SSID: "New", Signal: 50, Key: true, Unfit: true}}})
	return p
}

// asks sends the request of a phone, which submits a form if body is not empty.
func (p *page) asks(url, address, body string, head ...string) *httptest.ResponseRecorder {
	method, from := http.MethodGet, io.Reader(nil)
	if body != "" {
		method, from = http.MethodPost, strings.NewReader(body)
	}
	r := httptest.NewRequest(method, url, from)
	r.RemoteAddr = address + ":4000"
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

func (p *page) taken() int { return len(p.forms) }

func TestCaptivePortalProbesAreRedirected(t *testing.T) {
	p := newTestPage()
	for _, url := range []string{
		"http://connectivitycheck.gstatic.com/generate_204", "http://clients3.google.com/generate_204", // Android
		"http://captive.apple.com/hotspot-detect.html", "http://www.apple.com/library/test/success.html", // iOS, macOS
		"http://www.msftconnecttest.com/connecttest.txt", "http://www.msftncsi.com/ncsi.txt", // Windows
		"http://detectportal.firefox.com/canonical.html", "http://detectportal.firefox.com/success.txt?ipv4",
		"http://" + host + "/elsewhere", "http://" + host + ":8080/",
	} {
		if w := p.asks(url, "10.42.0.9", ""); w.Code != http.StatusFound || w.Header().Get("Location") != "http://"+host+"/" ||
			w.Body.Len() > 0 {
			t.Errorf("%s: %d %q", url, w.Code, w.Header())
		}
		if w := p.asks(url, "10.42.0.9", values("token", p.token).Encode()); w.Code != http.StatusFound || p.taken() > 0 {
			t.Errorf("a form to %s: %d", url, w.Code)
		}
	}
}

func TestPageInEachLanguage(t *testing.T) {
	p := newTestPage()
	w := p.asks("http://"+host+"/", "10.42.0.9", "", "Accept-Language", "xx, de-AT;q=0.8")
	text := w.Body.String()
	for _, want := range []string{`<html lang="de">`, `>Perch ins Netz bringen</h1>`,
		`value="AT" selected>Österreich`, "value=\"486f6d65\">Home · 80\u00a0%",
		"&lt;script&gt;alert(1)&lt;/script&gt; · 60\u00a0% · offen", `disabled>New`, `for="key"`,
		`href="/?lang=en"`, `value="` + p.token + `"`, `Perch-1A2B`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	if w.Code != http.StatusOK || strings.Contains(text, "<script") || strings.Contains(text, "http://") && strings.Contains(text, "src=") ||
		!strings.HasPrefix(w.Header().Get("Content-Security-Policy"), "default-src 'none'; style-src 'nonce-") {
		t.Errorf("%d %q", w.Code, w.Header())
	}
	for tag, title := range map[string]string{"en": "Give Perch a network", "de": "Perch ins Netz bringen", "ja": "Perch をネットワークにつなぐ",
		"zh-Hans": "让 Perch 连上网络", "es": "Dar una red a Perch", "fr": "Donner un réseau à Perch"} {
		text := p.asks("http://"+host+"/?lang="+tag, "10.42.0.9", "", "Accept-Language", "de").Body.String()
		if !strings.Contains(text, "<h1>"+title+"</h1>") || !strings.Contains(text, `<html lang="`+tag+`">`) || strings.Contains(text, "portal.") ||
			strings.Count(text, `<a href="/?lang=`) != 6 || strings.Count(text, `aria-current="true"`) != 1 {
			t.Errorf("in %s it is\n%s", tag, text)
		}
	}
	for asked, tag := range map[string]string{"zh-CN,zh;q=0.9": "zh-Hans", "es-MX": "es", "xx": "en", strings.Repeat("xx,", 2000) + "de": "en"} {
		text := p.asks("http://"+host+"/", "10.42.0.9", "", "Accept-Language", asked).Body.String()
		if !strings.Contains(text, `<html lang="`+tag+`">`) {
			t.Errorf("%.20q is not shown in %s", asked, tag)
		}
	}
	for _, c := range []struct {
		failed error
		want   string
	}{
		{errWrongKey, "Home was not joined: the password is wrong."}, {fmt.Errorf("%w: nmcli", errNotFound), "it was not found"},
		{errors.New("x"), "Home was not joined."},
	} {
		p.setContent(host, content{failed: c.failed, tried: "Home"})
		text := p.asks("http://"+host+"/", "10.42.0.9", "").Body.String()
		if !strings.Contains(text, `role="alert">`) || !strings.Contains(text, c.want) {
			t.Errorf("%v: it says\n%s", c.failed, text)
		}
	}
}

func TestFormIsTakenOnce(t *testing.T) {
	p := newTestPage()
	w := p.asks("http://"+host+"/", "10.42.0.9", values("token", p.token).Encode())
	text := w.Body.String()
	if w.Code != http.StatusOK || !strings.Contains(text, "Perch now joins Home.") || !strings.Contains(text, "http://kitchen.local:8003/") ||
		!strings.Contains(text, "does not understand that language") || strings.Contains(text, "a good password") {
		t.Errorf("%d\n%s", w.Code, text)
	}
	if w := p.asks("http://"+host+"/", "10.42.0.8", values("token", p.token).Encode()); w.Code != http.StatusServiceUnavailable {
		t.Errorf("another one meanwhile: %d", w.Code)
	}
	if f := <-p.forms; f.network.SSID != "Home" || f.name != "kitchen" || p.taken() > 0 {
		t.Errorf("it took %+v", f)
	}
}

func TestBadFormsChangeNothing(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"no token":    {values().Encode(), http.StatusForbidden, "too old"},
		"another's":   {values("token", "x").Encode(), http.StatusForbidden, "too old"},
		"a long key":  {"key200", http.StatusUnprocessableEntity, "A password has"},
		"a shell":     {"shell", http.StatusUnprocessableEntity, "A name has"},
		"a large one": {strings.Repeat("a=b&", 2000), http.StatusRequestEntityTooLarge, "too old"},
		"no form":     {"%zz;", http.StatusBadRequest, "too old"},
	} {
		p := newTestPage()
		switch c.body {
		case "key200":
			c.body = values("token", p.token, "key", strings.Repeat("k", 200)).Encode()
		case "shell":
			c.body = values("token", p.token, "name", "$(reboot)", "ssid", "`reboot`").Encode()
		}
		w := p.asks("http://"+host+"/", "10.42.0.9", c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) || p.taken() > 0 {
			t.Errorf("%s: %d\n%s", name, w.Code, w.Body)
		}
	}
	p := newTestPage()
	body := values("token", p.token).Encode()
	if w := p.asks("http://"+host+"/", "10.42.0.9", body, "Content-Type", "text/plain"); w.Code != http.StatusBadRequest || p.taken() > 0 {
		t.Errorf("a text: %d", w.Code)
	}
	r := httptest.NewRequest(http.MethodDelete, "http://"+host+"/", nil)
	w := httptest.NewRecorder()
	if p.ServeHTTP(w, r); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("DELETE: %d", w.Code)
	}
}

func TestTenThousandFormsOfStrangers(t *testing.T) {
	p := newTestPage()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	bad := values("token", "guessed", "key", strings.Repeat("k", 200)).Encode()
	refused := map[int]int{}
	for i := range 10_000 {
		w := p.asks("http://"+host+"/", fmt.Sprintf("10.42.%d.%d", i/200%20, i%200), bad)
		refused[w.Code]++
	}
	if p.taken() > 0 || refused[http.StatusOK] > 0 || len(p.senders) > maxSenders {
		t.Errorf("%v; it keeps %d addresses", refused, len(p.senders))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("%d bytes more are in use", grown)
	}
	if w := p.asks("http://"+host+"/", "10.43.0.9", values("token", p.token).Encode()); w.Code != http.StatusOK || p.taken() != 1 {
		t.Errorf("the owner's: %d", w.Code)
	}
	for range 10_000 { // forms with the valid token of the page
		p.asks("http://"+host+"/", "10.42.0.9", values("token", p.token, "ssid", "Mine").Encode())
	}
	if f := <-p.forms; f.network.SSID != "Home" || p.taken() > 0 {
		t.Errorf("it took %+v", f)
	}
}

func TestRateOfForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPage()
		for i := range 10 {
			if w := p.asks("http://"+host+"/", "10.42.0.9", values().Encode()); (w.Code == http.StatusTooManyRequests) != (i >= 5) {
				t.Errorf("%d: %d", i, w.Code)
			}
		}
		time.Sleep(2 * time.Second)
		if w := p.asks("http://"+host+"/", "10.42.0.9", values().Encode()); w.Code != http.StatusForbidden {
			t.Errorf("after two seconds: %d", w.Code)
		}
	})
}

// gated is a body whose first Read waits until all bodies are being read.
type gated struct {
	io.Reader
	begun *sync.WaitGroup
	once  sync.Once
}

func (g *gated) Read(b []byte) (int, error) {
	g.once.Do(func() {
		g.begun.Done()
		g.begun.Wait()
	})
	return g.Reader.Read(b)
}

func TestOneOfSimultaneousFormsIsTaken(t *testing.T) {
	p := newTestPage()
	const all = 20
	var begun, done sync.WaitGroup
	var taken atomic.Int32
	begun.Add(all)
	for i := range all {
		done.Go(func() {
			body := &gated{Reader: strings.NewReader(values("token", p.token).Encode()), begun: &begun}
			r := httptest.NewRequest(http.MethodPost, "http://"+host+"/", body)
			r.RemoteAddr = fmt.Sprintf("10.42.0.%d:4000", i)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			if p.ServeHTTP(w, r); w.Code == http.StatusOK {
				taken.Add(1)
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		done.Wait()
	}()
	forms := 0
	for waiting := true; waiting; {
		select {
		case <-p.forms:
			forms++
		case <-ended:
			waiting = false
		}
	}
	if forms += p.taken(); forms != 1 || taken.Load() != 1 {
		t.Errorf("%d forms were taken, and %d phones told so", forms, taken.Load())
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	l := must.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	stop := serve(l, http.NotFoundHandler())
	defer stop()
	dial := func(from int) (c net.Conn, served bool) {
		t.Helper()
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(from))}}).Dial("tcp", l.Addr().String())
		must.Succeed(t, err)
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		return c, err == nil
	}
	var held []net.Conn
	defer func() {
		for _, c := range held {
			c.Close()
		}
	}()
	hold := func(from int) bool {
		t.Helper()
		c, served := dial(from)
		held = append(held, c)
		return served
	}
	for i := range maxConnsPerAddress {
		if !hold(1) {
			t.Fatalf("connection %d of an address is refused", i)
		}
	}
	if hold(1) {
		t.Error("one more of the same address is served")
	}
	for i := maxConnsPerAddress; i < maxConns; i++ {
		if !hold(1 + i/maxConnsPerAddress) {
			t.Fatalf("connection %d is refused", i)
		}
	}
	if hold(100) {
		t.Error("one more of another address is served")
	}
	for at, from := range map[int]int{0: 1, maxConns - 1: 100} { // makes room for the same address, and then for any address
		held[at].Close()
		waittest.For(t, "a closed one does not count", func() bool { return hold(from) })
	}
}
