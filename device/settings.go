package device

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"perch/limit"
	"perch/plain"
)

// Settings are what an owner sets for one robot. Empty fields have the value for all
// robots. A robot that nobody has adopted has none.
type Settings struct {
	Name     string `json:"name,omitempty"`     // shown instead of its id
	Persona  string `json:"persona,omitempty"`  // who it is
	Voice    string `json:"voice,omitempty"`    // for the first synthesizer
	Brain    string `json:"brain,omitempty"`    // asked first
	Language string `json:"language,omitempty"` // BCP 47
	// Transport is used from the robot's next boot on.
	Transport Transport `json:"transport,omitempty"`
}

// Transport is how a robot connects to the appliance.
type Transport string

// The transports of the firmware. With MQTT a robot can be reached as long as it runs;
// its WebSocket is open only during a talk.
const (
	WebSocket Transport = "websocket"
	MQTT      Transport = "mqtt" // with UDP for sound
)

// Change is a change of settings; nil leaves a setting as it is, empty clears it.
type Change struct {
	Name     *string `json:"name"`
	Persona  *string `json:"persona"`
	Voice    *string `json:"voice"`
	Brain    *string `json:"brain"`
	Language *string `json:"language"`

	Transport *string `json:"transport"`
}

// Errors of robot settings.
var (
	// ErrNotAdopted reports a robot that is a stranger.
	ErrNotAdopted error = errors.New("nobody has adopted this robot")
	// ErrName reports text that cannot be a robot's name.
	ErrName error = errors.New("not a robot's name")
	// ErrTaken reports a name that another robot has.
	ErrTaken error = errors.New("the name is taken")
	// ErrFixed is wrapped by Configure for a setting of the configuration file.
	ErrFixed error = errors.New("set in the configuration file")
	// ErrSetting reports an invalid value of another setting.
	ErrSetting error = errors.New("not a robot's setting")
)

const mostRobotName = 32 // characters

// CheckName returns a name with single spaces. It rejects text that could be a MAC
// address, a code, an option or part of an address. Errors wrap ErrName.
func CheckName(s string) (string, error) {
	name := strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' }), " ")
	var why error
	_, mac := ParseID(name)
	switch n := utf8.RuneCountInString(name); {
	case !utf8.ValidString(s) || plain.Text(name) != name:
		why = errors.New("it has characters that cannot be shown in a line of text")
	case n == 0 || n > mostRobotName:
		why = fmt.Errorf("a name has 1 to %d characters, not %d", mostRobotName, n)
	case mac == nil:
		why = errors.New("it is a MAC address")
	case isCode(name):
		why = errors.New("it could be the code that a robot shows")
	case strings.ContainsAny(name, "/\\+#?%:") || strings.HasPrefix(name, "-") || strings.Trim(name, ".") == "":
		why = fmt.Errorf(`a name has none of / \ + # ? %s :, does not begin with - and is not made of dots alone, `+
			`for addresses, commands and the names of talks hold it`, "%")
	default:
		return name, nil
	}
	return "", fmt.Errorf("%w: %.80q: %w", ErrName, s, why)
}

// setting is a field of Settings with its change.
type setting struct {
	key   string
	value *string
	to    **string
}

// each returns all settings with their changes.
func (s *Settings) each(c *Change) []setting {
	return []setting{{"name", &s.Name, &c.Name}, {"persona", &s.Persona, &c.Persona}, {"voice", &s.Voice, &c.Voice},
		{"brain", &s.Brain, &c.Brain}, {"language", &s.Language, &c.Language}, {"transport", (*string)(&s.Transport), &c.Transport}}
}

// apply returns the settings after a change. Errors wrap ErrName and ErrSetting.
func (s Settings) apply(c Change) (_ Settings, err error) {
	for _, one := range s.each(&c) {
		if *one.to == nil {
			continue
		}
		text := strings.TrimSpace(**one.to)
		switch {
		case one.key == "name" && text != "":
			if text, err = CheckName(**one.to); err != nil {
				return s, err
			}
		case one.key == "transport" && !slices.Contains([]Transport{"", WebSocket, MQTT}, Transport(text)):
			return s, fmt.Errorf("%w: transport is %s or %s, not %.20q", ErrSetting, WebSocket, MQTT, text)
		case len(text) > limit.Name || plain.Text(text) != text:
			return s, fmt.Errorf("%w: %s is a line of at most %d bytes", ErrSetting, one.key, limit.Name)
		}
		*one.value = text
	}
	return s, nil
}

// withDefaults returns s with empty fields filled in from other.
func (s Settings) withDefaults(other Settings) Settings {
	return Settings{cmp.Or(s.Name, other.Name), cmp.Or(s.Persona, other.Persona), cmp.Or(s.Voice, other.Voice),
		cmp.Or(s.Brain, other.Brain), cmp.Or(s.Language, other.Language), cmp.Or(s.Transport, other.Transport)}
}

