package main

import (
	"fmt"
	"path/filepath"
	"time"

	"perch/gateway/bridge"
	"perch/store"
)

// bridgeConfig is who may use the bridge API, and how long its tools may take.
type bridgeConfig struct {
	Key          string   `yaml:"key"`
	KeyFile      string   `yaml:"key_file"`
	TimeoutShort duration `yaml:"timeout_short"`
	TimeoutLong  duration `yaml:"timeout_long"`
}

func (k *checker) bridge(b bridgeConfig) {
	k.key("bridge", b.Key, b.KeyFile)
	for path, d := range map[string]duration{"bridge.timeout_short": b.TimeoutShort, "bridge.timeout_long": b.TimeoutLong} {
		if t := time.Duration(d); t < time.Second || t > 5*time.Minute {
			k.fault(path, "a tool may take 1s to 5m, not %s", t)
		}
	}
}

// key finds what is wrong with the key of a door.
func (k *checker) key(path, value, file string) {
	key, err := secretOf("key", value, file)
	switch {
	case err != nil:
		k.failed(path, err)
	case key != "" && len(key) < leastKey:
		k.fault(path+".key", "it has %d characters; a key has %d or more", len(key), leastKey)
	}
}

// leastKey is how short a key may be that is kept from guessing by the limit
// on tries.
const leastKey = 8

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
