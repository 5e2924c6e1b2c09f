package listener

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"

	"perch/cmd/perch/config"
)

// certificate is the certificate of the encrypted listeners. It is loaded again when its files
// change, so renewing it does not require a restart of the appliance.
type certificate struct {
	files config.TLS
	log   *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	loaded  [2]os.FileInfo // certificate and key file at the last attempt to load them; nil for a missing file
	checked time.Time      // when the files were last compared with loaded
}

// checkEvery is the minimum time between two checks of the files. TLS handshakes trigger the
// checks.
const checkEvery = time.Second

// newCertificate loads the certificate of a configuration.
func newCertificate(c config.TLS, log *slog.Logger) (*certificate, error) {
	k := &certificate{files: c, log: log, checked: time.Now()}
	k.loaded = k.stat()
	var err error
	k.current, err = config.ReadCertificate(c)
	return k, err
}

// stat returns the state of the certificate file and of the key file; nil means that a file is
// missing.
func (k *certificate) stat() (files [2]os.FileInfo) {
	for i, path := range []string{k.files.Certificate, k.files.Key} {
		if f, err := os.Stat(path); err == nil {
			files[i] = f
		}
	}
	return files
}

// sameFile reports whether a and b describe the same unchanged file, or are both nil.
func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && os.SameFile(a, b)
}

// latest implements GetCertificate of tls.Config. If the new files cannot be used, for example
// because so far only one of the two files was replaced, latest returns the previous
// certificate.
func (k *certificate) latest(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); now.Sub(k.checked) >= checkEvery {
		k.checked = now
		k.renew()
	}
	return k.current, nil
}

// renew loads the certificate if its files have changed.
func (k *certificate) renew() {
	files := k.stat()
	if sameFile(files[0], k.loaded[0]) && sameFile(files[1], k.loaded[1]) {
		return
	}
	k.loaded = files
	fresh, err := config.ReadCertificate(k.files)
	if err != nil {
		k.log.Warn("the new certificate cannot be used; the previous one is still in use", "err", err)
		return
	}
	k.current = fresh
	k.log.Info("a new certificate is in use", "names", config.Names(fresh.Leaf), "until", fresh.Leaf.NotAfter)
}

// tls returns the configuration of every encrypted listener. Clients of the last ten years
// support TLS 1.2; the choice of ciphers is left to the library.
func (k *certificate) tls() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: k.latest}
}
