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
	Records map[string]int // number of records; key: table, without schemaTable
}

// Check reads every page and record of a database file, whose content need not be trusted. Nothing may write to the file
// at the same time. Check does not change the file, which may have been unlinked. It calls visit with every record, unless
// visit is nil; visit may retain key and value. An error about the content, or of visit, wraps [ErrDamaged], or [ErrNewer]
// if the schema is newer than the migrations in o; its text does not name the file. If bolt cannot open the file, the
// error wraps [ErrLocked], [ErrUnusable] or [ErrDamaged].
func Check(f *os.File, o Options, visit func(table, key string, value []byte) error) (Content, error) {
	o = o.withDefaults()
	info, err := f.Stat()
	if err != nil {
		return Content{}, contentError(err)
	}
	if _, err := salvage.Check(f, info.Size(), isRecord); err != nil {
		return Content{}, contentError(err)
	}
	bolt, file, err := openCopy(f, o)
	if err != nil {
		return Content{}, err
	}
	content := Content{Records: map[string]int{}}
	err = guardedView(bolt, func(tx *bbolt.Tx) error { return content.read(tx, visit) })
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // f and its duplicate share the lock, which bolt does not release
	if cerr := release(bolt, file, errors.Is(err, errPanic)); err == nil {
		err = cerr
	}
	switch {
	case err != nil:
		return content, contentError(err)
	case content.Schema > len(o.Migrations):
		return content, newer("the database", content.Schema, len(o.Migrations))
	}
	return content, nil
}

// contentError returns the error of Check for a file whose content is invalid or cannot be read.
func contentError(cause error) error {
	return newFailure(ErrDamaged, cause, fmt.Errorf("the database is damaged, or not a Perch database (%w)", cause))
}

// openCopy opens a duplicate of f's file descriptor with bolt, which later closes the duplicate.
func openCopy(f *os.File, o Options) (*bbolt.DB, *os.File, error) {
	return openWith(f.Name(), o.Timeout, true, func(string, int, os.FileMode) (*os.File, error) {
		fd, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			return nil, err
		}
		syscall.CloseOnExec(fd)
		return os.NewFile(uintptr(fd), f.Name()), nil
	})
}

// read checks the whole file, sets the fields of c, and calls visit with every record, unless visit is nil.
func (c *Content) read(tx *bbolt.Tx, visit func(table, key string, value []byte) error) error {
	var failed error
	for err := range tx.Check() { // an early end of the loop would leak a goroutine of bolt
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return failed
	}
	version, found, err := schemaVersion(tx)
	if err != nil {
		return err
	}
	if !found {
		return errors.New("it is empty")
	}
	c.Schema = version
	return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
		if string(name) == schemaTable {
			return nil
		}
		table := string(name)
		c.Records[table] = 0
		return b.ForEach(func(k, v []byte) error {
			if len(k) > MaxKey || len(v) > MaxValue || !json.Valid(v) {
				return fmt.Errorf("%s %.100q is not JSON, has more than %d bytes, or a key of more than %d", table, k, MaxValue, MaxKey)
			}
			c.Records[table]++
			if visit == nil {
				return nil
			}
			return visit(table, string(k), append([]byte(nil), v...))
		})
	})
}
