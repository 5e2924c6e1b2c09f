package homeassistant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/device"
	"perch/gateway/homeassistant/connection"
	"perch/limit"
	"perch/plain"
)

// request is the body of a bridge request.
type request struct {
	Transaction json.RawMessage `json:"transaction"`
	Robot       string          `json:"robot"`
	Code        string          `json:"code"`
	Client      string          `json:"client"` // of several that claim the robot, the one to adopt

	// Of an image.

	URL    string `json:"url"`
	SHA256 string `json:"sha256"`
	Board  string `json:"board"`
}

// response is the answer to one.
type response struct {
	Transaction json.RawMessage `json:"transaction,omitempty"`
	Status      string          `json:"status"` // ok or error
	Error       string          `json:"error,omitempty"`
	Data        any             `json:"data,omitempty"`
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

// parseRequest reads a request: a JSON object, or a text that stands for what
// the verb is most about.
func parseRequest(payload []byte) (r request, text string, err error) {
	if text, err = payloadText(payload); err != nil || !strings.HasPrefix(text, "{") {
		return r, text, err
	}
	if err := object(text, &r, false); err != nil {
		return request{}, "", err
	}
	if len(r.Transaction) > limit.Name {
		return request{}, "", fmt.Errorf("transaction has %d bytes, more than %d", len(r.Transaction), limit.Name)
	}
	return r, text, nil
}

// verbs are what can be asked of the bridge.
func verbs() []string { return []string{"devices", "notify", "adopt", "forget", "firmware", "restart"} }

// request carries out what is asked of the bridge, and answers.
func (h *hub) request(ctx context.Context, verb string, m connection.Incoming) {
	now := time.Now()
	if verb != "notify" || m.Retained {
		m.Ack() // a request is of this moment: no client waits for the answer later
	}
	known := slices.Contains(verbs(), verb)
	if word := strings.Trim(verb, "abcdefghijklmnopqrstuvwxyz_") == "" && len(verb) <= 32; m.Retained || !word {
		h.refused.log("", now, "a request over MQTT is ignored: it is retained, or nothing that can be asked", "topic", plain.Clip(m.Topic, 200))
		return
	}
	r, text, err := parseRequest(m.Payload)
	if err == nil && !known {
		err = fmt.Errorf("there is no such request; those there are: %s", strings.Join(verbs(), ", "))
	}
	if err != nil {
		h.respond(verb, r, nil, err)
		m.Ack()
		return
	}
	if verb == "devices" {
		list, more := h.list()
		h.respond(verb, r, map[string]any{"devices": list, "more": more}, nil)
		return
	}
	lane := device.ID("")
	if verb == "firmware" {
		lane = "firmware" // others need not wait until it has been fetched
	}
	queued := h.lanes.Add(ctx, lane, device.Job{Do: func(ctx context.Context) {
		data, err := h.ask(ctx, verb, r, text)
		h.respond(verb, r, data, err)
		m.Ack()
		if err == nil {
			h.loop(ctx, func() { h.look(time.Now()) })
		}
		if verb == "restart" && err == nil {
			h.o.Restart()
		}
	}})
	if !queued {
		h.respond(verb, r, nil, errors.New("too many requests came at once"))
		m.Ack()
	}
}

// respond answers a request. What went wrong is logged too.
func (h *hub) respond(verb string, r request, data any, err error) {
	answer := response{Transaction: r.Transaction, Status: "ok", Data: data}
	if err != nil {
		answer.Status, answer.Error = "error", plain.Clip(err.Error(), 300)
		h.o.Log.Warn("a request over MQTT failed", "verb", verb, "err", answer.Error)
	}
	h.putJSON(h.names.Bridge("response/"+verb), answer, false, 1)
}

// ask carries a request out. It runs in the bridge's own lane.
func (h *hub) ask(ctx context.Context, verb string, r request, text string) (data any, err error) {
	switch verb {
	case "notify":
		c, err := parseNotify("", text, h.o.Robots.Find)
		if err != nil {
			return nil, err
		}
		n := c.(notify).notice
		if n.Robot != "" {
			if _, err := h.o.Robots.Get(n.Robot); err != nil {
				return nil, err // it would wait for a robot that never comes
			}
			if !h.o.Robots.Trusts(n.Robot) {
				return nil, fmt.Errorf("%s was not adopted: perch robot adopt %s", n.Robot, n.Robot)
			}
		}
		n, err = h.o.Notifier.Notify(n)
		return map[string]string{"id": n.ID}, err
	case "adopt":
		return h.adopt(r, text)
	case "firmware":
		version, err := h.o.Firmware.Fetch(ctx, r.URL, r.SHA256, r.Board, time.Now())
		return map[string]string{"version": version, "sha256": r.SHA256, "board": r.Board}, err
	case "forget":
		id, err := h.o.Robots.Find(r.names(text))
		if err == nil {
			err = h.o.Robots.Forget(id)
		}
		if err == nil {
			err = h.o.Firmware.Forget(id)
		}
		if err != nil {
			return nil, err
		}
		_ = h.o.Talk.Hangup(ctx, id, "forgotten") // it may not be connected, and then there is nothing to hang up
		return map[string]device.ID{"robot": id}, nil
	}
	return nil, nil // a restart, which follows the answer
}

// adopt adopts a robot. A refusal because several clients claim it lists them.
func (h *hub) adopt(r request, text string) (data any, err error) {
	var robot device.Robot
	switch {
	case r.Client != "" && r.Robot == "":
		return nil, errors.New("client goes with robot: the one names which of several clients that claim the other is adopted")
	case r.Client != "":
		var id device.ID
		if id, err = h.o.Robots.Find(r.Robot); err == nil {
			robot, err = h.o.Robots.AdoptClient(id, r.Client)
		}
	default:
		robot, err = h.o.Robots.Adopt(r.names(text), time.Now())
	}
	if several, is := errors.AsType[*device.ClaimError](err); is {
		return map[string]any{"claimants": several.Claimants, "unlisted": several.Unlisted}, several.Err
	}
	return map[string]device.ID{"robot": robot.ID}, err
}

// names is the robot, or the code, that a request is about.
func (r request) names(text string) string {
	switch {
	case r.Robot != "":
		return r.Robot
	case r.Code != "":
		return r.Code
	case strings.HasPrefix(text, "{"):
		return ""
	}
	return text
}

// mostStrangers bounds the listed robots that were not adopted.
const mostStrangers = 50

// list is what is known of every robot, and how many strangers were left out.
func (h *hub) list() (list []listedRobot, more int) {
	list = []listedRobot{}
	strangers := 0
	for _, r := range h.o.Robots.List() {
		adopted := h.o.Robots.Trusts(r.ID)
		if !adopted {
			if strangers++; strangers > mostStrangers {
				continue
			}
		}
		state := h.o.Board.Robot(r.ID)
		if r.Contested() {
			r.Board, r.Firmware = "", ""
		}
		list = append(list, listedRobot{
			ID: r.ID, MAC: r.ID.MAC(), Name: r.Settings.Name, Board: r.Board, Firmware: r.Firmware, Connected: state.Online,
			State: state.At(time.Now()), LastSeen: r.LastSeen.UTC(), Adopted: adopted, Waiting: r.Claim != nil,
			Contested: r.Contested(),
		})
	}
	return list, max(strangers-mostStrangers, 0)
}
