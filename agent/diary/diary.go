// Package diary records the actions of the characters of an appliance, which is one
// installation of Perch, in a way that reveals later changes: each entry contains the hash of
// the previous entry, and the head of this chain is signed with the appliance's Ed25519 key.
// The command perch diary verify checks the chain. Two kinds of changes are not revealed:
// a new diary written by somebody who has the key, and the replacement of the whole diary
// by an older copy. To detect these, store the hash of a head elsewhere and compare.
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
	"perch/store"
)

// headKey is the only key in the table of heads.
const headKey = "head"

// Limits of a batch. Entries are stored in batches because frequent writes wear out an SD
// card. A power cut may lose the current batch.
const (
	maxBatch   = 64              // entries
	writeDelay = 2 * time.Second // time between the first entry of a batch and the write
)

// Options configure a Diary.
type Options struct {
	Entries   store.Records[Entry]
	Heads     store.Records[Head]
	Key       Key
	Begins    bool             // whether Key is new, so that there is no diary yet
	Keep      int              // largest number of entries of all characters; 0 disables the diary
	Who       action.Who       // returns the acting character
	Sentiment action.Sentiment // returns the sentiment of a spoken text; nil means neutral
	// Publish publishes each stored entry. It may be nil, and must not call the diary. It
	// is called with an empty session, because the session of the entry may have ended.
	Publish func(robot device.ID, session string, e event.Event)
	Log     *slog.Logger
}

// Diary is a chain of entries. It is safe for concurrent use. Run appends entries.
type Diary struct {
	o    Options
	keep atomic.Int64 // largest number of entries

	changing sync.Mutex // held while the chain is changed or verified; acquired before mu
	reported []uint64   // Seqs of the entries reported by viewers, ascending; used only by Run
	full     bool       // whether reports of viewers are being dropped; used only by Run

	mu   sync.Mutex
	head *Head // the latest head, never modified; replaced with changing and mu held
	err  error // why the latest batch was not stored; nil if it was
}

// Open opens a diary. With a new key it stores the head of an empty diary. It continues the
// valid diary of another appliance. If the head is missing or has an invalid signature, Open
// does not repair the chain: new entries are not chained to the existing ones, and Verify
// continues to report the fault.
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
	if found && head.Address == o.Key.Address() && head.isSigned(o.Key.Public()) {
		d.deleteCut()
		return d, nil
	}
	if found && d.inherit() {
		o.Log.Warn("the diary was begun by another appliance, as after a restore, and is continued; see perch diary verify", "address", head.Address)
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
	o.Log.Error("the diary's head is missing or not signed with this appliance's key; see perch diary verify")
	d.head = &Head{Last: Point{Seq: max(1, last, head.Last.Seq)}, Newest: head.Newest}
	return d, nil
}

// inherit continues the diary of another appliance, if the diary is valid and signed with
// another key. It reports whether it continues the diary. The other appliance's signatures
// remain.
func (d *Diary) inherit() bool {
	head := *d.head
	if head.Address == d.o.Key.Address() {
		return false
	}
	r, err := d.Verify()
	if err != nil || len(r.Faults) > 0 {
		return false
	}
	head.Before = append(slices.Clone(head.Before), Origin{head.Address, head.Last})
	d.head = &head
	return true
}

// FromTable returns an entry that the table of entries holds under tableKey. If this is not
// the key of the entry, FromTable removes the entry's hash, which Check reports as a fault.
func FromTable(tableKey string, e Entry) Entry {
	if tableKey != key(e.Seq) {
		e.Hash = ""
	}
	return e
}

// key returns the key of an entry in the table.
func key(seq uint64) string { return fmt.Sprintf("%020d", seq) }

// Run records the events of a reader until ctx ends or the bus is closed, and then stores the
// last batch. A batch that could not be stored is retried after writeDelay, and dropped once
// it has maxBatch entries.
func (d *Diary) Run(ctx context.Context, from *event.Reader) {
	events, stop := from.Events(ctx)
	defer stop()
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
				due = time.After(writeDelay)
			}
			if len(batch) < maxBatch {
				continue
			}
		case <-due:
		}
		if d.write(batch); d.Err() == nil || len(batch) >= maxBatch {
			batch = nil
		}
		if due = nil; len(batch) > 0 { // the write failed and is retried
			due = time.After(writeDelay)
		}
	}
}

// appendEvent returns a batch with the entry of an event, if the diary records the event.
func (d *Diary) appendEvent(batch []Entry, e event.Envelope) []Entry {
	if missed, lost := e.Event.(event.Missed); lost {
		d.o.Log.Warn("events were published faster than the diary could record them", "count", missed.N)
		return batch
	}
	if d.keep.Load() == 0 {
		return batch
	}
	entry, ok := d.entryOf(e)
	if !ok || entry.isReported() && !d.hasRoomForReport(batch) {
		return batch
	}
	return append(batch, entry)
}

