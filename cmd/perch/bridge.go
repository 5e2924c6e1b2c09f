package main

import (
	"fmt"
	"path/filepath"
	"time"

	"perch/gateway/bridge"
	"perch/store"
)

// newBridge makes the door for voice servers and dashboards elsewhere.
func (a *app) newBridge(zone *time.Location) error {
	c := a.config
	root, err := filepath.Abs(a.soundsDirectory())
	if err != nil {
		return fmt.Errorf("find the directory of sounds: %w", err)
	}
	a.bridge = bridge.New(bridge.Options{
		Find: a.robots.Find, Talk: a.movers(), Mind: a.mind, Memory: a.memory, Deep: a.engines.deep,
		Log:        bridge.NewLog(store.NewTable[bridge.Turn](a.db, "bridge-turns"), c.Robots.KeepTurns),
		Spoken:     a.spoken,
		Perception: a.senses, Board: a.board, Bus: a.bus,
		Sounds: songs{a.sounds, a.talk}, Roots: []string{root},
		Short: time.Duration(c.Bridge.TimeoutShort), Long: time.Duration(c.Bridge.TimeoutLong),
		Language: c.Language, Zone: zone, Logger: a.log,
	})
	return nil
}

// spoken are the turns that robots here took.
func (a *app) spoken() (turns []bridge.Turn) {
	for _, t := range a.records.Turns(a.config.Robots.KeepTurns) {
		turns = append(turns, bridge.Turn{At: t.At, Session: t.Session, User: t.Heard, Assistant: t.Said})
	}
	return turns
}
