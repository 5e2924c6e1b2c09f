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
	"perch/gateway/homeassistant/discovery"
	"perch/limit"
)

// Request is a request to the bridge, which is the appliance.
type Request struct {
	Transaction json.RawMessage `json:"transaction"` // any JSON value; returned unchanged in the response
	Robot       string          `json:"robot"`       // MAC address or name
	Code        string          `json:"code"`        // the code on the screen of the robot to adopt
	Client      string          `json:"client"`      // Client-Id or IP address of the machine to adopt, if several claim the robot's MAC address
	New         bool            `json:"new"`         // adopt all new robots instead of one; see adoptNew

	// The following fields describe the image to fetch, for the verb firmware.

	URL    string `json:"url"`
	SHA256 string `json:"sha256"`
	Board  string `json:"board"`

	Verb   string              `json:"-"` // one of discovery.RequestVerbs
	text   string              // the payload without surrounding space
	notice notice.Notification // for the verb notify
}

// Response is the response to a request.
type Response struct {
	Transaction json.RawMessage `json:"transaction,omitempty"`
	Status      string          `json:"status"` // "ok" or "error"
	Error       string          `json:"error,omitempty"`
	Data        any             `json:"data,omitempty"`
}

// ParseRequest parses a request, which is a JSON object or a plain text. The text is the robot to forget, the
// robot or code to adopt, or the text of a notification. find returns the ID of the robot with a given MAC
// address or name. Even with an error, the returned request has its verb. It also has its transaction if the object
// could be parsed and the transaction has at most limit.Name bytes.
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
	if verbs := discovery.RequestVerbs(); !slices.Contains(verbs, verb) {
		return r, fmt.Errorf("there is no such request; the requests are %s", strings.Join(verbs, ", "))
	}
	if verb == "notify" {
		r.notice, err = parseNotification("", r.text, find)
	}
	return r, err
}

// ExecuteRequest carries out a request and returns the data of the response. It does nothing for the verb
// restart: the caller checks the configuration, and restarts the appliance after it has sent the response.
func (s Services) ExecuteRequest(ctx context.Context, r Request) (data any, err error) {
	switch r.Verb {
	case "devices":
		list, omitted := s.listRobots()
		return map[string]any{"devices": list, "more": omitted}, nil
	case "notify":
		return s.notify(r.notice)
	case "adopt":
		if r.New {
			return s.adoptNew(time.Now())
		}
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
		_ = s.Talk.Hangup(ctx, id, "forgotten") // fails if the robot is not connected
		return map[string]device.ID{"robot": id}, nil
	}
	return nil, nil
}

// notify sends a notification to an adopted robot, or to all robots.
func (s Services) notify(n notice.Notification) (data any, err error) {
	if n.Robot != "" {
		if _, err := s.Robots.Get(n.Robot); err != nil {
			return nil, err // the notification would wait forever
		}
		if !s.Robots.Trusts(n.Robot) {
			return nil, fmt.Errorf("%s was not adopted: perch robot adopt %s", n.Robot, n.Robot)
		}
	}
	n, err = s.Notifier.Notify(n)
	return map[string]string{"id": n.ID}, err
}

// adopt adopts a robot. If it fails because several machines claim the robot's MAC address, data lists these machines.
func (s Services) adopt(r Request) (data any, err error) {
	var robot device.Robot
	switch {
	case r.Client != "" && r.Robot == "":
		return nil, errors.New("client needs robot too: client chooses one of the machines that claim the MAC address of robot")
	case r.Client != "":
		var id device.ID
		if id, err = s.Robots.Resolve(r.Robot); err == nil {
			robot, err = s.Robots.AdoptClient(id, r.Client)
		}
	default:
		robot, err = s.Robots.Adopt(r.subject(), time.Now())
	}
	if claim, ok := errors.AsType[*device.ClaimError](err); ok {
		return map[string]any{"claimants": claim.Claimants, "unlisted": claim.Unlisted}, claim.Err
	}
	return map[string]device.ID{"robot": robot.ID}, err
}

// Limits on the adoption of new robots.
const (
	adoptPeriod = 4 * time.Minute // period before and after the request, so that the owner may switch on the robot earlier or later
	maxAdopted  = 8               // maximum of new robots in the period before the request; no owner connects more at once
)

// adoptNew adopts the new robots that were seen within the last adoptPeriod, and makes the registry adopt robots that
// check in within adoptPeriod from now; see registry.Welcome. A robot is not adopted if it has to show a code, if it was
// forgotten or replaced before, or if several machines claim its MAC address. If more than maxAdopted robots were seen,
// adoptNew adopts none and returns an error.
func (s Services) adoptNew(now time.Time) (data any, err error) {
	ids := []device.ID{}
	for _, r := range s.Robots.List() {
		if !s.Robots.Trusts(r.ID) && r.Bound && r.Epoch == 0 && !r.Contested() && now.Sub(r.LastSeen) < adoptPeriod {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) > maxAdopted {
		return nil, fmt.Errorf("%d robots have come within %s, more than %d; adopt yours by its MAC address", len(ids), adoptPeriod, maxAdopted)
	}
	for _, id := range ids {
		if _, err := s.Robots.Adopt(string(id), now); err != nil {
			return nil, err
		}
	}
	until := now.Add(adoptPeriod)
	s.Robots.Welcome(until)
	return map[string]any{"robots": ids, "until": until.UTC()}, nil
}

// subject returns the robot or the code that the request names.
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

// listedRobot is a robot in the response to the verb devices.
type listedRobot struct {
	ID        device.ID   `json:"id"`
	MAC       string      `json:"mac"`
	Name      string      `json:"name,omitempty"`
	Board     string      `json:"board"`
	Firmware  string      `json:"firmware"`
	Connected bool        `json:"connected"`
	State     agent.Shown `json:"agent_state"`
	LastSeen  time.Time   `json:"last_seen,omitzero"`
	Adopted   bool        `json:"adopted"`
	Waiting   bool        `json:"waiting"`             // the robot waits for its owner to adopt it
	Contested bool        `json:"contested,omitempty"` // several machines claim the robot's MAC address; board and firmware are empty
}

// maxStrangers bounds how many robots that were not adopted are listed.
const maxStrangers = 50

// listRobots returns the adopted robots and up to maxStrangers others. omitted is the number of robots that
// were left out.
func (s Services) listRobots() (list []listedRobot, omitted int) {
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
