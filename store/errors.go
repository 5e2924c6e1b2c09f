package store

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"syscall"

	bolterrors "go.etcd.io/bbolt/errors"
)

// Errors of [Open]. Open wraps them in errors whose text names the file, the cause and the remedy.
var (
	// ErrLocked is returned if another process holds the lock for longer than Options.Timeout.
	ErrLocked = errors.New("database in use")
	// ErrNewer is returned if the file's schema is newer than Options.Migrations.
	ErrNewer = errors.New("database from a newer version")
	// ErrUnusable is returned if the file or its directory cannot be used, for example because of missing permissions, a
	// read-only file system, or a file where a directory should be.
	ErrUnusable = errors.New("database cannot be used here")
	// ErrMissing is returned if Options.Expect is set and the database is missing or was never used.
	ErrMissing = errors.New("database missing")
)

// Errors of reads and writes. Open returns ErrDamaged, too.
var (
	// ErrDamaged is returned if the file is truncated or overwritten, or if the disk fails.
	ErrDamaged error = Shown{"database_damaged", 503,
		"the appliance's database is damaged, so nothing more is stored; restart the appliance, which recovers the readable records, or restore a backup"}
	// ErrClosed is returned by reads and durable writes after Close.
	ErrClosed = errors.New("database closed")
	// ErrRefused is returned for a key that is empty or longer than MaxKey, and for a value that cannot be encoded as
	// JSON or is longer than MaxValue.
	ErrRefused = errors.New("record refused")
)

// Shown is an error whose text may be shown to clients of the HTTP API.
type Shown struct {
	code     string
	status   int // HTTP status
	sentence string
}

// NewShown returns an error with a code for programs, an HTTP status and a text.
func NewShown(code string, status int, sentence string) Shown { return Shown{code, status, sentence} }

// Error implements error.
func (s Shown) Error() string { return s.sentence }

// Code returns the error's code for programs.
func (s Shown) Code() string { return s.code }

// Status returns the error's HTTP status.
func (s Shown) Status() int { return s.status }

// failure is an error with a text for the user. errors.Is also matches kind (one of the Err variables) and cause.
type failure struct {
	error
	kind, cause error
}

// Unwrap makes errors.Is match kind and cause.
func (f *failure) Unwrap() []error {
	if f.cause == nil {
		return []error{f.error, f.kind}
	}
	return []error{f.error, f.kind, f.cause}
}

// newFailure returns a failure. The text of sentence is for the user; cause may be nil.
func newFailure(kind, cause error, sentence error) error { return &failure{sentence, kind, cause} }

// damaged returns the error, which wraps ErrDamaged, for a damaged file.
func damaged(path string, cause error) error {
	return newFailure(ErrDamaged, cause, fmt.Errorf("%s is damaged or not a Perch database (%w); "+
		"restore a backup with perch restore, or move the file away and start with an empty one by perch serve --new-database", path, cause))
}

// Missing returns the error, which wraps ErrMissing, for a database that should be at path but is missing or empty.
func Missing(path string) error {
	if Exists(path) {
		return newFailure(ErrMissing, nil, fmt.Errorf("the database %s is empty; put it back, restore a backup with perch restore, "+
			"or start with an empty one by perch serve --new-database", path))
	}
	return newFailure(ErrMissing, nil, fmt.Errorf("the database %s is missing; put it back, restore a backup with perch restore, "+
		"or start with an empty one by perch serve --new-database", path))
}

// newer returns the error for a file whose schema version is above supported, the newest that this program supports.
func newer(path string, version, supported int) error {
	return newFailure(ErrNewer, nil, fmt.Errorf("%s was written by a newer Perch (schema %d, this one knows %d); "+
		"install that version again, or restore a backup made by this one", path, version, supported))
}

// unusable returns the error, which wraps ErrUnusable, for a file or directory that cannot be used. The text names the
// process's user, because the usual cause is that Perch was first run with sudo.
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
	return newFailure(ErrUnusable, cause, fmt.Errorf("cannot use %s as user %s (%w); %w", path, userName(), reason(cause), cure))
}

// reason returns the cause of an os.PathError, for sentences that name the path already. It returns other errors
// unchanged.
func reason(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}

// userName returns the name of the process's user, or its number.
func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return fmt.Sprint(os.Getuid())
}

// openError converts an error of bolt's Open to an error that wraps ErrLocked, ErrUnusable or ErrDamaged.
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

// useError converts an error of an open bolt file: to an error that wraps ErrClosed if the file was closed, or ErrDamaged after
// a panic. It returns other errors unchanged.
func useError(path string, err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrDatabaseNotOpen):
		return closedError(path)
	case errors.Is(err, errPanic):
		return damaged(path, err)
	}
	return err
}

// writeError converts an error of a write transaction, like useError, and adds the path to other errors.
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

// closedError returns the error, which wraps ErrClosed, for a read or write after Close.
func closedError(path string) error {
	return newFailure(ErrClosed, nil, fmt.Errorf("%s is closed", path))
}
