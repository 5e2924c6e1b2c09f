// Package appliance is everything that perch serve runs: its parts, the order of their start and end,
// and the condition of each.
package appliance

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/cmd/perch/access"
	"perch/cmd/perch/agents"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/cmd/perch/engines"
	"perch/cmd/perch/hassapp"
	"perch/cmd/perch/listener"
	"perch/cmd/perch/network"
	"perch/cmd/perch/robots"
	"perch/cmd/perch/viewers"
	"perch/device"
	"perch/event"
	"perch/gateway/bridge"
	"perch/gateway/homeassistant"
	"perch/gateway/owner/admin"
	"perch/gateway/owner/web"
	"perch/gateway/robot"
	"perch/gateway/wyoming"
	"perch/ota"
	"perch/perception"
	"perch/store"
	"perch/voice"
	"perch/voice/sounds"
)

// Appliance is everything that perch serve runs. New opens everything that can fail; Run runs it
// until its context ends. The fields are in the order of their making.
type Appliance struct {
	Data    string // the data directory
	Log     *slog.Logger
	Started time.Time
	options Options
	config  atomic.Pointer[config.Config]
	zone    *time.Location // of the household

	// Stored data.
	DB       *store.DB
	Identity *datadir.Identity
	ID       string // of this appliance: 8 hex digits
	Robots   *device.Registry
	Memory   *agent.Memory
	Notices  *notice.Store
	Timers   *notice.Timers
	Records  *robot.Records
	commands *robot.CommandQueue // for robots that are away

	// Listeners and the network.
	locks           *access.Locks
	Listeners       *listener.Set
	RobotMQTT       *listener.Robots
	wyomingListener net.Listener // nil if it is off
	At              net.Addr     // of wyomingListener
	network         *network.Network
	homeAssistant   *hassapp.App // nil if this is no app of Home Assistant

	// Events and states.
	Bus    *event.Bus
	board  *agent.Board
	intake *perception.Intake
	Senses *perception.States

	Agents *agents.Agents

	// Robots.
	warmer     *engines.Warmer
	gestures   perception.Gestures
	behaviours *perception.Behaviours
	sounds     *sounds.Library
	loudness   voice.Loudness // of all speech
	Talk       *robot.Server
	control    robots.Control
	Owned      robots.Owned
	Firmware   *ota.Firmware
	ota        *ota.Service

	viewers *viewers.Viewers // programs that show agents, or are agents

	// Other programs.
	bridge      *bridge.API
	bridgeTurns *bridge.Log
	Mirror      *homeassistant.Mirror
	wyoming     *wyoming.Server // nil if it is off

	// The owner.
	admin   *admin.API
	metrics *admin.Metrics
	web     *web.Server // nil if it is off

	closers  []func()   // release what was made, in that order
	restart  chan error // has ErrRestart after a request to restart
	applying sync.Mutex // held by the one change of the configuration at a time
	ending   bool       // no more changes are applied
}

// logs holds the latest lines of the log.
type logs interface {
	NewFollower(least slog.Level, after string) (admin.LogFollower, bool)
	Close() // ends all followers
}

// Options holds what a start needs besides the configuration.
type Options struct {
	Data        string // the data directory
	Log         *slog.Logger
	Recognizers voice.Recognizers // instead of those configured, for measurements of the rest; may be nil

	Version string    // of this program
	Built   time.Time // when it was built

	FirstSteps io.Writer // for the owner's first steps; may be nil
	Flags      string    // with which other commands find this appliance

	NewDatabase bool // start with an empty database although there was another

	Logs    logs                                           // what Log has written; may be nil
	Overlay *config.Overlay                                // shows and changes the configuration; may be nil
	Doctor  func(context.Context) ([]admin.Finding, error) // examines the appliance; may be nil
}

// Close releases what New has opened, in the opposite order. Run must have returned.
func (a *Appliance) Close() {
	for _, release := range slices.Backward(a.closers) {
		release()
	}
	a.closers = nil
}

// Config returns the present configuration, which must not be changed. Apply replaces it.
func (a *Appliance) Config() *config.Config { return a.config.Load() }

// ErrRestart is returned by Run after a request to restart.
var ErrRestart = errors.New("a restart was asked for")

// Restart makes Run return ErrRestart.
func (a *Appliance) Restart() {
	select {
	case a.restart <- ErrRestart:
	default: // there was a request already
	}
}
