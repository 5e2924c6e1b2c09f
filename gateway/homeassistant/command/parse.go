package command

import (
	"bytes"
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
	"perch/event"
	"perch/gateway/homeassistant/discovery"
	"perch/gateway/homeassistant/state"
	"perch/limit"
)

// maxShort bounds payloads other than texts, in bytes.
const maxShort = 1024

// Command is a parsed command for a robot: one of the types below.
type Command any

type (
	say    struct{ text string }
	notify struct{ notice notice.Notification }
	feel   struct{ emotion agent.Emotion }
	// level sets the volume or the brightness.
	level struct {
		what  string
		value int
	}
	// light sets the lights; what it does not name stays.
	light struct{ state state.Light }
	// turn moves the head, in degrees; nil leaves an axis or the speed as it is.
	turn struct{ yaw, pitch, speed *int }
	mute struct{ on bool }
	// sense is what another program reports that the robot has sensed.
	sense struct {
		name string
		data json.RawMessage
	}
	// gesture asks for a gesture; with a duration of 0 ms it lasts as long as it usually does.
	gesture struct {
		name     string
		duration int64
	}
	// configure changes the robot's settings; an empty name removes it.
	configure struct{ change device.Change }
	stop      struct{}
	reboot    struct{}
	identify  struct{}
	// install has the robot install the newest firmware.
	install struct{}
)

// payloadText returns a payload that is a text, without the space around it.
func payloadText(payload []byte) (string, error) {
	if len(payload) > limit.Body {
		return "", fmt.Errorf("the payload has %d bytes, more than %d", len(payload), limit.Body)
	}
	if !utf8.Valid(payload) {
		return "", errors.New("the payload is no text in UTF-8")
	}
	return strings.TrimSpace(string(payload)), nil
}

