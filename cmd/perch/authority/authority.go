// Package authority makes the TLS certificate of Perch's page, and the private certificate authority that signs it. Name
// constraints limit the authority to names below .local and private IPv4 addresses, so it cannot sign for other sites.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/store"
)

// Names of files in the data directory. Each holds a private key and its certificate, in PEM.
const (
	authorityFile   = "https-authority.pem"
	certificateFile = "https-certificate.pem"
)

// Files returns the names of the files with private keys in the data directory.
func Files() []string { return []string{authorityFile, certificateFile} }

const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	// certificateLifetime is the maximum that iPhones accept. A browser without the authority warns after each renewal.
	certificateLifetime = 825 * 24 * time.Hour
	renewBefore         = 30 * 24 * time.Hour // how long before its expiry a certificate is renewed
	slowClock           = 24 * time.Hour      // how long before now certificates become valid, for devices whose clocks are slow
	checkEvery          = time.Minute         // minimum interval between checks of names and expiry in GetCertificate
)

// privateAddresses are the IPv4 addresses that the authority's name constraints permit.
var privateAddresses = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("169.254.0.0/16")}

// Options configures an Authority.
type Options struct {
	Data string // path of the data directory
	Name string // common name of the authority, as lists in browsers show it; unique to the appliance
	// Names returns the names and addresses of this machine. Names not below .local and addresses not in privateAddresses
	// are ignored.
	Names func() []string
	Now   func() time.Time // time.Now if nil
	Log   *slog.Logger
}

// Authority is a certificate authority and the server certificate that it has signed. It is safe for concurrent use.
type Authority struct {
	o Options

	mu      sync.Mutex
	ca      *tls.Certificate // nil before Open
	leaf    *tls.Certificate // nil before Open
	checked time.Time        // when renew last ran
}

// New returns an authority without reading any file. Call Open before GetCertificate.
func New(o Options) *Authority {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Authority{o: o}
}

// Exists reports whether the data directory has an authority.
func (a *Authority) Exists() bool { return store.Exists(filepath.Join(a.o.Data, authorityFile)) }

// Open reads the authority and the certificate from the data directory, and makes them if they are missing or expire soon.
func (a *Authority) Open() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.renew()
}

// Certificate returns the certificate of the authority, or nil before Open.
func (a *Authority) Certificate() *x509.Certificate {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ca == nil {
		return nil
	}
	return a.ca.Leaf
}

// Names returns the current names and addresses that the authority can certify, in the order of Options.Names, without
// duplicates.
func (a *Authority) Names() (names []string) {
	for _, name := range a.o.Names() {
		if name = strings.ToLower(name); (strings.HasSuffix(name, ".local") || isPrivate(name)) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// isPrivate reports whether a name is an address in privateAddresses.
func isPrivate(name string) bool {
	ip, err := netip.ParseAddr(name)
	return err == nil && slices.ContainsFunc(privateAddresses, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// GetCertificate implements tls.Config.GetCertificate. It renews the certificate if the certificate lacks a name of
// this machine or expires within renewBefore; it checks that at most once per checkEvery. If the renewal fails, it logs
// a warning and returns the previous certificate, or an error without one. It ignores the client's server name.
func (a *Authority) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.o.Now(); now.Sub(a.checked).Abs() >= checkEvery {
		if err := a.renew(); err != nil {
			a.o.Log.Warn("the certificate of the https address cannot be renewed", "err", err)
		}
	}
	if a.leaf == nil {
		return nil, errors.New("the https address has no certificate")
	}
	return a.leaf, nil
}

// renew loads the authority and the certificate, and replaces each that is missing or expires within renewBefore, and a
// certificate that is not valid yet, not for all Names or not signed by the authority. a.mu must be held.
func (a *Authority) renew() (err error) {
	now := a.o.Now()
	a.checked = now
	ca, leaf := a.ca, a.leaf
	if ca == nil {
		if ca, err = read(filepath.Join(a.o.Data, authorityFile)); err != nil {
			return err
		}
	}
	if ca == nil || now.Add(renewBefore).After(ca.Leaf.NotAfter) {
		if ca, err = a.issue(authorityFile, newAuthority(a.o.Name, now), nil); err != nil {
			return err
		}
		leaf = nil
		a.o.Log.Info("an authority for the https address was made", "fingerprint", Fingerprint(ca.Leaf))
	} else if leaf == nil {
		if leaf, err = read(filepath.Join(a.o.Data, certificateFile)); err != nil {
			return err
		}
	}
	names := a.Names()
	if leaf == nil || leaf.Leaf.CheckSignatureFrom(ca.Leaf) != nil || !isFor(leaf.Leaf, names) ||
		now.Before(leaf.Leaf.NotBefore) || !now.Add(renewBefore).Before(leaf.Leaf.NotAfter) {
		if leaf, err = a.issue(certificateFile, newCertificate(names, now, ca.Leaf.NotAfter), ca); err != nil {
			return err
		}
		a.o.Log.Info("a certificate for the https address was made", "names", names, "until", leaf.Leaf.NotAfter)
	}
	a.ca, a.leaf = ca, leaf
	return nil
}

// isFor reports whether a certificate is for all of the names.
func isFor(c *x509.Certificate, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return c.VerifyHostname(name) != nil })
}

// newAuthority returns the template of an authority.
func newAuthority(name string, now time.Time) *x509.Certificate {
	c := &x509.Certificate{
		Subject:   pkix.Name{CommonName: name, Organization: []string{"Perch"}},
		NotBefore: now.Add(-slowClock), NotAfter: now.Add(authorityLifetime),
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: []string{"local"},
	}
	for _, p := range privateAddresses {
		c.PermittedIPRanges = append(c.PermittedIPRanges, &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)})
	}
	return c
}

// newCertificate returns the template of a certificate for a server with these names and addresses, the best first. The
// certificate expires after certificateLifetime, but not after the time latest.
func newCertificate(names []string, now, latest time.Time) *x509.Certificate {
	c := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Perch"},
		NotBefore: now.Add(-slowClock), NotAfter: now.Add(certificateLifetime - slowClock),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if c.NotAfter.After(latest) {
		c.NotAfter = latest
	}
	if len(names) > 0 {
		c.Subject.CommonName = names[0]
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, name)
		}
	}
	return c
}

// issue makes a key and a certificate from a template, and writes both to a file in the data directory. The certificate is
// signed by signer, or by its own key if signer is nil.
func (a *Authority) issue(file string, template *x509.Certificate, signer *tls.Certificate) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	parent, signingKey := template, any(key)
	if signer != nil {
		parent, signingKey = signer.Leaf, signer.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signingKey)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyBytes}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("use a new certificate: %w", err)
	}
	path := filepath.Join(a.o.Data, file)
	if err := errors.Join(store.RemoveUnfinished(path), store.WriteFile(path, text)); err != nil {
		return nil, fmt.Errorf("write a certificate: %w", err)
	}
	return &pair, nil
}

// read reads a key and its certificate from a file, and sets the file's mode to 0600. It returns nil, nil if the file does
// not exist.
func read(path string) (*tls.Certificate, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("read a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be used: %s; remove it to have a new one made", path, strings.TrimPrefix(err.Error(), "tls: "))
	}
	return &pair, nil
}

// Fingerprint returns the SHA-256 hash of a certificate as browsers show it: AA:BB:CC…
func Fingerprint(c *x509.Certificate) string {
	hash := sha256.Sum256(c.Raw)
	return strings.ReplaceAll(fmt.Sprintf("% X", hash), " ", ":")
}
