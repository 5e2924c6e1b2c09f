package store

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"syscall"

	bolterrors "go.etcd.io/bbolt/errors"
)

// Errors of [Open]. They read as a sentence with the file, the cause and the cure.
var (
	// ErrLocked is returned if another process held the lock for the whole of Options.Timeout.
	ErrLocked = errors.New("database in use")
	// ErrNewer is returned if the file's schema is newer than Options.Migrations.
	ErrNewer = errors.New("database from a newer version")
	// ErrUnusable is returned if the file or its directory cannot be used: missing rights, a read-only file system, a
	// file where a directory should be.
	ErrUnusable = errors.New("database cannot be used here")
	// ErrMissing is returned if Options.Expect is set and the database is missing or never held anything.
	ErrMissing = errors.New("database missing")
)

// Errors of Open, reads and writes.
var (
	// ErrDamaged is returned if the file is truncated, overwritten, or on a card that no longer answers.
	ErrDamaged error = Shown{"database_damaged", 503,
		"the appliance's database is damaged, so nothing more is kept; restart it, by which all that can be read is kept, or restore a backup"}
	// ErrClosed is returned by every use after Close.
	ErrClosed = errors.New("database closed")
	// ErrRefused is returned for a key that is empty or longer than MaxKey, and for a value that JSON cannot encode or
	// that is longer than MaxValue.
	ErrRefused = errors.New("record refused")
)

// Shown is an error with a sentence for readers who need not know the file's name.
type Shown struct {
	code     string
	status   int // HTTP status
	sentence string
}

// NewShown returns an error with a code for programs and an HTTP status.
func NewShown(code string, status int, sentence string) Shown { return Shown{code, status, sentence} }

func (s Shown) Error() string { return s.sentence }

// Code returns the error's code for programs.
func (s Shown) Code() string { return s.code }

// Status returns the error's HTTP status.
func (s Shown) Status() int { return s.status }

// failure is a sentence for the user that matches its sentinel and its cause in errors.Is.
type failure struct {
	error
	kind, cause error
}

func (f *failure) Unwrap() []error { return []error{f.error, f.kind, f.cause} }

func fail(kind, cause error, sentence error) error { return &failure{sentence, kind, cause} }

func damaged(path string, cause error) error {
	return fail(ErrDamaged, cause, fmt.Errorf("%s is damaged or no Perch database (%w); "+
		"restore a backup with perch restore, or move the file away and start with an empty one by perch serve --new-database", path, cause))
}

// Missing returns the error for a database that should be at path but is missing or empty.
func Missing(path string) error {
	if Exists(path) {
		return fail(ErrMissing, nil, fmt.Errorf("the database %s is empty; put it back, restore a backup with perch restore, "+
			"or start with an empty one by perch serve --new-database", path))
	}
	return fail(ErrMissing, nil, fmt.Errorf("the database %s is missing; put it back, restore a backup with perch restore, "+
		"or start with an empty one by perch serve --new-database", path))
}

func newer(path string, version, known int) error {
	return fail(ErrNewer, nil, fmt.Errorf("%s was written by a newer Perch (schema %d, this one knows %d); "+
		"install that version again, or restore a backup made by this one", path, version, known))
}

// unusable explains why path, a file or a directory, cannot be used. It names the user because the usual cause is a
// first run with sudo.
func unusable(path string, cause error) error {
	cure := errors.New("make it writable for that user")
	switch {
	case errors.Is(cause, syscall.ENOTDIR):
		cure = errors.New("a file is in its way: move that file or choose another data directory")
	case errors.Is(cause, syscall.EROFS):
		cure = errors.New("the file system is read-only, which a failing SD card also causes: remount or replace it")
	case errors.Is(cause, syscall.ENOSPC):
		cure = errors.New("the disk is full: free some space")
	case errors.Is(cause, os.ErrPermission):
		cure = errors.New("give it to that user with chown, or run as its owner")
	}
	return fail(ErrUnusable, cause, fmt.Errorf("cannot use %s as user %s (%w); %w", path, userName(), reason(cause), cure))
}

// reason returns err without the operation and path, which the sentence around it names already.
func reason(err error) error {
	if path, is := errors.AsType[*os.PathError](err); is {
		return path.Err
	}
	return err
}

func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return fmt.Sprint(os.Getuid())
}

// openError returns the sentence for an error of bolt's Open.
func openError(path string, err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return locked(path, err)
	case errors.As(err, new(*os.PathError)), errors.As(err, new(syscall.Errno)):
		return unusable(path, err)
	default:
		return damaged(path, err)
	}
}

// useError returns the sentence for an error of an open bolt file.
func useError(path string, err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrDatabaseNotOpen):
		return closedError(path)
	case errors.Is(err, errPanic):
		return damaged(path, err)
	}
	return err
}

func writeError(path string, err error) error {
	err = useError(path, err)
	switch {
	case errors.Is(err, ErrClosed), errors.Is(err, ErrDamaged):
		return err
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("write %s: %w; free some space", path, reason(err))
	}
	return fmt.Errorf("write %s: %w", path, reason(err))
}

func closedError(path string) error {
	return fail(ErrClosed, nil, fmt.Errorf("%s is closed", path))
}
