package diary

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
)

// Key is the appliance's Ed25519 key. It is safe for concurrent use.
type Key struct{ private ed25519.PrivateKey }

// NewKey makes a key from a seed of 32 bytes, as 64 hex digits.
func NewKey(seed string) (Key, error) {
	raw, err := hex.DecodeString(seed)
	if err != nil || len(raw) != ed25519.SeedSize {
		return Key{}, errors.New("the diary's key is 64 hex digits; restore its file from a backup, or remove it and a new key is made")
	}
	return Key{ed25519.NewKeyFromSeed(raw)}, nil
}

// Public returns the public key.
func (k Key) Public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }

// Private returns the private key, for messages with their own purpose prefix, such as a skill.
func (k Key) Private() ed25519.PrivateKey { return k.private }

// Address returns the public key as text: "ed25519:" and base64.
func (k Key) Address() string { return Address(k.Public()) }

// addressOf is the prefix of a public key as text.
const addressOf = "ed25519:"

// Address returns a public key as text: "ed25519:" and base64.
func Address(public ed25519.PublicKey) string {
	return addressOf + base64.StdEncoding.EncodeToString(public)
}

// publicOf returns the key of an address, or nil if it is invalid.
func publicOf(address string) ed25519.PublicKey {
	text, is := strings.CutPrefix(address, addressOf)
	raw, err := base64.StdEncoding.DecodeString(text)
	if !is || err != nil || len(raw) != ed25519.PublicKeySize {
		return nil
	}
	return raw
}

// Prefixes of signed texts, which prevent using a signature for another purpose.
const (
	forMessage = "perch message 1\n"
	forPoint   = "perch diary point 1\n"
	forHead    = "perch diary head 1\n"
	forEntry   = "perch diary entry 1\n"
)

// Sign signs a message of the agent: the text after the line "perch message 1". It
// returns the signature in base64.
func (k Key) Sign(message string) string {
	return base64.StdEncoding.EncodeToString(ed25519.Sign(k.private, []byte(forMessage+message)))
}
