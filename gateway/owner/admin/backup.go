package admin

import (
	"context"
	"io"
	"net/http"
	"time"
)

// archives makes and restores backups. Errors that are shown to clients have the methods Code and Status; the text of
// other errors is hidden.
type archives interface {
	Backup(ctx context.Context) (Backup, error)
	// Restore checks the whole backup and stages it for the next start. If restart is true, it restarts the
	// appliance.
	Restore(ctx context.Context, body io.Reader, restart bool) (Restored, error)
}

// Backup is a backup that can be written once.
type Backup struct {
	Name  string // suggested file name
	Size  int64  // bytes
	Write func(w io.Writer) error
	Close func() // must be called before another backup can be made
}

// Restored is the response to an accepted backup.
type Restored struct {
	Created    time.Time `json:"created"`
	Perch      string    `json:"perch"`     // version of Perch that made the backup
	Appliance  string    `json:"appliance"` // ID of the appliance that made the backup
	Schema     int       `json:"schema"`
	Files      int       `json:"files"`
	Bytes      int64     `json:"bytes"`
	Restarting bool      `json:"restarting"`
	Next       string    `json:"next"` // what remains to be done, as a sentence
}

// steadyWriter writes a response of any length. A write fails if the client has not read for stallTimeout.
type steadyWriter struct {
	io.Writer
	control *http.ResponseController
}

// Write implements io.Writer.
func (s steadyWriter) Write(p []byte) (int, error) {
	_ = s.control.SetWriteDeadline(time.Now().Add(stallTimeout)) // fails only if this is not a network connection
	return s.Writer.Write(p)
}
