package authority

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"encoding/xml"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"perch/must"
	"perch/store"
)

// house is an authority with names and a clock that a test can change.
type house struct {
	*Authority
	data  string
	names []string
	now   time.Time
}

func open(t *testing.T, names ...string) *house {
	t.Helper()
	h := &house{data: t.TempDir(), names: names, now: time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)}
	h.reopen(t)
	return h
}

// reopen replaces the Authority by a new one that reads the same files, as after a restart of the appliance.
func (h *house) reopen(t *testing.T) {
	t.Helper()
	h.Authority = New(Options{Data: h.data, Name: "Perch 1a2b3c4d", Names: func() []string { return h.names },
		Now: func() time.Time { return h.now }, Log: slog.New(slog.DiscardHandler)})
	must.Succeed(t, h.Open())
}

// served returns the certificate that a TLS client receives.
func (h *house) served(t *testing.T) *x509.Certificate {
	t.Helper()
	return must.Value(h.GetCertificate(&tls.ClientHelloInfo{ServerName: "example.com"}))(t).Leaf
}

// verify returns the error of package x509 for a certificate and a host name, if only the authority is trusted.
func (h *house) verify(c *x509.Certificate, name string) error {
	roots := x509.NewCertPool()
	roots.AddCert(h.Certificate())
	_, err := c.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: h.now})
	return err
}

// openssl verifies a certificate with openssl verify, and returns the output and the error of the command. option is
// -verify_hostname or -verify_ip, and name its argument.
func (h *house) openssl(t *testing.T, c *x509.Certificate, option, name string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	write := func(file string, c *x509.Certificate) string {
		path := filepath.Join(t.TempDir(), file)
		must.Succeed(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}), 0o600))
		return path
	}
	text, err := exec.Command(path, "verify", "-x509_strict", "-purpose", "sslserver", "-attime", strconv.FormatInt(h.now.Unix(), 10),
		"-CAfile", write("ca.pem", h.Certificate()), option, name, write("leaf.pem", c)).CombinedOutput()
	return string(text), err
}

// TestCertificate checks with package x509 and with openssl that the certificate is valid for .local names and private
// addresses only, and that only the owner of the files can read the keys.
func TestCertificate(t *testing.T) {
	h := open(t, "perch.local", "192.168.1.5", "perch.local", "8.8.8.8", "perch.example", "fe80::1")
	c := h.served(t)
	for _, name := range []string{"perch.local", "192.168.1.5"} {
		if err := h.verify(c, name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"8.8.8.8", "perch.example", "example.com"} {
		if h.verify(c, name) == nil {
			t.Errorf("it is good for %s", name)
		}
	}
	for option, name := range map[string]string{"-verify_hostname": "perch.local", "-verify_ip": "192.168.1.5"} {
		if text, err := h.openssl(t, c, option, name); err != nil {
			t.Errorf("%s: %s %v", name, text, err)
		}
	}
	if text, err := h.openssl(t, c, "-verify_hostname", "example.com"); err == nil {
		t.Errorf("openssl: %s", text)
	}
	if valid := c.NotAfter.Sub(c.NotBefore); c.Subject.CommonName != "perch.local" || valid > 825*24*time.Hour || valid < 800*24*time.Hour {
		t.Errorf("%s is valid for %s", c.Subject, valid)
	}
	for _, file := range []string{authorityFile, certificateFile} {
		if info := must.Value(os.Stat(filepath.Join(h.data, file)))(t); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %s", file, info.Mode())
		}
	}
}

// TestConstraints checks that a certificate for another name is invalid even if the authority has signed it.
func TestConstraints(t *testing.T) {
	h := open(t, "perch.local")
	for name, option := range map[string]string{"www.example.com": "-verify_hostname", "8.8.8.8": "-verify_ip", "localhost": "-verify_hostname"} {
		template := newCertificate([]string{name}, h.now, h.now.Add(time.Hour))
		der := must.Value(x509.CreateCertificate(rand.Reader, template, h.ca.Leaf, h.leaf.Leaf.PublicKey, h.ca.PrivateKey))(t)
		forged := must.Value(x509.ParseCertificate(der))(t)
		if err := h.verify(forged, name); err == nil || !strings.Contains(err.Error(), "constraint") {
			t.Errorf("Go takes a certificate for %s: %v", name, err)
		}
		if text, err := h.openssl(t, forged, option, name); err == nil || !strings.Contains(text, "permitted subtree violation") {
			t.Errorf("openssl takes a certificate for %s: %s", name, text)
		}
	}
}

