// Package admin is the owner's API: the state of the appliance and the actions of its owner.
// The command perch uses it over a socket, the dashboard and scripts over HTTP.
package admin

import (
	"cmp"
	"context"
	"net/http"
	"strings"
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

// registry stores the robots.
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
// it connects; other actions fail with an error that has a code and a status.
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
	// Record writes a transcript of the messages from now on, line by line, until ctx ends or out fails.
	Record(ctx context.Context, id device.ID, out func(line string) error) error
	// Lost counts robots disconnected because they did not read.
	Lost() int
}

// Options are the dependencies of the API.
type Options struct {
	Robots     registry
	Talk       talk
	Memory     *agent.Memory
	Timers     *notice.Timers
	Engines    engines
	Questions  questions
	Characters characters
	Firmware   *ota.Firmware
	Archives   archives
	Board      *agent.Board
	Bus        *event.Bus
	Gestures   perception.Gestures                                    // that robots can make
	Notify     func(notice.Notification) (notice.Notification, error) // accepts and delivers a notification
	Notices    func(now time.Time) []notice.Notification              // open notifications

	Acknowledge        func(id string) error                      // marks a notification as read
	ForgetConversation func(conversation string) error            // restarts a conversation; not an error for an unknown one
	Phrase             func(id device.ID, name string) string     // a robot's own phrases, by name
	Senses             func(id device.ID, now time.Time) []string // what a robot perceives, in words; nil if nothing is known
	Find               func(ctx context.Context) Found            // searches the network until ctx ends
	Connections        func() Connections

	Refused  func() []ota.Refusal // the latest refused check-ins, newest first
	Diary    func(most int) any   // the latest entries, newest first
	Verify   func() (any, error)  // checks the whole diary
	Turns    func(most int) any   // the latest turns
	Parts    func() []Part
	Counters func() []Counter
	Gauges   []Gauge
	Settings settings                                 // the configuration; may be nil
	Logs     logs                                     // may be nil
	Doctor   func(context.Context) ([]Finding, error) // may be nil
	Restart  func()                                   // may be nil
	Version  string
	ID       string
	Started  time.Time
}

// Counter is a counter of another package, for the metrics.
type Counter struct {
	Name  string // in Prometheus, "perch_..._total"
	Help  string
	Count func() uint64
	// Labels distinguish it from others of the same name and help. Their values come from the
	// configuration, never from clients; nil for a single counter.
	Labels map[string]string
}

// Gauge is a value of another package that is read at each scrape.
type Gauge struct {
	Name string // in Prometheus, "perch_store_bytes"
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
	identifying sync.Map     // device.IDs that show which robot they are
	trying      sync.Map     // names of engines that are being tried
	examining   sync.Mutex   // while the doctor works
	searching   sync.Mutex   // while the network is searched
}

// New returns the API.
func New(o Options) *API { return &API{o: o} }

