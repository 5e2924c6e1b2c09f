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
	"time"
	"unicode/utf8"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/gateway/homeassistant/discovery"
	"perch/gateway/homeassistant/state"
	"perch/limit"
)

// maxShort bounds the payloads of answers and of commands without a free text, in bytes.
const maxShort = 1024

// Command is a parsed command for a robot: one of the types below.
type Command any

type (
	// say makes the robot speak a text.
	say struct{ text string }
	// notify sends a notification.
	notify struct{ notice notice.Notification }
	// showEmotion shows an emotion on the robot's face.
	showEmotion struct{ emotion agent.Emotion }
	// level sets the volume or the brightness.
	level struct {
		what  string // "volume" or "brightness"
		value int    // per cent
	}
	// light sets the lights.
	light struct{ state state.Light }
	// turn moves the head. The angles are in degrees, and the speed is in the firmware's units. A nil angle or speed is
	// not sent to the robot.
	turn struct{ yaw, pitch, speed *int }
	// mute makes the appliance drop the sound of the robot's microphone, or stop dropping it.
	mute struct{ on bool }
	// sense is a perception event that another program reports for the robot.
	sense struct {
		name string
		data json.RawMessage
	}
	// gesture makes the robot perform a gesture.
	gesture struct {
		name     string
		duration int64 // milliseconds; 0 is the usual duration of the gesture
	}
	// music makes the robot play music.
	music struct{ name string }
	// configure changes the settings of the robot.
	configure struct{ change device.Change }
	// Ask makes the robot ask people a question. Services.Ask carries out this command, because people may take minutes
	// to answer; Services.Execute carries out all others.
	Ask struct {
		id, text string
		within   time.Duration
	}
	// stop ends what the robot is saying.
	stop struct{}
	// reboot restarts the robot.
	reboot struct{}
	// identify makes the robot show an alert, so that its owner finds it among several robots.
	identify struct{}
	// install makes the robot install the newest firmware.
	install struct{}
)

// payloadText returns a payload as text, without surrounding space. It returns an error if the payload is longer than
// limit.Body or not UTF-8.
func payloadText(payload []byte) (string, error) {
	if len(payload) > limit.Body {
		return "", fmt.Errorf("the payload has %d bytes, more than %d", len(payload), limit.Body)
	}
	if !utf8.Valid(payload) {
		return "", errors.New("the payload is not text in UTF-8")
	}
	return strings.TrimSpace(string(payload)), nil
}

// Parse parses the payload of a message on "<base>/<robot>/<thing>/set". find returns the ID of the robot with a given
// MAC address or name. Errors are sentences for the owner, and quote only the beginning of the payload.
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
	case "ask":
		return parseAsk(text)
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
	case "music":
		if text == "" {
			return nil, errors.New("the name of the music is needed; " + discovery.MusicOff + " stops it")
		}
		return music{text}, nil
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
	case "brain", "language", "voice":
		if text == discovery.DefaultOption {
			text = ""
		}
		switch thing {
		case "brain":
			return configure{device.Change{Brain: &text}}, nil
		case "language":
			return configure{device.Change{Language: &text}}, nil
		}
		return configure{device.Change{Voice: &text}}, nil
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

// parseSay checks the text that a robot is to speak.
func parseSay(text string) (say, error) {
	switch {
	case text == "":
		return say{}, errors.New("there is no text to say")
	case len(text) > limit.Said:
		return say{}, fmt.Errorf("the text has %d bytes, more than %d", len(text), limit.Said)
	}
	return say{text}, nil
}

// parseNotification parses a notification, which is a plain text or a JSON object. The notification is for the
// given robot. If robot is empty, the notification is for the robot that the object names, or for all robots if the
// object names none. It returns an error if the object names a robot other than the given one.
func parseNotification(robot device.ID, text string, find func(string) (device.ID, error)) (notice.Notification, error) {
	n := notice.Notification{Text: text, Speak: true}
	if strings.HasPrefix(text, "{") {
		var published struct {
			Type *string `json:"event_type"`
		}
		if json.Unmarshal([]byte(text), &published) == nil && published.Type != nil {
			return n, errors.New("this is an event that Perch itself has published; an automation, or a bridge between brokers, sends it back to Perch")
		}
		var err error
		if n, err = notice.Parse([]byte(text), find); err != nil {
			return n, err
		}
		if robot != "" && n.Robot != "" && n.Robot != robot {
			return n, fmt.Errorf("the body names the robot %s, the topic %s", n.Robot, robot)
		}
	}
	if n.Text == "" {
		return n, errors.New("the notification has no text")
	}
	if robot != "" {
		n.Robot = robot
	}
	return n, nil
}

