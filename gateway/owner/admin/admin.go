// Package admin is the API for the owner of the appliance: it returns the state of the appliance and carries out
// the owner's actions. The command perch uses the API over a Unix socket; the dashboard and scripts use it over HTTP.
package admin

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

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

// registry stores the robots. A client of a robot is the firmware, or another program, that checks in with the
// robot's MAC address. A client may identify itself by a Client-Id.
type registry interface {
	List() []device.Robot
	Get(id device.ID) (device.Robot, error)
	// Resolve returns the ID of the robot with the given MAC address or name. A MAC address need not be registered.
	Resolve(robot string) (device.ID, error)
	// Settings returns the owner's settings for a robot.
	Settings(id device.ID) device.Settings
	Configure(id device.ID, c device.Change) (device.Robot, error)
	// Code returns the adoption code on the screen of a robot, or "".
	Code(r device.Robot, now time.Time) string
	// Token returns a token for a client of an adopted robot.
	Token(id device.ID, c device.Client) (device.Robot, string, error)
	Adopt(idOrCode string, now time.Time) (device.Robot, error)
	// AddByHand registers and adopts a robot whose firmware makes no check-in.
	AddByHand(name, baseURL string, now time.Time) (device.Robot, error)
	// AdoptClient adopts a robot whose MAC address several clients claim. The parameter client is the Client-Id or the
	// IP address of the client to adopt.
	AdoptClient(id device.ID, client string) (device.Robot, error)
	// Replace admits a waiting client instead of the adopted client. The robot then has to be adopted again. The
	// parameter client is the Client-Id or the address of the waiting client; it may be empty if only one client waits.
	Replace(id device.ID, client string) (device.Robot, error)
	Forget(id device.ID) error
	// ForgetStrangers deletes all robots that were not adopted, and returns their IDs.
	ForgetStrangers() ([]device.ID, error)
}

// talk controls robots. For a robot that is not connected, Speak and Alert queue the speech or the alert until the
// robot connects; Abort, Hangup, Reboot and Call return an error that has the methods Code and Status.
type talk interface {
	Speak(ctx context.Context, id device.ID, text string) (queued bool, err error)
	// AskAgent makes a robot answer a text. If the robot's channel is closed, it returns the answer, and otherwise "".
	AskAgent(ctx context.Context, id device.ID, text string) (answer string, queued bool, err error)
	Alert(ctx context.Context, id device.ID, status, message, emotion string) (queued bool, err error)
	Abort(ctx context.Context, id device.ID) error
	Hangup(ctx context.Context, id device.ID, why string) error
	Reboot(ctx context.Context, id device.ID) error
	// Music returns the names of the owner's music.
	Music() []string
	// PlayMusic makes a robot play the music with a name, or the first if name is "", once it has spoken.
	PlayMusic(ctx context.Context, id device.ID, name string) error
	StopMusic(ctx context.Context, id device.ID) error
	// Tools returns the tools of a connected robot, or the last known tools of a disconnected one.
	Tools(id device.ID) []device.Tool
	// Status returns the latest status report of a robot, if there is one.
	Status(id device.ID) (event.RobotStatus, bool)
	// Call calls a tool and waits for its result.
	Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error)
	// Picture returns the latest picture of a robot's camera, if there is one.
	Picture(id device.ID) (device.Picture, bool)
	// Record calls out with each line of the transcript of the robot's open session, or, without an open session, of the
	// next session. It returns when the session or ctx ends, or when out returns an error or is too slow.
	Record(ctx context.Context, id device.ID, out func(line string) error) error
	// Lost returns how many channels were closed because messages could not be sent fast enough or at all.
	Lost() int
}

