package main

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"perch/device"
	"perch/gateway/bridge"
	"perch/perception"
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
	key, err := secretOf("key", b.Key, b.KeyFile)
	switch {
	case err != nil:
		k.fault("bridge", "%s", err)
	case key != "" && len(key) < leastKey:
		k.fault("bridge.key", "it has %d characters; a key has %d or more", len(key), leastKey)
	}
	for path, d := range map[string]duration{"bridge.timeout_short": b.TimeoutShort, "bridge.timeout_long": b.TimeoutLong} {
		if t := time.Duration(d); t < time.Second || t > 5*time.Minute {
			k.fault(path, "a tool may take 1s to 5m, not %s", t)
		}
	}
}

// leastKey is how short a key may be that is kept from guessing by the limit
// on tries.
const leastKey = 8

// newBridge makes the door for voice servers and dashboards elsewhere.
func (a *app) newBridge(zone *time.Location) {
	c := a.config
	a.bridge = bridge.New(bridge.Options{
		Talk: a.talk, Mind: a.mind, Memory: a.memory, Deep: a.engines.deep,
		Log:        bridge.NewLog(store.NewTable[bridge.Turn](a.db, "bridge-turns"), c.Robots.KeepTurns),
		Spoken:     a.spoken,
		Perception: senses{a.intake, a.sensed}, Board: a.board, Bus: a.bus,
		Short: time.Duration(c.Bridge.TimeoutShort), Long: time.Duration(c.Bridge.TimeoutLong),
		Language: c.Language, Zone: zone, Logger: a.log,
	})
}

// spoken are the turns that robots here took.
func (a *app) spoken() (turns []bridge.Turn) {
	for _, t := range a.records.Turns(a.config.Robots.KeepTurns) {
		turns = append(turns, bridge.Turn{At: t.At, Session: t.Session, User: t.Heard, Assistant: t.Said})
	}
	return turns
}

// senses are what robots sense, as the bridge takes and shows it.
type senses struct {
	intake *perception.Intake
	board  *perception.Board
}

func (s senses) Sense(_ context.Context, robot device.ID, name string, data json.RawMessage) error {
	return s.intake.FromProgram(string(robot), name, data)
}

func (s senses) States(now time.Time) (states map[device.ID]any, seq uint64) {
	all, seq := s.board.Snapshot(now)
	states = make(map[device.ID]any, len(all))
	for _, one := range all {
		one.Recent = nil // they have an address of their own
		states[one.Robot] = one
	}
	return states, seq
}

func (s senses) Recent(robot device.ID, most int) (recent []bridge.Sensed, known bool) {
	all, _ := s.board.Snapshot(time.Now())
	for _, one := range all {
		if one.Robot != robot {
			continue
		}
		for _, r := range slices.Backward(one.Recent) {
			if len(recent) == most {
				break
			}
			recent = append(recent, bridge.Sensed{Robot: robot, At: r.At, Name: r.Name, Data: r.Data})
		}
		return recent, true
	}
	return nil, false
}
