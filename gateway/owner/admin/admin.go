// Package admin is the owner's API: the state of the appliance and the actions of its owner.
// The command perch uses it over a socket, the dashboard and scripts over HTTP.
package admin

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/health"
	"perch/limit"
	"perch/ota"
	"perch/perception"
)

// registry knows the robots.
type registry interface {
	List() []device.Robot
	Get(id device.ID) (device.Robot, error)
	// Resolve returns the robot with a MAC address or a name.
	Resolve(robot string) (device.ID, error)
	// Settings returns the owner's settings of a robot.
	Settings(id device.ID) device.Settings
	Configure(id device.ID, c device.Change) (device.Robot, error)
	Code(r device.Robot, now time.Time) string
	Token(id device.ID, c device.Client) (device.Robot, string, error)
	Adopt(idOrCode string, now time.Time) (device.Robot, error)
	// AdoptClient adopts one of several clients that claim a robot, by its Client-Id or address.
	AdoptClient(id device.ID, client string) (device.Robot, error)
	Replace(id device.ID, client string) (device.Robot, error)
	Forget(id device.ID) error
	ForgetStrangers() ([]device.ID, error)
}

// talk acts on robots. Speech and alerts for a robot whose channel is closed are queued until
// it connects, and queued is true; other actions fail with an error that has a code and a
// status.
type talk interface {
	Speak(ctx context.Context, id device.ID, text string) (queued bool, err error)
	Alert(ctx context.Context, id device.ID, status, message, emotion string) (queued bool, err error)
	Abort(ctx context.Context, id device.ID) error
	Hangup(ctx context.Context, id device.ID, why string) error
	Reboot(ctx context.Context, id device.ID) error
	// Tools returns the tools of an open channel, else those last known.
	Tools(id device.ID) []device.Tool
	// Status returns the robot's latest report, if any.
	Status(id device.ID) (event.RobotStatus, bool)
	// Call calls a tool and waits for its result.
	Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error)
	// Picture returns the latest picture of the robot's camera.
	Picture(id device.ID) (device.Picture, bool)
	// Record gives out the transcript of what is exchanged from now on, a line
	// at a time, until ctx ends or out fails.
	Record(ctx context.Context, id device.ID, out func(line string) error) error
	// Lost counts robots disconnected because they did not read.
	Lost() int
}

// Options are the dependencies of the door.
type Options struct {
	Robots     registry
	Talk       talk
	Memory     memory
	Timers     timers
	Engines    engines
	Questions  questions
	Characters casting
	Firmware   firmware
	Archives   archives
	Board      *agent.Board
	Bus        *event.Bus
	Gestures   perception.Gestures                                    // that robots can be asked for
	Notify     func(notice.Notification) (notice.Notification, error) // takes one for people, and delivers it
	Notices    func(now time.Time) []notice.Notification              // those that are open
	// Acknowledge ends a notification that was noted.
	Acknowledge func(id string) error
	// ForgetConversation has one begin anew. It is no error where there is none.
	ForgetConversation func(conversation string) error
	Phrase             func(id device.ID, name string) string // what a robot says by itself
	// Senses are what a robot notices, in a few words each, and nil where nothing is known.
	Senses func(id device.ID, now time.Time) []string
	// Find looks for what is on the network, until ctx ends.
	Find func(ctx context.Context) Found
	// Connections are the programs that are connected now.
	Connections func() Connections
	Refused     func() []ota.Refusal // the check-ins that were last refused, newest first
	Diary       func(most int) any   // the latest entries, the newest first
	Verify      func() (any, error)  // looks at the whole diary
	Turns       func(most int) any
	Parts       func() []Part
	Counters    func() []Counter
	Gauges      []Gauge
	Settings    settings                                 // the configuration; nil is none
	Logs        logs                                     // nil keeps none
	Doctor      func(context.Context) ([]Finding, error) // nil is none
	Restart     func()                                   // nil is none
	Version     string
	ID          string
	Started     time.Time
}

// Counter is a counter of another package, for the metrics.
type Counter struct {
	Name  string // as Prometheus has it, "perch_..._total"
	Help  string
	Count func() uint64
	// Labels distinguish it from others of the same name and help. They are of the
	// configuration, never of what comes from outside; nil is a name of its own.
	Labels map[string]string
}

// Gauge is a value of another package that is read at each scrape.
type Gauge struct {
	Name string // as Prometheus has it, "perch_store_bytes"
	Help string
	Read func() float64
}

// Truth returns the value of a gauge that is 1 while something is true.
func Truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// Part is a part of the appliance and its condition.
type Part = health.Part

