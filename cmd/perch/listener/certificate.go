package listener

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"

	"perch/cmd/perch/config"
)

// certificate is the certificate of the encrypted listeners. It is read again when its files
// change, so that the program that renews it need not restart the appliance.
type certificate struct {
	files config.TLS
	log   *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	read    [2]os.FileInfo // of the files that current, or the last warning, is about
	checked time.Time      // the files
}

// checkEvery is how often a handshake checks the files.
const checkEvery = time.Second

func newCertificate(c config.TLS, log *slog.Logger) (*certificate, error) {
	k := &certificate{files: c, log: log, checked: time.Now()}
	k.read = k.stamps()
	var err error
	k.current, err = config.ReadCertificate(c)
	return k, err
}

func (k *certificate) stamps() (now [2]os.FileInfo) {
	for i, path := range []string{k.files.Certificate, k.files.Key} {
		if f, err := os.Stat(path); err == nil { // what is not there is not new
			now[i] = f
		}
	}
	return now
}

// same reports whether a file is unchanged.
func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && os.SameFile(a, b)
}

// latest is a tls.Config's GetCertificate. Where the new files cannot be used, as while one of
// the two is still the old one, it returns the certificate from before.
func (k *certificate) latest(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); now.Sub(k.checked) >= checkEvery {
		k.checked = now
		k.renew()
	}
	return k.current, nil
}

func (k *certificate) renew() {
	now := k.stamps()
	if same(now[0], k.read[0]) && same(now[1], k.read[1]) {
		return
	}
	k.read = now
	fresh, err := config.ReadCertificate(k.files)
	if err != nil {
		k.log.Warn("the new certificate cannot be used; the previous one is still in use", "err", err)
		return
	}
	k.current = fresh
	k.log.Info("a new certificate is shown", "names", config.Names(fresh.Leaf), "until", fresh.Leaf.NotAfter)
}

// tls returns the configuration of every encrypted listener. What browsers and programs of the
// last ten years know is enough; the library chooses well among that.
func (k *certificate) tls() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: k.latest}
}
