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

// TLS holds the addresses on which everything but the robots' API is served with TLS, and the certificate.
type TLS struct {
	Listen      []string `yaml:"listen" label:"Encrypted addresses" words:"https port"`
	Certificate string   `yaml:"certificate" label:"Certificate"` // path of a PEM file: the certificate, then the certificates of its authorities
	Key         string   `yaml:"key" label:"Private key"`         // path of a PEM file with the private key
}

// checkTLS checks the addresses and the certificate. robotsAddress is the address for robots that use
// MQTT with TLS, or "".
func checkTLS(k *checker, c TLS, robotsAddress string) {
	for i, a := range c.Listen {
		k.listen(fmt.Sprintf("tls.listen.%d", i), a)
	}
	usedBy := "tls.listen"
	if len(c.Listen) == 0 {
		usedBy = "robots.mqtt.tls"
	}
	switch {
	case len(c.Listen) == 0 && robotsAddress == "":
	case c.Certificate == "":
		k.fault("tls.certificate", fmt.Errorf("%s needs one: a file in PEM", usedBy))
	case c.Key == "":
		k.fault("tls.key", errors.New("tls.certificate needs its key: a file in PEM"))
	default:
		if _, err := ReadCertificate(c); err != nil {
			if k.service == nil || !errors.Is(err, fs.ErrPermission) { // otherwise checkReadableByService reports it
				k.keyErrors("tls", "", err)
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
		// The error of crypto/tls describes the files, but does not quote them.
		return nil, language.OfKey("tls.certificate",
			fmt.Errorf("%s and %s cannot be used together: %s", c.Certificate, c.Key,
				strings.TrimPrefix(err.Error(), "tls: ")))
	}
	return &pair, nil
}

// maxPEMSize is the maximum size of a file with certificates or a key, in bytes.
const maxPEMSize = 1 << 20

// readPEM reads the file that a key of the configuration names. Its error is a language.KeyError.
func readPEM(key, path string) ([]byte, error) {
	text, err := os.ReadFile(secret.Path(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, language.OfKey(key, fmt.Errorf("there is no file %s", path))
	case errors.Is(err, fs.ErrPermission):
		return nil, language.OfKey(key, explainDenied(err, currentAccount()))
	case err != nil:
		return nil, language.OfKey(key, err)
	case len(text) > maxPEMSize:
		return nil, language.OfKey(key, fmt.Errorf("%s is larger than %d bytes", path, maxPEMSize))
	}
	return text, nil
}

// maxRenewalTime is how long before its expiry a certificate should be renewed. For certificates with a
// short life it is a fifth of that life instead.
const maxRenewalTime = 14 * 24 * time.Hour

// ErrDates is wrapped by the error of CheckExpiry for a certificate that has expired or is not valid yet.
var ErrDates = errors.New("the certificate is not valid")

// CheckExpiry returns an error if a certificate should be renewed, and an error that wraps ErrDates if the
// certificate is not valid now.
func CheckExpiry(leaf *x509.Certificate, now time.Time) error {
	const day = "2006-01-02"
	soon := min(maxRenewalTime, leaf.NotAfter.Sub(leaf.NotBefore)/5)
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("%w: it expired on %s; renew it, and Perch loads the new one without a restart", ErrDates, leaf.NotAfter.Format(day))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("%w before %s; is this machine's clock right?", ErrDates, leaf.NotBefore.Format(day))
	case now.Add(soon).After(leaf.NotAfter):
		return fmt.Errorf("the certificate expires on %s; renew it, and Perch loads the new one without a restart", leaf.NotAfter.Format(day))
	}
	return nil
}

// Names returns the host names and addresses in a certificate, separated by commas, or "no name".
func Names(leaf *x509.Certificate) string {
	names := append([]string(nil), leaf.DNSNames...)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "no name"
	}
	return strings.Join(names, ", ")
}
