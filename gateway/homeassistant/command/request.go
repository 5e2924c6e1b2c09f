package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/limit"
)

// Request is a request to the bridge.
type Request struct {
	Transaction json.RawMessage `json:"transaction"`
	Robot       string          `json:"robot"`
	Code        string          `json:"code"`
	Client      string          `json:"client"` // of several that claim the robot, the one to adopt

	// Of an image.

	URL    string `json:"url"`
	SHA256 string `json:"sha256"`
	Board  string `json:"board"`

	Verb   string `json:"-"`
	text   string // the payload
	notice notice.Notification
}

// Response is the answer to a request.
type Response struct {
	Transaction json.RawMessage `json:"transaction,omitempty"`
	Status      string          `json:"status"` // ok or error
	Error       string          `json:"error,omitempty"`
	Data        any             `json:"data,omitempty"`
}

// verbs returns what can be requested.
func verbs() []string { return []string{"devices", "notify", "adopt", "forget", "firmware", "restart"} }

// ParseRequest parses a request: a JSON object, or a text that stands for its most important field.
// find returns the robot that a body names. With an error, the request may still have its transaction.
func ParseRequest(verb string, payload []byte, find func(string) (device.ID, error)) (Request, error) {
	r := Request{Verb: verb}
	var err error
	if r.text, err = payloadText(payload); err != nil {
		return r, err
	}
	if strings.HasPrefix(r.text, "{") {
		if err := parseObject(r.text, &r, false); err != nil {
			return Request{Verb: verb}, err
		}
		if len(r.Transaction) > limit.Name {
			return Request{Verb: verb}, fmt.Errorf("transaction has %d bytes, more than %d", len(r.Transaction), limit.Name)
		}
	}
	if !slices.Contains(verbs(), verb) {
		return r, fmt.Errorf("there is no such request; those there are: %s", strings.Join(verbs(), ", "))
	}
	if verb == "notify" {
		r.notice, err = parseNotification("", r.text, find)
	}
	return r, err
}

// ExecuteRequest carries out a request. A restart is left to the caller, because it follows the response.
func (s Services) ExecuteRequest(ctx context.Context, r Request) (data any, err error) {
	switch r.Verb {
	case "devices":
		list, more := s.list()
		return map[string]any{"devices": list, "more": more}, nil
	case "notify":
		return s.notify(r.notice)
	case "adopt":
		return s.adopt(r)
	case "firmware":
		version, err := s.Firmware.Fetch(ctx, r.URL, r.SHA256, r.Board, time.Now())
		return map[string]string{"version": version, "sha256": r.SHA256, "board": r.Board}, err
	case "forget":
		id, err := s.Robots.Resolve(r.subject())
		if err == nil {
			err = s.Robots.Forget(id)
		}
		if err == nil {
			err = s.Firmware.Forget(id)
		}
		if err != nil {
			return nil, err
		}
		_ = s.Talk.Hangup(ctx, id, "forgotten") // fails if it is not connected
		return map[string]device.ID{"robot": id}, nil
	}
	return nil, nil
}

func (s Services) notify(n notice.Notification) (data any, err error) {
	if n.Robot != "" {
		if _, err := s.Robots.Get(n.Robot); err != nil {
			return nil, err // it would wait for a robot that never comes
		}
		if !s.Robots.Trusts(n.Robot) {
			return nil, fmt.Errorf("%s was not adopted: perch robot adopt %s", n.Robot, n.Robot)
		}
	}
	n, err = s.Notifier.Notify(n)
	return map[string]string{"id": n.ID}, err
}

// adopt adopts a robot. If it is refused because several clients claim the robot, data lists them.
func (s Services) adopt(r Request) (data any, err error) {
	var robot device.Robot
	switch {
	case r.Client != "" && r.Robot == "":
		return nil, errors.New("client goes with robot: the one names which of several clients that claim the other is adopted")
	case r.Client != "":
		var id device.ID
		if id, err = s.Robots.Resolve(r.Robot); err == nil {
			robot, err = s.Robots.AdoptClient(id, r.Client)
		}
	default:
		robot, err = s.Robots.Adopt(r.subject(), time.Now())
	}
	if several, is := errors.AsType[*device.ClaimError](err); is {
		return map[string]any{"claimants": several.Claimants, "unlisted": several.Unlisted}, several.Err
	}
	return map[string]device.ID{"robot": robot.ID}, err
}

// subject returns the robot, or the code, that the request is about.
func (r Request) subject() string {
	switch {
	case r.Robot != "":
		return r.Robot
	case r.Code != "":
		return r.Code
	case strings.HasPrefix(r.text, "{"):
		return ""
	}
	return r.text
}

// listedRobot is a robot in the answer to devices.
type listedRobot struct {
	ID        device.ID   `json:"id"`
	MAC       string      `json:"mac"`
	Name      string      `json:"name,omitempty"`
	Board     string      `json:"board"`
	Firmware  string      `json:"firmware"`
	Connected bool        `json:"connected"`
	State     agent.Shown `json:"agent_state"`
	LastSeen  time.Time   `json:"last_seen"`
	Adopted   bool        `json:"adopted"`
	Waiting   bool        `json:"waiting"`             // for its owner to adopt it
	Contested bool        `json:"contested,omitempty"` // several clients claim it; board and firmware are empty
}

// maxStrangers bounds the listed robots that were not adopted.
const maxStrangers = 50

// list returns the robots, and how many that were not adopted are left out.
func (s Services) list() (list []listedRobot, more int) {
	list = []listedRobot{}
	strangers := 0
	for _, r := range s.Robots.List() {
		adopted := s.Robots.Trusts(r.ID)
		if !adopted {
			if strangers++; strangers > maxStrangers {
				continue
			}
		}
		robot := s.Board.Robot(r.ID)
		if r.Contested() {
			r.Board, r.Firmware = "", ""
		}
		list = append(list, listedRobot{
			ID: r.ID, MAC: r.ID.MAC(), Name: r.Settings.Name, Board: r.Board, Firmware: r.Firmware, Connected: robot.Online,
			State: robot.At(time.Now()), LastSeen: r.LastSeen.UTC(), Adopted: adopted, Waiting: r.Claim != nil,
			Contested: r.Contested(),
		})
	}
	return list, max(strangers-maxStrangers, 0)
}
