package datadir

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"perch/gateway/httpserver"
	"perch/gateway/owner/admin"
	"perch/store"
	"perch/store/archive"
)

// Backups makes backups of a running appliance. It also stages backups: a staged backup replaces
// the data at the next start. Only one of these operations runs at a time.
type Backups struct {
	dir     archive.Directory
	db      *store.DB
	restart func()
	busy    sync.Mutex // held while a backup is made, sent or staged
}

// NewBackups returns the Backups of a data directory with its open database. restart must restart
// the appliance without waiting for it to stop.
func NewBackups(dir archive.Directory, db *store.DB, restart func()) *Backups {
	return &Backups{dir: dir, db: db, restart: restart}
}

// lock locks busy, or returns an error if another operation has locked it.
func (a *Backups) lock() error {
	if a.busy.TryLock() {
		return nil
	}
	return &httpserver.Fault{Word: "busy", HTTP: http.StatusConflict, Sentence: "another backup or restore is under way; try again when it has ended"}
}

// Backup makes a backup for a download. The caller must call its Close.
func (a *Backups) Backup(ctx context.Context) (admin.Backup, error) {
	if err := a.lock(); err != nil {
		return admin.Backup{}, err
	}
	p, err := a.dir.BackupRunning(ctx, a.db)
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

// Restore stages a backup. It restarts the appliance if restart is true.
func (a *Backups) Restore(ctx context.Context, body io.Reader, restart bool) (admin.Restored, error) {
	if err := a.lock(); err != nil {
		return admin.Restored{}, err
	}
	defer a.busy.Unlock()
	m, err := a.dir.Stage(ctx, body)
	if err != nil {
		return admin.Restored{}, err
	}
	m = m.Plain()
	a.dir.Log.Warn("a backup is staged; the next start replaces all data by it", "made", m.Created, "version", m.Perch)
	restored := admin.Restored{Created: m.Created, Perch: m.Perch, Appliance: m.Appliance, Schema: m.Schema, Files: len(m.Files),
		Bytes: m.Bytes(), Restarting: restart, Next: "restart to apply the backup; changes until then are lost"}
	if restart {
		restored.Next = "the appliance restarts to apply the backup"
		a.restart()
	}
	return restored, nil
}
