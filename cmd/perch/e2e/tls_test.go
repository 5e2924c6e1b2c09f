package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/cmd/perch/doctor"
	"perch/cmd/perch/machine"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
	"perch/socket"
)

// certified writes a certificate for name and its key into dir, and returns the TLS configuration with both.
func certified(t testing.TB, dir, name string, from, until time.Time) config.TLS {
	certificate, key := httpservertest.Certificate(t, dir, name, from, until)
	return config.TLS{Listen: []string{"127.0.0.1:0"}, Certificate: certificate, Key: key}
}

func goodFor(t testing.TB, dir, name string, d time.Duration) config.TLS {
	return certified(t, dir, name, time.Now().Add(-time.Hour), time.Now().Add(d))
}

// trusts returns the configuration of a TLS client that trusts only the certificates in file.
func trusts(t testing.TB, file string) *tls.Config {
	t.Helper()
	text := must.Value(os.ReadFile(file))(t)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatalf("%s holds no certificate", file)
	}
	return &tls.Config{RootCAs: pool}
}

const month = 30 * 24 * time.Hour

// checksInOverTLS signs in as the owner and checks in like the robot in the owner's page. The answer has to contain a
// wss URL, because a browser refuses a ws URL in a page loaded over HTTPS (Mixed Content, section 5.3).
func (h *running) checksInOverTLS(client http.Client, address string) {
	h.T.Helper()
	send := func(path, body string, cookies ...*http.Cookie) *http.Response {
		h.T.Helper()
		r, err := http.NewRequestWithContext(h.T.Context(), http.MethodPost, "https://"+address+path, strings.NewReader(body))
		must.Succeed(h.T, err)
		r.Header.Set("Origin", "https://"+address)
		for _, c := range cookies {
			r.AddCookie(c)
		}
		answer := must.Value(client.Do(r))(h.T)
		return answer
	}
	entered := send("/session", `{"token":"`+h.OwnerToken()+`"}`)
	_ = entered.Body.Close()
	if c := entered.Cookies(); len(c) != 1 || !c[0].Secure {
		h.T.Fatalf("%s %v", entered.Status, c)
	}
	answer := send("/xiaozhi/ota/?device-id=020000000001&client-id=page", "{}", entered.Cookies()...)
	defer answer.Body.Close()
	var boot struct{ WebSocket struct{ URL string } }
	if err := json.NewDecoder(answer.Body).Decode(&boot); err != nil || boot.WebSocket.URL != "wss://"+address+"/xiaozhi/v1/" {
		h.T.Errorf("it is told to connect to %q (%v)", boot.WebSocket.URL, err)
	}
}

// TestRoutesOverTLS: the TLS listener serves every route, including skins' WebSockets, except that only the owner's
// page can use the robots' routes. It refuses TLS 1.1.
func TestRoutesOverTLS(t *testing.T) {
	c := appliancetest.Config()
	c.TLS = goodFor(t, t.TempDir(), "perch.local", month)
	c.Skins.Key = "the-key-of-the-skins"
	h := open(t, c, t.TempDir())
	address := h.Listeners.At("tls.listen")[0]
	known := trusts(t, c.TLS.Certificate)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: known, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
	get := func(method, path, key string) int {
		t.Helper()
		r := must.Value(http.NewRequest(method, "https://"+address+path, nil))(t)
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		answer := must.Value(client.Do(r))(t)
		_ = answer.Body.Close()
		if answer.ProtoMajor != 1 {
			t.Errorf("it speaks %s", answer.Proto)
		}
		return answer.StatusCode
	}
	for _, want := range []struct {
		method, path, key string
		status            int
	}{
		{http.MethodGet, "/health", "", 200},
		{http.MethodGet, "/api/v1/status", "", 401},
		{http.MethodGet, "/api/v1/status", h.OwnerToken(), 200},
		{http.MethodGet, "/v1/models", c.Skins.Key, 200},
		{http.MethodGet, "/api/perception/state", "", 403},
		{http.MethodGet, "/", "", 200},
		{http.MethodPost, "/xiaozhi/ota/", "", 404},
		{http.MethodGet, "/xiaozhi/v1/", "", 404},
		{http.MethodPost, "/xiaozhi/vision/explain", "", 404},
		{http.MethodPost, "/xiaozhi/admin/abort", "", 401},
	} {
		if got := get(want.method, want.path, want.key); got != want.status {
			t.Errorf("%s %s with %q: %d, want %d", want.method, want.path, want.key, got, want.status)
		}
	}
	h.checksInOverTLS(client, address)
	old := &tls.Config{RootCAs: known.RootCAs, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10} //nolint:gosec // it is refused
	if conn, err := tls.Dial("tcp", address, old); err == nil {
		_ = conn.Close()
		t.Error("it takes TLS 1.1")
	}
	if answer, err := http.Get("http://" + address + "/health"); err == nil { // the library's own answer to plain HTTP
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusBadRequest {
			t.Errorf("plain HTTP: %s", answer.Status)
		}
	}
	h.skinOverTLS(address, known, c.Skins.Key)
	for _, part := range h.Parts() {
		if part.Name == "tls" && (!part.OK || !strings.Contains(part.Note, "perch.local, 127.0.0.1, until 20")) {
			t.Errorf("its condition is %+v", part)
		}
	}
	if ports := h.Listeners.At("listen"); len(ports) != 1 || ports[0] == address {
		t.Errorf("robots are told of %v", ports)
	}
}

