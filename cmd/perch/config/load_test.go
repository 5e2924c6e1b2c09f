package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/must"
	"perch/voice/espeak"
	"perch/voice/openai"
)

// TestTheSampleIsTheDefaults: the sample perch.yaml contains every key, with its default.
func TestTheSampleIsTheDefaults(t *testing.T) {
	const sample = "perch.yaml"
	c, err := appliancetest.Load(sample)
	must.Succeed(t, err)
	want := config.Default()
	for _, list := range []*[]string{&want.AllowedHosts, &want.AllowedOrigins, &want.MDNS.Interfaces, &want.TLS.Listen, &want.Web.Ingress} {
		*list = []string{} // written as empty lists
	}
	want.Skills.Allow = []string{}
	want.Skins.Vocabularies, want.Skins.Hooks.Robots = map[agent.Vocabulary]map[string]string{}, []string{}
	want.BrainDeep, want.Rules, want.Robots.Each = []config.Engine{}, []config.Rule{}, []config.Robot{}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("the sample is\n%+v\nthe defaults are\n%+v", c, want)
	}
	text := drivers.Sample(config.Sample())
	c, err = appliancetest.Load(appliancetest.WriteConfig(t, text)) // the text that the package installs
	if err != nil || !reflect.DeepEqual(c, want) {
		t.Errorf("the sample is\n%+v\nthe defaults are\n%+v, %v", c, want, err)
	}
	keys := keysOf(reflect.TypeOf(c))
	for _, kind := range drivers.Kinds() {
		for _, f := range kind.Keys {
			keys = append(append(keys, f.Key), keysOf(f.Value.Type())...)
		}
	}
	for _, key := range keys {
		if !strings.Contains(text, key+":") {
			t.Errorf("the sample has no %s", key)
		}
	}
}

func keysOf(t reflect.Type) (keys []string) {
	switch t.Kind() {
	case reflect.Slice:
		return keysOf(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if key := t.Field(i).Tag.Get("yaml"); key != ",inline" {
				keys = append(keys, key)
			}
			keys = append(keys, keysOf(t.Field(i).Type)...)
		}
	}
	return keys
}

func TestNoFileIsTheDefaults(t *testing.T) {
	for _, path := range []string{"", appliancetest.WriteConfig(t, ""), appliancetest.WriteConfig(t, "# nothing\n")} {
		c, err := appliancetest.Load(path)
		if err != nil || !reflect.DeepEqual(c, config.Default()) {
			t.Errorf("%q: %+v, %v", path, c, err)
		}
	}
}

// TestLengthOfAName: the length of a persona's name is counted in characters, not in bytes.
func TestLengthOfAName(t *testing.T) {
	for length, ok := range map[int]bool{1: true, 60: true, 61: false} {
		_, err := appliancetest.Load(appliancetest.WriteConfig(t, "persona: {name: \""+strings.Repeat("猫", length)+"\"}"))
		if (err == nil) != ok {
			t.Errorf("%d characters: %v", length, err)
		}
	}
}