// Times for the answer to a question, in seconds.
const (
	minAskTime     = 5
	defaultAskTime = 60
	maxAskTime     = 600
)

// parseAsk parses a question, which is a plain text, or an object with the text, an ID and the time for the answer.
func parseAsk(text string) (Command, error) {
	q := struct {
		ID     string `json:"id"`
		Text   string `json:"text"`
		Within int    `json:"within"`
	}{Text: text, Within: defaultAskTime}
	if strings.HasPrefix(text, "{") {
		q.Text = ""
		if err := parseObject(text, &q, true); err != nil {
			return nil, fmt.Errorf(`ask is a question, or {"id":"..","text":"..","within":60}: %w`, err)
		}
	}
	if q.Within < minAskTime || q.Within > maxAskTime || len(q.ID) > limit.ID {
		return nil, fmt.Errorf("within is %d to %d seconds, and an id has at most %d bytes", minAskTime, maxAskTime, limit.ID)
	}
	said, err := parseSay(strings.TrimSpace(q.Text))
	if err != nil {
		return nil, err
	}
	return Ask{q.ID, said.text, time.Duration(q.Within) * time.Second}, nil
}

func parseEmotion(text string) (Command, error) {
	emotions := append(agent.Emotions(), agent.Doubtful)
	i := slices.IndexFunc(emotions, func(e agent.Emotion) bool { return e.Name == strings.ToLower(text) })
	if i < 0 {
		return nil, fmt.Errorf("there is no emotion %.40q", text)
	}
	return showEmotion{emotions[i]}, nil
}

// parseGesture parses a gesture, which is a name or an object with a name and a duration.
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
		if maxMillis := state.MaxGesture.Milliseconds(); body.Duration < 0 || body.Duration > maxMillis {
			return nil, fmt.Errorf("duration_ms is %d; it has to be from 0, for the usual duration, to %d", body.Duration, maxMillis)
		}
		text, g.duration = body.Name, body.Duration
	}
	name, ok := event.GestureName(text)
	if !ok {
		return nil, fmt.Errorf("%.40q is not a gesture", text)
	}
	g.name = name
	return g, nil
}

// parseNumber parses and rounds a decimal number between ±discovery.MaxNumber. Home Assistant may send 40 as "40.0".
func parseNumber(text string) (int, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > discovery.MaxNumber || strings.ContainsAny(text, "xX_pP") {
		return 0, fmt.Errorf("%.40q is not a number", text)
	}
	return int(math.Round(f)), nil
}

// parseTurn parses a movement of the head.
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
			return nil, fmt.Errorf("%g is not a possible angle or speed", *a.from)
		}
		*a.to = new(int(math.Round(*a.from)))
	}
	return t, nil
}

// parseLight parses the command that Home Assistant sends to a JSON light. It ignores effects and transitions,
// which no robot supports. Home Assistant sends a colour or a brightness only if it changes; see Complete.
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
	if *l.State == "OFF" {
		return light{state.Light{State: l.State}}, nil
	}
	l.ColorMode = "rgb"
	return light{l}, nil
}

// parseSense parses a perception event. Services.Senses checks the name of the event when the command is executed.
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

// ParseAnswer parses the answer to a question of an agent. The payload is an object with the ID of the question and the
// answer, or only discovery.Allow or discovery.Deny. Without an object, id is empty: the answer is for the question that
// is shown.
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

// parseObject parses a JSON object, and returns an error if anything follows the object. If strict is true, it
// also rejects unknown keys.
func parseObject(text string, into any, strict bool) error {
	if !strings.HasPrefix(text, "{") {
		return fmt.Errorf("%.40q is not a JSON object", text)
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
