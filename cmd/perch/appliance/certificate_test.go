package appliance

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/cmd/perch/config"
)

const month = 30 * 24 * time.Hour

// certified writes a certificate and its key into a directory.
func certified(t testing.TB, dir, name string, from, until time.Time) config.TLS {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: from, NotAfter: until, IsCA: true,
		BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, made, made, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	coded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	c := config.TLS{Listen: []string{"127.0.0.1:0"}, Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	for path, block := range map[string]*pem.Block{c.Certificate: {Type: "CERTIFICATE", Bytes: der}, c.Key: {Type: "PRIVATE KEY", Bytes: coded}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func goodFor(t testing.TB, dir, name string, d time.Duration) config.TLS {
	return certified(t, dir, name, time.Now().Add(-time.Hour), time.Now().Add(d))
}

// TestARenewedCertificateIsShown without a restart, as soon as both its files
// are there; until then, and where it is broken, the one from before is.
func TestARenewedCertificateIsShown(t *testing.T) {
	dir := t.TempDir()
	files := goodFor(t, dir, "old.local", month)
	second := goodFor(t, t.TempDir(), "new.local", 2*month)
	synctest.Test(t, func(t *testing.T) {
		var log logBuffer
		k, err := newCertificate(files, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		shown := func() string {
			time.Sleep(lookEvery)
			got, err := k.get(nil)
			if err != nil {
				t.Fatal(err)
			}
			return got.Leaf.DNSNames[0]
		}
		replace := func(name, with string) {
			if err := os.Rename(with, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if got := shown(); got != "old.local" {
			t.Errorf("at first %s is shown", got)
		}
		replace("cert.pem", second.Certificate)
		if got := shown(); got != "old.local" {
			t.Errorf("with half a new one %s is shown", got)
		}
		replace("key.pem", second.Key)
		if got := shown(); got != "new.local" {
			t.Errorf("with a new one %s is shown", got)
		}
		if err := os.WriteFile(files.Certificate, []byte("broken"), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if got := shown(); got != "new.local" {
				t.Errorf("with a broken one %s is shown", got)
			}
		}
		if err := os.Remove(files.Key); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if got := shown(); got != "new.local" {
				t.Errorf("without its key %s is shown", got)
			}
		}
		if n := strings.Count(log.String(), "level=WARN"); n != 3 { // half, broken, without its key
			t.Errorf("what cannot be used is told %d times:\n%s", n, log.String())
		}
	})
}
