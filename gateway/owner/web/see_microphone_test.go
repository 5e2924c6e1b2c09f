package web_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/listener"
	"perch/gateway/owner/web"
	"perch/must"
)

// httpsAppliance is an appliance with an https address, for browsers that find it as perch.local.
type httpsAppliance struct {
	*appliancetest.Appliance
	web.HTTPSAddress
	file string // path of the authority's certificate, as a phone downloads it
}

func startHTTPS(t *testing.T) *httpsAppliance {
	t.Helper()
	return openHTTPS(t, startAppliance(t))
}

// openHTTPS opens the https address of an appliance.
func openHTTPS(t *testing.T, a *appliancetest.Appliance) *httpsAppliance {
	t.Helper()
	h := &httpsAppliance{Appliance: a}
	if status, _ := h.Request(http.MethodGet, "/perch-authority.crt", ""); status != http.StatusNotFound {
		t.Errorf("before anybody asks for it, there is an authority (%d)", status)
	}
	h.Admin(http.MethodPost, "/api/v1/https", "", &h.HTTPSAddress)
	_, text := h.Request(http.MethodGet, "/perch-authority.crt", "")
	h.file = written(t, "perch-authority.crt", []byte(text))
	return h
}

// at returns the http URL at which a browser on another machine opens the page.
func (h *httpsAppliance) at() string {
	return strings.Replace(h.URL("/"), "127.0.0.1", "perch.local", 1)
}

var resolve = chromedp.Flag("host-resolver-rules", "MAP perch.local 127.0.0.1")

// trust adds an authority to a database of certificates (NSS), such as that of Chromium.
func trust(t *testing.T, database, authority string) {
	t.Helper()
	certutil, err := exec.LookPath("certutil")
	need(t, err == nil, "certutil is not installed: make deps installs it")
	for _, arguments := range [][]string{{"-N", "--empty-password"}, {"-A", "-n", "house", "-t", "C,,", "-i", authority}} {
		if text, err := exec.Command(certutil, append([]string{"-d", "sql:" + database}, arguments...)...).CombinedOutput(); err != nil {
			t.Fatalf("certutil %s: %v %s", arguments, err, text)
		}
	}
}

// logIn logs in with the admin token.
func (b *tab) logIn(at, token string) {
	b.t.Helper()
	b.open(at)
	b.fill("#token", token)
	b.press(kb.Enter)
	b.sees("main > p-home")
}

// TestMicrophoneByHTTPS checks that the sentence that says why there is no microphone leads to the https address, at which
// a browser that trusts Perch's authority has a microphone for the robot in the page.
func TestMicrophoneByHTTPS(t *testing.T) {
	t.Parallel()
	const sentence = "set the volume to forty percent"
	h := startHTTPS(t)
	home := t.TempDir()
	database := filepath.Join(home, ".pki", "nssdb")
	must.Succeed(t, os.MkdirAll(database, 0o700))
	trust(t, database, h.file)
	c := startChromium(t, resolve, chromedp.Env("HOME="+home), chromedp.Flag("use-fake-ui-for-media-stream", true),
		chromedp.Flag("use-fake-device-for-media-stream", true), chromedp.Flag("use-file-for-fake-audio-capture", recorded(t, sentence)+"%noloop"),
		chromedp.Flag("autoplay-policy", "no-user-gesture-required"))
	b := c.browse(t)
	b.logIn(h.at(), h.OwnerToken())
	b.boots(h.at() + "robot")
	b.says("[data-test=deaf]", "https")
	b.click("[data-test=use-microphone]")
	b.says("[data-test=fingerprint]", h.Fingerprint)
	b.inspect("the ways to a microphone")
	b.click("[data-test=go-https]")
	b.until(`location.protocol === "https:" && location.pathname === "/robot" && see.one("[data-test=status]")?.dataset.state === "idle"`)
	if b.lacks("[data-test=deaf]"); !value[bool](b, "window.isSecureContext && !!navigator.mediaDevices") {
		t.Fatal("it does not hear")
	}
	if robots := h.Robots.List(); len(robots) != 1 {
		t.Errorf("it is another robot there: %+v", robots)
	}
	b.click("[data-test=talk]")
	b.answers(sentence, "self.audio_speaker.set_volume", "40 percent")
	b.open(value[string](b, "location.origin") + "/#/microphone")
	b.sees("[data-test=secure]")

	// A logout over https does not end the session over http.
	b.allow(notIn)
	b.at(1400, 900)
	b.click("[data-test=logout]")
	b.sees("#token")
	b.open(h.at())
	b.sees("main > p-home")
}

