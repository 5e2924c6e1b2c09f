// Package appliance is everything that perch serve runs: its parts, the order in
// which they are made, run and end, and how well each of them does.
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

// Appliance is everything that perch serve runs. It is made with New, which opens
// everything that can fail, and runs until its context ends. The fields are in the order in
// which they are made.
type Appliance struct {
	Data    string // the data directory
	Log     *slog.Logger
	Started time.Time
	options Options
	config  atomic.Pointer[config.Config]
	zone    *time.Location // of the household

	// What outlives a run.
	DB       *store.DB
	Identity *datadir.Identity
	ID       string // of this appliance: 8 hex digits
	Robots   *device.Registry
	Memory   *agent.Memory
	Notices  *notice.Store
	Timers   *notice.Timers
	Records  *robot.Records
	commands *robot.CommandQueue // for robots that are away

	// Where others find this appliance.
	locks           *access.Locks
	Listeners       *listener.Set
	RobotMQTT       *listener.Robots
	wyomingListener net.Listener // nil where it is off
	At              net.Addr     // of it
	network         *network.Network
	homeAssistant   *hassapp.App // nil where this is no app of Home Assistant

	// What happens, and what is known of it.
	Bus    *event.Bus
	board  *agent.Board
	intake *perception.Intake
	Senses *perception.States

	// What understands, thinks and remembers.
	Agents *agents.Agents

	// Robots.
	warmer     *engines.Warmer
	gestures   perception.Gestures
	behaviours *perception.Behaviours
	sounds     *sounds.Library
	loudness   voice.Loudness // of all that is spoken
	Talk       *robot.Server
	control    robots.Control
	Owned      robots.Owned
	Firmware   *ota.Firmware
	ota        *ota.Service

	// Programs that show agents, or are agents.
	viewers *viewers.Viewers

	// Other programs.
	bridge      *bridge.API
	bridgeTurns *bridge.Log
	Mirror      *homeassistant.Mirror
	wyoming     *wyoming.Server // nil where it is off

	// The owner.
	admin   *admin.API
	metrics *admin.Metrics
	web     *web.Server // nil where it is off

	closers  []func()   // release what was made, in that order
	restart  chan error // has ErrRestart once a restart was asked for
	applying sync.Mutex // one change of the configuration at a time
	ending   bool       // no more changes are followed
}

// logs are the lines that were logged last.
type logs interface {
	NewFollower(least slog.Level, after string) (admin.LogFollower, bool)
	Close() // ends all followers
}

// Options are what a start is given besides the configuration.
type Options struct {
	Data        string // the data directory
	Log         *slog.Logger
	Recognizers voice.Recognizers // instead of those configured, to measure all the rest; else nil

	Version string    // of this program
	Built   time.Time // when it was built

	FirstSteps io.Writer // where the owner's first steps are written; may be nil
	Flags      string    // that lead another command to the same appliance

	NewDatabase bool // an empty one is begun, although there was another

	Logs    logs                                           // what Log has written; nil keeps nothing
	Overlay *config.Overlay                                // shows and changes the configuration; may be nil
	Doctor  func(context.Context) ([]admin.Finding, error) // examines the appliance; may be nil
}

// Close releases what New opened, in the opposite order. Run, where it was called, has returned.
func (a *Appliance) Close() {
	for _, release := range slices.Backward(a.closers) {
		release()
	}
	a.closers = nil
}

// Config returns the configuration that is followed: see Apply. It is not changed.
func (a *Appliance) Config() *config.Config { return a.config.Load() }

// ErrRestart ends a run after which another is wanted.
var ErrRestart = errors.New("a restart was asked for")

// Restart makes Run return ErrRestart.
func (a *Appliance) Restart() {
	select {
	case a.restart <- ErrRestart:
	default: // it has begun
	}
}
