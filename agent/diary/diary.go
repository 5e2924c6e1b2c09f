// Package diary keeps what the characters of the appliance did, so that a change of it is
// found: each entry has the hash of the one before, and the chain's head is signed with
// the appliance's Ed25519 key. Whoever has that key can write another diary, and whoever
// puts back an older copy of all of it shows an older diary: keep the hash of a head
// elsewhere, and compare.
package diary

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"perch/agent/action"
	"perch/device"
	"perch/event"
)

// headKey is where the table of heads has the only one.
const headKey = "head"

// Sizes and pace. A batch is written at once: a card is spared, and the appliance's last seconds may be lost with its power.
const (
	mostBatch = 64              // entries
	every     = 2 * time.Second // between the first event of a batch and its writing
)

type entries interface {
	PutSoon(key string, e Entry)
	DeleteSoon(key string)
	All() iter.Seq2[string, Entry]
	Newest(n int) iter.Seq2[string, Entry]
	Err() error
}

type heads interface {
	Get(key string) (Head, bool, error)
	Put(key string, h Head) error
}

// Options are what a diary is made of.
type Options struct {
	Entries   entries
	Heads     heads
	Key       Key
	Begins    bool             // the key was made just now, so that there is no diary yet
	Keep      int              // entries at most, of all characters; 0 keeps none
	Who       action.Who       // the character that acts
	Sentiment action.Sentiment // of what is said; nil is neutral
	// Publish publishes each entry that is on the disk, and does not call the diary; nil publishes
	// nothing. The event is of no session: one that was over before the entry was written does
	// not begin again.
	Publish func(robot device.ID, session string, e event.Event)
	Log     *slog.Logger
}

// Diary is safe for concurrent use. Run writes it.
type Diary struct {
	o    Options
	keep atomic.Int64 // Options.Keep, or what Bound has made of it

	changing sync.Mutex // held while the chain is changed, and while it is verified
	reported []uint64   // ascending seqs of the entries that viewers have reported; Run's
	full     bool       // what viewers report is not kept at the moment; Run's

	mu   sync.Mutex
	head *Head // as stored; changed with changing held
	err  error // why the latest batch is not stored
}

// Open reads the head. With a new key it stores that of an empty diary. A head that is missing
// or not this appliance's is not replaced by a good one: what follows is not bound to what is
// there, so that Verify goes on to find it.
func Open(o Options) (*Diary, error) {
	d := &Diary{o: o}
	d.keep.Store(int64(o.Keep))
	head, found, err := o.Heads.Get(headKey)
	if err != nil {
		return nil, fmt.Errorf("read the diary's head: %w", err)
	}
	if found {
		d.head = &head
	}
	if found && head.Address == o.Key.Address() && head.signed(o.Key.Public()) {
		d.sweep()
		return d, nil
	}
	if found && d.inherited() {
		o.Log.Warn("the diary is of another appliance, as after a restore, and goes on here; perch diary verify says more", "address", head.Address)
		return d, nil
	}
	var last uint64
	for _, e := range o.Entries.Newest(1) {
		last = e.Seq
	}
	if o.Begins && !found && last == 0 {
		if err := d.put(Head{At: time.Now().UTC().Round(0)}); err != nil {
			return nil, fmt.Errorf("begin the diary: %w", err)
		}
		return d, nil
	}
	o.Log.Error("the diary's head is missing or is not signed with this appliance's key; perch diary verify shows it")
	d.head = &Head{Last: Point{Seq: max(1, last, head.Last.Seq)}, Newest: head.Newest}
	return d, nil
}

// inherited reports whether the diary is whole in itself, and signed with another key. It
// is gone on with then: its entries stay bound to what follows, and the other's signatures with them.
func (d *Diary) inherited() bool {
	found := *d.head
	if found.Address == d.o.Key.Address() {
		return false
	}
	r, err := d.Verify()
	if err != nil || len(r.Faults) > 0 {
		return false
	}
	found.Before = append(slices.Clone(found.Before), Origin{found.Address, found.Last})
	d.head = &found
	return true
}

// Placed is an entry as it lies at a key of the table. One that lies where it does not
// belong has no hash, so that Check finds it.
func Placed(at string, e Entry) Entry {
	if at != key(e.Seq) {
		e.Hash = ""
	}
	return e
}