// SetFixed puts the configuration file's settings before the stored ones, which stay
// stored. It returns the robots whose name the file gives to another. It must be
// called before the registry is used.
func (r *Registry) SetFixed(fixed map[ID]Settings) (hidden []Robot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fixed = fixed
	for _, robot := range r.robots {
		r.set(robot)
		if robot.Adopted() && r.hasNameTaken(robot) {
			hidden = append(hidden, robot)
		}
	}
	return hidden
}

// hasNameTaken reports whether the file gives a robot's name to another.
func (r *Registry) hasNameTaken(robot Robot) bool {
	for id, s := range r.fixed {
		if id != robot.ID && s.Name != "" && strings.EqualFold(s.Name, robot.Settings.Name) {
			return true
		}
	}
	return false
}

// settingsOf returns the stored settings overridden by the file's. r.mu is held.
func (r *Registry) settingsOf(robot Robot) Settings {
	if !robot.Adopted() {
		return Settings{}
	}
	if r.hasNameTaken(robot) {
		robot.Settings.Name = ""
	}
	return r.fixed[robot.ID].withDefaults(robot.Settings)
}

// effective returns a robot as callers see it. r.mu is held.
func (r *Registry) effective(robot Robot) Robot {
	robot.Settings = r.settingsOf(robot)
	return robot
}

// Settings returns a robot's settings. It does not wait for the disk.
func (r *Registry) Settings(id ID) Settings {
	if s, adopted := r.trusted.Load(id); adopted {
		return s.(Settings)
	}
	return Settings{}
}

// Resolve returns the robot with the given MAC address, in any spelling, or name, in any
// case. It does not check that a MAC address is known. Errors wrap ErrID. It does not
// wait for the disk.
func (r *Registry) Resolve(robot string) (ID, error) {
	id, err := ParseID(robot)
	if err == nil {
		return id, nil
	}
	name, wrong := CheckName(robot)
	if wrong != nil {
		return "", err
	}
	r.trusted.Range(func(of, s any) bool {
		if s := s.(Settings); strings.EqualFold(s.Name, name) {
			id = of.(ID)
		}
		return id == ""
	})
	if id == "" {
		return "", fmt.Errorf("%w, and no robot is called %q; perch robot list lists the robots", ErrID, name)
	}
	return id, nil
}

// Configure changes a robot's settings durably. It returns ErrUnknownRobot, or an
// error that wraps ErrNotAdopted, ErrName, ErrTaken, ErrFixed or ErrSetting.
func (r *Registry) Configure(id ID, c Change) (Robot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	switch {
	case !known || robot.Forgotten():
		return Robot{}, ErrUnknownRobot
	case !robot.Adopted():
		return Robot{}, fmt.Errorf("%w, so that nothing is set for it; perch robot adopt %s does that", ErrNotAdopted, id)
	}
	c, err := r.unfixed(id, c)
	if err != nil {
		return Robot{}, err
	}
	after, err := robot.Settings.apply(c)
	if err == nil && c.Name != nil {
		err = r.checkNameFree(after.Name, id)
	}
	if err != nil {
		return Robot{}, err
	}
	if after == robot.Settings {
		return r.effective(robot), nil
	}
	robot.Settings = after
	if err := r.records.Put(string(id), robot); err != nil {
		return Robot{}, fmt.Errorf("keep the settings of %s: %w", id, err)
	}
	r.set(robot)
	return r.effective(robot), nil
}

// unfixed returns c without what the file sets to the same value. Errors wrap ErrFixed
// if the file sets another value.
func (r *Registry) unfixed(id ID, c Change) (Change, error) {
	fixed := r.fixed[id]
	for _, one := range fixed.each(&c) {
		if *one.value == "" || *one.to == nil {
			continue
		}
		if strings.TrimSpace(**one.to) != *one.value {
			return c, fmt.Errorf("the %s of %s is %w (robots.each): change it there and restart the appliance", one.key, id, ErrFixed)
		}
		*one.to = nil
	}
	return c, nil
}

// checkNameFree returns an error if another robot has the name. A stored name stays reserved
// while the file overrides it. r.mu is held.
func (r *Registry) checkNameFree(name string, id ID) error {
	if name == "" {
		return nil
	}
	for other, s := range r.fixed {
		if other != id && strings.EqualFold(s.Name, name) {
			return fmt.Errorf("%w: the configuration file calls %s %q; choose another name", ErrTaken, other, s.Name)
		}
	}
	for other, robot := range r.robots {
		if other != id && strings.EqualFold(robot.Settings.Name, name) {
			return fmt.Errorf("%w: %s is called %q; choose another name, or rename that robot first", ErrTaken, other, robot.Settings.Name)
		}
	}
	return nil
}
