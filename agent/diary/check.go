package diary

import (
	"crypto/ed25519"
	"fmt"
	"iter"
	"slices"
	"time"
)

// mostFaults bounds the reported faults.
const mostFaults = 20

// Fault is a place where the chain is broken.
type Fault struct {
	Seq  uint64 `json:"seq"`  // of the entry; 0 for the head
	What string `json:"what"` // text for people
}

// Report is the result of verifying the whole chain.
type Report struct {
	Whole   bool       `json:"whole"`          // no faults, and signed by this appliance only
	Entries int        `json:"entries"`        // number of them
	From    uint64     `json:"from,omitempty"` // of the oldest
	To      uint64     `json:"to,omitempty"`   // of the newest
	Hash    string     `json:"hash,omitempty"` // of the newest
	At      *time.Time `json:"at,omitempty"`   // of the newest signature
	Address string     `json:"address"`        // of the appliance's key
	Faults  []Fault    `json:"faults"`         // at most 20; may be empty, but is not null
	Further int        `json:"further_faults"` // number of further faults
	// Foreign lists the other appliances that signed a part of it, ascending. Such a diary
	// without faults is consistent; the owner decides whether to trust their keys.
	Foreign []Foreign `json:"foreign,omitempty"`
}

// Foreign is another appliance whose diary this one continues.
type Foreign struct {
	Address string `json:"address"` // of its key
	To      uint64 `json:"to"`      // the last entry that it has signed
}

// Fits reports whether the diary has no fault, and is signed only by this appliance and
// by trusted keys.
func (r Report) Fits(trusted ...string) bool {
	for _, f := range r.Foreign {
		if !slices.Contains(trusted, f.Address) {
			return false
		}
	}
	return len(r.Faults) == 0
}

func (r *Report) fault(seq uint64, format string, args ...any) {
	if len(r.Faults) == mostFaults {
		r.Further++
		return
	}
	r.Faults = append(r.Faults, Fault{seq, fmt.Sprintf(format, args...)})
}

// Check verifies a whole chain: the entries of the table, ascending by seq, and the head. A nil head is a fault.
// Public is the appliance's key; other signers are listed in Foreign, and the report is then not Whole.
func Check(public ed25519.PublicKey, head *Head, table iter.Seq[Entry]) Report {
	r := Report{Address: Address(public), Faults: []Fault{}}
	if head == nil {
		r.fault(0, "the signed head of the diary is not there")
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
		if !o.Last.signed(publicOf(o.Address)) {
			r.fault(0, "the last entry, %d, is not signed by %.60s", o.Last.Seq, o.Address)
		}
	}
	if !head.signed(publicOf(head.Address)) {
		r.fault(0, "the signature does not fit the head: it was changed")
	}
	if !head.Root.signed(head.key(head.Root.Seq)) {
		r.fault(0, "the diary is cut after entry %d, which was never signed", head.Root.Seq)
	}
	c := chain{report: &r, head: head, at: head.Root}
	for e := range joined(*head, table, &r) {
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

// joined yields the entries of the table and then those only in the head. Entries at or
// before the root were cut off and wait to be removed; they are skipped.
func joined(head Head, table iter.Seq[Entry], r *Report) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		own := map[uint64]string{}
		for _, e := range head.Newest {
			own[e.Seq] = e.Hash
		}
		for e := range table {
			hash, also := own[e.Seq]
			switch {
			case e.Seq <= head.Root.Seq:
			case also && (hash != e.Hash || e.hash() != e.Hash):
				r.fault(e.Seq, "entry %d is there twice, and differs", e.Seq)
			case also:
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

// chain verifies the entries in order.
type chain struct {
	report *Report
	head   *Head
	at     Point // after the entry before
}

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
		c.report.fault(e.Seq, "entry %d is not bound to the entry before it", e.Seq)
	}
	if e.hash() != e.Hash {
		c.report.fault(e.Seq, "entry %d was changed", e.Seq)
	}
	if p := (Point{e.Seq, e.Hash, e.Signature}); e.Signature != nil && !p.signed(c.head.key(e.Seq)) {
		c.report.fault(e.Seq, "the signature of entry %d does not fit", e.Seq)
	}
	c.at = Point{Seq: e.Seq, Hash: e.Hash}
}