// Status is the answer to GET status.
type Status struct {
	ID      string    `json:"id"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Robots  int       `json:"robots"`
	Open    int       `json:"open"`          // channels
	Reached int       `json:"connected"`     // robots that can be reached by a channel or by MQTT
	Lost    int       `json:"lost"`          // robots disconnected because they did not read
	Notices int       `json:"notifications"` // not delivered yet
	Parts   []Part    `json:"parts"`
}

// Device is a robot as the API returns it.
type Device struct {
	ID  device.ID `json:"id"`
	MAC string    `json:"mac"`
	device.Settings
	Character string           `json:"character"`                 // its id
	Given     device.Transport `json:"transport_given,omitempty"` // at its last boot
	Board     string           `json:"board,omitempty"`
	Firmware  string           `json:"firmware,omitempty"`
	Address   string           `json:"address,omitempty"`
	BaseURL   string           `json:"base_url,omitempty"`
	FirstSeen time.Time        `json:"first_seen"`
	LastSeen  time.Time        `json:"last_seen"`
	Adopted   bool             `json:"adopted"`           // any other robot may talk, and nothing else
	Waiting   string           `json:"waiting,omitempty"` // why it waits for its owner
	Claimed   bool             `json:"claimed,omitempty"` // it is adopted, and another client waits with its MAC
	// Claimants are all clients that name themselves by its MAC, if there are several. If
	// none of them is adopted, the board, firmware and address above are empty.
	Claimants []device.Claimant  `json:"claimants,omitempty"`
	Unlisted  bool               `json:"unlisted,omitempty"` // there were more claimants
	Code      string             `json:"code,omitempty"`     // on its screen
	Connected bool               `json:"connected"`          // it can be reached
	Talking   bool               `json:"talking"`            // its channel is open
	State     agent.Shown        `json:"state"`
	Emotion   string             `json:"emotion"`
	Status    *event.RobotStatus `json:"status,omitempty"` // its latest report
	Senses    []string           `json:"senses,omitempty"` // in words
	Tools     []string           `json:"tools,omitempty"`
}

func (a *API) status() Status {
	return Status{ID: a.o.ID, Version: a.o.Version, Started: a.o.started(time.Now()).Round(time.Second), Robots: len(a.o.Robots.List()),
		Open: a.count(func(s agent.State) bool { return s.Talking }), Reached: a.count(func(s agent.State) bool { return s.Online }),
		Lost: a.o.Talk.Lost(), Notices: a.waiting(time.Now()), Parts: a.o.Parts()}
}

// count returns the number of robots with a condition.
func (a *API) count(is func(agent.State) bool) (n int) {
	states, _ := a.o.Board.Snapshot()
	for _, s := range states {
		if s.Robot != "" && is(s) {
			n++
		}
	}
	return n
}

// started is when the appliance was started by the present clock, which may have been wrong then.
func (o Options) started(now time.Time) time.Time { return now.Round(0).Add(-now.Sub(o.Started)) }

// waiting counts the notifications that have not been delivered.
func (a *API) waiting(now time.Time) (n int) {
	for _, one := range a.o.Notices(now) {
		if one.State == notice.Received {
			n++
		}
	}
	return n
}

func (a *API) devices(now time.Time) []Device {
	list := []Device{}
	for _, r := range a.o.Robots.List() {
		list = append(list, a.viewOf(r, now))
	}
	return list
}

func (a *API) viewOf(r device.Robot, now time.Time) Device {
	state := a.o.Board.Robot(r.ID)
	shown := Device{
		ID: r.ID, MAC: r.ID.MAC(), Settings: r.Settings, Character: a.o.Characters.Who(r.ID, ""),
		Given: r.Transport, Board: r.Board, Firmware: r.Firmware,
		Address: r.Address, BaseURL: r.BaseURL,
		FirstSeen: r.FirstSeen, LastSeen: r.LastSeen, Adopted: r.Adopted(), Code: a.o.Robots.Code(r, now),
		Connected: state.Online, Talking: state.Talking, State: state.At(now), Emotion: state.Emotion.Name,
		Senses: a.o.Senses(r.ID, now),
	}
	switch {
	case r.Contested():
		shown.Claimants, shown.Unlisted = r.Claimants(), r.Unlisted
		shown.Board, shown.Firmware, shown.Address, shown.BaseURL, shown.Code = "", "", "", "", "" // each may be a stranger's
		shown.Waiting = "more than one client names itself by its MAC address; adopt it by the code on its screen, or name the client that is yours"
	case r.Claim != nil && r.Bound:
		shown.Claimed = true
		shown.Claimants, shown.Unlisted = r.Claimants(), r.Unlisted
		shown.Code = "" // it may be a stranger's; the owner reads the robot's from its screen
		shown.Waiting = "another client names itself by its MAC address, from " + r.Claim.Address +
			"; if you erased its flash, adopt it by the code on its screen, or, where it shows none, with --replace"
	case r.Claim != nil:
		shown.Board, shown.Firmware, shown.Address = r.Claim.Board, r.Claim.Firmware, r.Claim.Address
		shown.Waiting = "it is new here; adopt it"
	}
	if status, known := a.o.Talk.Status(r.ID); known {
		shown.Status = &status
	}
	for _, t := range r.KnownTools() {
		shown.Tools = append(shown.Tools, t.Name)
	}
	return shown
}

// adoption is the body of a request to adopt a robot, by its id or code. Client names one of several
// that claim the robot. Replace admits the client that waits instead of the adopted one.
type adoption struct {
	Robot, Code, Client string
	Replace             bool
}

// adopt adopts a robot. If a client replaces another, the channel of the earlier one is closed.
func (a *API) adopt(ctx context.Context, b adoption) (robot device.Robot, err error) {
	if (b.Robot == "") == (b.Code == "") {
		return robot, httpserver.BadBody("either robot or code is needed")
	}
	if b.Code != "" && b.Client != "" {
		return robot, httpserver.BadBody("client goes with robot; a code names its client by itself")
	}
	before := map[device.ID]device.Client{}
	for _, r := range a.o.Robots.List() {
		before[r.ID] = r.Client
	}
	idOrCode, client := strings.TrimSpace(cmp.Or(b.Robot, b.Code)), strings.TrimSpace(b.Client)
	if !b.Replace && client == "" {
		robot, err = a.o.Robots.Adopt(idOrCode, time.Now())
	} else {
		var id device.ID
		if id, err = a.o.Robots.Resolve(idOrCode); err != nil {
			return robot, err
		}
		adopt := a.o.Robots.AdoptClient
		if b.Replace {
			adopt = a.o.Robots.Replace
		}
		robot, err = adopt(id, client)
	}
	if err == nil && before[robot.ID] != robot.Client {
		_ = a.o.Talk.Hangup(ctx, robot.ID, "adopted anew") // it may not be connected
	}
	return robot, err
}

// forget unbinds a robot, and hangs up on it.
func (a *API) forget(ctx context.Context, id device.ID) error {
	if err := a.o.Robots.Forget(id); err != nil {
		return err
	}
	if err := a.o.Firmware.Forget(id); err != nil {
		return err
	}
	_ = a.o.Talk.Hangup(ctx, id, "forgotten") // it may not be connected
	return nil
}

// forgetStrangers forgets all strangers, hangs up on them, and returns their number.
func (a *API) forgetStrangers(ctx context.Context) (int, error) {
	gone, err := a.o.Robots.ForgetStrangers()
	for _, id := range gone {
		_ = a.o.Talk.Hangup(ctx, id, "forgotten") // it may not be connected
	}
	return len(gone), err
}

// forgetConversation restarts a conversation. A robot's is named by the robot's id, in any spelling, or its name.
func (a *API) forgetConversation(name string) error {
	if name == "" || len(name) > limit.Session {
		return &httpserver.Fault{Word: "bad_conversation", HTTP: http.StatusBadRequest,
			Sentence: "a conversation is a robot's id or a name, of at most 512 bytes"}
	}
	if id, err := a.o.Robots.Resolve(name); err == nil {
		name = string(id)
	}
	return a.o.ForgetConversation(name)
}

// notify accepts a notification in JSON and returns its id.
func (a *API) notify(body []byte) (id string, err error) {
	n, err := notice.ParseBy(body, a.o.Robots.Resolve)
	if err == nil && n.Robot != "" {
		var robot device.Robot
		robot, err = a.o.Robots.Get(n.Robot) // without one, it would wait forever
		if err == nil && !robot.Adopted() {
			err = &httpserver.Fault{Word: "not_adopted", HTTP: http.StatusConflict,
				Sentence: "nobody has adopted this robot, so it tells nothing; perch robot adopt " + string(n.Robot) + " does that"}
		}
	}
	if err == nil {
		n, err = a.o.Notify(n)
	}
	return n.ID, err
}

// healthy returns an error if a vital part of the appliance does not work.
func (a *API) healthy() error {
	for _, p := range a.o.Parts() {
		if p.Vital && !p.OK {
			return &httpserver.Fault{Word: "unhealthy", Sentence: p.Name + ": " + p.Note, HTTP: http.StatusServiceUnavailable}
		}
	}
	return nil
}
