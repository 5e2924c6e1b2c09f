package diary

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"perch/agent/action"
	"perch/device"
)

// Entry records one action of a character. It contains the hash of the previous entry.
type Entry struct {
	Seq       uint64          `json:"seq"` // sequence number; the first is 1
	At        time.Time       `json:"at"`  // UTC
	Character string          `json:"agent"`
	Robot     device.ID       `json:"robot,omitempty"`
	Session   string          `json:"session,omitempty"`
	Type      action.Type     `json:"type"` // one of Types
	Payload   json.RawMessage `json:"payload"`
	Skill     string          `json:"sourceSkill,omitempty"`
	Prev      string          `json:"prev"`                // Hash of the previous entry; empty for the first
	Hash      string          `json:"hash"`                // SHA-256 of the fields above, in hex; see Entry.hash
	Signature []byte          `json:"signature,omitempty"` // Ed25519 signature of Seq and Hash; the chain may be cut only after an entry with a signature
}

// hash returns the SHA-256, in hex, of entryPrefix and the entry's JSON with empty Hash and
// Signature. If the payload is not valid JSON, it returns "", which never equals a stored hash.
func (e Entry) hash() string {
	e.Hash, e.Signature = "", nil
	text, err := json.Marshal(e)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(append([]byte(entryPrefix), text...))
	return hex.EncodeToString(sum[:])
}

// Point is the position in the chain after the entry with Seq and Hash. The zero value is the
// beginning.
type Point struct {
	Seq       uint64 `json:"seq"`
	Hash      string `json:"hash,omitempty"`
	Signature []byte `json:"signature,omitempty"` // Ed25519 signature of Seq and Hash; empty at the beginning
}

// text returns the text that is signed for a point.
func (p Point) text() []byte { return fmt.Appendf(nil, "%s%d\n%s\n", pointPrefix, p.Seq, p.Hash) }

// isSigned reports whether the point has a valid signature by the key public, or is the
// beginning.
func (p Point) isSigned(public ed25519.PublicKey) bool {
	return p.Seq == 0 && p.Hash == "" || len(public) == ed25519.PublicKeySize && ed25519.Verify(public, p.text(), p.Signature)
}

// Head is the signed beginning and end of the chain. It is replaced with each change. It
// contains the newest entries, because these and the signature must be stored atomically.
type Head struct {
	Root      Point     `json:"root"`             // the stored entries begin after this point
	Last      Point     `json:"last"`             // the end of the chain
	At        time.Time `json:"at"`               // time of the change, UTC
	Address   string    `json:"address"`          // address of the key that signed the head
	Signature []byte    `json:"signature"`        // Ed25519 signature of text
	Newest    []Entry   `json:"newest,omitempty"` // the newest entries, ascending
	Before    []Origin  `json:"before,omitempty"` // the appliances that wrote earlier parts of the chain, in the order of the parts
}

// Origin is another appliance that wrote a part of the chain, which was restored from a
// backup.
type Origin struct {
	Address string `json:"address"` // address of the other appliance's key
	Last    Point  `json:"last"`    // the end of the other appliance's entries
}

// text returns the text that is signed for a head.
func (h Head) text() []byte {
	text := fmt.Appendf(nil, "%s%d\n%s\n%d\n%s\n%s\n", headPrefix, h.Root.Seq, h.Root.Hash, h.Last.Seq, h.Last.Hash, h.At.UTC().Format(time.RFC3339Nano))
	for _, o := range h.Before {
		text = fmt.Appendf(text, "%s\n%d\n%s\n", o.Address, o.Last.Seq, o.Last.Hash)
	}
	return text
}

// key returns the public key of the appliance that wrote the entry with this number, or nil
// if the appliance's address is invalid.
func (h Head) key(seq uint64) ed25519.PublicKey {
	for _, o := range h.Before {
		if seq <= o.Last.Seq {
			return parseAddress(o.Address)
		}
	}
	return parseAddress(h.Address)
}

// isSigned reports whether the head has a valid signature by the key public.
func (h Head) isSigned(public ed25519.PublicKey) bool {
	return len(public) == ed25519.PublicKeySize && ed25519.Verify(public, h.text(), h.Signature)
}

// signPoint returns the point with a signature.
func (k Key) signPoint(p Point) Point {
	p.Signature = ed25519.Sign(k.private, p.text())
	return p
}

// signHead returns the head with the key's address and signature.
func (k Key) signHead(h Head) Head {
	h.Address, h.Signature = k.Address(), ed25519.Sign(k.private, h.text())
	return h
}
