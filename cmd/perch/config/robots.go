package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/reflex"
	"perch/cmd/perch/drivers"
	"perch/device"
	"perch/driver"
	"perch/voice"
)

// Robot is what one robot has of its own.
type Robot struct {
	Robot   string `yaml:"robot"` // its MAC address
	Name    string `yaml:"name"`
	Persona string `yaml:"persona"` // a file
	// Character is the id of one of characters, or of one that was imported.
	Character string `yaml:"character"`
	Voice     string `yaml:"voice"`
	Brain     string `yaml:"brain"`
	Language  string `yaml:"language"`

	Transport string `yaml:"transport"` // websocket or mqtt
}

// Settings are the same in the form of the registry.
func (r Robot) Settings() device.Settings {
	return device.Settings{Name: r.Name, Persona: cmp.Or(r.Character, r.Persona), Voice: r.Voice, Brain: r.Brain, Language: r.Language,
		Transport: device.Transport(r.Transport)}
}

// FindRobot is the robot that the configuration means, by its MAC address or by a
// name that stands in the same file.
func (c *Config) FindRobot(robot string) (device.ID, error) {
	for _, r := range c.Robots.Each {
		if id, err := device.ParseID(r.Robot); err == nil && r.Name != "" && strings.EqualFold(r.Name, strings.TrimSpace(robot)) {
			return id, nil
		}
	}
	return device.ParseID(robot)
}

// transports finds what robots could not connect by.
func (k *checker) transports(c *Config) {
	transports := []string{string(device.WebSocket), string(device.MQTT)}
	k.oneOf("robots.transport", c.Robots.Transport, transports...)
	byMQTT := c.Robots.Transport == string(device.MQTT)
	for i, r := range c.Robots.Each {
		if r.Transport != "" {
			k.oneOf(fmt.Sprintf("robots.each.%d.transport", i), r.Transport, transports...)
			byMQTT = byMQTT || r.Transport == string(device.MQTT)
		}
	}
	m := c.Robots.MQTT
	for path, address := range map[string]string{"robots.mqtt.listen": m.Listen, "robots.mqtt.tls": m.TLS, "robots.udp": c.Robots.UDP} {
		if address != "" {
			k.listen(path, address)
		}
	}
	if _, port, err := net.SplitHostPort(m.TLS); err == nil && port != "8883" && port != "0" {
		k.fault("robots.mqtt.tls", fmt.Errorf("robots use TLS on port 8883 only, not on %s", port))
	}
	switch {
	case byMQTT && m.Listen == "" && m.TLS == "":
		k.fault("robots.mqtt.listen", errors.New("robots are to use MQTT, and there is no address for it; the usual one is :1884"))
	case byMQTT && c.Robots.UDP == "":
		k.fault("robots.udp", errors.New("robots are to use MQTT, and there is no address for their sound; the usual one is :8003"))
	}
}

// robots finds what cannot be meant for single robots.
func (k *checker) robots(c *Config) {
	k.transports(c)
	ids, names := map[device.ID]bool{}, map[string]device.ID{}
	for i, r := range c.Robots.Each {
		at := fmt.Sprintf("robots.each.%d", i)
		id, err := device.ParseID(r.Robot)
		switch {
		case err != nil:
			k.fault(at+".robot", err)
		case ids[id]:
			k.fault(at+".robot", fmt.Errorf("%s stands here twice", id))
		}
		ids[id] = true
		if r.Name != "" {
			name, err := device.CheckName(r.Name)
			if holder, taken := names[strings.ToLower(name)]; err == nil && taken {
				err = fmt.Errorf("%q is the name of %s already", name, holder)
			}
			if err == nil && name != r.Name {
				err = fmt.Errorf("a name has single spaces, and none around it: %q", name)
			}
			if err != nil {
				k.fault(at+".name", err)
			}
			names[strings.ToLower(name)] = id
		}
		for _, u := range c.Unfit(r.Settings()) {
			k.fault(at+"."+u.Key, u.Err)
		}
		switch {
		case r.Persona != "" && r.Character != "":
			k.fault(at+".character", errors.New("a robot has a persona or a character, not both"))
		case r.Character != "":
			k.failed(at+".character", CheckCharacter(r.Character))
		case r.Persona != "":
			if _, err := PersonaFile(r.Persona); err != nil {
				k.fault(at+".persona", err)
			}
		}
	}
}

// UnfitSetting is a setting that the engines cannot follow.
type UnfitSetting struct {
	Key string
	Err error
}