// Options are the parts of the appliance that the API uses.
type Options struct {
	Robots     registry
	Talk       talk
	Memory     *agent.Memory
	Timers     *notice.Timers
	Engines    engines
	Speech     speechModels
	Questions  questions
	Characters characters
	Firmware   *ota.Firmware
	Archives   archives
	Board      *agent.Board
	Bus        *event.Bus
	Gestures   perception.Gestures                                    // the gestures that robots can make
	Notify     func(notice.Notification) (notice.Notification, error) // stores a notification and delivers it
	Notices    func(now time.Time) []notice.Notification              // returns the notifications that are neither acknowledged nor expired

	Acknowledge        func(id string) error                      // acknowledges a notification
	ForgetConversation func(conversation string) error            // forgets what was said in a conversation; ignores an unknown conversation
	ForgetRefused      func()                                     // deletes the refused check-ins
	Phrase             func(id device.ID, name string) string     // returns a phrase in the language of a robot
	Senses             func(id device.ID, now time.Time) []string // describes what a robot perceives; nil if that is unknown
	Find               func(ctx context.Context) Found            // searches the network for servers until ctx ends
	Connections        func() Connections
	RobotURL           func() string // returns the URL at which a robot that makes no check-in reaches the appliance

	Refused  func() []ota.Refusal      // returns the latest refused check-ins, newest first
	Diary    func(n int) any           // returns the latest n entries of the diary, newest first
	Verify   func() (any, error)       // verifies the whole diary
	Turns    func(n int) any           // returns the latest n turns, newest first
	Week     func(robot device.ID) any // returns the daily sums of the latest days, of one robot or of all if robot is ""
	Parts    func() []Part
	Unheard  func() []string // returns the languages that the configuration expects people to speak and no recognizer supports
	Counters func() []Counter
	Gauges   []Gauge
	Settings settings                                 // the configuration; may be nil
	Logs     logs                                     // may be nil
	Doctor   func(context.Context) ([]Finding, error) // checks the whole appliance; may be nil
	Restart  func()                                   // restarts the appliance; may be nil
	Zone     *time.Location                           // the configured time zone
	Version  string                                   // version of Perch
	ID       string                                   // ID of the appliance
	Started  time.Time
}

// Counter is a counter of another package that the metrics include.
type Counter struct {
	Name  string // name of the metric, "perch_..._total"
	Help  string
	Count func() uint64
	// Labels distinguish several counters with the same name and help. Their values come from the configuration,
	// never from other programs. Labels is nil for a counter with a unique name.
	Labels map[string]string
}

// Gauge is a gauge of another package that the metrics include.
type Gauge struct {
	Name string // name of the metric, such as "perch_store_bytes"
	Help string
	Read func() float64 // called at each scrape
}

