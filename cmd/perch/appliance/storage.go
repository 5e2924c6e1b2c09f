package appliance

import (
	"perch/agent"
	"perch/agent/notice"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/cmd/perch/hassapp"
	"perch/device"
	"perch/gateway/robot"
	"perch/store"
)

// openStorage restores a staged backup, or a backup that Home Assistant has put into the data directory. Then
// it opens the database and reads the stored data.
func (a *Appliance) openStorage(c *config.Config) (err error) {
	directory := datadir.Archive(a.Data, a.options.Version, a.Log)
	if err := datadir.Prepare(directory); err != nil {
		return err
	}
	if err := hassapp.RestoreBackup(directory, a.Log); err != nil {
		return err
	}
	if a.DB, err = datadir.OpenDatabase(a.Data, a.options.NewDatabase, a.Log); err != nil {
		return err
	}
	a.closers = append(a.closers, func() {
		if a.Firmware != nil { // closed after the database, because Close may wait for a failing disk
			a.Firmware.Close()
		}
	}, func() {
		if err := a.DB.Close(); err != nil {
			a.Log.Error("the last changes may not have been stored", "err", err)
		}
	})
	if a.Identity, err = datadir.ReadIdentity(a.Data, a.DB, a.Started, a.Log); err != nil {
		return err
	}
	a.ID = a.Identity.ID
	a.Robots = device.NewRegistry(a.Identity.TokenKey, device.Adoption(c.Adoption), store.NewTable[device.Robot](a.DB, "robots"))
	a.closers = append(a.closers, a.Robots.Flush)
	if until := a.Identity.WelcomeUntil(); !until.IsZero() {
		a.Robots.Welcome(until)
	}
	if n := a.Robots.Strangers(); n > 0 {
		a.Log.Warn("some robots are not adopted; perch robot list lists them", "count", n)
	}
	a.Memory = agent.NewMemory(store.NewTable[agent.Entry](a.DB, "memory"))
	a.Memory.Bound(c.Memory.Most)
	a.Notices = notice.NewStore(store.NewTable[notice.Notification](a.DB, "notifications"))
	a.Timers = notice.NewTimers(store.NewTable[agent.Timer](a.DB, "timers"), nil)
	a.Timers.In(a.zone)
	a.Records = robot.NewRecords(store.NewTable[robot.SessionRecord](a.DB, "sessions"),
		store.NewTable[robot.TurnRecord](a.DB, "turns"), c.Robots.KeepTurns)
	a.commands = robot.NewCommandQueue(store.NewTable[[]robot.Command](a.DB, "waiting"))
	return nil
}
