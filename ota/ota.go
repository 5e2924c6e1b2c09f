// Package ota handles the check-in of a robot that has booted: the reply contains the address
// to connect to, the time, and the firmware to install. An invalid reply can put a robot into a
// boot loop. A Reply is always valid: keys have at most 15 characters, numbers are JSON numbers,
// versions can be compared, and there is only one transport.
//
// Firmware images are stored in a catalogue, which checks them as a robot's boot loader does. A
// rollout says which robots an image is offered to. An offer is part of the reply to a check-in.
package ota

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/language"
	"perch/plain"
)

// registry contains the robots and decides which clients may connect. A client is the firmware of
// a robot, or another program, that checks in with the robot's MAC address.
type registry interface {
	CheckIn(c device.CheckIn, now time.Time) (device.Robot, device.Admission)
	Get(id device.ID) (device.Robot, error)
	StoreTransport(id device.ID, t device.Transport)
}

// publisher is the event bus.
type publisher interface {
	Publish(robot device.ID, session string, e event.Event)
}

// Options configure a Service.
type Options struct {
	Robots    registry
	Bus       publisher
	Zone      *time.Location   // time zone that robots are set to
	PublicURL string           // address for robots, "http://host:port"; if empty, the Host of each request is used
	Framing   int              // binary framing of WebSockets: 1, 2 or 3
	Firmware  *Firmware        // nil means that no firmware is offered
	Transport device.Transport // transport of robots without a setting; empty means WebSocket
	MQTT      MQTT
	// Earliest is a time before which the appliance's clock must be wrong, such as the build
	// time of the program. Robots are not sent an earlier time. Zero means that every time is
	// sent.
	Earliest time.Time
	Language func() string // returns the configured language (BCP 47), for robots that report none; nil means English
	Log      *slog.Logger
}

// MQTT configures the connections of robots by MQTT.
type MQTT struct {
	Port  int    // port of the broker on this machine; robots use TLS if it is 8883; 0 disables MQTT
	Topic string // topic that robots publish to
}

// Service handles the check-ins of robots.
type Service struct {
	o         Options
	strangers logLimit // limits the log and the events about robots that are not adopted
	forgotten logLimit // limits the events about forgotten robots
	refusals  refusals
	words     language.Catalogue
}

// New returns a service.
func New(o Options) *Service {
	if o.Language == nil {
		o.Language = func() string { return "" }
	}
	return &Service{o: o}
}

// Request is a check-in.
type Request struct {
	Host      string // the header Host, with or without a port
	TLS       bool   // whether the request was received over TLS
	DeviceID  string // the robot's MAC address from the headers or the query; may be empty
	ClientID  string // from the headers or the query; may be empty
	UserAgent string // "<board>/<version>" from the firmware
	Language  string // the header Accept-Language
	Address   string // IP address of the robot
	Body      []byte // may be invalid JSON, since the firmware does not escape texts
}

// Reply is the response to a check-in, in the format that the firmware parses.
type Reply struct {
	ServerTime serverTime  `json:"server_time,omitzero"`
	Firmware   *firmware   `json:"firmware,omitempty"`
	WebSocket  *webSocket  `json:"websocket,omitempty"`
	MQTT       *mqtt       `json:"mqtt,omitempty"`
	Activation *activation `json:"activation,omitempty"`
}

// serverTime sets the robot's clock.
type serverTime struct {
	Timestamp int64 `json:"timestamp"`       // milliseconds since 1970, UTC
	Offset    int   `json:"timezone_offset"` // minutes that the robot adds to get the local time
}

// firmware offers an image. The robot crashes if a part of Version does not begin with a number.
// The version "0" is never newer than the robot's version and so offers nothing. The robot also
// crashes if its own version cannot be compared; the reply to such a robot must not contain this
// section.
type firmware struct {
	Version string `json:"version"`
	URL     string `json:"url"`             // empty if nothing is offered
	Force   int    `json:"force,omitempty"` // 1 makes the robot install the image regardless of the versions
}

// webSocket contains the address of the WebSocket. The robot stores the fields that are present,
// and does not change its stored values of missing fields. A robot that waits to be adopted gets no
// webSocket, because some clients would still use an empty token after the adoption.
type webSocket struct {
	URL     string `json:"url"`
	Token   string `json:"token"`
	Version int    `json:"version"` // binary framing
}

