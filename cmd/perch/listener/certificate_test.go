package listener

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/cmd/perch/config"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
)

// TestARenewedCertificateIsShown: a new certificate is used without a restart, as soon as both files are
// replaced. Until then, and if the new files are invalid or missing, the previous certificate is used.
func TestARenewedCertificateIsShown(t *testing.T) {
	dir := t.TempDir()
	var files, second config.TLS
	begun, ends := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	files.Certificate, files.Key = httpservertest.Certificate(t, dir, "old.local", begun, ends)
	second.Certificate, second.Key = httpservertest.Certificate(t, t.TempDir(), "new.local", begun, ends)
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		k, err := newCertificate(files, slog.New(slog.NewTextHandler(&log, nil)))
		must.Succeed(t, err)
		shown := func() string {
			time.Sleep(checkEvery)
			got, err := k.latest(nil)
			must.Succeed(t, err)
			return got.Leaf.DNSNames[0]
		}
		replace := func(name, with string) {
			must.Succeed(t, os.Rename(with, filepath.Join(dir, name)))
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
		must.Succeed(t, os.WriteFile(files.Certificate, []byte("broken"), 0o600))
		for range 3 {
			if got := shown(); got != "new.local" {
				t.Errorf("with a broken one %s is shown", got)
			}
		}
		must.Succeed(t, os.Remove(files.Key))
		for range 3 {
			if got := shown(); got != "new.local" {
				t.Errorf("without its key %s is shown", got)
			}
		}
		if n := strings.Count(log.String(), "level=WARN"); n != 3 { // one file replaced, an invalid file, a missing key
			t.Errorf("what cannot be used is told %d times:\n%s", n, log.String())
		}
	})
}
