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
	OwnedOnly = "owned-only" // bundles signed by an owner
	Whitelist = "whitelist"  // bundles whose digest the owner has listed
)

// Trust decides which bundles are loaded. The zero value trusts none.
type Trust struct {
	Mode    string
	Owners  []ed25519.PublicKey // whose signatures count, for OwnedOnly
	Digests []string            // "sha256:" and hex, for Whitelist
}

// Signature is signature.json: who has signed a bundle's digest.
type Signature struct {
	Key       string `json:"key"`       // "ed25519:" and base64 of the public key
	Signature string `json:"signature"` // base64, of Message
}

// Message returns the signed text of a bundle.
func Message(digest string) []byte { return []byte("perch skill " + digest) }

const keyPrefix = "ed25519:"

// ParseKey parses a public key, "ed25519:" and base64.
func ParseKey(text string) (ed25519.PublicKey, error) {
	data, ours := strings.CutPrefix(text, keyPrefix)
	key, err := base64.StdEncoding.DecodeString(data)
	if !ours || err != nil || len(key) != ed25519.PublicKeySize {
		return nil, errors.New("this is no public key; write ed25519: and 44 letters of base64, as perch skill sign shows it")
	}
	return key, nil
}

var digestText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^sha256:[0-9a-f]{64}$`) })

// ParseTrust parses the trust settings: a mode, by default owned-only, and owners'
// public keys and digests in one list.
func ParseTrust(mode string, allow []string) (Trust, error) {
	t := Trust{Mode: mode}
	if t.Mode == "" {
		t.Mode = OwnedOnly
	}
	if !slices.Contains([]string{Any, OwnedOnly, Whitelist}, t.Mode) {
		return Trust{}, fmt.Errorf("trust is any, owned-only or whitelist, not %.40q", mode)
	}
	for _, text := range allow {
		if digestText().MatchString(text) {
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

// Check returns why a bundle is not trusted, wrapping ErrTrust.
func (t Trust) Check(s Skill) error {
	switch t.Mode {
	case Any:
		return nil
	case Whitelist:
		if slices.Contains(t.Digests, s.Digest) {
			return nil
		}
		return fmt.Errorf("%w: its digest %s is not in skills.allow; add it there if you know the skill", ErrTrust, s.Digest)
	case OwnedOnly:
		if err := t.owned(s); err != nil {
			return fmt.Errorf("%w: %w", ErrTrust, err)
		}
		return nil
	}
	return fmt.Errorf("%w: the mode of trust %.20q is not known", ErrTrust, t.Mode)
}

func (t Trust) owned(s Skill) error {
	if s.Signature == nil {
		return fmt.Errorf("nobody has signed it; perch skill sign %s signs it as this appliance's owner", s.Folder)
	}
	key, err := ParseKey(s.Signature.Key)
	if err != nil {
		return fmt.Errorf("its signature's key: %w", err)
	}
	if !slices.ContainsFunc(t.Owners, func(o ed25519.PublicKey) bool { return o.Equal(key) }) {
		return fmt.Errorf("it is signed by %s, who is no owner here; add that key to skills.allow, or sign it yourself with perch skill sign %s",
			s.Signature.Key, s.Folder)
	}
	signature, err := base64.StdEncoding.DecodeString(s.Signature.Signature)
	if err != nil || !ed25519.Verify(key, Message(s.Digest), signature) {
		return errors.New("its signature is not of this bundle: it was changed after it was signed; get it again, or look at it and sign it anew")
	}
	return nil
}

// signature returns signature.json, which is optional.
func (c contents) signature() (*Signature, error) {
	data, err := c.file(signatureFile, 4<<10)
	if err != nil || data == nil {
		return nil, err
	}
	var s Signature
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("%s: this is not the JSON it should be: %w", signatureFile, err)
	}
	return &s, nil
}

// Sign writes a bundle's signature into its folder and returns it.
func Sign(s Skill, key ed25519.PrivateKey) (Signature, error) {
	public, _ := key.Public().(ed25519.PublicKey)
	made := Signature{Key: KeyText(public), Signature: base64.StdEncoding.EncodeToString(ed25519.Sign(key, Message(s.Digest)))}
	text, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return made, err
	}
	root, err := os.OpenRoot(s.Folder)
	if err != nil {
		return made, fmt.Errorf("sign the skill: %w", err)
	}
	defer root.Close()
	if err := root.WriteFile(signatureFile, append(text, '\n'), 0o644); err != nil {
		return made, fmt.Errorf("sign the skill: %w", err)
	}
	return made, nil
}

// KeyText returns a public key as text, "ed25519:" and base64.
func KeyText(key ed25519.PublicKey) string { return keyPrefix + base64.StdEncoding.EncodeToString(key) }