// TestFaults: every fault is reported with file, line and key.
func TestFaults(t *testing.T) {
	t.Parallel()
	asks := appliancetest.WriteConfig(t, "---\nbrain: {model: x}\n---\nYou ask for much.")
	for text, want := range map[string]string{
		"nmae: perch":                                              ":1: nmae: there is no such key",
		"name: perch\nrobots:\n  idel: 60s":                        ":3: robots.idel: there is no such key",
		"brains:\n  - kind: reflex\n    modle: x":                  ":3: brains.0.modle: there is no such key",
		"brains: [{kind: openai, url: nonsense}]":                  ":1: brains.0.url: ",
		"brains: [{kind: acp}]":                                    ":1: brains.0.command: an agent needs a command",
		"brains: [{kind: gpt}]":                                    `:1: brains.0.kind: it must be one of acp, anthropic, assist, none, openai, realtime, reflex, not "gpt"`,
		"brain_deep: [{kind: reflex}]":                             `:1: brain_deep.0.kind: it must be one of anthropic, openai, not "reflex"`,
		"brains:\n- kind: reflex\n  num_ctx: 9":                    ":3: brains.0.num_ctx: reflex has no such key; it has kind, sentences",
		"speech: {synthesizers: [{kind: espeak, rate: 8}]}":        ":1: speech.synthesizers.0.rate: espeak has no such key",
		"brains: [{kind: acp, command: [x], allow: [everything]}]": ":1: brains.0: \"everything\" is not a kind of tool",
		"brains: [{kind: assist, url: \"http://h:1\"," +
			" token: a, token_file: /nowhere}]": ":1: brains.0.token: token and token_file are two places for one token",
		"brains: [{kind: openai, url: \"http://h:1/v1\", model: m, mcp: [{name: x}]}]":                      ":1: brains.0.mcp: MCP server x: ",
		"persona: {file: " + appliancetest.WriteConfig(t, "---\nvoice: \"--x\"\n---\nYou are small.") + "}": "speech.synthesizers.0.voice: ",
		"wyoming: {listen: here}":       ":1: wyoming.listen: ",
		"skins: {openclaw: here}":       ":1: skins.openclaw: ",
		"skins: {vccp: \":3000\"}":      ":1: skins.vccp: ",
		"skins: {openclaw: \":18789\"}": ":1: skins.openclaw: \":18789\" is not a loopback address, so clients need a token",
		"memory: {history_tokens: -1}":  ":1: memory.history_tokens: it must be 100 to 100000, not -1",
		"brains: [{kind: openai, url: \"http://h:1/v1\", model: m, key_file: /nowhere}]": ":1: brains.0.key_file: read key_file: ",
		"speech: {recognizers: [{kind: wyoming, url: x}]}":                               ":1: speech.recognizers.0.url: ",
		"speech: {synthesizers: [{kind: elevenlabs}]}":                                   ":1: speech.synthesizers.0.voice: ",
		"persona: {file: /nowhere.md}":                                                   ":1: persona.file: ",
		"skins: {live2d_model: /nowhere.json}":                                           ":1: skins.live2d_model: ",
		"robots: {idle: 60}":                                                             `:1: robots.idle: "60" is not a duration such as 60s, 5m or 24h`,
		"robots:\n  framing: 4":                                                          ":2: robots.framing: the binary framings are 1, 2 and 3, not 4",
		"robots:\n  framing: one":                                                        ":2: robots.framing: `one` is not of the right type",
		"listen: [\"8003\"]":                                                             `:1: listen.0: "8003" is not an address such as :8003`,
		"listen: []":                                                                     ":1: listen: at least one address is needed",
		"listen: :8003":                                                                  ":1: listen: ",
		"local: [\":8004\"]":                                                             ":1: local.0: \":8004\" is served without a key and so must be a loopback address",
		"debug: {listen: \":6060\"}":                                                     ":1: debug.listen: \":6060\" is served without a key and so must be a loopback address",
		"local: [\"192.168.1.5:8004\"]":                                                  "must be a loopback address",
		"public_url: https://x.example:8003":                                             ":1: public_url: ",
		"public_url: http://x.example":                                                   ":1: public_url: ",
		"name: My House":                                                                 ":1: name: \"My House\" is not a network name",
		"timezone: Europe/Atlantis":                                                      ":1: timezone: \"Europe/Atlantis\" is not a time zone",
		"adoption: maybe":                                                                ":1: adoption: it must be one of open, code, not \"maybe\"",
		"log: {level: loud}":                                                             ":1: log.level: it must be one of",
		"allowed_origins: [panel]":                                                       ":1: allowed_origins.0: ",
		"allowed_origins: [\"file:///home\"]":                                            ":1: allowed_origins.0: ",
		"speech: {silence: 10s}":                                                         ":1: speech.silence: ",
		"speech:\n  recognizers:\n    - {kind: ears}":                                    ":3: speech.recognizers.0.kind: it must be one of assist, openai, sphinx, wyoming, not \"ears\"",
		"speech:\n  synthesizers:\n    - {kind: espeak, voice: \"--x\"}":                 ":3: speech.synthesizers.0.voice: ",
		"brains: []":                                                                     ":1: brains: at least one is needed",
		"brains: [{kind: reflex, sentences: /nowhere.yaml}]":                             ":1: brains.0.sentences: read sentences: ",
		"persona: {name: \"\"}":                                                          ":1: persona.name: ",
		"language: [en, German]":                                                         ":1: language: \"German\" is not a language such as en or de-AT",
		"language: [en, de, en]":                                                         ":1: language: en is listed twice",
		"language: {a: b}":                                                               "write one language, such as de, or a list, such as [en, de]",
		"language: [en, de, fr, es, ja, zh, it, nl, sv]\nbrains: [{kind: none}]": ":1: language: 9 languages are more than 8",
		"language: German":                                                      ":1: language: \"German\" is not a language such as en or de-AT",
		"mqtt: {broker: \"http://192.168.1.9\"}":                                ":1: mqtt.broker: it begins with \"http://\"; it must be mqtt://",
		"mqtt: {broker: \"mqtt://me:secret@192.168.1.9\"}":                      ":1: mqtt.broker: it holds a user or a password",
		"mqtt:\n  base_topic: \"perch/#\"":                                      ":2: mqtt.base_topic: \"perch/#\" has to be of 1 to 64 letters",
		"mqtt: {base_topic: perch, discovery_prefix: perch}":                    ":1: mqtt.base_topic: it and mqtt.discovery_prefix are both \"perch\"",
		"mqtt: {listen: \"1883\"}":                                              ":1: mqtt.listen: ",
		"mqtt: {password: a, password_file: b}":                                 ":1: mqtt: password and password_file are two places",
		"bridge: {key: short}":                                                  ":1: bridge.key: it has 5 characters; a key has 8 or more",
		"bridge: {timeout_long: 1h}":                                            ":1: bridge.timeout_long: a tool may take 1s to 5m",
		"behaviours:\n  sound: {yaw: 500}":                                      ":2: behaviours.sound.yaw: 500 is out of range; a head turns up to 128 degrees",
		"behaviours: {greeter: {hours: \"9-17\"}}":                              ":1: behaviours.greeter.hours: ",
		"behaviours: {greeter: {every: 30}}":                                    `:1: behaviours.greeter.every: "30" is not a duration such as 60s`,
		"behaviours: {greeter: {evry: 30s}}":                                    ":1: behaviours.greeter.evry: there is no such key",
		"behaviours: {quiet: {sleep: true}}":                                    ":1: behaviours.quiet.sleep: there are no quiet hours",
		"rules:\n- {when: {event: x}, do: [{say: a, play: b}]}":                 ":2: rules.0.do.0: it does one thing",
		"rules:\n- {when: {event: x}, do: [{play: ../x}]}":                      ":2: rules.0.do.0.play: ",
		"rules:\n- {when: {event: \"\"}, do: [{stop: true}]}":                   ":2: rules.0.when.event: ",
		"rules:\n- {when: {event: x}}":                                          ":2: rules.0.do: it has 0 acts; a rule has 1 to 20",
		"rules:\n- {when: {event: x, robot: me}, do: [{stop: true}]}":           ":2: rules.0.when.robot: no robot in robots.each has this name, and it is not a MAC address",
		"rules:\n- {when: {event: x, if: {a: {abov: 1}}}, do: [{stop: true}]}":  `:2: rules.0.when.if.a.abov: there is no key "abov" here`,
		"rules:\n- {when: {event: x, if: {a: {above: x}}}, do: [{stop: true}]}": ":2: ",
		"rules:\n- {when: {event: x, if: {a: [1]}}, do: [{stop: true}]}":        ":2: rules.0.when.if.a: ",
		"rules:\n- {when: {event: x}, hours: noon, do: [{stop: true}]}":         ":2: rules.0.hours: ",
		"rules:\n- {when: {event: x}, every: 1ms, do: [{stop: true}]}":          ":2: rules.0.every: 1ms is not from 1s to a day",
		"rules:\n- {when: {event: x}, do: [{emotion: jolly}]}":                  ":2: rules.0.do.0: \"jolly\" is not an emotion",
		"rules:\n- {when: {event: x}, do: [{publish: {topic: \"a/#\"}}]}":       ":2: rules.0.do.0.publish: ",
		"rules:\n- {when: {event: x}, do: [{tool: {}}]}":                        ":2: rules.0.do.0.tool: it is empty",
		"rules:\n- when: {event: x}\n  do:\n  - head: {yaw: 999}":               ":4: rules.0.do.0.head.yaw: 999 is out of range",
		"skins: {key: short}":                                                   ":1: skins.key: it has 5 characters",
		"skins:\n  key: long enough\n  key_file: x":                             ":1: skins: key and key_file are two places",
		"skins: {vocabulary: klingon}":                                          `:1: skins.vocabulary: there is no vocabulary "klingon"; there are [`,
		"skins: {vocabularies: {mine: {happy: glad}}}":                          ":1: skins.vocabularies: ",
		"skins: {hooks: {robots: [me]}}":                                        `:1: skins.hooks.robots: robot 1: no robot in robots.each has this name, and it is not a MAC address: "me"`,
		"firmware: {public_key: nonsense}":                                      ":1: firmware.public_key: it is not an ed25519 public key",
		"mqtt: {ca: /nowhere.pem}":                                              ":1: mqtt: read ca: ",

		"robots: {each: [{robot: kitchen}]}":                                               "robots.each.0.robot: not a MAC address",
		"robots: {each: [{name: kitchen}]}":                                                "robots.each.0.robot: ",
		"robots: {each: [{robot: a0b1c2d3e4f5, name: a0b1c2d3e4f6}]}":                      "robots.each.0.name: ",
		"robots: {each: [{robot: a0b1c2d3e4f5, name: a}, {robot: a0b1c2d3e4f6, name: A}]}": `robots.each.1.name: "A" is the name of a0b1c2d3e4f5 already`,
		"robots: {each: [{robot: a0b1c2d3e4f5, name: a}, {robot: \"A0:B1:C2:D3:E4:F5\"}]}": "robots.each.1.robot: a0b1c2d3e4f5 is listed twice",
		"robots: {each: [{robot: a0b1c2d3e4f5, persona: /nowhere.md}]}":                    "robots.each.0.persona: ",
		"robots: {each: [{robot: a0b1c2d3e4f5, persona: cook}]}":                           "robots.each.0.persona: ",
		"robots: {each: [{robot: a0b1c2d3e4f5, persona: " + asks + "}]}":                   "robots.each.0.persona: ",
		"robots: {each: [{robot: a0b1c2d3e4f5, voice: --x}]}":                              "robots.each.0.voice: ",
		"robots: {each: [{robot: a0b1c2d3e4f5, brain: gpt}]}":                              `robots.each.0.brain: there is no brain "gpt"; the brains are: reflex`,
		"robots: {each: [{robot: a0b1c2d3e4f5, language: German}]}":                        `robots.each.0.language: "German" is not a language`,
		"robots: {each: [{robot: a0b1c2d3e4f5, colour: red}]}":                             "robots.each.0.colour: there is no such key",

		"name: [":          "perch.yaml:",
		"- a\n- b":         "perch.yaml:1: ",
		"name: a\nname: b": "perch.yaml:2: ",
	} {
		_, err := appliancetest.Load(appliancetest.WriteConfig(t, text))
		var wrong config.Faults
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngave %v\nwant %s", text, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "main.") || strings.Contains(err.Error(), " yaml: ")) {
			t.Errorf("%s\nspeaks of the program's insides: %v", text, err)
		}
	}
	_, err := appliancetest.Load(appliancetest.WriteConfig(t, "robots: {each: [{robot: a0b1c2d3e4f5, name: kitchen, language: de, brain: openai 2}]}\n"+
		"speech: {recognizers: [{kind: wyoming, url: \"tcp://h:1\"}, {kind: sphinx}]}\n"+
		"brains: [{kind: openai, url: \"http://h:1/v1\", model: m}, {kind: openai, url: \"http://h:2/v1\", model: m}, {kind: reflex}]\n"+
		"rules:\n- {when: {event: x, robot: Kitchen}, do: [{stop: true}]}\nskins: {hooks: {robots: [KITCHEN]}}"))
	if err != nil {
		t.Errorf("robots without faults: %v", err)
	}
	if _, err := appliancetest.Load("/nowhere/perch.yaml"); err == nil || !strings.Contains(err.Error(), "/nowhere/perch.yaml") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestOrigins: origins of servers and the origin of local files are valid.
