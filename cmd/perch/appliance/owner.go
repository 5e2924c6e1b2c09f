package appliance

import (
	"perch/cmd/perch/access"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/cmd/perch/engines"
	"perch/cmd/perch/robots"
	"perch/cmd/perch/settings"
	"perch/device"
	"perch/gateway/owner/admin"
	"perch/gateway/owner/web"
)

// newOwner makes the admin API, the metrics and the page, and mounts all APIs on the listeners.
func (a *Appliance) newOwner(c *config.Config) error {
	counters, gauges := a.newMetrics()
	models := engines.NewModels(a.Config)
	a.closers = append(a.closers, models.Close)
	o := admin.Options{
		Robots: a.OwnerRobots, Talk: a.control, Notify: a.Agents.Notifier.Notify, Memory: a.Memory, Timers: a.Timers, Notices: a.Notices.Open,
		Acknowledge: a.Agents.Notifier.Acknowledge, Engines: engines.NewTrials(&a.Agents.Engines, a.Agents.Characters.Speech, a.zone), Speech: models, Board: a.board, Bus: a.Bus,
		Gestures: a.gestures, Senses: a.Senses.Senses, Characters: a.Agents.Catalog,
		Questions: a.viewers.Questions, ForgetConversation: a.Agents.Mind.Forget, Phrase: a.Agents.PhraseFor,
		Diary:  func(n int) any { return a.Agents.Diary.Newest(n) },
		Verify: func() (any, error) { return a.Agents.Diary.Verify() },
		Turns:  func(n int) any { return a.Records.Turns(n) }, Week: func(robot device.ID) any { return a.OwnerRobots.Days.Week(robot) }, Parts: a.Parts, Unheard: func() []string { return a.Config().Unheard() }, Counters: counters, Gauges: gauges, Firmware: a.Firmware,
		Refused: a.ota.Refused, ForgetRefused: a.ota.ForgetRefused, Find: a.network.Search,
		// Unless public_url is set, the last URL has an IP address. The community's firmware sends its token to no host name.
		RobotURL: func() string {
			urls := append([]string{a.Listeners.URL()}, a.network.URLs()...)
			return urls[len(urls)-1]
		},
		Connections: func() admin.Connections {
			c, mqtt := a.viewers.Connections(), a.Mirror.Condition()
			c.HomeAssistant = admin.HomeAssistant{OK: a.Mirror.Status().Connected, Note: mqtt.Note, Since: mqtt.Since}
			return c
		},
		Archives: datadir.NewBackups(datadir.Archive(a.Data, a.options.Version, a.Log), a.DB, a.Restart),
		Zone:     a.zone, Version: a.options.Version, ID: a.ID, Started: a.Started,
		Logs: a.options.Logs, Doctor: a.options.Doctor, Restart: a.Restart,
	}
	if a.options.Overlay != nil {
		o.Settings = settings.New(a.options.Overlay, c, a, a.Log)
	}
	a.admin, a.metrics = admin.New(o), admin.NewMetrics(o)
	if err := a.DB.Readable(); err != nil { // after a read error, the parts made so far may have incomplete data
		return err
	}
	if err := a.newPage(c); err != nil {
		return err
	}
	p := access.Parts{
		Open:          a.admin.OpenRoutes,
		Owner:         []access.Mount{a.admin.Routes, a.metrics.Routes},
		Robots:        []access.Mount{a.ota.Routes, a.Talk.Routes},
		RecordRefusal: a.ota.RecordRefusal,
		Bridge:        a.bridge.Routes,
		BridgeAdmin:   a.bridge.Admin,
		Talks:         a.Agents.Talks.Routes,
		Web:           a.web,
	}
	if a.web != nil {
		p.Owner = append(p.Owner, a.web.OwnerRoutes)
	}
	a.viewers.Mount(&p)
	return access.Handle(a.Listeners, a.locks, p, c)
}

// newPage makes the owner's page, unless it is turned off.
func (a *Appliance) newPage(c *config.Config) (err error) {
	if !c.Web.Enabled {
		return nil
	}
	o := web.Options{Name: c.Name, Language: func() string { return a.Config().Language.First() }, Version: a.options.Version,
		Secret: a.locks.Token, Epoch: a.Identity.Sessions, StoreEpoch: a.Identity.WriteSessions,
		LoggedOut: a.Identity.LoggedOut(), StoreLoggedOut: a.Identity.WriteLoggedOut,
		Key: a.locks.Owner, Addresses: a.network.URLs, LocalURL: a.Listeners.URL, Pace: a.locks.Pace.Check, Robots: robots.Codes{Registry: a.Robots, Server: a.Talk}, Log: a.Log}
	if c.Web.IngressListen == "" { // if it is set, proxies connect to that address instead
		if o.Ingress, err = c.Web.Proxies(); err != nil {
			return err
		}
	}
	if https := a.Listeners.HTTPS; https != nil {
		o.AuthorityFiles, o.OpenHTTPS = https.Files, func() (web.HTTPSAddress, error) {
			info, err := https.Describe()
			return web.HTTPSAddress(info), err
		}
	}
	if a.homeAssistant != nil {
		o.Administrators = a.homeAssistant.Administrators
	}
	a.web = web.New(o)
	return nil
}
