package appliance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/gateway/robot"
	"perch/remote"
	"perch/store"
)

// kept is what outlives a run: the database, and what is remembered in it.
type kept struct {
	DB       *store.DB
	ID       string               // of this appliance: 8 hex digits
	identity *store.Table[string] // what tells this appliance from others
	sessions string               // the epoch of the page's sessions
	welcome  time.Duration        // how long after the start robots that come are adopted; 0 after the first hour
	tokenKey device.Key
	Robots   *device.Registry
	Memory   *agent.Memory
	Notices  *notice.Store
	Timers   *notice.Timers
	Records  *robot.Records
	waiting  *robot.CommandQueue
}

// openKept opens the database of the data directory, after a restore that is
// staged there, and reads what is remembered.
func (a *Appliance) openKept() error {
	if err := os.MkdirAll(a.Data, 0o750); err != nil {
		return fmt.Errorf("the data directory cannot be made: %w; name another with --data", err)
	}
	if err := Directory(a.Data, a.Version, a.Log).Finish(); err != nil {
		return err
	}
	if err := a.restoreApp(); err != nil {
		return err
	}
	db, err := openDatabase(a.Data, a.NewDatabase, a.Log)
	if err != nil {
		return err
	}
	a.kept = &kept{DB: db}
	return a.kept.read(a.basics)
}

// read reads what is remembered.
func (k *kept) read(b basics) error {
	key, err := Secret(b.Data, "token-key", b.Log)
	if err != nil {
		return err
	}
	if err := k.readIdentity(b); err != nil {
		return err
	}
	k.tokenKey = device.Key(key)
	k.Robots = device.NewRegistry(k.tokenKey, device.Adoption(b.Config().Adoption), store.NewTable[device.Robot](k.DB, "robots"))
	if k.welcome > 0 {
		k.Robots.Welcome(b.Started.Round(0).Add(k.welcome)) // by the wall clock: the registry is told where that moves
	}
	if n := k.Robots.Strangers(); n > 0 {
		b.Log.Warn("robots that are not adopted may only talk; perch robot list lists them", "count", n)
	}
	k.Memory = agent.NewMemory(store.NewTable[agent.Entry](k.DB, "memory"))
	k.Memory.Bound(b.Config().Memory.Most)
	k.Notices = notice.NewStore(store.NewTable[notice.Notification](k.DB, "notifications"))
	k.Timers = notice.NewTimers(store.NewTable[agent.Timer](k.DB, "timers"), nil)
	k.Records = robot.NewRecords(store.NewTable[robot.SessionRecord](k.DB, "sessions"),
		store.NewTable[robot.TurnRecord](k.DB, "turns"), b.Config().Robots.KeepTurns)
	k.waiting = robot.NewCommandQueue(store.NewTable[[]robot.Command](k.DB, "waiting"))
	return nil
}

// sessionsFile is the secret that marks the sessions of the page which are not ended. It
// is no part of a backup, so that no restore brings ended sessions back.
const sessionsFile = "page-sessions"

// Keys of the table of what tells this appliance from others.
const (
	salvagedKey  = "salvaged"   // the time of the last salvage after which all sessions were ended
	firstHourKey = "first-hour" // "over" once it is
)

// readIdentity reads what tells this appliance from others, and makes it for a database
// that is new. With another database than that of the last run (a new one, one that was
// restored or salvaged), all sessions of the page are ended.
func (k *kept) readIdentity(b basics) error {
	k.identity = store.NewTable[string](k.DB, "appliance")
	id, found, err := k.identity.Get("id")
	if err != nil {
		return err
	}
	salvaged := ""
	if s := k.DB.Salvaged(); s != nil {
		salvaged = s.At.UTC().Format(time.RFC3339)
	}
	known, _, err := k.identity.Get(salvagedKey)
	if err != nil {
		return err
	}
	path := filepath.Join(b.Data, sessionsFile)
	restored := found && !store.Exists(path)
	if !found || salvaged != known && salvaged != "" {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("end the sessions of the page: %w", err)
		}
	}
	if k.sessions, err = Secret(b.Data, sessionsFile, b.Log); err != nil {
		return err
	}
	if salvaged != known && salvaged != "" {
		if err := k.identity.Put(salvagedKey, salvaged); err != nil {
			return err
		}
	}
	if !found {
		id = randomHex(4)
		// The time first: without it an appliance whose power is cut in between
		// would adopt nobody in its first hour.
		err := errors.Join(k.identity.Put("installed", b.Started.UTC().Format(time.RFC3339)), k.identity.Put("id", id))
		if err != nil {
			return err
		}
	}
	k.ID = id
	return k.readFirstHour(b.Started, restored || salvaged != "")
}

// readFirstHour finds out how much of the first hour after the installation is left. Once
// it has been over, no clock that is set back begins it again.
func (k *kept) readFirstHour(now time.Time, over bool) error {
	text, _, err := k.identity.Get(firstHourKey)
	if err != nil || text == "over" {
		return err
	}
	installed, _, err := k.identity.Get("installed")
	if err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, installed)
	passed := now.Sub(at)
	if err != nil || over || passed < 0 || passed >= device.WelcomeLasts {
		return k.endFirstHour()
	}
	k.welcome = device.WelcomeLasts - passed
	return nil
}

func (k *kept) endFirstHour() error {
	k.welcome = 0
	return k.identity.Put(firstHourKey, "over")
}

// watchFirstHour ends the first hour by the clock that only runs.
func (a *Appliance) watchFirstHour(ctx context.Context) {
	if a.welcome == 0 {
		return
	}
	if remote.Sleep(ctx, a.welcome-time.Since(a.Started)) != nil {
		return
	}
	a.Robots.Welcome(time.Time{})
	if err := a.endFirstHour(); err != nil {
		a.Log.Warn("the first hour is over, and that could not be kept", "err", err)
	}
}
