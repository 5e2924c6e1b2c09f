package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"

	"go.etcd.io/bbolt"

	"perch/store/salvage"
)

// Content is the result of [Check].
type Content struct {
	Schema  int            // number of applied migrations
	Records map[string]int // per table
}

// Check reads every page and record of a database file, which may hold anything and must not be written to at the same
// time. It calls each, unless nil, with every record; each may retain key and value. The file is not changed, and need
// not have a name. An error wraps [ErrDamaged], or [ErrNewer] if the schema is newer than the migrations in o; it does
// not name the file.
func Check(f *os.File, o Options, each func(table, key string, value []byte) error) (Content, error) {
	o = o.withDefaults()
	info, err := f.Stat()
	if err != nil {
		return Content{}, unfit(err)
	}
	if _, err := salvage.Check(f, info.Size(), sound); err != nil {
		return Content{}, unfit(err)
	}
	bolt, file, err := borrow(f, o)
	if err != nil {
		return Content{}, err
	}
	found := Content{Records: map[string]int{}}
	err = guarded(func() error { return bolt.View(func(tx *bbolt.Tx) error { return found.read(tx, each) }) })
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // bolt leaves that to closing, and f stays open
	if cerr := release(bolt, file, errors.Is(err, errPanic)); err == nil {
		err = cerr
	}
	switch {
	case err != nil:
		return found, unfit(err)
	case found.Schema > len(o.Migrations):
		return found, newer("the database", found.Schema, len(o.Migrations))
	}
	return found, nil
}

func unfit(cause error) error {
	return fail(ErrDamaged, cause, fmt.Errorf("the database is damaged or none of Perch's (%w)", cause))
}

// borrow opens the file by a second handle, because bolt closes what it opened.
func borrow(f *os.File, o Options) (*bbolt.DB, *os.File, error) {
	return openWith(f.Name(), o.Timeout, true, func(string, int, os.FileMode) (*os.File, error) {
		fd, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			return nil, err
		}
		syscall.CloseOnExec(fd)
		return os.NewFile(uintptr(fd), f.Name()), nil
	})
}

func (found *Content) read(tx *bbolt.Tx, each func(table, key string, value []byte) error) error {
	var wrong error
	for err := range tx.Check() { // to its end, or its goroutine would leak
		wrong = errors.Join(wrong, err)
	}
	if wrong != nil {
		return wrong
	}
	version, known, err := schemaVersion(tx)
	if err != nil {
		return err
	}
	if !known {
		return errors.New("it is empty")
	}
	found.Schema = version
	return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
		if string(name) == schemaTable {
			return nil
		}
		table := string(name)
		found.Records[table] = 0
		return b.ForEach(func(k, v []byte) error {
			if len(k) > MaxKey || len(v) > MaxValue || !json.Valid(v) {
				return fmt.Errorf("%s %.100q is not JSON, or over %d bytes", table, k, MaxValue)
			}
			found.Records[table]++
			if each == nil {
				return nil
			}
			return each(table, string(k), append([]byte(nil), v...))
		})
	})
}
