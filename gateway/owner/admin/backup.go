package admin

import (
	"context"
	"io"
	"net/http"
	"time"
)

// archives makes and restores backups. Its errors have a code and a status.
type archives interface {
	Backup(ctx context.Context) (Backup, error)
	// Restore checks a whole backup, and has the next start apply it.
	Restore(ctx context.Context, body io.Reader, restart bool) (Restored, error)
}

// Backup is a backup that can be sent, once.
type Backup struct {
	Name  string // of a file to store it in
	Size  int64  // bytes
	Write func(w io.Writer) error
	Close func() // lets another be made
}

// Restored is a backup that was accepted, and what remains to be done.
type Restored struct {
	Created    time.Time `json:"created"`
	Perch      string    `json:"perch"`     // the version that made it
	Appliance  string    `json:"appliance"` // that made it
	Schema     int       `json:"schema"`
	Files      int       `json:"files"`
	Bytes      int64     `json:"bytes"`
	Restarting bool      `json:"restarting"`
	Next       string    `json:"next"` // in words
}

// steadyWriter is an answer of any length that fails when the client stops reading.
type steadyWriter struct {
	io.Writer
	control *http.ResponseController
}

func (s steadyWriter) Write(p []byte) (int, error) {
	_ = s.control.SetWriteDeadline(time.Now().Add(uploadStalls)) // without deadlines it is no network
	return s.Writer.Write(p)
}