// skinOverTLS opens a skin's WebSocket, sends a ping and waits for the pong.
func (h *running) skinOverTLS(address string, known *tls.Config, key string) {
	h.T.Helper()
	// Package socket cannot dial TLS, so the connection goes through a local tunnel that encrypts it.
	l := must.Value(net.Listen("tcp", "127.0.0.1:0"))(h.T)
	defer l.Close()
	tunnelled := make(chan struct{})
	go func() {
		defer close(tunnelled)
		near, err := l.Accept()
		if err != nil {
			return
		}
		defer near.Close()
		far, err := tls.Dial("tcp", address, known)
		if err != nil {
			h.T.Error(err)
			return
		}
		defer far.Close()
		ended := make(chan struct{}, 2)
		for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
			go func() {
				b := make([]byte, 4096)
				for {
					n, err := way[0].Read(b)
					if _, failed := way[1].Write(b[:n]); err != nil || failed != nil {
						break
					}
				}
				_ = way[1].Close()
				ended <- struct{}{}
			}()
		}
		<-ended
		<-ended
	}()
	conn, err := socket.Dial(h.T.Context(), "ws://"+l.Addr().String()+"/v1/vtuber/ws", socket.Options{MaxMessage: 1 << 16,
		Header: http.Header{"Authorization": {"Bearer " + key}}})
	must.Succeed(h.T, err)
	must.Succeed(h.T, conn.SendText([]byte(`{"type":"ping"}`)))
	for {
		_, text, err := conn.Receive()
		must.Succeed(h.T, err)
		if bytes.Contains(text, []byte(`"pong"`)) {
			break
		}
	}
	conn.Drop()
	<-tunnelled
}

// TestFaultsOfCertificates: the error for a faulty certificate or key names the configuration key and the reason.
func TestFaultsOfCertificates(t *testing.T) {
	good, other := goodFor(t, t.TempDir(), "a.local", month), goodFor(t, t.TempDir(), "b.local", month)
	empty := appliancetest.WriteConfig(t, "")
	sealed := appliancetest.WriteConfig(t, "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
	for name, c := range map[string]struct{ certificate, key, says string }{
		"none":             {"", "", ":1: tls.certificate: tls.listen needs one"},
		"no key":           {good.Certificate, "", ":1: tls.key: tls.certificate needs its key"},
		"not there":        {"/nowhere.pem", good.Key, ":1: tls.certificate: there is no file /nowhere.pem"},
		"its key is not":   {good.Certificate, "/nowhere.pem", ":1: tls.key: there is no file /nowhere.pem"},
		"another's key":    {good.Certificate, other.Key, "private key does not match public key"},
		"empty":            {empty, good.Key, ":1: tls.certificate: " + empty + " holds no certificate"},
		"no key in its":    {good.Certificate, good.Certificate, ":1: tls.key: " + good.Certificate + " holds no private key"},
		"with pass phrase": {good.Certificate, sealed, "is encrypted with a pass phrase"},
		"a directory":      {t.TempDir(), good.Key, ":1: tls.certificate: "},
	} {
		text := fmt.Sprintf("tls: {listen: [\":8443\"], certificate: %q, key: %q}", c.certificate, c.key)
		_, err := appliancetest.Load(appliancetest.WriteConfig(t, text))
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "BEGIN") {
			t.Errorf("%s: %v, want %s", name, err, c.says)
		}
	}
	c, err := appliancetest.Load("", "PERCH_TLS_LISTEN_0=:8443", "PERCH_TLS_CERTIFICATE="+good.Certificate, "PERCH_TLS_KEY="+good.Key)
	if err != nil || c.TLS.Key != good.Key || c.TLS.Listen[0] != ":8443" {
		t.Errorf("by the environment: %+v, %v", c.TLS, err)
	}
	_, err = appliancetest.Load(appliancetest.WriteConfig(t, `tls: {listen: ["8443"]}`))
	if err == nil || !strings.Contains(err.Error(), ":1: tls.listen.0: ") {
		t.Errorf("a wrong address: %v", err)
	}
}

// othersReach reports whether other users can enter dir and all its parents.
func othersReach(dir string) bool {
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if f, err := os.Stat(dir); err != nil || f.Mode().Perm()&0o001 == 0 {
			return false
		}
	}
	return true
}