// API is the admin API.
type API struct {
	o           Options
	readers     atomic.Int32 // of the events
	identifying busy[device.ID]
	trying      busy[string] // engines
	examining   sync.Mutex   // while the doctor looks
	finding     busy[struct{}]
}

// New returns the door.
func New(o Options) *API { return &API{o: o} }

// Status is the answer to GET status.
type Status struct {
	ID      string    `json:"id"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Robots  int       `json:"robots"`
	Open    int       `json:"open"`          // channels
	Reached int       `json:"connected"`     // robots that can be reached: by their channel, or by MQTT
	Lost    int       `json:"lost"`          // robots let go because they did not read
	Notices int       `json:"notifications"` // that wait
	Parts   []Part    `json:"parts"`
}

// Device is a robot as the API returns it.
type Device struct {
	ID  device.ID `json:"id"`
	MAC string    `json:"mac"`
	device.Settings
	Character string           `json:"character"`                 // the id of it
	Given     device.Transport `json:"transport_given,omitempty"` // at its last boot
	Board     string           `json:"board,omitempty"`
	Firmware  string           `json:"firmware,omitempty"`
	Address   string           `json:"address,omitempty"`
	BaseURL   string           `json:"base_url,omitempty"`
	FirstSeen time.Time        `json:"first_seen"`
	LastSeen  time.Time        `json:"last_seen"`
	Adopted   bool             `json:"adopted"`           // by its owner, by name; any other may talk, and nothing else
	Waiting   string           `json:"waiting,omitempty"` // why it waits for its owner
	Claimed   bool             `json:"claimed,omitempty"` // it is adopted, and another client waits with its MAC
	// Claimants are all clients that name themselves by its MAC, if there are several. If
	// nobody has adopted any of them, the board, firmware and address above are empty.
	Claimants []device.Claimant  `json:"claimants,omitempty"`
	Unlisted  bool               `json:"unlisted,omitempty"` // there were more claimants
	Code      string             `json:"code,omitempty"`     // that it shows
	Connected bool               `json:"connected"`          // it can be reached
	Talking   bool               `json:"talking"`            // its channel is open
	State     agent.Shown        `json:"state"`
	Emotion   string             `json:"emotion"`
	Status    *event.RobotStatus `json:"status,omitempty"` // as it last reported itself
	Senses    []string           `json:"senses,omitempty"` // in words
	Tools     []string           `json:"tools,omitempty"`
}

func (d *API) status() Status {
	return Status{ID: d.o.ID, Version: d.o.Version, Started: d.o.started(time.Now()).Round(time.Second), Robots: len(d.o.Robots.List()),
		Open: d.count(func(s agent.State) bool { return s.Talking }), Reached: d.count(func(s agent.State) bool { return s.Online }),
		Lost: d.o.Talk.Lost(), Notices: d.waiting(time.Now()), Parts: d.o.Parts()}
}

// count returns the number of robots for which a condition holds.
func (d *API) count(is func(agent.State) bool) (n int) {
	states, _ := d.o.Board.Snapshot()
	for _, s := range states {
		if s.Robot != "" && is(s) {
			n++
		}
	}
	return n
}

// started is when the appliance was started, by the clock as it is now: it may
// have been wrong then.
func (o Options) started(now time.Time) time.Time { return now.Round(0).Add(-now.Sub(o.Started)) }

// waiting counts the notifications that have not been delivered.
func (d *API) waiting(now time.Time) (n int) {
	for _, one := range d.o.Notices(now) {
		if one.State == notice.Received {
			n++
		}
	}
	return n
}

func (d *API) devices(now time.Time) []Device {
	list := []Device{}
	for _, r := range d.o.Robots.List() {
		list = append(list, d.viewOf(r, now))
	}
	return list
}

func (d *API) viewOf(r device.Robot, now time.Time) Device {
	state := d.o.Board.Robot(r.ID)
	shown := Device{
		ID: r.ID, MAC: r.ID.MAC(), Settings: r.Settings, Character: d.o.Characters.Who(r.ID, ""),
		Given: r.Transport, Board: r.Board, Firmware: r.Firmware,
		Address: r.Address, BaseURL: r.BaseURL,
		FirstSeen: r.FirstSeen, LastSeen: r.LastSeen, Adopted: r.Adopted(), Code: d.o.Robots.Code(r, now),
		Connected: state.Online, Talking: state.Talking, State: state.At(now), Emotion: state.Emotion.Name,
		Senses: d.o.Senses(r.ID, now),
	}
	switch {
	case r.Contested():
		shown.Claimants, shown.Unlisted = r.Claimants(), r.Unlisted
		shown.Board, shown.Firmware, shown.Address, shown.BaseURL, shown.Code = "", "", "", "", "" // any of them may be a stranger's
		shown.Waiting = "more than one client names itself by its MAC address; adopt it by the code on its screen, or name the client that is yours"
	case r.Claim != nil && r.Bound:
		shown.Claimed = true
		shown.Claimants, shown.Unlisted = r.Claimants(), r.Unlisted
		shown.Code = "" // its owner is to read it from the robot, for here it may be anybody's
		shown.Waiting = "another client names itself by its MAC address, from " + r.Claim.Address +
			"; if you erased its flash, adopt it by the code on its screen, or, where it shows none, with --replace"
	case r.Claim != nil:
		shown.Board, shown.Firmware, shown.Address = r.Claim.Board, r.Claim.Firmware, r.Claim.Address
		shown.Waiting = "it is new here; adopt it"
	}
	if status, known := d.o.Talk.Status(r.ID); known {
		shown.Status = &status
	}
	for _, t := range r.KnownTools() {
		shown.Tools = append(shown.Tools, t.Name)
	}
	return shown
}

// adopt adopts a robot. If a client replaces another, the channel of the one
// before is closed. client names one of several that claim the robot; empty names
// none. replace lets in the client that waits instead of the one that is bound, which
// an id alone does not.
func (d *API) adopt(ctx context.Context, idOrCode, client string, replace bool) (device.Robot, error) {
	before := map[device.ID]device.Client{}
	for _, r := range d.o.Robots.List() {
		before[r.ID] = r.Client
	}
	adopt := func() (device.Robot, error) { return d.o.Robots.Adopt(idOrCode, time.Now()) }
	if replace || client != "" {
		id, err := d.o.Robots.Resolve(idOrCode)
		if err != nil {
			return device.Robot{}, err
		}
		adopt = func() (device.Robot, error) { return d.o.Robots.AdoptClient(id, client) }
		if replace {
			adopt = func() (device.Robot, error) { return d.o.Robots.Replace(id, client) }
		}
	}
	robot, err := adopt()
	if err == nil && before[robot.ID] != robot.Client {
		// It may not be connected, and then there is nothing to hang up.
		_ = d.o.Talk.Hangup(ctx, robot.ID, "adopted anew")
	}
	return robot, err
}

// forget unbinds a robot, and hangs up on it.
func (d *API) forget(ctx context.Context, id device.ID) error {
	if err := d.o.Robots.Forget(id); err != nil {
		return err
	}
	if err := d.o.Firmware.Forget(id); err != nil {
		return err
	}
	// It may not be connected, and then there is nothing to hang up.
	_ = d.o.Talk.Hangup(ctx, id, "forgotten")
	return nil
}

// forgetStrangers forgets every stranger, and hangs up on
// it. It returns how many there were.
func (d *API) forgetStrangers(ctx context.Context) (int, error) {
	gone, err := d.o.Robots.ForgetStrangers()
	for _, id := range gone {
		_ = d.o.Talk.Hangup(ctx, id, "forgotten") // it may not be connected
	}
	return len(gone), err
}

// forgetConversation has a conversation begin anew. That of a robot goes by
// the robot's id, in whatever spelling, or its name; others have names of their own.
func (d *API) forgetConversation(name string) error {
	if name == "" || len(name) > limit.Session {
		return &httpserver.Fault{Word: "bad_conversation", HTTP: http.StatusBadRequest,
			Sentence: "a conversation is a robot's id or a name, of at most 512 bytes"}
	}
	if id, err := d.o.Robots.Resolve(name); err == nil {
		name = string(id)
	}
	return d.o.ForgetConversation(name)
}

// notify takes a notification's JSON and returns the id it goes by.
func (d *API) notify(body []byte) (id string, err error) {
	n, err := notice.ParseBy(body, d.o.Robots.Resolve)
	if err == nil && n.Robot != "" {
		var robot device.Robot
		robot, err = d.o.Robots.Get(n.Robot) // it would wait for a robot that never comes
		if err == nil && !robot.Adopted() {
			err = &httpserver.Fault{Word: "not_adopted", HTTP: http.StatusConflict,
				Sentence: "nobody has adopted this robot, so it tells nothing; perch robot adopt " + string(n.Robot) + " does that"}
		}
	}
	if err == nil {
		n, err = d.o.Notify(n)
	}
	return n.ID, err
}

// healthy reports whether the appliance does its work.
func (d *API) healthy() error {
	for _, p := range d.o.Parts() {
		if p.Vital && !p.OK {
			return &httpserver.Fault{Word: "unhealthy", Sentence: p.Name + ": " + p.Note, HTTP: http.StatusServiceUnavailable}
		}
	}
	return nil
}
