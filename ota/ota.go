// Package ota answers a robot's check-in at boot with where to connect, the time and the
// firmware to run. A wrong answer would put a robot into a boot loop, so the reply is a type
// that cannot contain one: no key over 15 characters, numbers that are numbers, only
// versions that can be compared, and a single transport.
//
// Images are stored in a catalogue, checked as a robot's boot loader checks them, and rolled
// out by a pure function from check-in to check-in.
package ota

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"perch/device"
	"perch/event"
	"perch/language"
	"perch/plain"
)

// registry decides who may connect.
type registry interface {
	CheckIn(c device.CheckIn, now time.Time) (device.Robot, device.Admission)
	Get(id device.ID) (device.Robot, error)
	KeepTransport(id device.ID, t device.Transport)
}

// publisher is the event bus.
type publisher interface {
	Publish(robot device.ID, session string, e event.Event)
}

// Options of a Service.
type Options struct {
	Robots    registry
	Bus       publisher
	Zone      *time.Location
	PublicURL string           // "http://host:port"; empty uses the Host of each request
	Framing   int              // binary framing for robots: 1, 2 or 3
	Firmware  *Firmware        // nil offers nothing
	Transport device.Transport // of robots without a setting; empty means WebSocket
	MQTT      MQTT             // where robots connect by MQTT
	// Earliest is a time before which the clock must be wrong, such as the build time of
	// the program: robots are not sent a wrong time. Zero trusts every clock.
	Earliest time.Time
	Language func() string // the household's, BCP 47, for robots that report none; nil is English
	Log      *slog.Logger
}

// MQTT is where robots connect by MQTT.
type MQTT struct {
	Port  int    // of this machine, 8883 for TLS; 0 disables MQTT, and robots use WebSockets
	Topic string // that robots publish to
}

// Service answers robots' check-ins.
type Service struct {
	o         Options
	strangers logLimit
	forgotten logLimit
	refusals  refusals
	words     language.Catalogue
}

// New returns the service.
func New(o Options) *Service {
	if o.Language == nil {
		o.Language = func() string { return "" }
	}
	return &Service{o: o}
}

// Request is a check-in. The headers, or the query, identify the robot. The firmware does
// not escape the body, so it may be invalid.
type Request struct {
	Host      string // of the request, with the port if it has one
	TLS       bool   // as from the browser's robot
	DeviceID  string
	ClientID  string
	UserAgent string // "<board>/<version>"
	Language  string
	Address   string // of the robot
	Body      []byte
}

// Reply is the answer as the firmware parses it.
type Reply struct {
	ServerTime serverTime  `json:"server_time,omitzero"`
	Firmware   *firmware   `json:"firmware,omitempty"`
	WebSocket  *webSocket  `json:"websocket,omitempty"`
	MQTT       *mqtt       `json:"mqtt,omitempty"`
	Activation *activation `json:"activation,omitempty"`
}

type serverTime struct {
	Timestamp int64 `json:"timestamp"`       // milliseconds
	Offset    int   `json:"timezone_offset"` // minutes, added by the robot
}

// firmware with an empty URL offers nothing. Each part of the version must begin with a
// digit, or the robot aborts; "0" is never newer. A robot whose own version cannot be
// compared must not be sent this section at all.
type firmware struct {
	Version string `json:"version"`
	URL     string `json:"url"`
	Force   int    `json:"force,omitempty"` // 1 installs regardless of versions; other types are ignored
}

// webSocket is copied by the robot key by key into its flash: if a token or version is
// missing, it keeps the earlier one. A robot that waits for its owner gets no webSocket,
// because some clients keep an empty token after their adoption. A robot chooses its
// transport only after that.
type webSocket struct {
	URL     string `json:"url"`
	Token   string `json:"token"`
	Version int    `json:"version"`
}

// mqtt is copied like webSocket. A robot that gets it uses MQTT, whether or not it also gets
// a webSocket. The firmware reads no topic to subscribe to.
type mqtt struct {
	Endpoint string `json:"endpoint"` // host:port; 8883 is TLS
	Client   string `json:"client_id"`
	User     string `json:"username"`
	Password string `json:"password"`
	Alive    int    `json:"keepalive"` // seconds
	Topic    string `json:"publish_topic"`
}