func key(seq uint64) string { return fmt.Sprintf("%020d", seq) }

// Run keeps what is published until ctx or the bus ends, and then what it still has.
func (d *Diary) Run(ctx context.Context, from *event.Reader) {
	events := make(chan event.Envelope)
	var pump sync.WaitGroup
	pump.Go(func() { from.Pump(ctx, events) })
	defer pump.Wait()
	d.cut()
	d.tally()
	var batch []Entry
	var due <-chan time.Time
	for {
		select {
		case e, open := <-events:
			if !open {
				d.write(batch)
				return
			}
			batch = d.take(batch, e)
			if due == nil && len(batch) > 0 {
				due = time.After(every)
			}
			if len(batch) < mostBatch {
				continue
			}
		case <-due:
		}
		if d.write(batch); d.Err() == nil || len(batch) >= mostBatch {
			batch = nil
		}
		if due = nil; len(batch) > 0 { // the disk may take it later
			due = time.After(every)
		}
	}
}

// take adds the entry of an event, if it is to have one.
func (d *Diary) take(batch []Entry, e event.Envelope) []Entry {
	if missed, lost := e.Event.(event.Missed); lost {
		d.o.Log.Warn("events came faster than the diary could keep them", "count", missed.N)
		return batch
	}
	if d.keep.Load() == 0 {
		return batch
	}
	entry, ok := d.entryOf(e)
	if !ok || entry.reported() && !d.fits(batch) {
		return batch
	}
	return append(batch, entry)
}

// tally finds what viewers have reported before.
func (d *Diary) tally() {
	d.reported = nil
	for e := range joined(*d.head, d.table(), &Report{}) {
		if e.reported() {
			d.reported = append(d.reported, e.Seq)
		}
	}
}

// fits reports whether one more entry may be a viewer's: a tenth of what is kept. The
// chain is cut at its beginning alone, so that without a bound viewers' entries would push
// out the characters' own.
func (d *Diary) fits(batch []Entry) bool {
	n := len(d.reported)
	for _, e := range batch {
		if e.reported() {
			n++
		}
	}
	was := d.full
	if d.full = n >= (int(d.keep.Load())+9)/10; d.full && !was {
		d.o.Log.Warn("viewers have reported as much as the diary keeps of them, and more is not kept until older entries are gone", "count", n)
	}
	return !d.full
}

