package appliance

import (
	"errors"
	"fmt"
	"os"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/gateway/robot"
	"perch/store"
)

// kept is what outlives a run: the database, and what is remembered in it.
type kept struct {
	DB       *store.DB
	ID       string               // of this appliance: 8 hex digits
	identity *store.Table[string] // what tells this appliance from others
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
	identity := store.NewTable[string](k.DB, "appliance")
	id, found, err := identity.Get("id")
	if err != nil {
		return err
	}
	if !found {
		id = randomHex(4)
		// The time first: without it an appliance whose power is cut in between
		// would adopt nobody in its first hour.
		err := errors.Join(identity.Put("installed", b.Started.UTC().Format(time.RFC3339)), identity.Put("id", id))
		if err != nil {
			return err
		}
	}
	k.ID, k.identity = id, identity
	installed, _, err := identity.Get("installed")
	if err != nil {
		return err
	}
	k.tokenKey = device.Key(key)
	k.Robots = device.NewRegistry(k.tokenKey, device.Adoption(b.Config.Adoption), store.NewTable[device.Robot](k.DB, "robots"))
	if at, err := time.Parse(time.RFC3339, installed); err == nil && !at.After(time.Now()) && k.DB.Salvaged() == nil {
		k.Robots.Welcome(at.Add(device.WelcomeLasts))
	}
	if n := k.Robots.Strangers(); n > 0 {
		b.Log.Warn("robots that are not adopted may only talk; perch devices lists them", "count", n)
	}
	k.Memory = agent.NewMemory(store.NewTable[agent.Entry](k.DB, "memory"))
	k.Memory.Bound(b.Config.Memory.Most)
	k.Notices = notice.NewStore(store.NewTable[notice.Notification](k.DB, "notifications"))
	k.Timers = notice.NewTimers(store.NewTable[agent.Timer](k.DB, "timers"), nil)
	k.Records = robot.NewRecords(store.NewTable[robot.SessionRecord](k.DB, "sessions"),
		store.NewTable[robot.TurnRecord](k.DB, "turns"), b.Config.Robots.KeepTurns)
	k.waiting = robot.NewCommandQueue(store.NewTable[[]robot.Command](k.DB, "waiting"))
	return nil
}
