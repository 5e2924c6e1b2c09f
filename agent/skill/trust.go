package skill

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Modes of trust.
const (
	Any       = "any"        // every bundle is trusted
	OwnedOnly = "owned-only" // a bundle is trusted if a key in Trust.Owners has signed it
	Whitelist = "whitelist"  // a bundle is trusted if Trust.Digests contains its digest
)

// Trust decides which bundles are loaded. The zero value trusts no bundle.
type Trust struct {
	Mode    string
	Owners  []ed25519.PublicKey // keys that may sign bundles, for OwnedOnly
	Digests []string            // trusted digests, "sha256:" and hex, for Whitelist
}

// Signature is the content of signature.json: the signature of a bundle's digest.
type Signature struct {
	Key       string `json:"key"`       // public key, "ed25519:" and base64
	Signature string `json:"signature"` // signature of the text that Message returns, in base64
}

// Message returns the text that is signed for a bundle with this digest.
func Message(digest string) []byte { return []byte("perch skill " + digest) }

const keyPrefix = "ed25519:"

// ParseKey parses a public key in the format "ed25519:" and base64.
func ParseKey(text string) (ed25519.PublicKey, error) {
	data, ok := strings.CutPrefix(text, keyPrefix)
	key, err := base64.StdEncoding.DecodeString(data)
	if !ok || err != nil || len(key) != ed25519.PublicKeySize {
		return nil, errors.New("this is not a public key; write ed25519: and 44 characters of base64, as perch skill sign shows them")
	}
	return key, nil
}

// digestFormat matches the text of a digest.
var digestFormat = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^sha256:[0-9a-f]{64}$`) })

// ParseTrust parses the settings of trust. The default mode is OwnedOnly. allow contains
// the owners' public keys and the trusted digests.
func ParseTrust(mode string, allow []string) (Trust, error) {
	t := Trust{Mode: mode}
	if t.Mode == "" {
		t.Mode = OwnedOnly
	}
	if !slices.Contains([]string{Any, OwnedOnly, Whitelist}, t.Mode) {
		return Trust{}, fmt.Errorf("trust is any, owned-only or whitelist, not %.40q", mode)
	}
	for _, text := range allow {
		if digestFormat().MatchString(text) {
			t.Digests = append(t.Digests, text)
			continue
		}
		key, err := ParseKey(text)
		if err != nil {
			return Trust{}, fmt.Errorf(
				"allow: %.20q is neither a digest (sha256: and 64 digits in hex) nor a public key (ed25519: and base64)", text)
		}
		t.Owners = append(t.Owners, key)
	}
	return t, nil
}

// Check returns nil if a bundle is trusted, and otherwise an error with the reason, which
// wraps ErrTrust.
func (t Trust) Check(s Skill) error {
	switch t.Mode {
	case Any:
		return nil
	case Whitelist:
		if slices.Contains(t.Digests, s.Digest) {
			return nil
		}
		return fmt.Errorf("%w: its digest %s is not in skills.allow; add the digest there if you trust the skill", ErrTrust, s.Digest)
	case OwnedOnly:
		if err := t.checkOwner(s); err != nil {
			return fmt.Errorf("%w: %w", ErrTrust, err)
		}
		return nil
	}
	return fmt.Errorf("%w: the mode of trust %.20q does not exist", ErrTrust, t.Mode)
}

// checkOwner checks that an owner has signed a bundle.
func (t Trust) checkOwner(s Skill) error {
	if s.Signature == nil {
		return fmt.Errorf("it is not signed; run perch skill sign %s to sign it as this appliance's owner", s.Folder)
	}
	key, err := ParseKey(s.Signature.Key)
	if err != nil {
		return fmt.Errorf("its signature's key: %w", err)
	}
	if !slices.ContainsFunc(t.Owners, func(o ed25519.PublicKey) bool { return o.Equal(key) }) {
		return fmt.Errorf("it is signed with the key %s, which is not an owner's; add the key to skills.allow, or sign the skill yourself with perch skill sign %s",
			s.Signature.Key, s.Folder)
	}
	signature, err := base64.StdEncoding.DecodeString(s.Signature.Signature)
	if err != nil || !ed25519.Verify(key, Message(s.Digest), signature) {
		return errors.New("the signature does not match the bundle: it was changed after it was signed; get it again, or check it and sign it again")
	}
	return nil
}

// signature parses signature.json. It returns nil if the bundle is not signed.
func (c contents) signature() (*Signature, error) {
	data, err := c.file(signatureFile, 4<<10)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", signatureFile, err)
	case data == nil:
		return nil, nil
	}
	var s Signature
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("%s: this is not the expected JSON: %w", signatureFile, err)
	}
	return &s, nil
}

// Sign signs a bundle, writes signature.json into its folder and returns the signature.
func Sign(s Skill, key ed25519.PrivateKey) (Signature, error) {
	public, _ := key.Public().(ed25519.PublicKey)
	signature := Signature{Key: KeyText(public), Signature: base64.StdEncoding.EncodeToString(ed25519.Sign(key, Message(s.Digest)))}
	text, err := json.MarshalIndent(signature, "", "  ")
	if err != nil {
		return signature, err
	}
	root, err := os.OpenRoot(s.Folder)
	if err != nil {
		return signature, fmt.Errorf("sign the skill: %w", err)
	}
	defer root.Close()
	if err := root.WriteFile(signatureFile, append(text, '\n'), 0o644); err != nil {
		return signature, fmt.Errorf("sign the skill: %w", err)
	}
	return signature, nil
}

// KeyText formats a public key as "ed25519:" and base64.
func KeyText(key ed25519.PublicKey) string { return keyPrefix + base64.StdEncoding.EncodeToString(key) }