// aliveFor is the keepalive of robots by MQTT, in seconds: a robot that is switched off is
// missed after one and a half times that. The firmware's default is 240.
const aliveFor = 60

// activation makes the robot ask until its owner has adopted it.
type activation struct {
	Message   string `json:"message"`
	Code      string `json:"code,omitempty"` // shown digit by digit, and spoken
	Challenge string `json:"challenge"`
}

// fault is an error shown to a robot's owner.
type fault struct {
	code   string
	status int
	why    error
}

func (f *fault) Error() string { return f.why.Error() }
func (f *fault) Unwrap() error { return f.why }
func (f *fault) Code() string  { return f.code }
func (f *fault) Status() int   { return f.status }

// CheckIn answers a robot that has booted.
func (s *Service) CheckIn(r Request, now time.Time) (Reply, error) {
	checkIn, err := s.parse(r)
	if err != nil {
		return Reply{}, err
	}
	robot, admission := s.o.Robots.CheckIn(checkIn, now)
	s.announce(checkIn, robot, admission, now)
	reply := s.reply(robot.ID, admission, checkIn.Language, now)
	if admission.Token != "" {
		s.connect(&reply, robot, checkIn, admission.Token, isBrowser(r.UserAgent))
	}
	reply.Firmware = s.upgrade(robot, checkIn.Firmware, admission, r.Body, now)
	return reply, nil
}

// upgrade returns the offer to a robot. A robot that is not adopted does not affect rollouts.
func (s *Service) upgrade(r device.Robot, version string, a device.Admission, body []byte, now time.Time) *firmware {
	if !survives(version) {
		return nil
	}
	if s.o.Firmware == nil || a.Token == "" || !r.Adopted() {
		return &firmware{Version: "0"}
	}
	facts, elf := parseFacts(body)
	image, force := s.o.Firmware.checkIn(sighting{robot: r.ID, board: r.Board, version: r.Firmware, elf: elf, facts: facts, at: now})
	if image == nil {
		return &firmware{Version: "0"}
	}
	offer := &firmware{Version: image.Version, URL: r.BaseURL + s.o.Firmware.location(image.SHA256, r.ID, now)}
	if force {
		offer.Force = 1
	}
	return offer
}

// withTimestamps is the framing whose microphone packets name the packet being played, as
// server-side echo cancellation needs.
const withTimestamps = 2

// connect sets where a robot connects, by its own transport or the default. A browser has
// WebSockets only.
func (s *Service) connect(reply *Reply, robot device.Robot, c device.CheckIn, token string, page bool) {
	transport := cmp.Or(robot.Settings.Transport, s.o.Transport, device.WebSocket)
	if page || s.o.MQTT.Port == 0 {
		transport = device.WebSocket
	}
	s.o.Robots.KeepTransport(robot.ID, transport)
	if transport == device.MQTT {
		reply.MQTT = &mqtt{Endpoint: s.endpoint(c.BaseURL), Client: c.Client.ID, User: string(robot.ID), Password: token, Alive: aliveFor,
			Topic: s.o.MQTT.Topic}
		return
	}
	framing := s.o.Framing
	if robot.Echo {
		framing = withTimestamps
	}
	reply.WebSocket = &webSocket{URL: "ws" + strings.TrimPrefix(c.BaseURL, "http") + "/xiaozhi/v1/", Token: token, Version: framing}
}

// endpoint returns where a robot connects by MQTT, under the host name that it used here.
func (s *Service) endpoint(base string) string {
	_, address, _ := strings.Cut(base, "://")
	host, _, _ := net.SplitHostPort(address) // base always has a port
	return net.JoinHostPort(host, strconv.Itoa(s.o.MQTT.Port))
}

func (s *Service) reply(id device.ID, a device.Admission, tag string, now time.Time) Reply {
	_, offset := now.In(s.o.Zone).Zone()
	var reply Reply
	if !now.Before(s.o.Earliest) { // the robot may have a better clock
		reply.ServerTime = serverTime{Timestamp: now.UnixMilli(), Offset: offset / 60}
	}
	if a.Token == "" {
		// Without a challenge the robot would not ask whether it was adopted.
		by := cmp.Or(a.Code, string(id))
		words := s.words.In(append(language.Accepted(tag), s.o.Language())...)
		reply.Activation = &activation{Message: words.Message("robot.adopt", "code", by), Code: a.Code, Challenge: by}
	}
	return reply
}

