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

// Entry records one act of a character. It contains the hash of the previous entry.
type Entry struct {
	Seq       uint64          `json:"seq"` // counts up from 1
	At        time.Time       `json:"at"`  // UTC
	Character string          `json:"agent"`
	Robot     device.ID       `json:"robot,omitempty"`
	Session   string          `json:"session,omitempty"`
	Type      action.Type     `json:"type"` // one of Types
	Payload   json.RawMessage `json:"payload"`
	Skill     string          `json:"sourceSkill,omitempty"`
	Prev      string          `json:"prev"`                // hash of the entry before; empty for the first
	Hash      string          `json:"hash"`                // SHA-256 of all of the above, in hex
	Signature []byte          `json:"signature,omitempty"` // Ed25519 of seq and hash, where the diary may be cut after this entry
}

// hash is the SHA-256, in hex, of the entry's JSON without hash and signature.
func (e Entry) hash() string {
	e.Hash, e.Signature = "", nil
	text, err := json.Marshal(e)
	if err != nil { // the payload is not JSON, and no stored hash equals ""
		return ""
	}
	sum := sha256.Sum256(append([]byte(forEntry), text...))
	return hex.EncodeToString(sum[:])
}

// Point is a position in the chain: after the entry of that number and hash. The zero
// value is the beginning.
type Point struct {
	Seq       uint64 `json:"seq"`
	Hash      string `json:"hash,omitempty"`
	Signature []byte `json:"signature,omitempty"` // of seq and hash; empty at the beginning
}

func (p Point) text() []byte { return fmt.Appendf(nil, "%s%d\n%s\n", forPoint, p.Seq, p.Hash) }

// signed reports whether the point has a valid signature of the key.
func (p Point) signed(public ed25519.PublicKey) bool {
	return p.Seq == 0 && p.Hash == "" || len(public) == ed25519.PublicKeySize && ed25519.Verify(public, p.text(), p.Signature)
}

// Head is the signed beginning and end of the chain, rewritten with each change. It
// includes the newest entries, so that these and the signature are stored atomically.
type Head struct {
	Root      Point     `json:"root"` // the stored entries begin after it
	Last      Point     `json:"last"`
	At        time.Time `json:"at"`      // UTC
	Address   string    `json:"address"` // of the key
	Signature []byte    `json:"signature"`
	Newest    []Entry   `json:"newest,omitempty"` // ascending; the last is at Last
	Before    []Origin  `json:"before,omitempty"` // ascending; the appliances whose diary this one continues
}

// Origin is another appliance whose diary was restored from a backup.
type Origin struct {
	Address string `json:"address"` // of its key
	Last    Point  `json:"last"`    // the end of its entries
}

func (h Head) text() []byte {
	text := fmt.Appendf(nil, "%s%d\n%s\n%d\n%s\n%s\n", forHead, h.Root.Seq, h.Root.Hash, h.Last.Seq, h.Last.Hash, h.At.UTC().Format(time.RFC3339Nano))
	for _, o := range h.Before {
		text = fmt.Appendf(text, "%s\n%d\n%s\n", o.Address, o.Last.Seq, o.Last.Hash)
	}
	return text
}

// key returns the key that signed the entry of a number, or nil if the head has no
// address.
func (h Head) key(seq uint64) ed25519.PublicKey {
	for _, o := range h.Before {
		if seq <= o.Last.Seq {
			return publicOf(o.Address)
		}
	}
	return publicOf(h.Address)
}

// signed reports whether the head has a valid signature of the key.
func (h Head) signed(public ed25519.PublicKey) bool {
	return len(public) == ed25519.PublicKeySize && ed25519.Verify(public, h.text(), h.Signature)
}

func (k Key) signPoint(p Point) Point {
	p.Signature = ed25519.Sign(k.private, p.text())
	return p
}

func (k Key) signHead(h Head) Head {
	h.Address, h.Signature = k.Address(), ed25519.Sign(k.private, h.text())
	return h
}