// mqtt contains the address of the MQTT broker. The robot stores the fields in the same way as
// those of webSocket. A robot that gets both sections uses MQTT.
type mqtt struct {
	Endpoint string `json:"endpoint"` // host:port; the robot uses TLS on port 8883
	Client   string `json:"client_id"`
	User     string `json:"username"`
	Password string `json:"password"`
	Alive    int    `json:"keepalive"` // seconds
	Topic    string `json:"publish_topic"`
}

// mqttKeepalive is the keepalive interval of MQTT connections, in seconds. The broker closes the
// connection of a robot that has sent nothing for one and a half intervals. The firmware's default is 240.
const mqttKeepalive = 60

// activation makes the robot show a message, and repeat the request for Activate until the owner has
// adopted the robot.
type activation struct {
	Message   string `json:"message"`
	Code      string `json:"code,omitempty"` // the robot shows the code and speaks its digits
	Challenge string `json:"challenge"`      // without a challenge the robot does not send the request for Activate
}

// refuse returns a *httpserver.Fault with a code for programs, an HTTP status and a sentence for the
// owner.
func refuse(code string, status int, format string, values ...any) error {
	err := fmt.Errorf(format, values...)
	return &httpserver.Fault{Word: code, HTTP: status, Sentence: err.Error(), Err: err}
}

// CheckIn handles the check-in of a robot that has booted. The error is a *httpserver.Fault.
func (s *Service) CheckIn(r Request, now time.Time) (Reply, error) {
	checkIn, err := s.parseRequest(r)
	if err != nil {
		return Reply{}, err
	}
	robot, admission := s.o.Robots.CheckIn(checkIn, now)
	s.announce(checkIn, robot, admission, now)
	reply := s.newReply(robot.ID, admission, checkIn.Language, now)
	if admission.Token != "" {
		s.setTransport(&reply, robot, checkIn, admission.Token, isBrowser(r.UserAgent))
	}
	reply.Firmware = s.upgrade(robot, checkIn.Firmware, admission, r.Body, now)
	return reply, nil
}