// TestRenewal checks that the certificate is renewed 30 days before it expires and not earlier, that it does not outlive
// the authority, and that an authority that expires soon is replaced.
func TestRenewal(t *testing.T) {
	h := open(t, "perch.local")
	first, ca := h.served(t), h.Certificate()
	h.reopen(t)
	if !h.served(t).Equal(first) {
		t.Error("a restart makes another certificate, about which each browser asks again")
	}
	h.now = first.NotAfter.Add(-31 * 24 * time.Hour)
	if !h.served(t).Equal(first) {
		t.Error("it is renewed too early")
	}
	h.now = first.NotAfter.Add(-29 * 24 * time.Hour)
	second := h.served(t)
	if second.Equal(first) || !h.Certificate().Equal(ca) || h.verify(second, "perch.local") != nil {
		t.Errorf("until %s, %v", second.NotAfter, h.verify(second, "perch.local"))
	}
	h.now = ca.NotAfter.Add(-200 * 24 * time.Hour)
	if c := h.served(t); c.NotAfter.After(ca.NotAfter) || h.verify(c, "perch.local") != nil {
		t.Errorf("it is valid until %s, and its authority until %s", c.NotAfter, ca.NotAfter)
	}
	h.now = ca.NotAfter.Add(-time.Hour)
	if c := h.served(t); h.Certificate().Equal(ca) || h.verify(c, "perch.local") != nil {
		t.Errorf("the authority is valid until %s, %v", h.Certificate().NotAfter, h.verify(c, "perch.local"))
	}
}

// TestAnotherAddress checks that a new address of this machine leads to a new certificate of the same authority, at
// most one per minute.
func TestAnotherAddress(t *testing.T) {
	h := open(t, "perch.local", "192.168.1.5")
	ca, first := h.Certificate(), h.served(t)
	h.names = []string{"perch.local", "10.0.0.7"}
	for range 1000 {
		h.now = h.now.Add(time.Millisecond)
		if !h.served(t).Equal(first) {
			t.Fatal("clients make it sign")
		}
	}
	h.now = h.now.Add(time.Minute)
	second := h.served(t)
	if h.verify(second, "10.0.0.7") != nil || h.verify(second, "perch.local") != nil || !h.Certificate().Equal(ca) {
		t.Errorf("%v", h.verify(second, "10.0.0.7"))
	}
	h.names = []string{"perch.local"}
	h.now = h.now.Add(time.Hour)
	if !h.served(t).Equal(second) {
		t.Error("an address that is gone makes another certificate")
	}
}

// TestDamagedFiles checks that a damaged file of the authority is an error and is not replaced: devices trust the
// authority that was in the file.
func TestDamagedFiles(t *testing.T) {
	h := open(t, "perch.local")
	path := filepath.Join(h.data, authorityFile)
	must.Succeed(t, os.WriteFile(path, []byte("damaged"), 0o600))
	broken := New(h.o)
	if err := broken.Open(); err == nil || !strings.Contains(err.Error(), authorityFile) {
		t.Error(err)
	}
	if _, err := broken.GetCertificate(nil); err == nil {
		t.Error("it serves a certificate")
	}
	if text := must.Value(os.ReadFile(path))(t); string(text) != "damaged" || !store.Exists(path) {
		t.Errorf("the file holds %s", text)
	}
}

// TestFailedRenewal checks that the certificate and its authority are served on if the new ones cannot be written.
func TestFailedRenewal(t *testing.T) {
	h := open(t, "perch.local")
	ca, leaf := h.Certificate(), h.served(t)
	path := filepath.Join(h.data, certificateFile)
	must.Succeed(t, os.Remove(path))
	must.Succeed(t, os.MkdirAll(filepath.Join(path, "in the way"), 0o700))
	h.now = ca.NotAfter.Add(-time.Hour)
	if c := h.served(t); !c.Equal(leaf) || !h.Certificate().Equal(ca) {
		t.Error("other certificates are served")
	}
	must.Succeed(t, os.RemoveAll(path))
	h.now = h.now.Add(checkEvery)
	if c := h.served(t); c.Equal(leaf) || h.verify(c, "perch.local") != nil {
		t.Errorf("it is not renewed: %v", h.verify(c, "perch.local"))
	}
}

// TestProfile checks that a profile contains the authority and its fingerprint, and is the same at each call.
func TestProfile(t *testing.T) {
	h := open(t, "perch.local")
	c := h.Certificate()
	text := Profile(c)
	if text != Profile(c) {
		t.Error("it is another one each time, so that it would be installed twice")
	}
	var data string
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		must.Succeed(t, err)
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "data" {
			must.Succeed(t, d.DecodeElement(&data, &start))
		}
	}
	if der := must.Value(base64.StdEncoding.DecodeString(data))(t); !bytes.Equal(der, c.Raw) {
		t.Error("it holds another certificate")
	}
	if !strings.Contains(text, Fingerprint(c)) {
		t.Error("it does not say the fingerprint")
	}
}
