// Package salvage reads bolt files that may be damaged, page by page. The bolt library trusts every number in a file: with a
// damaged page it panics, reads beyond the end of the file or loops. Package store uses this package to check a file before
// bolt opens it, and to copy the readable records of a damaged file. The package supports files whose top-level buckets,
// here called tables, hold no other buckets. It does not interpret the records.
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

// PageSize is the page size in bytes that files must have.
const PageSize = 4096

// ErrNothing is wrapped by the error of [Copy] if the list of tables cannot be read.
var ErrNothing = errors.New("nothing can be read of it")

// Validator reports whether a key and a value can be a record. It detects pages that were erased or never written.
type Validator func(key, value []byte) bool

// Check returns an error unless every page in use can be read and is used once, and every record is valid. A file that
// passes is safe to open with bolt. metas is the number of intact meta records: 2, or 1 if one is damaged, for example
// because of a power failure during the last commit.
func Check(file io.ReaderAt, size int64, valid Validator) (metas int, err error) {
	intact, err := readMetas(file)
	if err != nil {
		return 0, err
	}
	m := intact[0]
	if m.pages < 4 || m.pages > uint64(size)/PageSize {
		return len(intact), fmt.Errorf("cut short: it should have %d pages", m.pages)
	}
	t := newTree(file, m.pages, valid)
	if err := t.walk(m.root, part{}); err != nil {
		return len(intact), err
	}
	_, err = t.freePages(m.freelist)
	return len(intact), err
}

// Copied is the result of [Copy].
type Copied struct {
	Records map[string]int // number of copied records; key: table
	Lost    []string       // descriptions of the parts that could not be read
	Tables  []string       // tables that lost records
}

// Copy copies all readable tables and records of a damaged file to another file, which is open and empty. It returns an
// error that wraps [ErrNothing] if the list of tables cannot be read; all other errors are errors of writing.
func Copy(to *bbolt.DB, file io.ReaderAt, size int64, valid Validator) (Copied, error) {
	r, err := newRescue(to, file, size, valid)
	if err != nil {
		return Copied{}, fmt.Errorf("%w: %w", ErrNothing, err)
	}
	for _, step := range []func() error{r.copyTables, r.copyOrphans, r.flush} {
		if err := step(); err != nil {
			return Copied{}, err
		}
	}
	c := Copied{Records: r.records}
	c.Lost, c.Tables = r.report()
	return c, nil
}

// Report describes the salvage of a damaged file.
type Report struct {
	At      time.Time `json:"at"` // time of the salvage
	Cause   string    `json:"cause"`
	Kept    string    `json:"kept,omitempty"`    // new path of the damaged file; empty if the file is still in use
	Records int       `json:"records,omitempty"` // number of saved records
	Lost    []string  `json:"lost,omitempty"`    // descriptions of lost records
	Tables  []string  `json:"tables,omitempty"`  // tables that lost records
}

// String describes the damage, the losses and what the owner can do.
func (r Report) String() string {
	if r.Kept == "" {
		return fmt.Sprintf("the database was damaged (%s); %s", r.Cause, r.Losses())
	}
	return fmt.Sprintf("the database was damaged (%s) when it was opened at %s; the %d records that can be read were kept; %s; "+
		"restore a backup if these losses matter, and remove %s when you no longer need it",
		r.Cause, r.At.Local().Format(time.DateTime), r.Records, r.Losses(), r.Kept)
}

// Brief is like [Report.String], but contains no keys of records and no directory, so that everybody may read it.
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
		"restore a backup if these losses matter, and remove %s when you no longer need it", r.At.Local().Format(time.DateTime), r.Records, lost,
		filepath.Base(r.Kept))
}

// Losses describes the lost records.
func (r Report) Losses() string {
	if len(r.Lost) == 0 {
		return "nothing is lost"
	}
	return fmt.Sprintf("lost: %s", strings.Join(r.Lost, ", "))
}
