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

// Settings are the owner's settings for one robot. If a field is empty, the appliance's
// default applies. Only adopted robots have settings.
type Settings struct {
	Name     string `json:"name,omitempty"`     // shown instead of the ID
	Persona  string `json:"persona,omitempty"`  // ID of the character, or path of a persona file that the configuration names
	Voice    string `json:"voice,omitempty"`    // voice of the first synthesizer
	Brain    string `json:"brain,omitempty"`    // name of the brain that is tried first
	Language string `json:"language,omitempty"` // BCP 47
	// Transport takes effect when the robot boots.
	Transport Transport `json:"transport,omitempty"`
}

// Transport is the protocol that connects a robot to the appliance.
type Transport string

// The transports of the firmware. A robot with MQTT can be reached while it is idle; a WebSocket is
// open only during a conversation.
const (
	WebSocket Transport = "websocket"
	MQTT      Transport = "mqtt" // with UDP for sound
)

// Change is a change of settings. Nil does not change a setting; an empty string clears it.
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
	// ErrNotAdopted is returned for a robot that is a stranger.
	ErrNotAdopted error = errors.New("nobody has adopted this robot")
	// ErrName is returned for text that cannot be a robot's name.
	ErrName error = errors.New("not a robot's name")
	// ErrTaken is returned for a name that another robot has.
	ErrTaken error = errors.New("the name is taken")
	// ErrFixed is returned for a setting that the configuration file sets.
	ErrFixed error = errors.New("set in the configuration file")
	// ErrSetting is returned for an invalid value of a setting other than the name.
	ErrSetting error = errors.New("not a robot's setting")
)

const maxRobotName = 32 // characters

// CheckName checks a robot's name, and returns it without spaces at its ends and with each run of spaces
// replaced by one space. A name has 1 to maxRobotName characters. It must not look like a MAC address, an
// adoption code, a command-line option or a part of a URL. Errors wrap ErrName.
func CheckName(s string) (string, error) {
	name := strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' }), " ")
	var cause error
	_, macErr := ParseID(name)
	switch n := utf8.RuneCountInString(name); {
	case !utf8.ValidString(s) || plain.Text(name) != name:
		cause = errors.New("it has characters that cannot be shown in a line of text")
	case n == 0 || n > maxRobotName:
		cause = fmt.Errorf("a name has 1 to %d characters, not %d", maxRobotName, n)
	case macErr == nil:
		cause = errors.New("it is a MAC address")
	case isCode(name):
		cause = errors.New("it could be the code that a robot shows")
	case strings.ContainsAny(name, "/\\+#?%:") || strings.HasPrefix(name, "-") || strings.Trim(name, ".") == "":
		cause = fmt.Errorf(`a name has none of / \ + # ? %s :, does not begin with - and does not consist of dots only, `+
			`because it is used in addresses and commands`, "%")
	default:
		return name, nil
	}
	return "", fmt.Errorf("%w: %.80q: %w", ErrName, s, cause)
}

// setting is a field of Settings together with the corresponding field of a Change.
type setting struct {
	key    string
	value  *string
	change **string
}

// fields returns all fields of s, each with the corresponding field of c.
func (s *Settings) fields(c *Change) []setting {
	return []setting{{"name", &s.Name, &c.Name}, {"persona", &s.Persona, &c.Persona}, {"voice", &s.Voice, &c.Voice},
		{"brain", &s.Brain, &c.Brain}, {"language", &s.Language, &c.Language}, {"transport", (*string)(&s.Transport), &c.Transport}}
}

// apply returns the settings after a change. Errors wrap ErrName or ErrSetting.
func (s Settings) apply(c Change) (_ Settings, err error) {
	for _, f := range s.fields(&c) {
		if *f.change == nil {
			continue
		}
		text := strings.TrimSpace(**f.change)
		switch {
		case f.key == "name" && text != "":
			if text, err = CheckName(**f.change); err != nil {
				return s, err
			}
		case f.key == "transport" && !slices.Contains([]Transport{"", WebSocket, MQTT}, Transport(text)):
			return s, fmt.Errorf("%w: transport is %s or %s, not %.20q", ErrSetting, WebSocket, MQTT, text)
		case len(text) > limit.Name || plain.Text(text) != text:
			return s, fmt.Errorf("%w: %s is a line of at most %d bytes", ErrSetting, f.key, limit.Name)
		}
		*f.value = text
	}
	return s, nil
}

// withDefaults returns s with the values of other in its empty fields.
func (s Settings) withDefaults(other Settings) Settings {
	return Settings{cmp.Or(s.Name, other.Name), cmp.Or(s.Persona, other.Persona), cmp.Or(s.Voice, other.Voice),
		cmp.Or(s.Brain, other.Brain), cmp.Or(s.Language, other.Language), cmp.Or(s.Transport, other.Transport)}
}

