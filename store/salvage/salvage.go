// Package salvage reads bolt files that may be damaged, page by page. The bolt library trusts every number in a file: it
// panics on a damaged page, reads beyond the end or loops. This package knows the format of pages and of buckets of keys
// and values at the top level, but not the meaning of records.
package salvage

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// PageSize is the page size of the files that can be read, in bytes.
const PageSize = 4096

// ErrNothing is wrapped by the error of [Copy] if not even the list of tables can be read.
var ErrNothing = errors.New("nothing can be read of it")

// Sound reports whether bytes can be a record. It detects parts that were wiped or never written.
type Sound func(key, value []byte) bool

// Check reports an error unless every page in use can be read, is in the right place and only there, and every record is
// sound. A file that passes is safe to open with bolt. metas is the number of intact meta records: one after a power cut
// during the last change.
func Check(file io.ReaderAt, size int64, sound Sound) (metas int, err error) {
	whole, err := readMetas(file)
	if err != nil {
		return 0, err
	}
	m := whole[0]
	if m.pages < 4 || m.pages > uint64(size)/PageSize {
		return len(whole), fmt.Errorf("cut short: it should have %d pages", m.pages)
	}
	t := newTree(file, m.pages, sound)
	if err := t.walk(m.root, part{}); err != nil {
		return len(whole), err
	}
	_, err = t.freePages(m.freelist)
	return len(whole), err
}

// Copied is the result of [Copy].
type Copied struct {
	Records map[string]int // per table
	Lost    []string       // parts that could not be read, in words
	Tables  []string       // tables that lost records
}

// Copy copies all readable tables and records of a damaged file to another, which is open and empty. It returns an
// error that wraps [ErrNothing] if the tables cannot be found, and otherwise only errors of writing.
func Copy(to *bbolt.DB, file io.ReaderAt, size int64, sound Sound) (Copied, error) {
	r, err := newRescue(to, file, size, sound)
	if err != nil {
		return Copied{}, fmt.Errorf("%w: %w", ErrNothing, err)
	}
	for _, step := range []func() error{r.tables, r.orphans, r.flush} {
		if err := step(); err != nil {
			return Copied{}, err
		}
	}
	c := Copied{Records: r.records}
	c.Lost, c.Tables = r.report()
	return c, nil
}

// Report describes a damaged file whose readable records were saved.
type Report struct {
	At      time.Time `json:"at"`
	Cause   string    `json:"cause"`
	Kept    string    `json:"kept,omitempty"` // the damaged file's new name; empty if it was not put aside
	Records int       `json:"records,omitempty"`
	Lost    []string  `json:"lost,omitempty"`   // in words
	Tables  []string  `json:"tables,omitempty"` // tables that lost records
}

// String describes what happened and what can be done.
func (r Report) String() string {
	if r.Kept == "" {
		return fmt.Sprintf("the database was damaged (%s); %s", r.Cause, r.Losses())
	}
	return fmt.Sprintf("the database was damaged (%s) when it was opened at %s; the %d records that can be read were kept; %s; "+
		"restore a backup where that matters, and remove %s once it is needed no more",
		r.Cause, r.At.Local().Format(time.DateTime), r.Records, r.Losses(), r.Kept)
}

// Brief is [Report.String] without keys of records, for readers who may not see what is stored.
func (r Report) Brief() string {
	lost := r.Losses()
	switch {
	case len(r.Tables) > 0:
		lost = fmt.Sprintf("lost: some of %s", strings.Join(r.Tables, ", "))
	case len(r.Lost) > 0:
		lost = "perhaps lost: the last change"
	}
	if r.Kept == "" {
		return fmt.Sprintf("the database was damaged; %s", lost)
	}
	return fmt.Sprintf("the database was damaged when it was opened at %s; the %d records that can be read were kept; %s (the log says more); "+
		"restore a backup where that matters, and remove %s once it is needed no more", r.At.Local().Format(time.DateTime), r.Records, lost,
		filepath.Base(r.Kept))
}

// Losses describes what was lost.
func (r Report) Losses() string {
	if len(r.Lost) == 0 {
		return "nothing is lost"
	}
	return fmt.Sprintf("lost: %s", strings.Join(r.Lost, ", "))
}
