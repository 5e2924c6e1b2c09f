// Package diary records what the appliance's characters did, so that manipulation is
// detected: each entry contains the hash of the previous one, and the chain's head is
// signed with the appliance's Ed25519 key. Somebody with that key can write another
// diary, and an older copy of the whole diary passes as current: store the hash of a
// head elsewhere, and compare.
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

// headKey is the only key in the table of heads.
const headKey = "head"

// Batch limits. A batch is stored at once to spare the SD card; a power cut may lose the last seconds.
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

// Options of a diary.
type Options struct {
	Entries   entries
	Heads     heads
	Key       Key
	Begins    bool             // the key is new, so there is no diary yet
	Keep      int              // most entries, of all characters; 0 stores none
	Who       action.Who       // returns the acting character
	Sentiment action.Sentiment // of spoken text; nil is neutral
	// Publish publishes each stored entry, and must not call the diary; it may be nil. The
	// event has no session, because an ended session must not come back to life.
	Publish func(robot device.ID, session string, e event.Event)
	Log     *slog.Logger
}

// Diary is safe for concurrent use. Run writes it.
type Diary struct {
	o    Options
	keep atomic.Int64 // Options.Keep, or the bound set by Bound

	changing sync.Mutex // held while the chain is changed or verified
	reported []uint64   // ascending seqs of the entries reported by viewers; used by Run only
	full     bool       // viewers' reports are being dropped; used by Run only

	mu   sync.Mutex
	head *Head // as stored; changed with changing held
	err  error // why the latest batch was not stored
}

// Open reads the head. With a new key it stores the head of an empty diary. A head that
// is missing or not this appliance's is not replaced by a valid one: new entries are not
// chained to the existing ones, so that Verify continues to report the fault.
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
		if err := d.storeHead(Head{At: time.Now().UTC().Round(0)}); err != nil {
			return nil, fmt.Errorf("begin the diary: %w", err)
		}
		return d, nil
	}
	o.Log.Error("the diary's head is missing or is not signed with this appliance's key; perch diary verify shows it")
	d.head = &Head{Last: Point{Seq: max(1, last, head.Last.Seq)}, Newest: head.Newest}
	return d, nil
}

// inherited reports whether the diary is consistent and signed with another key. It is
// then continued: new entries are chained to it, and the other signatures remain.
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

// Placed returns an entry as stored under a key of the table. One under a wrong key
// loses its hash, so that Check finds it.
func Placed(at string, e Entry) Entry {
	if at != key(e.Seq) {
		e.Hash = ""
	}
	return e
}

func key(seq uint64) string { return fmt.Sprintf("%020d", seq) }

// Run records published events until ctx or the bus ends, and then stores the rest.
func (d *Diary) Run(ctx context.Context, from *event.Reader) {
	events := make(chan event.Envelope)
	go from.Pump(ctx, events) // which closes them at its end
	d.cut()
	d.loadReported()
	var batch []Entry
	var due <-chan time.Time
	for {
		select {
		case e, open := <-events:
			if !open {
				d.write(batch)
				return
			}
			batch = d.appendEvent(batch, e)
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
		if due = nil; len(batch) > 0 { // retry later
			due = time.After(every)
		}
	}
}

// appendEvent adds the entry of an event to a batch, if the diary records it.
func (d *Diary) appendEvent(batch []Entry, e event.Envelope) []Entry {
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

// loadReported finds the stored entries reported by viewers.
func (d *Diary) loadReported() {
	d.reported = nil
	for e := range joined(*d.head, d.table(), &Report{}) {
		if e.reported() {
			d.reported = append(d.reported, e.Seq)
		}
	}
}

// fits reports whether one more entry may be a viewer's: at most a tenth of the diary
// may be. The chain is only cut at its beginning, so that without a bound viewers'
// entries would displace the characters' own.
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

// write chains a batch and stores it. A batch that cannot be stored is lost, and logged.
func (d *Diary) write(batch []Entry) {
	if len(batch) == 0 {
		return
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	err := d.append(batch)
	d.recordResult(err)
	if err != nil || d.o.Publish == nil {
		return
	}
	for _, e := range d.head.Newest {
		d.o.Publish(e.Robot, "", event.Recorded{Seq: e.Seq, Hash: e.Hash, Character: e.Character, Session: e.Session,
			Type: string(e.Type), Payload: e.Payload})
	}
}

// recordResult records the result of the latest change.
func (d *Diary) recordResult(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil && d.err == nil {
		d.o.Log.Error("the diary cannot be kept", "err", err)
	}
	d.err = err
}

// append stores a batch of at least one entry. The previous head's entries move to the table: they are on the disk with a
// signature already, so that a power cut leaves no entry unsigned. The caller holds changing.
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
	if err := d.storeHead(next); err != nil {
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

// storeHead signs and stores a head, cut to the bound, and then removes what was cut off. The caller holds changing.
func (d *Diary) storeHead(next Head) error {
	next.Address = d.o.Key.Address()
	if next.Root = d.cutAt(next); next.Root.Seq == next.Last.Seq {
		next.Newest = nil
	}
	if !next.Last.signed(d.o.Key.Public()) { // the other appliance's: a restored diary is cut before its first new entry
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

// cutAt returns the first signed point after which the diary is within its bound. The caller holds changing.
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
		return h.Root // the remaining entries exist but cannot be read
	}
	return h.Last
}

// Bound sets the number of stored entries, and cuts off older ones.
func (d *Diary) Bound(keep int) {
	d.keep.Store(int64(keep))
	d.cut()
}

// cut applies a reduced bound.
func (d *Diary) cut() {
	d.changing.Lock()
	defer d.changing.Unlock()
	if d.head.Last.Signature == nil || d.head.Last.Seq <= d.head.Root.Seq+uint64(d.keep.Load()) {
		return
	}
	next := *d.head
	next.At = time.Now().UTC().Round(0)
	d.recordResult(d.storeHead(next))
}

// sweep removes entries before the root. The caller holds changing, or is the only user of d.
func (d *Diary) sweep() {
	for k, e := range d.o.Entries.All() {
		if e.Seq > d.head.Root.Seq {
			return
		}
		d.o.Entries.DeleteSoon(k)
	}
}

// Err returns why the latest entries were not stored, or nil.
func (d *Diary) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// Newest returns the newest n entries, the newest first.
func (d *Diary) Newest(n int) []Entry {
	d.mu.Lock()
	head := d.head // replaced but never modified
	d.mu.Unlock()
	list := []Entry{}
	for i := len(head.Newest) - 1; i >= 0 && len(list) < n; i-- {
		if e := head.Newest[i]; e.Seq > head.Root.Seq {
			list = append(list, e)
		}
	}
	own := uint64(len(head.Newest))
	for _, e := range d.o.Entries.Newest(n + len(head.Newest)) { // the table may contain the head's entries too
		if e.Seq > head.Root.Seq && e.Seq+own <= head.Last.Seq && len(list) < n {
			list = append(list, e)
		}
	}
	return list
}

// Verify checks the whole stored chain. Nothing is written during that time.
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

// table yields the entries that are not only in the head, ascending.
func (d *Diary) table() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for k, e := range d.o.Entries.All() {
			if !yield(Placed(k, e)) {
				return
			}
		}
	}
}

// Public returns the key to verify signatures with.
func (d *Diary) Public() ed25519.PublicKey { return d.o.Key.Public() }