// Unfit finds what of a robot's settings the engines cannot follow, as far as
// they know without being asked. The persona is looked at where it is read.
func (c *Config) Unfit(s device.Settings) (all []UnfitSetting) {
	refuse := func(key string, why error) { all = append(all, UnfitSetting{key, why}) }
	if brains := c.brainNames(); s.Brain != "" && !slices.Contains(brains, s.Brain) {
		refuse("brain", fmt.Errorf("there is no brain %q; there are %s", s.Brain, strings.Join(brains, ", ")))
	}
	if s.Voice != "" && len(c.Speech.Synthesizers) > 0 {
		first := c.Speech.Synthesizers[0]
		if err := drivers.Synthesizers().Check(first.Kind, first.Options, checkedVoice(s.Voice)); err != nil {
			refuse("voice", err)
		}
	}
	if s.Language != "" && !languageTag().MatchString(s.Language) {
		refuse("language", fmt.Errorf("%q is no language such as en or de-AT", s.Language))
	}
	return all
}

// brainNames are the brains as a robot's setting names them: by their kind, the
// second of a kind "openai 2".
func (c *Config) brainNames() (names []string) {
	of := map[string]int{}
	for _, b := range c.Brains {
		name := b.Kind
		if of[b.Kind]++; of[b.Kind] > 1 {
			name = fmt.Sprintf("%s %d", b.Kind, of[b.Kind])
		}
		names = append(names, name)
	}
	return names
}

// PersonaFile reads the persona of one robot, which the configuration file names
// by its path. What a persona asks of a model is of the engine that all share.
func PersonaFile(path string) (agent.Persona, error) {
	if PersonaName().MatchString(path) {
		return agent.Persona{}, fmt.Errorf("%q is no path of a file such as /etc/perch/cook.md", path)
	}
	return RobotPersona(path)
}

// RobotPersona reads a persona for one robot. It may not choose a brain.
func RobotPersona(path string) (agent.Persona, error) {
	p, err := agent.LoadPersona(path)
	if err == nil && p.Brain != (agent.BrainOptions{}) {
		err = fmt.Errorf("%s: brain has no effect in a persona of one robot; name one of brains in the robot's brain", path)
	}
	return p, err
}

// PersonaName is how an owner's command names a persona: a file of the directory
// personas, and no other that the appliance may read.
var PersonaName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) })

// Persona is who the robot is: a file, or a name alone.
func Persona(c *Config) (agent.Persona, error) {
	persona := agent.DefaultPersona()
	if c.Persona.File != "" {
		read, err := agent.LoadPersona(c.Persona.File)
		if err != nil {
			return persona, err
		}
		persona = read
	}
	if persona.Name == "" || c.Persona.File == "" {
		persona.Name = c.Persona.Name
	}
	return persona, nil
}

// Book is the reflex brain's book, whose sentences the embedded recognizer
// listens for: of the household's first language that it speaks, or English.
func Book(c *Config) (*reflex.Book, error) {
	books, err := Books(c)
	if err != nil {
		return nil, err
	}
	return books[0], nil
}

// Books are those of all its languages, that book first.
func Books(c *Config) ([]*reflex.Book, error) {
	books, err := reflex.LoadEach(ReflexLanguages(c), Sentences(c))
	if err != nil {
		return nil, fmt.Errorf("read the reflex brain's sentences: %w", err)
	}
	return books, nil
}

// Sentences is the file of the owner's own sentences in these books, or empty.
func Sentences(c *Config) (own string) {
	for _, b := range c.Brains {
		if b.Kind == "reflex" {
			own = driver.Value[string](b.Options, "sentences")
		}
	}
	return own
}

// ownLanguage is that of the appliance's own sentences, where they are in no other.
const ownLanguage = "en"

// Patience is how long a session waits for the slowest of the brains: longer
// than that brain's driver does, which knows better what is wrong.
func (c *Config) Patience() time.Duration {
	longest := 3 * time.Minute
	for _, b := range c.Brains {
		own := driver.Value[time.Duration](b.Options, "within")
		if o, is := b.Options.(interface{ Patience() time.Duration }); is {
			own = o.Patience()
		}
		longest = max(longest, own+10*time.Second)
	}
	return longest
}

// Speech is in which language robots are spoken to, and what is expected of
// those who speak to them: the persona's, where it has one.
func Speech(c *Config) (voice.Options, error) {
	persona, err := Persona(c)
	if err != nil {
		return voice.Options{}, err
	}
	return voice.Options{Language: cmp.Or(persona.Language, c.Language.First())}, nil
}