func TestOrigins(t *testing.T) {
	want := []string{"https://panel.example", "http://localhost:12393", "file://"}
	c, err := appliancetest.Load(appliancetest.WriteConfig(t, "allowed_origins: ["+strings.Join(want, ", ")+"]"))
	if err != nil || !slices.Equal(c.AllowedOrigins, want) {
		t.Errorf("%q, %v", c.AllowedOrigins, err)
	}
}

// TestAllFaultsAtOnce: unknown keys, values of the wrong type, invalid values and faults of rules are reported
// together. Each fault is reported once.
func TestAllFaultsAtOnce(t *testing.T) {
	const text = `nmae: x
adoption: maybe
robots: {idle: soon}
listen: []
brains:
- {kind: openai, urll: x}
- {kind: klingon}
rules:
- {when: {event: ""}, do: [{say: a, play: b}, {play: ../x}]}
- {when: {event: x, robot: me}, every: 1ms, do: []}
- {when: {event: x}, wen: y}
relays:
- kind: warudo
  words: {state.dancing: x, face.glum: y}
`
	_, err := appliancetest.Load(appliancetest.WriteConfig(t, text), "PERCH_NOTHING=1")
	var wrong config.Faults
	if !errors.As(err, &wrong) {
		t.Fatal(err)
	}
	want := []string{
		":1: nmae: there is no such key", ":2: adoption: ", ":3: robots.idle: ", ":4: listen: at least one",
		":6: brains.0.urll: there is no such key",
		":7: brains.1.kind: ", ":9: rules.0.do.0: it does one thing", ":9: rules.0.do.1.play: ", ":9: rules.0.when.event: ",
		":10: rules.1.when.robot: ",
		":10: rules.1.every: ", ":10: rules.1.do: it has 0 acts; a rule has 1 to 20", ":11: rules.2.wen: there is no such key",
		":14: relays.0.words.face.glum: ", ":14: relays.0.words.state.dancing: ", "PERCH_NOTHING: there is no such key",
	}
	for _, w := range want {
		if !slices.ContainsFunc(wrong, func(f config.Fault) bool { return strings.Contains(f.String(), w) }) {
			t.Errorf("no fault says %q", w)
		}
	}
	if len(wrong) != len(want) {
		t.Errorf("%d faults, not %d:\n%s", len(wrong), len(want), err)
	}
}