// loadReported sets d.reported to the numbers of the stored entries that viewers have reported.
func (d *Diary) loadReported() {
	d.reported = nil
	for e := range joinEntries(*d.head, d.table(), &Report{}) {
		if e.isReported() {
			d.reported = append(d.reported, e.Seq)
		}
	}
}

// hasRoomForReport reports whether the diary has room for one more entry that a viewer has
// reported. Viewers may report a tenth of the entries, rounded up: since the oldest entries
// are deleted first, viewers could otherwise displace the characters' own entries.
func (d *Diary) hasRoomForReport(batch []Entry) bool {
	n := len(d.reported)
	for _, e := range batch {
		if e.isReported() {
			n++
		}
	}
	wasFull := d.full
	if d.full = n >= (int(d.keep.Load())+9)/10; d.full && !wasFull {
		d.o.Log.Warn("the diary has the maximum number of entries from viewers; further ones are dropped until older entries are deleted", "count", n)
	}
	return !d.full
}

// write appends a batch to the chain and publishes its entries. It records an error of the
// store for Err.
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

// recordResult sets the result of Err, and logs the first of successive errors.
func (d *Diary) recordResult(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil && d.err == nil {
		d.o.Log.Error("the diary cannot be stored", "err", err)
	}
	d.err = err
}

// append stores a batch of at least one entry in a new head. The entries of the previous
// head move to the table. They were already stored in that head, with a signature, so a
// power cut leaves no entry without a signature. The caller holds d.changing.
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
		if e.isReported() {
			d.reported = append(d.reported, e.Seq)
		}
	}
	d.reported = slices.DeleteFunc(d.reported, func(seq uint64) bool { return seq <= d.head.Root.Seq })
	return nil
}

// storeHead cuts the chain if it has too many entries, signs and stores its head, and then
// deletes the entries that were cut off. The caller holds d.changing.
func (d *Diary) storeHead(next Head) error {
	next.Address = d.o.Key.Address()
	if next.Root = d.cutPoint(next); next.Root.Seq == next.Last.Seq {
		next.Newest = nil
	}
	if !next.Last.isSigned(d.o.Key.Public()) { // signed by another appliance, if an inherited diary is cut before its first new entry
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
		d.deleteCut()
	}
	return nil
}

// cutPoint returns the first signed point after which the chain has at most d.keep entries,
// which is h.Root for a chain that is short enough. If none is found, it returns h.Last, or
// h.Root if the stored entries could not all be read. The caller holds d.changing.
func (d *Diary) cutPoint(h Head) Point {
	if h.Last.Seq <= h.Root.Seq+uint64(d.keep.Load()) {
		return h.Root
	}
	for _, e := range d.o.Entries.All() {
		p := Point{e.Seq, e.Hash, e.Signature}
		if e.Seq > h.Root.Seq && e.Seq+uint64(d.keep.Load()) >= h.Last.Seq && e.Signature != nil && p.isSigned(h.key(e.Seq)) {
			return p
		}
	}
	if d.o.Entries.Err() != nil {
		return h.Root // there may be later points that cannot be read
	}
	return h.Last
}

// Bound sets the largest number of stored entries, and deletes older ones.
func (d *Diary) Bound(keep int) {
	d.keep.Store(int64(keep))
	d.cut()
}

// cut cuts the chain if it has too many entries and its last entry is signed.
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

// deleteCut deletes the entries that were cut off. The caller holds d.changing, or is the
// only user of d.
func (d *Diary) deleteCut() {
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

// Newest returns the newest entries, at most n, in descending order.
func (d *Diary) Newest(n int) []Entry {
	d.mu.Lock()
	head := d.head
	d.mu.Unlock()
	list := []Entry{}
	for i := len(head.Newest) - 1; i >= 0 && len(list) < n; i-- {
		if e := head.Newest[i]; e.Seq > head.Root.Seq {
			list = append(list, e)
		}
	}
	inHead := uint64(len(head.Newest))
	for _, e := range d.o.Entries.Newest(n + len(head.Newest)) { // the table may also contain the entries of the head
		if e.Seq > head.Root.Seq && e.Seq+inHead <= head.Last.Seq && len(list) < n {
			list = append(list, e)
		}
	}
	return list
}

// Verify checks the whole stored chain, see Check. It blocks changes of the diary.
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

// table yields the entries of the table, ascending.
func (d *Diary) table() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for k, e := range d.o.Entries.All() {
			if !yield(FromTable(k, e)) {
				return
			}
		}
	}
}

// Public returns the appliance's public key.
func (d *Diary) Public() ed25519.PublicKey { return d.o.Key.Public() }
