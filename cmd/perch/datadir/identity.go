package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"perch/agent/diary"
	"perch/device"
	"perch/remote"
	"perch/store"
)

// Identity is what tells an appliance from others.
type Identity struct {
	ID        string    // 8 hex digits
	Installed time.Time // of the first start, or of this one if that is unknown
	Sessions  string    // the secret that marks the sessions of the page which are not ended
	TokenKey  device.Key
	Signer    diary.Key // signs the diary, and what characters sign

	SignerMade bool // there was no such key before this start

	Table *store.Table[string] // of single texts

	data    string
	started time.Time
	welcome time.Duration // how long after the start the first hour lasts; 0 after it
	log     *slog.Logger
}

// Keys of the table "appliance".
const (
	installedKey = "installed"  // the time of the first start
	salvagedKey  = "salvaged"   // the time of the last salvage after which all sessions were ended
	firstHourKey = "first-hour" // "over" once it is
)

// ReadIdentity reads what tells the appliance of a directory from others, and makes it for a
// new database. If the database is not the one of the last run, but new, restored or salvaged,
// all sessions of the page end.
func ReadIdentity(data string, db *store.DB, started time.Time, log *slog.Logger) (*Identity, error) {
	key, err := Secret(data, tokenKeyFile, log)
	if err != nil {
		return nil, err
	}
	i := &Identity{TokenKey: device.Key(key), Table: store.NewTable[string](db, "appliance"), data: data, started: started, log: log}
	salvaged := ""
	if s := db.Salvaged(); s != nil {
		salvaged = s.At.UTC().Format(time.RFC3339)
	}
	if err := i.read(salvaged); err != nil {
		return nil, err
	}
	i.Signer, i.SignerMade, err = SigningKey(data, log)
	return i, err
}

// read reads the identity. salvaged is the time of the last salvage of the database; empty is
// never.
func (i *Identity) read(salvaged string) error {
	id, found, err := i.Table.Get("id")
	if err != nil {
		return err
	}
	known, _, err := i.Table.Get(salvagedKey)
	if err != nil {
		return err
	}
	path := filepath.Join(i.data, sessionsFile)
	restored, isNew := found && !store.Exists(path), salvaged != known && salvaged != ""
	if !found || isNew {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("end the sessions of the page: %w", err)
		}
	}
	if i.Sessions, err = Secret(i.data, sessionsFile, i.log); err != nil {
		return err
	}
	if isNew {
		if err := i.Table.Put(salvagedKey, salvaged); err != nil {
			return err
		}
	}
	if !found {
		id = randomHex(4)
		// The time first: without it an appliance whose power is cut in between
		// would adopt nobody in its first hour.
		err := errors.Join(i.Table.Put(installedKey, i.started.UTC().Format(time.RFC3339)), i.Table.Put("id", id))
		if err != nil {
			return err
		}
	}
	i.ID = id
	return i.readFirstHour(restored || salvaged != "")
}

// readFirstHour finds out how much of the first hour after the installation is left. Once it is
// over, no clock that is set back begins it again.
func (i *Identity) readFirstHour(over bool) error {
	text, _, err := i.Table.Get(installedKey)
	if err != nil {
		return err
	}
	installed, wrong := time.Parse(time.RFC3339, text)
	i.Installed = installed
	if wrong != nil {
		i.Installed = i.started
	}
	state, _, err := i.Table.Get(firstHourKey)
	if err != nil || state == "over" {
		return err
	}
	passed := i.started.Sub(installed)
	if wrong != nil || over || passed < 0 || passed >= device.WelcomeLasts {
		return i.Table.Put(firstHourKey, "over")
	}
	i.welcome = device.WelcomeLasts - passed
	return nil
}

// WelcomeUntil returns the end of the first hour after the installation, by the wall clock: until
// then robots that come are adopted. It returns the zero time after that hour.
func (i *Identity) WelcomeUntil() time.Time {
	if i.welcome == 0 {
		return time.Time{}
	}
	return i.started.Round(0).Add(i.welcome)
}

// Run waits for the end of the first hour, by the monotonic clock, and calls ended.
func (i *Identity) Run(ctx context.Context, ended func()) {
	if i.welcome == 0 || remote.Sleep(ctx, i.welcome-time.Since(i.started)) != nil {
		return
	}
	ended()
	if err := i.Table.Put(firstHourKey, "over"); err != nil {
		i.log.Warn("the end of the first hour could not be stored", "err", err)
	}
}

// WriteSessions replaces the secret of the page's sessions, which ends all of them.
func (i *Identity) WriteSessions(secret string) error {
	return writeSecret(filepath.Join(i.data, sessionsFile), secret)
}
