package appliance

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"perch/gateway/admin"
	"perch/gateway/door"
	"perch/store"
	"perch/store/archive"
)

// archives makes backups of the running appliance and takes those that are to
// be restored, one at a time.
type archives struct {
	dir     archive.Directory
	db      *store.DB
	restart func()
	busy    sync.Mutex // while one is made or taken
}

func (a *archives) begin() error {
	if a.busy.TryLock() {
		return nil
	}
	return &door.Fault{Word: "busy", HTTP: http.StatusConflict, Sentence: "another backup or restore is under way; try again when it has ended"}
}

// Backup makes a backup that can be sent.
func (a *archives) Backup(ctx context.Context) (admin.Backup, error) {
	if err := a.begin(); err != nil {
		return admin.Backup{}, err
	}
	p, err := a.dir.Running(ctx, a.db)
	if err != nil {
		a.busy.Unlock()
		return admin.Backup{}, err
	}
	return admin.Backup{
		Name:  fmt.Sprintf("perch-%s-%s.tar", p.Manifest.Appliance, p.Manifest.Created.Format("20060102-150405")),
		Size:  p.Size(),
		Write: func(w io.Writer) error { return p.Write(ctx, w) },
		Close: func() { p.Close(); a.busy.Unlock() },
	}, nil
}

// Restore takes a backup that the next start swaps in, and restarts if it is to.
func (a *archives) Restore(ctx context.Context, body io.Reader, restart bool) (admin.Restored, error) {
	if err := a.begin(); err != nil {
		return admin.Restored{}, err
	}
	defer a.busy.Unlock()
	m, err := a.dir.Stage(ctx, body)
	if err != nil {
		return admin.Restored{}, err
	}
	m = m.Plain()
	a.dir.Log.Warn("a backup is staged, and takes the place of everything at the next start", "made", m.Created, "version", m.Perch)
	restored := admin.Restored{Created: m.Created, Perch: m.Perch, Appliance: m.Appliance, Schema: m.Schema, Files: len(m.Files),
		Bytes: m.Bytes(), Restarting: restart, Next: "restart to apply; what changes until then is not kept"}
	if restart {
		restored.Next = "it restarts to apply"
		a.restart()
	}
	return restored, nil
}
