package config

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"perch/language"
	"perch/secret"
)

// TLS says where everything but the robots' API is served with TLS.
type TLS struct {
	Listen      []string `yaml:"listen"`
	Certificate string   `yaml:"certificate"` // a file, PEM, the authorities' after it
	Key         string   `yaml:"key"`         // a file, PEM
}

// checkTLS checks the addresses and the certificate. robots is the address for robots by MQTT with
// TLS.
func checkTLS(k *checker, c TLS, robots string) {
	for i, a := range c.Listen {
		k.listen(fmt.Sprintf("tls.listen.%d", i), a)
	}
	by := "tls.listen"
	if len(c.Listen) == 0 {
		by = "robots.mqtt.tls"
	}
	switch {
	case len(c.Listen) == 0 && robots == "":
	case c.Certificate == "":
		k.fault("tls.certificate", fmt.Errorf("%s needs one: a file in PEM", by))
	case c.Key == "":
		k.fault("tls.key", errors.New("tls.certificate needs its key: a file in PEM"))
	default:
		if _, err := ReadCertificate(c); err != nil {
			if k.service == nil || !errors.Is(err, fs.ErrPermission) { // else checkReads reports it
				k.named("tls", "", err)
			}
		}
	}
}

// ReadCertificate reads a certificate and its key. Its error is a language.KeyError.
func ReadCertificate(c TLS) (*tls.Certificate, error) {
	certificate, err := readPEM("tls.certificate", c.Certificate)
	if err != nil {
		return nil, err
	}
	key, err := readPEM("tls.key", c.Key)
	if err != nil {
		return nil, err
	}
	switch {
	case !bytes.Contains(certificate, []byte("-----BEGIN CERTIFICATE-----")):
		return nil, language.OfKey("tls.certificate", fmt.Errorf("%s holds no certificate in PEM", c.Certificate))
	case bytes.Contains(key, []byte("ENCRYPTED")):
		return nil, language.OfKey("tls.key",
			fmt.Errorf("%s is encrypted with a pass phrase; write it without: openssl pkey -in %s -out FILE", c.Key, c.Key))
	case !bytes.Contains(key, []byte("PRIVATE KEY-----")):
		return nil, language.OfKey("tls.key", fmt.Errorf("%s holds no private key in PEM", c.Key))
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		// The library's error describes the form of the files, and does not quote them.
		return nil, language.OfKey("tls.certificate",
			fmt.Errorf("%s and %s cannot be used together: %s", c.Certificate, c.Key,
				strings.TrimPrefix(err.Error(), "tls: ")))
	}
	return &pair, nil
}

// mostPEM is the size of the largest file of certificates, in bytes.
const mostPEM = 1 << 20

func readPEM(key, path string) ([]byte, error) {
	text, err := os.ReadFile(secret.Path(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, language.OfKey(key, fmt.Errorf("there is no file %s", path))
	case errors.Is(err, fs.ErrPermission):
		return nil, language.OfKey(key, explainDenied(err, ourselves()))
	case err != nil:
		return nil, language.OfKey(key, err)
	case len(text) > mostPEM:
		return nil, language.OfKey(key, fmt.Errorf("%s is larger than %d bytes", path, mostPEM))
	}
	return text, nil
}

// mostSoon is how long before its end a certificate should be renewed, or a fifth of its life if that
// is shorter.
const mostSoon = 14 * 24 * time.Hour

// ErrDates is wrapped by the error of a certificate that clients refuse.
var ErrDates = errors.New("the certificate is not valid")

// Expiry returns what is wrong with a certificate's dates, or soon will be, or nil. Its error wraps
// ErrDates if clients refuse the certificate now.
func Expiry(leaf *x509.Certificate, now time.Time) error {
	const day = "2006-01-02"
	soon := min(mostSoon, leaf.NotAfter.Sub(leaf.NotBefore)/5)
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("%w: it has expired on %s; renew it, and the new one is taken without a restart", ErrDates, leaf.NotAfter.Format(day))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("%w before %s; is this machine's clock right?", ErrDates, leaf.NotBefore.Format(day))
	case now.Add(soon).After(leaf.NotAfter):
		return fmt.Errorf("the certificate expires on %s; renew it, and the new one is taken without a restart", leaf.NotAfter.Format(day))
	}
	return nil
}

// Names returns the names and addresses of a certificate.
func Names(leaf *x509.Certificate) string {
	all := append([]string(nil), leaf.DNSNames...)
	for _, ip := range leaf.IPAddresses {
		all = append(all, ip.String())
	}
	if len(all) == 0 {
		return "no name"
	}
	return strings.Join(all, ", ")
}