// Parse parses what is published on the topic of a robot's thing. find returns the robot that a
// body names. Errors say what is wrong, and quote no more than a few words of the payload.
func Parse(robot device.ID, thing string, payload []byte, find func(string) (device.ID, error)) (Command, error) {
	text, err := payloadText(payload)
	if err != nil {
		return nil, err
	}
	switch thing {
	case "stop":
		return stop{}, nil
	case "reboot":
		return reboot{}, nil
	case "identify":
		return identify{}, nil
	case "say":
		return parseSay(text)
	case "notify":
		n, err := parseNotification(robot, text, find)
		return notify{n}, err
	case "perception":
		return parseSense(text)
	}
	if len(text) > maxShort {
		return nil, fmt.Errorf("the payload has %d bytes, more than %d", len(text), maxShort)
	}
	switch thing {
	case "emotion":
		return parseEmotion(text)
	case "gesture":
		return parseGesture(text)
	case "volume", "brightness":
		n, err := parseNumber(text)
		return level{thing, n}, err
	case "head_yaw":
		n, err := parseNumber(text)
		return turn{yaw: &n}, err
	case "head_pitch":
		n, err := parseNumber(text)
		return turn{pitch: &n}, err
	case "head":
		return parseTurn(text)
	case "led":
		return parseLight(text)
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

func parseSay(text string) (Command, error) {
	switch {
	case text == "":
		return nil, errors.New("there is no text to say")
	case len(text) > limit.Said:
		return nil, fmt.Errorf("the text has %d bytes, more than %d", len(text), limit.Said)
	}
	return say{text}, nil
}

// parseNotification parses a text, or a notification's JSON body, for a robot or, if that is empty,
// for the robot that the body names.
func parseNotification(robot device.ID, text string, find func(string) (device.ID, error)) (notice.Notification, error) {
	n := notice.Notification{Text: text, Speak: true}
	if strings.HasPrefix(text, "{") {
		var ours struct {
			Type *string `json:"event_type"`
		}
		if json.Unmarshal([]byte(text), &ours) == nil && ours.Type != nil {
			return n, errors.New("that is what Perch itself publishes of a notification; an automation, or a bridge between brokers, leads it back")
		}
		var err error
		if n, err = notice.ParseBy([]byte(text), find); err != nil {
			return n, err
		}
		if robot != "" && n.Robot != "" && n.Robot != robot {
			return n, fmt.Errorf("the body names the robot %s, the topic %s", n.Robot, robot)
		}
	}
	if n.Text == "" {
		return n, errors.New("there is no text to tell")
	}
	if robot != "" {
		n.Robot = robot
	}
	return n, nil
}

func parseEmotion(text string) (Command, error) {
	emotions := append(agent.Emotions(), agent.Doubtful)
	i := slices.IndexFunc(emotions, func(e agent.Emotion) bool { return e.Name == strings.ToLower(text) })
	if i < 0 {
		return nil, fmt.Errorf("there is no emotion %.40q", text)
	}
	return feel{emotions[i]}, nil
}

func parseGesture(text string) (Command, error) {
	g := gesture{}
	if strings.HasPrefix(text, "{") {
		var body struct {
			Name     string `json:"name"`
			Duration int64  `json:"duration_ms"`
		}
		if err := parseObject(text, &body, true); err != nil {
			return nil, fmt.Errorf(`gesture is a name, or {"name":"wave","duration_ms":1500}: %w`, err)
		}
		if most := state.MaxGesture.Milliseconds(); body.Duration < 0 || body.Duration > most {
			return nil, fmt.Errorf("duration_ms is %d; it is from 0, the gesture's own, to %d", body.Duration, most)
		}
		text, g.duration = body.Name, body.Duration
	}
	name, ok := event.GestureName(text)
	if !ok {
		return nil, fmt.Errorf("%.40q is no gesture", text)
	}
	g.name = name
	return g, nil
}

// parseNumber parses a number as Home Assistant writes it: "40", "40.0".
func parseNumber(text string) (int, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > discovery.MaxNumber || strings.ContainsAny(text, "xX_pP") {
		return 0, fmt.Errorf("%.40q is no number", text)
	}
	return int(math.Round(f)), nil
}

func parseTurn(text string) (Command, error) {
	var h struct{ Yaw, Pitch, Speed *float64 }
	if err := parseObject(text, &h, true); err != nil {
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

// parseLight parses what Home Assistant sends to a JSON light. Effects and transitions are ignored,
// because no robot has them.
func parseLight(text string) (Command, error) {
	var l state.Light
	if err := parseObject(text, &l, false); err != nil {
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
	return light{l}, nil
}

// parseSense leaves it to the intake which names it accepts.
func parseSense(text string) (Command, error) {
	var s struct {
		Name string
		Data json.RawMessage
	}
	if err := parseObject(text, &s, true); err != nil {
		return nil, fmt.Errorf(`perception is {"name":"..","data":{..}}: %w`, err)
	}
	return sense{s.Name, s.Data}, nil
}

// ParseAnswer parses the answer to an agent's question: a word, for the question that is shown, or
// an object that names the question.
func ParseAnswer(payload []byte) (id string, allow bool, err error) {
	text := strings.TrimSpace(string(payload))
	switch {
	case len(payload) > maxShort:
		return "", false, fmt.Errorf("the payload has %d bytes, more than %d", len(payload), maxShort)
	case text == discovery.Allow || text == discovery.Deny:
		return "", text == discovery.Allow, nil
	}
	var a struct {
		ID    string `json:"id"`
		Allow *bool  `json:"allow"`
	}
	err = parseObject(text, &a, true)
	if err == nil && (a.ID == "" || a.Allow == nil) {
		err = errors.New("id and allow are needed")
	}
	if err != nil {
		return "", false, fmt.Errorf(`an answer is allow, deny, or {"id":"..","allow":true}: %w`, err)
	}
	return a.ID, *a.Allow, nil
}

// parseObject parses one JSON object. If strict, it accepts no unknown keys.
func parseObject(text string, into any, strict bool) error {
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