// BoolValue returns 1 for true and 0 for false, the values of a boolean gauge.
func BoolValue(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// Part is a part of the appliance, such as an engine, and its condition.
type Part = health.Part

// API is the API for the owner.
type API struct {
	o           Options
	readers     atomic.Int32 // number of programs that read the stream of events
	identifying sync.Map     // IDs of the robots that are blinking because of identify
	left        sync.Map     // when the browser tab that acts as a robot was closed; key: ID of the robot
	trying      sync.Map     // names of the engines that are being tried
	examining   sync.Mutex   // held while the doctor is running
	searches    singleflight.Group
}

// New returns an API. Routes and OpenRoutes mount it.
func New(o Options) *API { return &API{o: o} }

// Status is the response to GET /api/v1/status.
type Status struct {
	ID      string    `json:"id"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Robots  int       `json:"robots"`        // number of registered robots
	Open    int       `json:"open"`          // number of robots with an open channel
	Reached int       `json:"connected"`     // number of robots that can be reached by a channel or by MQTT
	Lost    int       `json:"lost"`          // number of channels closed because messages could not be sent fast enough or at all
	Notices int       `json:"notifications"` // number of notifications that have not been delivered
	Parts   []Part    `json:"parts"`
	Unheard []string  `json:"unheard,omitempty"` // see Options.Unheard
}

// Device is a robot in a response.
type Device struct {
	ID  device.ID `json:"id"`
	MAC string    `json:"mac"`
	device.Settings
	Character string           `json:"character"`                 // ID of the character
	Given     device.Transport `json:"transport_given,omitempty"` // transport that the robot got at its last boot
	Board     string           `json:"board,omitempty"`
	Firmware  string           `json:"firmware,omitempty"`
	Address   string           `json:"address,omitempty"`
	BaseURL   string           `json:"base_url,omitempty"`
	FirstSeen time.Time        `json:"first_seen"`
	LastSeen  time.Time        `json:"last_seen,omitzero"`
	Adopted   bool             `json:"adopted"`             // a robot that is not adopted can have conversations only
	Waiting   string           `json:"waiting,omitempty"`   // why the robot waits for its owner, as a sentence
	Contested bool             `json:"contested,omitempty"` // the robot is not adopted, and several clients use its MAC address
	Claimed   bool             `json:"claimed,omitempty"`   // the robot is adopted, and another client claims its MAC address
	// Claimants are all clients that use the MAC address of the robot, if there are several. If none of them is
	// adopted, Board, Firmware, Address and BaseURL are empty.
	Claimants []device.Claimant  `json:"claimants,omitempty"`
	Unlisted  bool               `json:"unlisted,omitempty"` // there are more claimants than listed
	Code      string             `json:"code,omitempty"`     // adoption code on the screen of the robot
	Left      bool               `json:"left,omitempty"`     // the robot is a tab of a browser, which was closed
	Connected bool               `json:"connected"`          // the robot can be reached
	Talking   bool               `json:"talking"`            // the channel is open
	State     agent.Shown        `json:"state"`
	Emotion   string             `json:"emotion"`
	Music     string             `json:"music,omitempty"`  // name of the music that it plays, or that has paused for speech
	Status    *event.RobotStatus `json:"status,omitempty"` // the latest status report
	Senses    []string           `json:"senses,omitempty"` // what the robot perceives, as phrases
	Tools     []string           `json:"tools,omitempty"`  // names of the tools
}

func (a *API) status() Status {
	return Status{ID: a.o.ID, Version: a.o.Version, Started: a.o.startTime(time.Now()).Round(time.Second), Robots: len(a.o.Robots.List()),
		Open: a.countRobots(func(s agent.State) bool { return s.Talking }), Reached: a.countRobots(func(s agent.State) bool { return s.Online }),
		Lost: a.o.Talk.Lost(), Notices: a.countUndelivered(time.Now()), Parts: a.o.Parts(), Unheard: a.o.Unheard()}
}

// days returns the daily sums of the latest days, of one robot by its MAC address or name, or of all.
func (a *API) days(robot string) (any, error) {
	if robot == "" {
		return a.o.Week(""), nil
	}
	id, err := a.o.Robots.Resolve(robot)
	if err != nil {
		return nil, err
	}
	return a.o.Week(id), nil
}

// countRobots returns the number of robots whose state fulfils the condition.
func (a *API) countRobots(condition func(agent.State) bool) (n int) {
	states, _ := a.o.Board.Snapshot()
	for _, s := range states {
		if s.Robot != "" && condition(s) {
			n++
		}
	}
	return n
}

// startTime returns when the appliance was started, computed from the present time and the uptime. The clock may
// have been wrong at the start.
func (o Options) startTime(now time.Time) time.Time { return now.Round(0).Add(-now.Sub(o.Started)) }

// countUndelivered returns the number of notifications that have not been delivered.
func (a *API) countUndelivered(now time.Time) (n int) {
	for _, notification := range a.o.Notices(now) {
		if notification.State == notice.Received {
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

// viewOf returns a robot as it is shown in responses.
func (a *API) viewOf(r device.Robot, now time.Time) Device {
	state := a.o.Board.Robot(r.ID)
	shown := Device{
		ID: r.ID, MAC: r.ID.MAC(), Settings: r.Settings, Character: a.o.Characters.Who(r.ID, ""),
		Given: r.Transport, Board: r.Board, Firmware: r.Firmware,
		Address: r.Address, BaseURL: r.BaseURL,
		FirstSeen: r.FirstSeen, LastSeen: r.LastSeen, Adopted: r.Adopted(), Code: a.o.Robots.Code(r, now), Left: a.hasLeft(r),
		Connected: state.Online, Talking: state.Talking, State: state.At(now), Emotion: state.Emotion.Name, Music: state.Music,
		Senses: a.o.Senses(r.ID, now),
	}
	if state.Online {
		shown.LastSeen = now
	}
	switch {
	case r.Contested():
		shown.Contested = true
		shown.Claimants, shown.Unlisted = r.Claimants(), r.Unlisted
		shown.Board, shown.Firmware, shown.Address, shown.BaseURL, shown.Code = "", "", "", "", "" // they may belong to the wrong client
		shown.Waiting = "more than one client uses the MAC address of this robot; adopt the robot by the code on its screen, or name your client"
	case r.Claim != nil && r.Bound:
		shown.Claimed = true
		shown.Claimants, shown.Unlisted = r.Claimants(), r.Unlisted
		shown.Code = "" // it may belong to the wrong client; the owner reads the code from the robot's screen
		shown.Waiting = "another client uses the MAC address of this robot, from " + r.Claim.Address +
			"; if you have erased the flash of the robot, adopt it by the code on its screen, or with --replace if it shows no code"
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

// adoption is the body of a request to adopt a robot. It has either Robot or Code.
type adoption struct {
	Robot   string // MAC address or name
	Code    string // adoption code on the screen of the robot
	Client  string // Client-Id or address of the client to adopt, if several clients claim to be the robot
	Replace bool   // admit the waiting client instead of the adopted client; the robot then has to be adopted again
}

// adopt adopts a robot, or, if b.Replace is true, admits the waiting client of a robot that then has to be adopted again. If
// this replaces another client, the channel of that client is closed.
func (a *API) adopt(ctx context.Context, b adoption) (robot device.Robot, err error) {
	if (b.Robot == "") == (b.Code == "") {
		return robot, httpserver.BadBody("either robot or code is needed")
	}
	if b.Code != "" && b.Client != "" {
		return robot, httpserver.BadBody("client needs robot; a code already identifies its client")
	}
	oldClients := map[device.ID]device.Client{}
	for _, r := range a.o.Robots.List() {
		oldClients[r.ID] = r.Client
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
	if err == nil && oldClients[robot.ID] != robot.Client {
		_ = a.o.Talk.Hangup(ctx, robot.ID, "another client was adopted") // fails if the robot is not connected
	}
	return robot, err
}

// forget deletes a robot and closes its channel.
func (a *API) forget(ctx context.Context, id device.ID) error {
	if err := a.o.Robots.Forget(id); err != nil {
		return err
	}
	if err := a.o.Firmware.Forget(id); err != nil {
		return err
	}
	a.left.Delete(id)
	_ = a.o.Talk.Hangup(ctx, id, "forgotten") // fails if the robot is not connected
	return nil
}

// forgetStrangers deletes all robots that were not adopted, closes their channels, and returns their number.
func (a *API) forgetStrangers(ctx context.Context) (int, error) {
	forgotten, err := a.o.Robots.ForgetStrangers()
	for _, id := range forgotten {
		_ = a.o.Talk.Hangup(ctx, id, "forgotten") // fails if the robot is not connected
	}
	return len(forgotten), err
}

// forgetConversation makes a conversation start again. The name is the name of the conversation, or the MAC address
// or name of a robot for the conversation with that robot.
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

// notify stores and delivers a notification in JSON, and returns its ID.
func (a *API) notify(body []byte) (id string, err error) {
	n, err := notice.Parse(body, a.o.Robots.Resolve)
	if err == nil && n.Robot != "" {
		_, err = a.adopted(string(n.Robot)) // a notification for an unknown robot would wait forever
	}
	if err == nil {
		n, err = a.o.Notify(n)
	}
	return n.ID, err
}

// adopted returns the adopted robot with a name, an ID or a MAC address.
func (a *API) adopted(name string) (device.Robot, error) {
	id, err := a.o.Robots.Resolve(name)
	if err != nil {
		return device.Robot{}, err
	}
	robot, err := a.o.Robots.Get(id)
	if err == nil && !robot.Adopted() {
		err = &httpserver.Fault{Word: "not_adopted", HTTP: http.StatusConflict,
			Sentence: "nobody has adopted this robot, so it announces nothing; adopt it with perch robot adopt " + string(id)}
	}
	return robot, err
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