// TestAnEngineByEnvironment: an engine whose kind a variable sets keeps no options of the engine that it replaces.
// The error for a value of the wrong type does not contain the value, which may be a secret.
func TestAnEngineByEnvironment(t *testing.T) {
	c, err := appliancetest.Load("", "PERCH_SPEECH_SYNTHESIZERS_0_KIND=openai", "PERCH_SPEECH_SYNTHESIZERS_0_KEY=k",
		"PERCH_SPEECH_SYNTHESIZERS_0_URL=http://127.0.0.1:9/v1")
	if want := (config.Engine{Kind: "openai", Options: &openai.SynthesizerKeys{Key: "k", URL: "http://127.0.0.1:9/v1"}}); err != nil || !reflect.DeepEqual(c.Speech.Synthesizers[0], want) {
		t.Errorf("%+v, %v", c.Speech.Synthesizers, err)
	}
	_, err = appliancetest.Load("", "PERCH_BRAINS_0_KIND=acp", "PERCH_BRAINS_0_COMMAND=[x]", "PERCH_BRAINS_0_ENV=API_KEY=canary")
	if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "{NAME: value}") {
		t.Errorf("a key in the wrong form: %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	path := appliancetest.WriteConfig(t, "name: fromfile\n")
	c, err := appliancetest.Load(path, "HOME=/x", "PERCH_NAME=fromenv", "PERCH_ROBOTS_IDLE=5m", "PERCH_ROBOTS_KEEP_TURNS=7",
		"PERCH_MDNS_ENABLED=false",
		"PERCH_LISTEN_0=:9000", "PERCH_LISTEN_1=:9001", "PERCH_SPEECH_SYNTHESIZERS_0_VOICE=en-gb", "PERCH_ALLOWED_HOSTS_0=robots.example",
		"PERCH_URL=http://x", "PERCH_TOKEN=secret", "PERCH_PUBLIC_URL=http://192.168.1.5:8003",
		"VTUBER_AUTH_KEY=of the skins", "PERCH_BEHAVIOURS_QUIET_HOURS=22:00-07:00", "PERCH_BEHAVIOURS_GREETER_EVERY_NAME=5m")
	must.Succeed(t, err)
	if c.Name != "fromenv" || time.Duration(c.Robots.Idle) != 5*time.Minute || c.Robots.KeepTurns != 7 || c.MDNS.Enabled ||
		!reflect.DeepEqual(c.Listen, []string{":9000", ":9001"}) || c.Speech.Synthesizers[0].Options.(*espeak.Options).Voice != "en-gb" ||
		!reflect.DeepEqual(c.AllowedHosts, []string{"robots.example"}) || c.PublicURL != "http://192.168.1.5:8003" ||
		c.Skins.Key != "of the skins" || c.Behaviours.Quiet.Hours.String() != "22:00-07:00" || c.Behaviours.Greeter.EveryName != 5*time.Minute {
		t.Errorf("%+v", c)
	}
	if c, err := appliancetest.Load("", "PERCH_SKINS_KEY=our own of them", "VTUBER_AUTH_KEY=of the skins"); err != nil ||
		c.Skins.Key != "our own of them" {
		t.Errorf("two keys: %q, %v", c.Skins.Key, err)
	}
	for variable, want := range map[string]string{
		"VTUBER_AUTH_KEY=x":         "VTUBER_AUTH_KEY: it has 1 characters",
		"PERCH_NMAE=x":              "PERCH_NMAE: there is no such key",
		"PERCH_ROBOTS=x":            "PERCH_ROBOTS: there is no such key; robots contains other keys",
		"PERCH_ROBOTS_IDLE=soon":    "PERCH_ROBOTS_IDLE: the value is not of the right type; write a duration such as 60s",
		"PERCH_LISTEN_5=:1":         "PERCH_LISTEN_5: listen has no entry 5",
		"PERCH_LISTEN_X=:1":         "PERCH_LISTEN_X: listen is a list",
		"PERCH_ADOPTION=never":      "PERCH_ADOPTION: it must be one of open, code",
		"PERCH_ROBOTS_FRAMING=nine": "PERCH_ROBOTS_FRAMING: the value is not of the right type; write a number",
	} {
		if _, err := appliancetest.Load("", variable); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave %v", variable, err)
		}
	}
}

func FuzzConfig(f *testing.F) {
	sample := must.Value(os.ReadFile("perch.yaml"))(f)
	f.Add(sample, "PERCH_NAME=x")
	f.Add([]byte("robots: {idle: 1s}\nbrains: [{kind: reflex}]"), "PERCH_LISTEN_0=:1")
	path := filepath.Join(f.TempDir(), "perch.yaml")
	f.Fuzz(func(t *testing.T, text []byte, variable string) {
		if strings.Contains(string(text), "sentences") || strings.Contains(variable, "SENTENCES") {
			return // the key is the path of a file, and the fuzzer could choose a device file
		}
		must.Succeed(t, os.WriteFile(path, text, 0o600))
		if _, err := appliancetest.Load(path, variable); err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
	})
}