// parse reads the identity from the headers, and the rest from the headers or the body.
func (s *Service) parse(r Request) (device.CheckIn, error) {
	// An SSID with a quote in it makes the body invalid. The robot is still answered.
	var body reported
	if json.Unmarshal(r.Body, &body) != nil {
		body = reported{}
	}
	id, err := parseID(cmp.Or(r.DeviceID, body.MAC))
	if err != nil {
		return device.CheckIn{}, err
	}
	base, err := s.base(r.Host, r.TLS)
	if err != nil {
		return device.CheckIn{}, err
	}
	board, version, _ := strings.Cut(r.UserAgent, "/")
	if isBrowser(r.UserAgent) { // its name does not identify the client
		board, version = cmp.Or(text(body.Board.Type), text(body.Application.Name)), ""
	}
	return device.CheckIn{
		ID: id, Client: s.client(id, r.ClientID, body), BaseURL: base, Address: r.Address,
		Board: clip(cmp.Or(body.Board.Name, board)), Firmware: clip(cmp.Or(body.Application.Version, version)),
		// The firmware reports the language of its assets only in these two, which are
		// both the code that it was built with.
		Language: clip(cmp.Or(r.Language, body.Language)),
	}, nil
}

func parseID(text string) (device.ID, error) {
	id, err := device.ParseID(text)
	if err != nil {
		return "", &fault{"no_device_id", http.StatusBadRequest,
			fmt.Errorf("the Device-Id header, or device-id in the query, must hold the robot's MAC address: %w", err)}
	}
	return id, nil
}

// isBrowser reports whether a User-Agent begins as every browser's does.
func isBrowser(userAgent string) bool { return strings.HasPrefix(userAgent, "Mozilla/") }

// client returns the client that checks in: by the headers or the query, else by the body.
// A robot bound without a client id stays so.
func (s *Service) client(id device.ID, sent string, body reported) device.Client {
	if robot, err := s.o.Robots.Get(id); sent == "" && (err != nil || !robot.Bound || robot.Client.Sent) {
		return device.NewClient(text(body.UUID))
	}
	return device.NewClient(sent)
}

// base returns the appliance's address for robots, with a port, which the firmware requires.
func (s *Service) base(host string, encrypted bool) (string, error) {
	if s.o.PublicURL != "" {
		return s.o.PublicURL, nil
	}
	scheme, usual := "http://", "80"
	if encrypted {
		scheme, usual = "https://", "443"
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = host, usual
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || !device.IsHost(name) {
		return "", &fault{"bad_host", http.StatusBadRequest, fmt.Errorf("the Host header %q is no name and port that a robot can be given",
			clip(host))}
	}
	return scheme + net.JoinHostPort(name, port), nil
}

// reported are the fields of the body that are used.
type reported struct {
	MAC         string `json:"mac_address"`
	UUID        any    `json:"uuid"`
	Language    string `json:"language"`
	Application struct {
		Name    any    `json:"name"`
		Version string `json:"version"`
	} `json:"application"`
	Board struct {
		Name string `json:"name"`
		Type any    `json:"type"`
	} `json:"board"`
}

// text returns v if it is a string, else "".
func text(v any) string {
	s, _ := v.(string)
	return s
}

// clip shortens untrusted text, and removes control characters, which could control a
// terminal or start a new line in the log.
func clip(s string) string {
	return plain.Clip(plain.Text(s), 100)
}

// Activate reports whether a robot that shows a code has been adopted.
func (s *Service) Activate(deviceID, clientID string) (bool, error) {
	id, err := parseID(deviceID)
	if err != nil {
		return false, err
	}
	robot, err := s.o.Robots.Get(id)
	if err != nil {
		return false, &fault{"unknown_robot", http.StatusNotFound, errors.New("this robot has not checked in")}
	}
	if clientID == "" { // the client may be in the body of its check-in
		return robot.Bound && robot.Claim == nil, nil
	}
	return robot.Bound && robot.Client == device.NewClient(clientID), nil
}
