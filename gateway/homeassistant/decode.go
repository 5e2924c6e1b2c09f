package homeassistant

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/gateway/homeassistant/discovery"
	"perch/limit"
)

// Limits of messages from the broker, in bytes.
const mostSmall = 1024 // of everything but texts

// finder finds the robot with a MAC address or a name.
type finder func(robot string) (device.ID, error)

// command is a command for a robot over MQTT.
type command interface {
	// do carries it out, in the robot's lane. Where it returns a function, the hub calls
	// that once the command was done.
	do(ctx context.Context, h *hub, id device.ID) (after func(ctx context.Context, v *view), err error)
}

type (
	say    struct{ text string }
	notify struct{ notice notice.Notification }
	feel   struct{ emotion agent.Emotion }
	// adjust sets the volume or the brightness.
	adjust struct {
		what  string
		value int
	}
	// lamp is the light as it is to be; what it does not name stays.
	lamp struct{ light light }
	// turn moves the head, in degrees; nil is an axis, or a speed, left as it is.
	turn struct{ yaw, pitch, speed *int }
	mute struct{ on bool }
	// sense is what another program reports that the robot has sensed.
	sense struct {
		name string
		data json.RawMessage
	}
	// gesture is one to make; a duration of 0 milliseconds is its own.
	gesture struct {
		name     string
		duration int64
	}
	// configure changes the robot's settings; an empty name takes it away.
	configure struct{ change device.Change }
	// press is the press of a button, which needs nothing else.
	press func(ctx context.Context, h *hub, id device.ID) error
	// install has the robot install the newest firmware.
	install struct{}
)

// payloadText is a payload that is a text, without the spaces around it.
func payloadText(payload []byte) (string, error) {
	if len(payload) > limit.Body {
		return "", fmt.Errorf("the payload has %d bytes, more than %d", len(payload), limit.Body)
	}
	if !utf8.Valid(payload) {
		return "", errors.New("the payload is no text in UTF-8")
	}
	return strings.TrimSpace(string(payload)), nil
}

// parseCommand reads what is published under a thing's topic for a robot.
// Errors name what is wrong, and hold no more than a few words of the payload.
// find is whom a body means by a robot.
func parseCommand(robot device.ID, thing string, payload []byte, find finder) (command, error) {
	text, err := payloadText(payload)
	if err != nil {
		return nil, err
	}
	switch thing {
	case "stop":
		return press(stop), nil
	case "reboot":
		return press(reboot), nil
	case "identify":
		return press(identify), nil
	case "say":
		return parseSay(text)
	case "notify":
		return parseNotify(robot, text, find)
	case "perception":
		return parseSense(text)
	}
	if len(text) > mostSmall {
		return nil, fmt.Errorf("the payload has %d bytes, more than %d", len(text), mostSmall)
	}
	switch thing {
	case "emotion":
		return parseEmotion(text)
	case "gesture":
		return parseGesture(text)
	case "volume", "brightness":
		n, err := number(text)
		return adjust{thing, n}, err
	case "head_yaw":
		n, err := number(text)
		return turn{yaw: &n}, err
	case "head_pitch":
		n, err := number(text)
		return turn{pitch: &n}, err
	case "head":
		return parseHeadTurn(text)
	case "led":
		return parseLamp(text)
	case "mute":
		if text != "ON" && text != "OFF" {
			return nil, fmt.Errorf("mute is ON or OFF, not %.40q", text)
		}
		return mute{text == "ON"}, nil
	case "name":
		return configure{device.Change{Name: &text}}, nil
	case "transport":
		return configure{device.Change{Transport: &text}}, nil
	case "character":
		if text == "" {
			return nil, errors.New("a character's id is needed; " + agent.DefaultCharacter + " is the household's")
		}
		return configure{device.Change{Persona: &text}}, nil
	case "firmware":
		if text != "install" {
			return nil, fmt.Errorf("firmware is install, not %.40q", text)
		}
		return install{}, nil
	}
	return nil, fmt.Errorf("there is no %.40q to set", thing)
}

func parseSay(text string) (command, error) {
	switch {
	case text == "":
		return nil, errors.New("there is no text to say")
	case len(text) > limit.Said:
		return nil, fmt.Errorf("the text has %d bytes, more than %d", len(text), limit.Said)
	}
	return say{text}, nil
}

