// Package appliance makes and runs all parts of perch serve. It starts and stops them in order, and
// reports the condition of each.
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

// Appliance holds all parts of perch serve. New makes the parts and opens their files and ports; Run
// runs them until its context is done. New sets the fields in roughly this order.
type Appliance struct {
	Data    string // path of the data directory
	Log     *slog.Logger
	Started time.Time
	options Options
	config  atomic.Pointer[config.Config]
	zone    *time.Location // the configured time zone

	// Stored data.
	DB       *store.DB
	Identity *datadir.Identity
	ID       string // the appliance's ID: 8 hex digits
	Robots   *device.Registry
	Memory   *agent.Memory
	Notices  *notice.Store
	Timers   *notice.Timers
	Records  *robot.Records
	commands *robot.CommandQueue // commands for robots that are not connected

	// Listeners and the network.
	locks           *access.Locks
	Listeners       *listener.Set
	RobotMQTT       *listener.Robots
	wyomingListener net.Listener // nil if the Wyoming server is off
	WyomingAddr     net.Addr     // the address of wyomingListener
	network         *network.Network
	homeAssistant   *hassapp.App // nil unless Home Assistant runs Perch as one of its apps (add-ons)

	// Events and states.
	Bus    *event.Bus
	board  *agent.Board
	intake *perception.Intake
	Senses *perception.States

	Agents *agents.Agents

	// Robots.
	warmer      *engines.Warmer
	gestures    perception.Gestures
	behaviours  *perception.Behaviours
	sounds      *sounds.Library
	loudness    voice.Loudness // the loudness of synthesized speech
	Talk        *robot.Server
	control     robots.Control
	OwnerRobots robots.OwnerRegistry
	Firmware    *ota.Firmware
	ota         *ota.Service

	viewers *viewers.Viewers // programs that show agents, and coding agents

	// Other programs.
	bridge      *bridge.API
	bridgeTurns *bridge.Log
	Mirror      *homeassistant.Mirror
	wyoming     *wyoming.Server // nil if the Wyoming server is off

	// The owner.
	admin   *admin.API
	metrics *admin.Metrics
	web     *web.Server // nil if the page is off

	closers  []func()    // called by Close in reverse order
	restart  chan error  // contains ErrRestart after a request to restart
	applying sync.Mutex  // held while a change of the configuration is applied
	ending   atomic.Bool // whether Run is stopping the parts, so that changes are refused; set with applying held
}

// logs holds the latest lines of the log. It is implemented by logtail.Log, where NewFollower is documented.
type logs interface {
	NewFollower(minLevel slog.Level, after string) (admin.LogFollower, bool)
	Close() // ends all followers
}

// Options holds what New needs besides the configuration.
type Options struct {
	Data        string // path of the data directory
	Log         *slog.Logger
	Recognizers voice.Recognizers // replaces the configured recognizers in measurements; may be nil

	Version string    // version of this program
	Built   time.Time // when this program was built

	FirstSteps io.Writer // receives a text with the owner's first steps; may be nil
	Terminal   bool      // whether FirstSteps is a terminal, which only the owner sees
	Flags      string    // flags with which other perch commands find this appliance

	NewDatabase bool // whether to start with an empty database although traces of an earlier one exist

	Logs    logs                                           // holds the lines that Log has written; may be nil
	Overlay *config.Overlay                                // shows and changes the configuration; may be nil
	Doctor  func(context.Context) ([]admin.Finding, error) // examines the installation; may be nil
}

// Close closes what New has opened, in reverse order. Run must have returned.
func (a *Appliance) Close() {
	for _, release := range slices.Backward(a.closers) {
		release()
	}
	a.closers = nil
}

// Config returns the current configuration, which the caller must not change. Apply replaces it.
func (a *Appliance) Config() *config.Config { return a.config.Load() }

// ErrRestart is returned by Run after a request to restart.
var ErrRestart = errors.New("a restart was requested")

// Restart makes Run return ErrRestart.
func (a *Appliance) Restart() {
	select {
	case a.restart <- ErrRestart:
	default: // a restart was already requested
	}
}