// seeWarning checks that a browser that does not trust the authority shows a warning, after which the page can still be
// opened and has a microphone.
func seeWarning(t *testing.T, c *chromium) {
	h := startHTTPS(t)
	b := c.browse(t)
	b.allow("ERR_CERT_AUTHORITY_INVALID", "SSL certificate error") // the latter at the service worker
	u := must.Value(url.Parse(h.URLs[0]))(t)
	if u.Hostname() != "perch.local" {
		t.Fatalf("it is at %s", h.URLs)
	}
	if err := chromedp.Do(b.ctx, chromedp.Navigate(u.String()+"/")); err == nil || !strings.Contains(err.Error(), "ERR_CERT_AUTHORITY_INVALID") {
		t.Fatalf("it is opened: %v", err)
	}
	b.click("#details-button") // "Advanced"
	b.click("#proceed-link")
	b.sees("#token")
	b.fill("#token", h.OwnerToken())
	b.press(kb.Enter)
	b.sees("main > p-home")
	if !value[bool](b, "window.isSecureContext && !!navigator.mediaDevices") {
		t.Error("the page has no microphone")
	}
	b.logIn(h.at(), h.OwnerToken()) // over http, while the browser has the cookie of the session over https
}

// seeSpokenFirstTalk checks that over plain http the last of the first steps asks the owner to write, and leads to the
// https address, at which the step continues.
func seeSpokenFirstTalk(t *testing.T, c *chromium) {
	h := openHTTPS(t, appliancetest.Configured(t, "name: perch\n"))
	b := c.browse(t)
	b.allow("ERR_CERT_AUTHORITY_INVALID", "SSL certificate error") // the latter at the service worker
	b.logIn(h.at(), h.OwnerToken())
	b.view("first", "p-first")
	b.skipTo("robot")
	b.click("[data-test=next]")
	b.step("talk")
	b.says("h2", "Write: ")
	b.until(`see.one("[data-test=status]")?.dataset.state === "idle"`)
	b.lacks("[data-test=deaf]")
	b.inspect("the last step without a microphone")
	b.at(1400, 900)
	b.click("[data-test=speak]")
	b.click("[data-test=go-https]")
	b.click("#details-button") // "Advanced"
	b.click("#proceed-link")
	b.step("talk")
	b.says("h2", "Say: ")
	b.fill("[data-test=write]", "what time is it")
	b.click("[data-test=send]")
	b.says("[data-test=answered]", "It is")
	b.open(value[string](b, "location.origin") + "/")
	b.sees("main > p-home")
	b.lacks("[data-test=first]")
}

// TestHTTPS checks that the https address serves the page and its API, but not the routes of robots, and that its
// certificate is signed by Perch's authority. The responses have no Strict-Transport-Security header, because http must
// remain usable.
func TestHTTPS(t *testing.T) {
	h := startHTTPS(t)
	der := must.Value(os.ReadFile(h.file))(t)
	roots := x509.NewCertPool()
	roots.AddCert(must.Value(x509.ParseCertificate(der))(t))
	u := must.Value(url.Parse(h.URLs[0]))(t)
	get := func(config *tls.Config, path string) (*http.Response, string, error) {
		config.ServerName = u.Hostname()
		transport := &http.Transport{TLSClientConfig: config, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+u.Port())
		}}
		defer transport.CloseIdleConnections()
		r := must.Value(http.NewRequestWithContext(t.Context(), http.MethodGet, u.String()+path, nil))(t)
		answer, err := transport.RoundTrip(r)
		if err != nil {
			return nil, "", err
		}
		defer answer.Body.Close()
		text := must.Value(io.ReadAll(answer.Body))(t)
		return answer, string(text), nil
	}
	if _, _, err := get(&tls.Config{}, "/"); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("a stranger trusts it: %v", err)
	}
	answer, text, err := get(&tls.Config{RootCAs: roots}, "/")
	must.Succeed(t, err)
	if answer.StatusCode != http.StatusOK || !strings.Contains(text, "<script") || answer.Header.Get("Strict-Transport-Security") != "" {
		t.Errorf("%s %v %.100s", answer.Status, answer.Header, text)
	}
	for path, want := range map[string]int{"/api/v1/status": http.StatusUnauthorized, "/xiaozhi/ota/": http.StatusNotFound} {
		if answer, text, err = get(&tls.Config{RootCAs: roots}, path); err != nil || answer.StatusCode != want {
			t.Errorf("%s: %v %.100s %v", path, answer, text, err)
		}
	}
	answer, text, err = get(&tls.Config{RootCAs: roots}, "/perch-authority.mobileconfig")
	if err != nil || answer.Header.Get("Content-Type") != "application/x-apple-aspen-config" || !strings.Contains(text, h.Fingerprint) {
		t.Errorf("%v %.100s %v", answer, text, err)
	}

	// After a restart, the address is open without a request for it.
	h.Stop()
	again := appliancetest.Start(t, appliancetest.Config(), h.Data)
	u.Host = strings.Replace(again.Listeners.At(listener.TLS)[0], "127.0.0.1", u.Hostname(), 1)
	if answer, _, err := get(&tls.Config{RootCAs: roots}, "/"); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("%v %v", answer, err)
	}
}
