package diary

import (
	"crypto/ed25519"
	"fmt"
	"iter"
	"slices"
	"time"
)

// maxFaults is the largest number of faults in a report.
const maxFaults = 20

// Fault is a place where the chain is broken.
type Fault struct {
	Seq  uint64 `json:"seq"`  // sequence number of the entry; 0 for the head
	What string `json:"what"` // description of the fault
}

// Report is the result of verifying the whole chain.
type Report struct {
	Whole   bool       `json:"whole"`          // whether there are no faults, and only this appliance has signed the chain
	Entries int        `json:"entries"`        // number of entries
	From    uint64     `json:"from,omitempty"` // Seq of the oldest entry
	To      uint64     `json:"to,omitempty"`   // Seq of the newest entry
	Hash    string     `json:"hash,omitempty"` // Hash of the newest entry
	At      *time.Time `json:"at,omitempty"`   // time of the head
	Address string     `json:"address"`        // address of the appliance's key
	Faults  []Fault    `json:"faults"`         // at most 20; never null
	Further int        `json:"further_faults"` // number of faults that are not in Faults
	// Foreign lists the other appliances that have signed a part of the chain, in the order
	// of the parts. The owner decides whether to trust the keys of these appliances.
	Foreign []Foreign `json:"foreign,omitempty"`
}

// Foreign is another appliance that has signed a part of the chain.
type Foreign struct {
	Address string `json:"address"` // address of the other appliance's key
	To      uint64 `json:"to"`      // Seq of the last entry that the other appliance has signed
}

// Fits reports whether the chain has no fault and is signed only by this appliance and the
// trusted addresses.
func (r Report) Fits(trusted ...string) bool {
	for _, f := range r.Foreign {
		if !slices.Contains(trusted, f.Address) {
			return false
		}
	}
	return len(r.Faults) == 0
}

// fault adds a fault to the report.
func (r *Report) fault(seq uint64, format string, args ...any) {
	if len(r.Faults) == maxFaults {
		r.Further++
		return
	}
	r.Faults = append(r.Faults, Fault{seq, fmt.Sprintf(format, args...)})
}

// Check verifies a whole chain: the head, and the entries of the table, which must be in the
// order of Seq. A nil head is a fault. public is the key of the appliance.
func Check(public ed25519.PublicKey, head *Head, table iter.Seq[Entry]) Report {
	r := Report{Address: Address(public), Faults: []Fault{}}
	if head == nil {
		r.fault(0, "the signed head of the diary is missing")
		for range table {
			r.Entries++
		}
		return r
	}
	at := head.At
	r.At = &at
	for _, o := range append(slices.Clone(head.Before), Origin{head.Address, head.Last}) {
		if o.Address != r.Address {
			r.Foreign = append(r.Foreign, Foreign{o.Address, o.Last.Seq})
		}
		if !o.Last.isSigned(parseAddress(o.Address)) {
			r.fault(0, "the last entry, %d, is not signed by %.60s", o.Last.Seq, o.Address)
		}
	}
	if !head.isSigned(parseAddress(head.Address)) {
		r.fault(0, "the signature of the head is invalid: the head was changed")
	}
	if !head.Root.isSigned(head.key(head.Root.Seq)) {
		r.fault(0, "the diary is cut after entry %d, which was never signed", head.Root.Seq)
	}
	c := chain{report: &r, head: head, at: head.Root}
	for e := range joinEntries(*head, table, &r) {
		c.verify(e)
	}
	if c.at.Seq != head.Last.Seq {
		r.fault(head.Last.Seq, "the diary ends with entry %d, and the head is signed for entry %d", c.at.Seq, head.Last.Seq)
	} else if c.at.Hash != head.Last.Hash {
		r.fault(head.Last.Seq, "entry %d is not the one that the head is signed for", head.Last.Seq)
	}
	r.To, r.Hash, r.Whole = head.Last.Seq, head.Last.Hash, r.Fits()
	return r
}

// joinEntries yields the entries of the table and then the entries of the head, each once.
// It skips entries that were cut off and are not deleted yet. It adds a fault to r for an
// entry that differs between the table and the head.
func joinEntries(head Head, table iter.Seq[Entry], r *Report) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		inHead := map[uint64]string{} // hashes by Seq
		for _, e := range head.Newest {
			inHead[e.Seq] = e.Hash
		}
		for e := range table {
			hash, isDuplicate := inHead[e.Seq]
			switch {
			case e.Seq <= head.Root.Seq:
			case isDuplicate && (hash != e.Hash || e.hash() != e.Hash):
				r.fault(e.Seq, "entry %d is stored twice with different contents", e.Seq)
			case isDuplicate:
			case !yield(e):
				return
			}
		}
		for _, e := range head.Newest {
			if e.Seq > head.Root.Seq && !yield(e) {
				return
			}
		}
	}
}

// chain is the state of Check: it verifies the entries one by one.
type chain struct {
	report *Report
	head   *Head
	at     Point // the point after the previous entry
}

// verify verifies the next entry and adds its faults to the report.
func (c *chain) verify(e Entry) {
	c.report.Entries++
	if c.report.From == 0 {
		c.report.From = e.Seq
	}
	switch {
	case e.Seq == c.at.Seq+2:
		c.report.fault(e.Seq-1, "entry %d is missing", e.Seq-1)
	case e.Seq > c.at.Seq+1:
		c.report.fault(c.at.Seq+1, "the entries %d to %d are missing", c.at.Seq+1, e.Seq-1)
	case e.Seq <= c.at.Seq:
		c.report.fault(e.Seq, "entry %d is out of order", e.Seq)
	case e.Prev != c.at.Hash:
		c.report.fault(e.Seq, "entry %d does not contain the hash of the previous entry", e.Seq)
	}
	if e.hash() != e.Hash {
		c.report.fault(e.Seq, "entry %d was changed", e.Seq)
	}
	if p := (Point{e.Seq, e.Hash, e.Signature}); e.Signature != nil && !p.isSigned(c.head.key(e.Seq)) {
		c.report.fault(e.Seq, "the signature of entry %d is invalid", e.Seq)
	}
	c.at = Point{Seq: e.Seq, Hash: e.Hash}
}