// parseNotify takes a text, or a notification's body of JSON, for a robot or,
// without one, for the robot that the body names.
func parseNotify(robot device.ID, text string, find finder) (command, error) {
	n := notice.Notification{Text: text, Speak: true}
	if strings.HasPrefix(text, "{") {
		var ours struct {
			Type *string `json:"event_type"`
		}
		if json.Unmarshal([]byte(text), &ours) == nil && ours.Type != nil {
			return nil, errors.New("that is what Perch itself publishes of a notification; an automation, or a bridge between brokers, leads it back")
		}
		var err error
		if n, err = notice.ParseBy([]byte(text), find); err != nil {
			return nil, err
		}
		if robot != "" && n.Robot != "" && n.Robot != robot {
			return nil, fmt.Errorf("the body names the robot %s, the topic %s", n.Robot, robot)
		}
	}
	if n.Text == "" {
		return nil, errors.New("there is no text to tell")
	}
	if robot != "" {
		n.Robot = robot
	}
	return notify{n}, nil
}

func parseEmotion(text string) (command, error) {
	emotions := append(agent.Emotions(), agent.Doubtful)
	i := slices.IndexFunc(emotions, func(e agent.Emotion) bool { return e.Name == strings.ToLower(text) })
	if i < 0 {
		return nil, fmt.Errorf("there is no emotion %.40q", text)
	}
	return feel{emotions[i]}, nil
}

// number reads a number as Home Assistant writes them: "40", "40.0".
func number(text string) (int, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > discovery.MaxNumber || strings.ContainsAny(text, "xX_pP") {
		return 0, fmt.Errorf("%.40q is no number", text)
	}
	return int(math.Round(f)), nil
}

func parseHeadTurn(text string) (command, error) {
	var h struct{ Yaw, Pitch, Speed *float64 }
	if err := object(text, &h, true); err != nil {
		return nil, fmt.Errorf(`head is {"yaw":..,"pitch":..,"speed":..} with numbers, of which any may be left out: %w`, err)
	}
	if h.Yaw == nil && h.Pitch == nil {
		return nil, errors.New("head needs yaw or pitch, in degrees")
	}
	t := turn{}
	for _, a := range []struct {
		from *float64
		to   **int
	}{{h.Yaw, &t.yaw}, {h.Pitch, &t.pitch}, {h.Speed, &t.speed}} {
		if a.from == nil {
			continue
		}
		if math.Abs(*a.from) > discovery.MaxNumber {
			return nil, fmt.Errorf("%g is no angle or speed", *a.from)
		}
		*a.to = new(int(math.Round(*a.from)))
	}
	return t, nil
}

// parseLamp reads what Home Assistant sends to a JSON light. Effects and
// transitions are left alone, for no robot has them.
func parseLamp(text string) (command, error) {
	var l light
	if err := object(text, &l, false); err != nil {
		return nil, fmt.Errorf(`led is {"state":"ON","color":{"r":..,"g":..,"b":..},"brightness":..}: %w`, err)
	}
	if l.State == nil || *l.State != "ON" && *l.State != "OFF" {
		return nil, errors.New("led needs a state of ON or OFF")
	}
	levels := []*int{l.Brightness}
	if l.Color != nil {
		levels = append(levels, &l.Color.R, &l.Color.G, &l.Color.B)
	}
	for _, n := range levels {
		if n != nil && (*n < 0 || *n > 255) {
			return nil, fmt.Errorf("led's colours and brightness go from 0 to 255, not to %d", *n)
		}
	}
	return lamp{l}, nil
}

// parseSense leaves it to the intake what can be sensed.
func parseSense(text string) (command, error) {
	var s struct {
		Name string
		Data json.RawMessage
	}
	if err := object(text, &s, true); err != nil {
		return nil, fmt.Errorf(`perception is {"name":"..","data":{..}}: %w`, err)
	}
	return sense{s.Name, s.Data}, nil
}

// object reads one JSON object, with no keys besides those known where it is
// to be strict.
func object(text string, into any, strict bool) error {
	if !strings.HasPrefix(text, "{") {
		return fmt.Errorf("%.40q is no JSON object", text)
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("read it: %.120s", err.Error())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}
