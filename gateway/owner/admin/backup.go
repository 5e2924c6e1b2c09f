package admin

import (
	"context"
	"io"
	"net/http"
	"time"
)

// archives makes backups, and takes those that are to be restored. Its errors
// say themselves how they are shown.
type archives interface {
	// Backup makes a backup that can be sent.
	Backup(ctx context.Context) (Backup, error)
	// Restore checks the whole of a backup, and has the next start apply it.
	Restore(ctx context.Context, body io.Reader, restart bool) (Restored, error)
}

// Backup is a backup that can be sent, once.
type Backup struct {
	Name  string // of a file to keep it in
	Size  int64  // bytes
	Write func(w io.Writer) error
	Close func() // after which another can be made
}

// Restored is a backup that was taken, and what is to be done yet.
type Restored struct {
	Created    time.Time `json:"created"`
	Perch      string    `json:"perch"`     // the version that made it
	Appliance  string    `json:"appliance"` // of which it is
	Schema     int       `json:"schema"`
	Files      int       `json:"files"`
	Bytes      int64     `json:"bytes"`
	Restarting bool      `json:"restarting"`
	Next       string    `json:"next"` // in words
}

// steadyWriter is an answer of any length, of which some must always be taken.
type steadyWriter struct {
	io.Writer
	control *http.ResponseController
}

func (s steadyWriter) Write(p []byte) (int, error) {
	_ = s.control.SetWriteDeadline(time.Now().Add(uploadStalls)) // what has no deadlines is no network
	return s.Writer.Write(p)
}
