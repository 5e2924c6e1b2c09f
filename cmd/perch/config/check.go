package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"perch/agent"
	"perch/agent/reflex"
	"perch/agent/thinker"
	"perch/cmd/perch/drivers"
	"perch/device"
	"perch/perception"
	"perch/secret"
)

// check finds invalid values, and returns them as Faults, together with the faults that k has already. It
// reads the files that the configuration names, but does not use the network. inApp is true if Home
// Assistant has started this program as its app.
func check(k *checker, c *Config, inApp bool) error {
	checkAddresses(k, c)
	checkTLS(k, c.TLS, c.Robots.MQTT.TLS)
	checkIdentity(k, c)
	k.oneOf("adoption", c.Adoption, "open", "code")
	k.oneOf("mood", c.Mood, "on", "off")
	k.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	if c.Robots.Framing < 1 || c.Robots.Framing > 3 {
		k.fault("robots.framing", fmt.Errorf("the binary framings are 1, 2 and 3, not %d", c.Robots.Framing))
	}
	checkRobots(k, c)
	k.between("robots.keep_turns", c.Robots.KeepTurns, 0, 10000)
	if s := time.Duration(c.Speech.Silence); s < 200*time.Millisecond || s > 3*time.Second {
		k.fault("speech.silence", fmt.Errorf("an utterance ends after 200ms to 3s of silence, not %s", s))
	}
	if c.Wyoming.Listen != "" {
		k.listen("wyoming.listen", c.Wyoming.Listen)
	}
	k.between("memory.most", c.Memory.Most, 10, 2000)
	k.between("memory.memory_tokens", c.Memory.MemoryTokens, 100, 100_000)
	k.between("memory.history_tokens", c.Memory.HistoryTokens, 100, 100_000)
	if c.Diary.Keep != 0 {
		k.between("diary.keep", c.Diary.Keep, 100, 100_000)
	}
	checkMQTT(k, c.MQTT, inApp)
	checkBridge(k, c.Bridge)
	checkBehaviours(k, c)
	checkSkins(k, c)
	checkSkills(k, c.Skills)
	checkCharacters(k, c.Characters)
	checkMusic(k, c.Music)
	checkRelays(k, c.Relays)
	checkWeb(k, c.Web)
	_, err := c.Firmware.VerificationKey()
	k.failed("firmware.public_key", err)
	checkEngines(k, c)
	checkReadableByService(k, c)
	if len(k.found) > 0 {
		return k.found
	}
	return nil
}

// checkAddresses checks the addresses on which the appliance listens, its URL and the allowed origins.
func checkAddresses(k *checker, c *Config) {
	if len(c.Listen) == 0 {
		k.fault("listen", errors.New("at least one address is needed for robots to connect"))
	}
	for i, a := range c.Listen {
		k.listen(fmt.Sprintf("listen.%d", i), a)
	}
	for i, a := range c.Local {
		k.loopback(fmt.Sprintf("local.%d", i), a)
	}
	if c.Debug.Listen != "" {
		k.loopback("debug.listen", c.Debug.Listen)
	}
	if c.PublicURL != "" {
		k.failed("public_url", checkPublicURL(c.PublicURL))
	}
	for i, o := range c.AllowedOrigins {
		if o == "file://" {
			continue // the origin of pages in local files, as in desktop programs made with Electron
		}
		if u, err := url.Parse(o); err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" {
			k.fault(fmt.Sprintf("allowed_origins.%d", i),
				errors.New("it is not an origin such as https://panel.example: a scheme, a name and perhaps a port"))
		}
	}
}

// checkPublicURL checks that the firmware can use a URL: http, a host and a port, and nothing else.
func checkPublicURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" || u.Port() == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		// The error does not quote the URL, which may contain a password.
		return errors.New("it is not an address that robots can use, such as http://192.168.1.5:8003: http, a name or address, and a port")
	}
	return nil
}