// TestWarnings: an expired certificate and files with secrets that other users can read are reported by check-config
// and by the doctor, with a remedy. A file in a directory that other users cannot enter is not reported.
func TestWarnings(t *testing.T) {
	dir := t.TempDir()
	if !othersReach(dir) {
		t.Skip("nobody else reaches the directory of tests")
	}
	expired := certified(t, t.TempDir(), "perch.local", time.Now().Add(-2*month), time.Now().Add(-month))
	token, inside := filepath.Join(dir, "ha.token"), filepath.Join(dir, "own", "tts.key")
	must.Succeed(t, os.Mkdir(filepath.Dir(inside), 0o700))
	for _, path := range []string{token, inside} {
		must.Succeed(t, os.WriteFile(path, []byte("a-secret-of-the-house"), 0o644))
		must.Succeed(t, os.Chmod(path, 0o644))
	}
	file := filepath.Join(dir, "perch.yaml")
	text := fmt.Sprintf(`tls: {listen: ["127.0.0.1:0"], certificate: %q, key: %q}
listen: ["127.0.0.1:0"]
local: []
mqtt: {broker: none}
mdns: {enabled: false}
bridge: {key: a-key-in-the-open}
brains: [{kind: assist, url: "http://127.0.0.1:1", token_file: %q}, {kind: openai, url: "http://127.0.0.1:1/v1", model: m, key_file: %q}, {kind: reflex}]`,
		expired.Certificate, expired.Key, token, inside)
	must.Succeed(t, os.WriteFile(file, []byte(text), 0o644))
	must.Succeed(t, os.Chmod(file, 0o644))
	must.Succeed(t, os.Chmod(expired.Key, 0o644))
	data := filepath.Join(dir, "data")
	must.Succeed(t, os.Mkdir(data, 0o755))
	must.Succeed(t, os.Chmod(data, 0o755))
	wanted := []string{"it expired on ", "can read " + token + ", and it holds a secret; prevent it: sudo chmod o-rwx " + token,
		"can read " + expired.Key, "can read " + file + ", and it holds secrets"}
	c := must.Value(appliancetest.Load(file))(t)
	out := bare(t, "check-config "+file, exitDone)
	d := doctor.New(doctor.Options{Config: &c, File: file, Data: data, Version: "dev", Built: machine.BuiltAt("")})
	d.CheckCertificate()
	d.CheckSecrets()
	told := fmt.Sprint(d.Findings)
	for _, want := range wanted {
		if !strings.Contains(out, want) {
			t.Errorf("check-config does not say %q:\n%s", want, out)
		}
		if !strings.Contains(told, want) {
			t.Errorf("the doctor does not say %q:\n%s", want, told)
		}
	}
	if !strings.Contains(told, "can open "+data) {
		t.Errorf("the doctor says nothing of the data directory:\n%s", told)
	}
	for _, text := range []string{out, told} {
		if strings.Contains(text, inside) || strings.Contains(text, "a-secret") || strings.Contains(text, "a-key") {
			t.Errorf("it says too much:\n%s", text)
		}
	}
	for _, path := range []string{token, file, expired.Key} {
		must.Succeed(t, os.Chmod(path, 0o640))
	}
	must.Succeed(t, os.Chmod(data, 0o750))
	for life, want := range map[time.Duration]string{month: "", 13 * 24 * time.Hour: "expires on ", -time.Minute: "not valid: it expired"} {
		leaf := &x509.Certificate{NotBefore: time.Now().Add(-3 * month), NotAfter: time.Now().Add(life)}
		if err := config.CheckExpiry(leaf, time.Now()); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("with %v left: %v", life, err)
		}
	}
	short := &x509.Certificate{NotBefore: time.Now().Add(-3 * 24 * time.Hour), NotAfter: time.Now().Add(3 * 24 * time.Hour)}
	if err := config.CheckExpiry(short, time.Now()); err != nil {
		t.Errorf("one of six days, of which three are left: %v", err)
	}
	if err := config.CheckExpiry(short, time.Now().Add(-4*24*time.Hour)); !errors.Is(err, config.ErrDates) || !strings.Contains(err.Error(), "clock") {
		t.Errorf("one of tomorrow: %v", err)
	}
	if left := c.Warnings(file, data, time.Now()); len(left) != 1 || left[0].Part != "tls" {
		t.Errorf("after the cure: %v", left)
	}
}

// TestSecretsAreTheirOwners: the appliance creates its files with secrets with mode 0600, and sets this mode again at
// its start.
func TestSecretsAreTheirOwners(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	names := []string{"admin-token", "token-key", "perch.db", "mqtt-password"}
	start := func() *running {
		c := appliancetest.Config()
		c.MQTT.Broker, c.MQTT.Listen = config.EmbeddedBroker, "127.0.0.1:0"
		h := open(t, c, data)
		h.Stop()
		for _, name := range names {
			f := must.Value(os.Stat(filepath.Join(data, name)))(t)
			if f.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %o", name, f.Mode().Perm())
			}
		}
		return h
	}
	start()
	if f, err := os.Stat(data); err != nil || f.Mode().Perm()&0o007 != 0 {
		t.Errorf("the data directory: %v, %v", f.Mode(), err)
	}
	for _, name := range names {
		must.Succeed(t, os.Chmod(filepath.Join(data, name), 0o644))
	}
	h := start()
	if n := strings.Count(h.Logged.String(), "other users of this machine could read a secret"); n != len(names)-1 { // the store does not log the change of perch.db
		t.Errorf("that is told %d times:\n%s", n, h.Logged)
	}
}
