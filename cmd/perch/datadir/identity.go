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

// Identity is the identity of an appliance: its ID and its keys.
type Identity struct {
	ID        string     // 8 hex digits
	Installed time.Time  // first start, or the current start if that is not known
	Sessions  string     // signs the page's sessions; sessions signed with an earlier value are invalid
	TokenKey  device.Key // signs the tokens of robots
	Signer    diary.Key  // signs the diary and the messages of characters

	SignerMade bool // whether Signer was created at this start

	Table *store.Table[string] // the table "appliance", whose records are single values, such as the ID

	data    string
	started time.Time
	welcome time.Duration // how much of the first hour after the installation was left at this start; 0 if the hour was over
	log     *slog.Logger
}

// Keys of the table "appliance".
const (
	installedKey = "installed"  // time of the first start
	salvagedKey  = "salvaged"   // time of the last salvage that ended all sessions
	firstHourKey = "first-hour" // "over" once the first hour has passed
	loggedOutKey = "logged-out" // sessions of the page that were logged out
)

// ReadIdentity reads the identity of an appliance, and creates it if the database is new. All
// sessions of the page end if the database is new, restored or salvaged since the last run.
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

// read reads the identity. salvaged is the time of the last salvage of the database, or empty if
// it was never salvaged.
func (i *Identity) read(salvaged string) error {
	id, found, err := i.Table.Get("id")
	if err != nil {
		return err
	}
	handled, _, err := i.Table.Get(salvagedKey)
	if err != nil {
		return err
	}
	path := filepath.Join(i.data, sessionsFile)
	restored, newSalvage := found && !store.Exists(path), salvaged != handled && salvaged != ""
	if !found || newSalvage {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("end the sessions of the page: %w", err)
		}
	}
	if i.Sessions, err = Secret(i.data, sessionsFile, i.log); err != nil {
		return err
	}
	if newSalvage {
		if err := i.Table.Put(salvagedKey, salvaged); err != nil {
			return err
		}
	}
	if !found {
		id = randomHex(4)
		// The installation time is written first: if power fails between the two writes, the
		// next start must still know when the first hour began.
		err := errors.Join(i.Table.Put(installedKey, i.started.UTC().Format(time.RFC3339)), i.Table.Put("id", id))
		if err != nil {
			return err
		}
	}
	i.ID = id
	return i.readFirstHour(restored || salvaged != "")
}

// readFirstHour computes how much of the first hour after the installation is left. The end of the
// hour is stored, so setting the clock back does not start another hour. If over is true, the hour ends
// now.
func (i *Identity) readFirstHour(over bool) error {
	text, _, err := i.Table.Get(installedKey)
	if err != nil {
		return err
	}
	installed, parseErr := time.Parse(time.RFC3339, text)
	i.Installed = installed
	if parseErr != nil {
		i.Installed = i.started
	}
	state, _, err := i.Table.Get(firstHourKey)
	if err != nil || state == "over" {
		return err
	}
	passed := i.started.Sub(installed)
	if parseErr != nil || over || passed < 0 || passed >= device.WelcomePeriod {
		return i.Table.Put(firstHourKey, "over")
	}
	i.welcome = device.WelcomePeriod - passed
	return nil
}

// WelcomeUntil returns the end of the first hour after the installation, by the wall clock. Until
// then, robots that check in are adopted. It returns the zero time if the hour is over.
func (i *Identity) WelcomeUntil() time.Time {
	if i.welcome == 0 {
		return time.Time{}
	}
	return i.started.Round(0).Add(i.welcome)
}

// Run waits for the end of the first hour, by the monotonic clock, and then calls ended. It returns
// at once if the hour is over.
func (i *Identity) Run(ctx context.Context, ended func()) {
	if i.welcome == 0 || remote.Sleep(ctx, i.welcome-time.Since(i.started)) != nil {
		return
	}
	ended()
	if err := i.Table.Put(firstHourKey, "over"); err != nil {
		i.log.Warn("the end of the first hour could not be stored", "err", err)
	}
}

// WriteSessions replaces the secret that signs the page's sessions. This ends all sessions.
func (i *Identity) WriteSessions(secret string) error {
	return writeSecret(filepath.Join(i.data, sessionsFile), secret)
}

// LoggedOut returns what WriteLoggedOut has stored, or "". It only logs an error of the database.
func (i *Identity) LoggedOut() string {
	sessions, _, err := i.Table.Get(loggedOutKey)
	if err != nil {
		i.log.Warn("the list of logged-out sessions of the page cannot be read", "err", err)
	}
	return sessions
}

// WriteLoggedOut stores the sessions of the page that were logged out. The next start reads them.
func (i *Identity) WriteLoggedOut(sessions string) error { return i.Table.Put(loggedOutKey, sessions) }