// networkName matches valid values of the key name, a label of a DNS name.
var networkName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`) })

// checkIdentity checks the names of the appliance and of its persona, and the time zone.
func checkIdentity(k *checker, c *Config) {
	if !networkName().MatchString(c.Name) {
		k.fault("name", fmt.Errorf("%q is not a network name: lower-case letters, digits and dashes, at most 40", c.Name))
	}
	if _, err := c.Zone(); err != nil {
		k.fault("timezone", fmt.Errorf("%q is not a time zone such as Europe/Berlin", c.Timezone))
	}
	if n := utf8.RuneCountInString(strings.TrimSpace(c.Persona.Name)); n == 0 || n > 60 {
		k.fault("persona.name", errors.New("a name has 1 to 60 characters"))
	}
}

// maxLanguages is the maximum number of languages in the key language. Perch's own sentences are
// synthesized in advance in each of these languages.
const maxLanguages = 8

// checkLanguages checks the languages of the key language.
func checkLanguages(k *checker, languages Languages) {
	tags := languages.List()
	if len(tags) > maxLanguages {
		k.fault("language", fmt.Errorf("%d languages are more than %d", len(tags), maxLanguages))
	}
	for i, tag := range tags {
		switch {
		case !languageTag().MatchString(tag):
			k.fault("language", fmt.Errorf("%q is not a language such as en or de-AT", tag))
		case slices.Contains(tags[:i], tag):
			k.fault("language", fmt.Errorf("%s is listed twice", tag))
		}
	}
}

// checkTransports checks how robots connect.
func checkTransports(k *checker, c *Config) {
	transports := []string{string(device.WebSocket), string(device.MQTT)}
	k.oneOf("robots.transport", c.Robots.Transport, transports...)
	useMQTT := c.Robots.Transport == string(device.MQTT)
	for i, r := range c.Robots.Each {
		if r.Transport != "" {
			k.oneOf(fmt.Sprintf("robots.each.%d.transport", i), r.Transport, transports...)
			useMQTT = useMQTT || r.Transport == string(device.MQTT)
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
	case useMQTT && m.Listen == "" && m.TLS == "":
		k.fault("robots.mqtt.listen", errors.New("robots are configured to use MQTT, which needs an address to listen on; the usual one is :1884"))
	case useMQTT && c.Robots.UDP == "":
		k.fault("robots.udp", errors.New("robots are configured to use MQTT, which needs an address for sound; the usual one is :8003"))
	}
}

// checkRobots checks how robots connect, and the settings of single robots.
func checkRobots(k *checker, c *Config) {
	checkTransports(k, c)
	ids, names := map[device.ID]bool{}, map[string]device.ID{}
	for i, r := range c.Robots.Each {
		path := fmt.Sprintf("robots.each.%d", i)
		id, err := device.ParseID(r.Robot)
		switch {
		case err != nil:
			k.fault(path+".robot", err)
		case ids[id]:
			k.fault(path+".robot", fmt.Errorf("%s is listed twice", id))
		}
		ids[id] = true
		if r.Name != "" {
			name, err := device.CheckName(r.Name)
			if other, taken := names[strings.ToLower(name)]; err == nil && taken {
				err = fmt.Errorf("%q is the name of %s already", name, other)
			}
			if err == nil && name != r.Name {
				err = fmt.Errorf("a name has single spaces, and none around it: %q", name)
			}
			if err != nil {
				k.fault(path+".name", err)
			}
			names[strings.ToLower(name)] = id
		}
		for _, u := range c.Unfit(r.Settings()) {
			k.fault(path+"."+u.Key, u.Err)
		}
		switch {
		case r.Persona != "" && r.Character != "":
			k.fault(path+".character", errors.New("a robot has a persona or a character, not both"))
		case r.Character != "":
			k.failed(path+".character", CheckCharacter(r.Character))
		case r.Persona != "":
			if _, err := PersonaFile(r.Persona); err != nil {
				k.fault(path+".persona", err)
			}
		}
	}
}

// checkBehaviours checks the robots' behaviours and the owner's rules.
func checkBehaviours(k *checker, c *Config) {
	k.keyErrors("behaviours", "behaviours.", c.Behaviours.Check())
	rules := c.BehaviourRules(func(key string, err error) { k.fault(key, err) })
	k.keyErrors("rules", "", perception.CheckRules(rules))
}

// checkSkins checks the settings of skins, hooks and OpenClaw.
func checkSkins(k *checker, c *Config) {
	s := c.Skins
	k.key("skins", s.Key, s.KeyFile)
	words, err := agent.NewWords(s.Vocabularies)
	if err == nil {
		k.setChoices("skins.vocabulary", namesOf(words.Vocabularies()))
	}
	switch {
	case err != nil:
		k.fault("skins.vocabularies", err)
	case !words.Knows(s.Vocabulary):
		k.fault("skins.vocabulary", fmt.Errorf("there is no vocabulary %q; there are %v", s.Vocabulary, words.Vocabularies()))
	}
	_, err = c.HookRobots()
	k.failedEach("skins.hooks.robots", err)
	if s.Model != "" {
		_, err := s.Model.Read()
		k.failed("skins.live2d_model", err)
	}
	if s.VCCP != "" {
		k.loopback("skins.vccp", s.VCCP)
	}
	if s.OpenClaw == "" {
		return
	}
	k.listen("skins.openclaw", s.OpenClaw)
	if key, err := secret.Read("key", s.Key, s.KeyFile); err == nil && key == "" && !Loopback(s.OpenClaw) {
		k.fault("skins.openclaw", fmt.Errorf("%q is not a loopback address, so clients need a token: set skins.key, or use 127.0.0.1:18789", s.OpenClaw))
	}
}

// checkEngines checks all engines, the languages and the persona.
func checkEngines(k *checker, c *Config) {
	checkLanguages(k, c.Language)
	persona, err := Persona(c)
	k.failed("persona.file", err)
	noLog := slog.New(slog.DiscardHandler)
	checkList(k, "speech.recognizers", drivers.Recognizers(), c.Speech.Recognizers, func(int) drivers.Voice { return voiceSetup("") })
	checkList(k, "speech.synthesizers", drivers.Synthesizers(), c.Speech.Synthesizers, func(i int) drivers.Voice {
		if i > 0 {
			return voiceSetup("") // only the first synthesizer uses the persona's voice
		}
		return voiceSetup(persona.Voice)
	})
	checkList(k, "brains", drivers.Brains(), c.Brains, func(int) drivers.Brain {
		return drivers.Brain{
			BrainSetup: thinker.BrainSetup{Options: thinker.Options{Persona: persona, Log: noLog},
				Tools: func(t thinker.ToolServer) (thinker.ToolSource, error) {
					o, err := drivers.ToolServer(t, noLog)
					return nil, cmp.Or(err, o.Check())
				}},
			Books: func(sentences string) ([]*reflex.Book, error) {
				if sentences == "" {
					return nil, nil // built-in sentences need no check
				}
				return reflex.LoadEach(ReflexLanguages(c), sentences)
			},
		}
	})
	checkList(k, "brain_deep", drivers.Models(), c.BrainDeep, func(int) thinker.ModelSetup { return thinker.ModelSetup{Log: noLog} })
}

// checkReadableByService adds a fault for the owner's file and for each file of findSecrets that the service's
// user cannot read. It skips systemd credentials and relative paths.
func checkReadableByService(k *checker, c *Config) {
	if k.service == nil {
		return
	}
	if k.file != "" {
		if err := k.service.checkReadable(k.file); err != nil {
			k.found = append(k.found, fault(err))
		}
	}
	for _, f := range c.findSecrets().files {
		if err := k.service.checkReadable(f.path); err != nil && !isCredential(f.path) && filepath.IsAbs(f.path) {
			if strings.HasSuffix(f.key, "_file") {
				err = fmt.Errorf("%w; or move it into %s, whose files systemd passes to the service", err, secret.Directory)
			}
			k.fault(f.key, err)
		}
	}
}
