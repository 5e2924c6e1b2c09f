package appliance

import (
	"perch/agent"
	"perch/cmd/perch/agents"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/event"
	"perch/perception"
	"perch/store"
)

// newAgents makes the event bus, the states of robots' sensors, the gestures and the agents.
func (a *Appliance) newAgents(*config.Config) (err error) {
	a.Bus, a.board = event.NewBusFor(a.Robots.Trusts), agent.NewBoard()
	a.closers = append(a.closers, a.Bus.Close)
	a.intake = perception.NewIntake(a.Bus, a.Robots, a.Log)
	a.Senses = perception.NewStates(store.NewTable[perception.State](a.DB, "perception"))
	a.gestures, err = perception.StockGestures().WithOwners(datadir.Gestures(a.Data), config.IsEmotion)
	if err != nil {
		a.Log.Warn("some of the owner's gestures are ignored", "err", err)
	}
	a.Agents, err = agents.New(agents.Options{Config: a.Config, Data: a.Data, DB: a.DB, Identity: a.Identity, Robots: a.Robots,
		Memory: a.Memory, Notices: a.Notices, Timers: a.Timers, Bus: a.Bus, Senses: a.Senses, Gestures: a.gestures.Names(), Recognizers: a.options.Recognizers,
		URL: a.Listeners.URL(), WyomingServers: a.network.WyomingServers, Log: a.Log})
	if err != nil {
		return err
	}
	a.closers = append(a.closers, a.Agents.Close)
	return nil
}