// write binds a batch to the chain and stores it. What the disk refuses is lost, and logged.
func (d *Diary) write(batch []Entry) {
	if len(batch) == 0 {
		return
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	err := d.append(batch)
	d.went(err)
	if err != nil || d.o.Publish == nil {
		return
	}
	for _, e := range d.head.Newest {
		d.o.Publish(e.Robot, "", event.Recorded{Seq: e.Seq, Hash: e.Hash, Character: e.Character, Session: e.Session,
			Type: string(e.Type), Payload: e.Payload})
	}
}

// went notes how the latest change went.
func (d *Diary) went(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil && d.err == nil {
		d.o.Log.Error("the diary cannot be kept", "err", err)
	}
	d.err = err
}

// append stores a batch of at least one entry. The entries of the head before go into the table: they are on the disk with a
// signature already, so that no power cut leaves an entry without one. With changing held.
func (d *Diary) append(batch []Entry) error {
	next := Head{At: time.Now().UTC().Round(0), Root: d.head.Root, Last: d.head.Last, Before: d.head.Before, Newest: make([]Entry, len(batch))}
	for _, e := range d.head.Newest {
		d.o.Entries.PutSoon(key(e.Seq), e)
	}
	for i, e := range batch {
		e.Seq, e.Prev = next.Last.Seq+1, next.Last.Hash
		e.Hash = e.hash()
		next.Last = Point{Seq: e.Seq, Hash: e.Hash}
		next.Newest[i] = e
	}
	next.Last = d.o.Key.signPoint(next.Last)
	next.Newest[len(batch)-1].Signature = next.Last.Signature
	if err := d.put(next); err != nil {
		return err
	}
	for _, e := range d.head.Newest {
		if e.reported() {
			d.reported = append(d.reported, e.Seq)
		}
	}
	d.reported = slices.DeleteFunc(d.reported, func(seq uint64) bool { return seq <= d.head.Root.Seq })
	return nil
}

// put signs and stores a head, cut to what is kept. What is cut off is removed only then. With changing held.
func (d *Diary) put(next Head) error {
	next.Address = d.o.Key.Address()
	if next.Root = d.cutAt(next); next.Root.Seq == next.Last.Seq {
		next.Newest = nil
	}
	if !next.Last.signed(d.o.Key.Public()) { // the other's, where a restored diary is cut before it has gone on
		next.Last = d.o.Key.signPoint(next.Last)
	}
	next.Before = slices.DeleteFunc(slices.Clone(next.Before), func(o Origin) bool { return o.Last.Seq < next.Root.Seq })
	next = d.o.Key.signHead(next)
	if err := d.o.Heads.Put(headKey, next); err != nil {
		return err
	}
	cut := d.head == nil || d.head.Root.Seq != next.Root.Seq
	d.mu.Lock()
	d.head = &next
	d.mu.Unlock()
	if cut {
		d.sweep()
	}
	return nil
}

// cutAt is the first signed point after which there are not too many entries. With changing held.
func (d *Diary) cutAt(h Head) Point {
	if h.Last.Seq <= h.Root.Seq+uint64(d.keep.Load()) {
		return h.Root
	}
	for _, e := range d.o.Entries.All() {
		p := Point{e.Seq, e.Hash, e.Signature}
		if e.Seq > h.Root.Seq && e.Seq+uint64(d.keep.Load()) >= h.Last.Seq && e.Signature != nil && p.signed(h.key(e.Seq)) {
			return p
		}
	}
	if d.o.Entries.Err() != nil {
		return h.Root // the rest is there and cannot be read
	}
	return h.Last
}

// Bound keeps so many entries from now on, and cuts off older ones.
func (d *Diary) Bound(keep int) {
	d.keep.Store(int64(keep))
	d.cut()
}

// cut applies a smaller bound than the one before.
func (d *Diary) cut() {
	d.changing.Lock()
	defer d.changing.Unlock()
	if d.head.Last.Signature == nil || d.head.Last.Seq <= d.head.Root.Seq+uint64(d.keep.Load()) {
		return
	}
	next := *d.head
	next.At = time.Now().UTC().Round(0)
	d.went(d.put(next))
}

// sweep removes entries before the root. With changing held, or before anybody has d.
func (d *Diary) sweep() {
	for k, e := range d.o.Entries.All() {
		if e.Seq > d.head.Root.Seq {
			return
		}
		d.o.Entries.DeleteSoon(k)
	}
}

// Err is why the latest entries are not stored; nil is fine.
func (d *Diary) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// Newest are the newest n entries, the newest first.
func (d *Diary) Newest(n int) []Entry {
	d.mu.Lock()
	head := d.head // which is replaced, and never changed
	d.mu.Unlock()
	list := []Entry{}
	for i := len(head.Newest) - 1; i >= 0 && len(list) < n; i-- {
		if e := head.Newest[i]; e.Seq > head.Root.Seq {
			list = append(list, e)
		}
	}
	own := uint64(len(head.Newest))
	for _, e := range d.o.Entries.Newest(n + len(head.Newest)) { // the table may have the head's own, too
		if e.Seq > head.Root.Seq && e.Seq+own <= head.Last.Seq && len(list) < n {
			list = append(list, e)
		}
	}
	return list
}

// Verify looks at the whole chain as it is stored. Nothing is written meanwhile.
func (d *Diary) Verify() (Report, error) {
	d.changing.Lock()
	defer d.changing.Unlock()
	head, found, err := d.o.Heads.Get(headKey)
	if err != nil {
		return Report{}, fmt.Errorf("read the diary's head: %w", err)
	}
	var stored *Head
	if found {
		stored = &head
	}
	return Check(d.Public(), stored, d.table()), d.o.Entries.Err()
}

// table are the entries that are not in the head alone, ascending.
func (d *Diary) table() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for k, e := range d.o.Entries.All() {
			if !yield(Placed(k, e)) {
				return
			}
		}
	}
}

// Public is the key that signatures are checked with.
func (d *Diary) Public() ed25519.PublicKey { return d.o.Key.Public() }
