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

// NewKey returns the key with this seed: 32 bytes, written as 64 hex digits.
func NewKey(seed string) (Key, error) {
	raw, err := hex.DecodeString(seed)
	if err != nil || len(raw) != ed25519.SeedSize {
		return Key{}, errors.New("the diary's key is not 64 hex digits; restore its file from a backup, or remove the file to get a new key")
	}
	return Key{ed25519.NewKeyFromSeed(raw)}, nil
}

// Public returns the public key.
func (k Key) Public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }

// Private returns the private key. A text that is signed with it must begin with a prefix
// that names the purpose of the signature, like each text that this package signs.
func (k Key) Private() ed25519.PrivateKey { return k.private }

// Address returns the public key as text: "ed25519:" and base64.
func (k Key) Address() string { return Address(k.Public()) }

// addressPrefix is the prefix of an address.
const addressPrefix = "ed25519:"

// Address returns a public key as text: "ed25519:" and base64.
func Address(public ed25519.PublicKey) string {
	return addressPrefix + base64.StdEncoding.EncodeToString(public)
}

// parseAddress returns the public key of an address, or nil if the address is invalid.
func parseAddress(address string) ed25519.PublicKey {
	text, ok := strings.CutPrefix(address, addressPrefix)
	raw, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(raw) != ed25519.PublicKeySize {
		return nil
	}
	return raw
}

// Prefixes of signed texts. They prevent the use of a signature for another purpose.
const (
	messagePrefix = "perch message 1\n"
	pointPrefix   = "perch diary point 1\n"
	headPrefix    = "perch diary head 1\n"
	entryPrefix   = "perch diary entry 1\n"
)

// Sign signs a message of the agent and returns the signature in base64. The signed text is
// the line "perch message 1" and the message.
func (k Key) Sign(message string) string {
	return base64.StdEncoding.EncodeToString(ed25519.Sign(k.private, []byte(messagePrefix+message)))
}