// SetFixed sets the settings of the configuration file, which override the stored ones. The stored
// settings do not change. SetFixed returns the adopted robots whose stored name the file gives to another robot,
// with their stored settings.
func (r *Registry) SetFixed(fixed map[ID]Settings) (hidden []Robot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fixed = fixed
	for _, robot := range r.robots {
		r.update(robot)
		if robot.Adopted() && r.isNameFixed(robot) {
			hidden = append(hidden, robot)
		}
	}
	return hidden
}

// isNameFixed reports whether the configuration file gives the name in robot.Settings to another robot. The caller
// holds r.mu.
func (r *Registry) isNameFixed(robot Robot) bool {
	for id, s := range r.fixed {
		if id != robot.ID && s.Name != "" && strings.EqualFold(s.Name, robot.Settings.Name) {
			return true
		}
	}
	return false
}

// settingsOf returns a robot's settings: each is from the configuration file, or else the stored one. They
// are empty for a stranger. The caller holds r.mu.
func (r *Registry) settingsOf(robot Robot) Settings {
	if !robot.Adopted() {
		return Settings{}
	}
	if r.isNameFixed(robot) {
		robot.Settings.Name = ""
	}
	return r.fixed[robot.ID].withDefaults(robot.Settings)
}

// effective returns a robot with the settings that settingsOf returns. The caller holds r.mu.
func (r *Registry) effective(robot Robot) Robot {
	robot.Settings = r.settingsOf(robot)
	return robot
}

// Settings returns a robot's settings, which are empty unless the robot is adopted. It does not wait for
// the disk.
func (r *Registry) Settings(id ID) Settings {
	if s, adopted := r.trusted.Load(id); adopted {
		return s.(Settings)
	}
	return Settings{}
}

// Resolve returns the ID of the robot with a MAC address, in any spelling, or a name, in any case. It
// does not check whether a robot with the MAC address is registered. Errors wrap ErrID. It does not wait
// for the disk.
func (r *Registry) Resolve(robot string) (ID, error) {
	id, err := ParseID(robot)
	if err == nil {
		return id, nil
	}
	name, nameErr := CheckName(robot)
	if nameErr != nil {
		return "", err
	}
	r.trusted.Range(func(key, value any) bool {
		if s := value.(Settings); strings.EqualFold(s.Name, name) {
			id = key.(ID)
		}
		return id == ""
	})
	if id == "" {
		return "", fmt.Errorf("%w, and no robot is called %q; perch robot list lists the robots", ErrID, name)
	}
	return id, nil
}

// Configure changes a robot's settings durably. It returns ErrUnknownRobot, or an
// error that wraps ErrNotAdopted, ErrName, ErrTaken, ErrFixed, ErrSetting or an error
// of the store.
func (r *Registry) Configure(id ID, c Change) (Robot, error) {
	return r.configure(id, c, func(robot *Robot) { robot.Welcomed = false })
}

// Nickname sets the name of a robot, as Configure does, but leaves Robot.Welcomed unchanged, because the person near the
// robot who said the name need not be its owner.
func (r *Registry) Nickname(id ID, name string) (Robot, error) {
	return r.configure(id, Change{Name: &name}, func(*Robot) {})
}

// configure changes a robot's settings, and calls edit with the changed record before storing the record.
func (r *Registry) configure(id ID, c Change, edit func(*Robot)) (Robot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	switch {
	case !known || robot.Forgotten():
		return Robot{}, ErrUnknownRobot
	case !robot.Adopted():
		return Robot{}, fmt.Errorf("%w, so it has no settings; perch robot adopt %s adopts it", ErrNotAdopted, id)
	}
	c, err := r.withoutFixed(id, c)
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
	before, wasWelcomed := robot.Settings, robot.Welcomed
	robot.Settings = after
	if edit(&robot); robot.Settings == before && robot.Welcomed == wasWelcomed {
		return r.effective(robot), nil
	}
	if err := r.records.Put(string(id), robot); err != nil {
		return Robot{}, fmt.Errorf("store the settings of %s: %w", id, err)
	}
	r.update(robot)
	return r.effective(robot), nil
}

// withoutFixed returns c without the settings that have the same value in the configuration file. If
// the file sets another value, it returns an error that wraps ErrFixed.
func (r *Registry) withoutFixed(id ID, c Change) (Change, error) {
	fixed := r.fixed[id]
	for _, f := range fixed.fields(&c) {
		if *f.value == "" || *f.change == nil {
			continue
		}
		if strings.TrimSpace(**f.change) != *f.value {
			return c, fmt.Errorf("the %s of %s is %w (robots.each): change it there and restart the appliance", f.key, id, ErrFixed)
		}
		*f.change = nil
	}
	return c, nil
}

// checkNameFree returns an error that wraps ErrTaken if another robot has the name. A stored name that
// the configuration file overrides counts as well. The caller holds r.mu.
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
