package appliance

import (
	"perch/cmd/perch/access"
	"perch/cmd/perch/config"
	"perch/cmd/perch/hassapp"
	"perch/cmd/perch/listener"
	"perch/cmd/perch/network"
)

// openListeners listens on the addresses of the configuration. Run serves them.
func (a *Appliance) openListeners(c *config.Config) (err error) {
	if a.locks, err = access.NewLocks(c, a.Data, a.Log); err != nil {
		return err
	}
	hosts := func() []string { return a.network.Hosts() }
	if a.Listeners, err = listener.Open(c, a.Data, a.ID, hosts, a.Log); err != nil {
		return err
	}
	a.closers = append(a.closers, a.Listeners.Stop)
	a.RobotMQTT = listener.OpenRobots(c, a.Log)
	a.closers = append(a.closers, a.RobotMQTT.Close)
	if c.Wyoming.Listen != "" {
		if a.wyomingListener, err = listener.Listen("wyoming.listen", c.Wyoming.Listen); err != nil {
			return err
		}
		a.closers = append(a.closers, func() { _ = a.wyomingListener.Close() }) // the Wyoming server may have closed it
		a.WyomingAddr = a.wyomingListener.Addr()
	}
	a.network = network.New(network.Options{Name: c.Name, ID: a.ID, Version: a.options.Version, PublicURL: c.PublicURL,
		MDNS: c.MDNS.Enabled, Interfaces: c.MDNS.Interfaces, Listen: a.Listeners.At(listener.Network), Local: a.Listeners.At(listener.Local),
		Wyoming: a.WyomingAddr, Page: c.Web.Enabled, Log: a.Log})
	if a.Listeners.HTTPS != nil {
		a.Listeners.HTTPS.Reopen(a.Log)
	}
	if a.homeAssistant, err = hassapp.Open(a.Identity.Table); err != nil {
		return err
	}
	if a.homeAssistant != nil {
		a.closers = append(a.closers, a.homeAssistant.Close)
	}
	return nil
}