// upgrade returns the firmware section of a reply. It is nil if the robot's version cannot be
// compared. A robot that is not adopted gets no offer and does not affect rollouts.
func (s *Service) upgrade(r device.Robot, version string, a device.Admission, body []byte, now time.Time) *firmware {
	if !isComparable(version) {
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

// framingWithTimestamps is the binary framing where each microphone packet names the packet
// that is being played. Echo cancellation on the appliance needs it.
const framingWithTimestamps = 2

// setTransport adds the section for the robot's transport to a reply, and stores the transport in the
// registry. Browsers always get a WebSocket, and so do all robots if MQTT is disabled.
func (s *Service) setTransport(reply *Reply, robot device.Robot, c device.CheckIn, token string, browser bool) {
	transport := cmp.Or(robot.Settings.Transport, s.o.Transport, device.WebSocket)
	if browser || s.o.MQTT.Port == 0 {
		transport = device.WebSocket
	}
	s.o.Robots.StoreTransport(robot.ID, transport)
	if transport == device.MQTT {
		reply.MQTT = &mqtt{Endpoint: s.mqttEndpoint(c.BaseURL), Client: c.Client.ID, User: string(robot.ID), Password: token, Alive: mqttKeepalive,
			Topic: s.o.MQTT.Topic}
		return
	}
	framing := s.o.Framing
	if robot.Echo {
		framing = framingWithTimestamps
	}
	reply.WebSocket = &webSocket{URL: "ws" + strings.TrimPrefix(c.BaseURL, "http") + "/xiaozhi/v1/", Token: token, Version: framing}
}

// mqttEndpoint returns the host and port of the MQTT broker. base is the address that the robot
// uses for this appliance.
func (s *Service) mqttEndpoint(base string) string {
	_, address, _ := strings.Cut(base, "://")
	host, _, _ := net.SplitHostPort(address) // base always has a port
	return net.JoinHostPort(host, strconv.Itoa(s.o.MQTT.Port))
}

// newReply returns a reply with the time and, for a robot that may not connect before its owner
// adopts the robot, the activation. tag is the robot's language in the format of Accept-Language.
func (s *Service) newReply(id device.ID, a device.Admission, tag string, now time.Time) Reply {
	_, offset := now.In(s.o.Zone).Zone()
	var reply Reply
	if !now.Before(s.o.Earliest) {
		reply.ServerTime = serverTime{Timestamp: now.UnixMilli(), Offset: offset / 60}
	}
	if a.Token == "" {
		code := cmp.Or(a.Code, string(id))
		words := s.words.In(append(language.Accepted(tag), s.o.Language())...)
		reply.Activation = &activation{Message: words.Message("robot.adopt", "code", code), Code: a.Code, Challenge: code}
	}
	return reply
}

// parseRequest parses a check-in. The robot's ID and the host must be valid. The body may be
// invalid JSON, for example because of a quotation mark in an SSID.
func (s *Service) parseRequest(r Request) (device.CheckIn, error) {
	var body checkInBody
	if json.Unmarshal(r.Body, &body) != nil {
		body = checkInBody{}
	}
	id, err := parseID(cmp.Or(r.DeviceID, body.MAC))
	if err != nil {
		return device.CheckIn{}, err
	}
	base, err := s.baseURL(r.Host, r.TLS)
	if err != nil {
		return device.CheckIn{}, err
	}
	board, version, _ := strings.Cut(r.UserAgent, "/")
	if isBrowser(r.UserAgent) { // the User-Agent names the browser, not a board
		board, version = cmp.Or(text(body.Board.Type), text(body.Application.Name)), ""
	}
	return device.CheckIn{
		ID: id, Client: s.clientOf(id, r.ClientID, body), BaseURL: base, Address: r.Address,
		Board: clip(cmp.Or(body.Board.Name, board)), Firmware: clip(cmp.Or(body.Application.Version, version)),
		// The firmware sends the language that it was built for in both places.
		Language: clip(cmp.Or(r.Language, body.Language)),
	}, nil
}

// parseID parses the MAC address of a robot. The error is a *httpserver.Fault.
func parseID(text string) (device.ID, error) {
	id, err := device.ParseID(text)
	if err != nil {
		return "", refuse("no_device_id", http.StatusBadRequest,
			"the Device-Id header, or device-id in the query, must hold the robot's MAC address: %w", err)
	}
	return id, nil
}

// isBrowser reports whether a User-Agent is a browser's.
func isBrowser(userAgent string) bool { return strings.HasPrefix(userAgent, "Mozilla/") }

// clientOf returns the client that checks in. clientID is from the headers or the query. If
// clientID is empty, the UUID in the body identifies the client, unless the registry has bound the
// robot to a client that sends no ID.
func (s *Service) clientOf(id device.ID, clientID string, body checkInBody) device.Client {
	if robot, err := s.o.Robots.Get(id); clientID == "" && (err != nil || !robot.Bound || robot.Client.Sent) {
		return device.NewClient(text(body.UUID))
	}
	return device.NewClient(clientID)
}

// baseURL returns the appliance's address for robots, such as "http://10.0.0.2:8003". The address
// contains a port, which the firmware requires. The error is a *httpserver.Fault.
func (s *Service) baseURL(host string, tls bool) (string, error) {
	if s.o.PublicURL != "" {
		return s.o.PublicURL, nil
	}
	scheme, defaultPort := "http://", "80"
	if tls {
		scheme, defaultPort = "https://", "443"
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = host, defaultPort
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || !device.IsHost(name) {
		return "", refuse("bad_host", http.StatusBadRequest, "the Host header %q is not a name and port that robots can use",
			clip(host))
	}
	return scheme + net.JoinHostPort(name, port), nil
}

// checkInBody contains the fields of a check-in's body that identify the robot.
type checkInBody struct {
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

// text returns v if it is a string, and otherwise "".
func text(v any) string {
	s, _ := v.(string)
	return s
}

// clip cuts an untrusted text to 100 bytes and removes control characters, which could control a
// terminal or begin a new line in the log.
func clip(s string) string {
	return plain.Clip(plain.Text(s), 100)
}

// Activate reports whether a robot that has waited for its adoption may connect now. A robot whose
// reply contained an activation sends the request repeatedly. The error is a *httpserver.Fault.
func (s *Service) Activate(deviceID, clientID string) (bool, error) {
	id, err := parseID(deviceID)
	if err != nil {
		return false, err
	}
	robot, err := s.o.Robots.Get(id)
	if err != nil {
		return false, refuse("unknown_robot", http.StatusNotFound, "this robot has not checked in")
	}
	if clientID == "" { // the body of the check-in may have identified the client
		return robot.Bound && robot.Claim == nil, nil
	}
	return robot.Bound && robot.Client == device.NewClient(clientID), nil
}
