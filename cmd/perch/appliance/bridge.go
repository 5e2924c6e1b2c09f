package appliance

import (
	"fmt"
	"path/filepath"
	"time"

	"perch/cmd/perch/config"
	"perch/gateway/bridge"
	"perch/store"
)

// newBridge makes the door for voice servers and dashboards elsewhere.
func (a *Appliance) newBridge() error {
	c := a.Config()
	root, err := filepath.Abs(a.soundsDirectory())
	if err != nil {
		return fmt.Errorf("find the directory of sounds: %w", err)
	}
	a.turnsElsewhere = bridge.NewLog(store.NewTable[bridge.Turn](a.DB, "bridge-turns"), c.Robots.KeepTurns)
	o := a.bridgeOptions(c, a.engines.get())
	o.Root = root
	a.bridge = bridge.New(o)
	return nil
}

// bridgeOptions are those of the bridge, without what never changes.
func (a *Appliance) bridgeOptions(c *config.Config, e *engines) bridge.Options {
	return bridge.Options{
		Find: a.Robots.Find, Talk: a.control(), Mind: a.Mind, Memory: a.Memory, Log: a.turnsElsewhere, Spoken: a.spoken,
		Perception: a.Senses, Board: a.board, Bus: a.Bus, Sounds: soundPlayer{a.sounds, a.Talk},
		Language: a.languageOf, Zone: a.zone, Logger: a.Log,
		Deep: e.deep, Short: time.Duration(c.Bridge.TimeoutShort), Long: time.Duration(c.Bridge.TimeoutLong),
	}
}

// spoken are the turns that robots here took.
func (a *Appliance) spoken() (turns []bridge.Turn) {
	for _, t := range a.Records.Turns(a.Config().Robots.KeepTurns) {
		turns = append(turns, bridge.Turn{At: t.At, Session: t.Session, User: t.Heard, Assistant: t.Said})
	}
	return turns
}
