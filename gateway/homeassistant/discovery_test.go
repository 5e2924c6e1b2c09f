package homeassistant

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perch/agent"
	"perch/device"
	"perch/gateway/homeassistant/discovery"
	"perch/gateway/homeassistant/topic"
	"perch/must"
	"perch/perception"
)

const discovered = device.ID("a0b1c2d3e4f5")

func discoveryNames() topic.Names {
	return topic.Names{Base: "perch", Prefix: "homeassistant", Appliance: "12ab34cd"}
}

// messagesOf returns the messages that publish announcements.
func messagesOf(all ...discovery.Announcement) (messages []message) {
	for _, a := range all {
		for _, p := range a.Payloads {
			messages = append(messages, message{Topic: a.Topic, Payload: p, Retained: true, QoS: 1})
		}
	}
	return messages
}

// integers returns a tool with integer arguments. arguments holds the name, the minimum and the maximum of each.
func integers(name string, arguments ...any) device.Tool {
	t := device.Tool{Name: name, Schema: device.Schema{Type: "object", Properties: map[string]device.Argument{}}}
	for i := 0; i+2 < len(arguments); i += 3 {
		least, most := arguments[i+1].(int), arguments[i+2].(int)
		t.Schema.Properties[arguments[i].(string)] = device.Argument{Type: "integer", Minimum: &least, Maximum: &most}
	}
	return t
}

// stackChan returns a card with the tools and senses of the firmware of Stack-chan's maker.
func stackChan() discovery.Card {
	return discovery.Card{
		ID: discovered, Name: "Kitchen Chan", Board: "m5stack-stack-chan", Firmware: "1.2.4", BaseURL: "http://perch.local:8003",
		Tools: []device.Tool{
			{Name: "self.get_device_status"},
			integers("self.audio_speaker.set_volume", "volume", 0, 100),
			integers("self.screen.set_brightness", "brightness", 0, 100),
			{Name: "self.robot.get_head_angles"},
			integers("self.robot.set_head_angles", "yaw", -9999, 128, "pitch", -9999, 90, "speed", 100, 1000),
			integers("self.robot.set_led_color", "red", 0, 168, "green", 0, 168, "blue", 0, 168),
		},
		Senses:   discovery.Senses{"battery": true, "charging": true, "signal": true},
		Gestures: perception.StockGestures().Names(), Characters: []string{"default", "leo"}, Brains: []string{"default", "openai", "reflex"},
		Languages: append([]string{"default"}, discovery.Languages()...),
	}
}

// announcement holds the parts of a discovery payload that the tests read.
type announcement struct {
	Device     map[string]any            `json:"device"`
	Components map[string]map[string]any `json:"components"`
}

// announced checks all messages with checkDiscovery and returns the one announcement among them that is complete.
func announced(t rapid.TB, prefix string, messages []message) (a announcement) {
	t.Helper()
	for _, m := range messages {
		if err := checkDiscovery(prefix, m); err != nil {
			t.Fatalf("%v: %s", err, m.Payload)
		}
		a = announcement{}
		must.Succeed(t, json.Unmarshal(m.Payload, &a))
	}
	return a
}

func announcedRobot(t rapid.TB, c discovery.Card) announcement {
	t.Helper()
	return announced(t, "homeassistant", messagesOf(discovery.Robot(discoveryNames(), c, nil)))
}

// TestRangesAreTheRobotsOwn tests that the range of a slider is the range of the robot's tool, without values that would
// damage the robot.
func TestRangesAreTheRobotsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		tool       device.Tool
		key        string
		least, max float64
		unit       any
	}{
		"volume":          {integers("self.audio_speaker.set_volume", "volume", 0, 100), "volume", 0, 100, "%"},
		"a volume of ten": {integers("speaker.set-volume", "Level", 0, 10), "volume", 0, 10, nil},
		"without limits": {device.Tool{Name: "set_volume", Schema: device.Schema{Properties: map[string]device.Argument{"value": {Type: "integer"}}}},
			"volume", 0, 100, "%"},
		"yaw":                  {integers("self.robot.set_head_angles", "yaw", -9999, 128, "pitch", -9999, 90), "head_yaw", -128, 128, "°"},
		"yaw without the ends": {integers("self.robot.set_head_angles", "yaw", -45, 60), "head_yaw", -45, 60, "°"},
		"pitch":                {integers("self.robot.set_head_angles", "yaw", -9999, 128, "pitch", -9999, 90), "head_pitch", 5, 85, "°"},
		"a pitch of less":      {integers("self.robot.set_head_angles", "yaw", -9999, 128, "tilt", 10, 40), "head_pitch", 10, 40, "°"},
	} {
		n := announcedRobot(t, discovery.Card{ID: discovered, Tools: []device.Tool{c.tool}}).Components[c.key]
		if n == nil || n["min"] != c.least || n["max"] != c.max || n["unit_of_measurement"] != c.unit {
			t.Errorf("%s: %v", name, n)
		}
	}
}

// TestNoToolNoEntity tests that a robot has no entity for a tool that it lacks or that an entity cannot use.
func TestNoToolNoEntity(t *testing.T) {
	needsMore := integers("self.robot.set_led_color", "index", 0, 11, "red", 0, 255, "green", 0, 255, "blue", 0, 255)
	needsMore.Schema.Required = []string{"index"}
	for name, tool := range map[string]device.Tool{
		"asked for one of many":      needsMore,
		"a volume that is a text":    {Name: "set_volume", Schema: device.Schema{Properties: map[string]device.Argument{"volume": {Type: "string"}}}},
		"a volume of one value":      integers("set_volume", "volume", 50, 50),
		"a head that only tells":     integers("self.robot.get_head_angles", "yaw", -90, 90),
		"a head with no way to tilt": integers("self.robot.set_head_angles", "yaw", 7, 7, "pitch", 86, 90),
		"a volume called otherwise":  integers("self.set_volumes", "volume", 0, 100),
	} {
		for key := range announcedRobot(t, discovery.Card{ID: discovered, Tools: []device.Tool{tool}}).Components {
			if slices.Contains([]string{"volume", "brightness", "head_yaw", "head_pitch", "led"}, key) {
				t.Errorf("%s: it has %s", name, key)
			}
		}
	}
}

// TestRemovedEntities tests that a removed entity is first reduced to its platform and then omitted, in every
// announcement.
func TestRemovedEntities(t *testing.T) {
	n := discoveryNames()
	all := discovery.Robot(n, stackChan(), nil).IDs
	less := stackChan()
	less.Tools, less.Senses = nil, nil
	a := discovery.Robot(n, less, all)
	messages := messagesOf(a)
	if len(messages) != 2 || !slices.Equal(a.IDs, all) {
		t.Fatalf("%d messages, and remembered are %v", len(messages), a.IDs)
	}
	first, last := announced(t, "homeassistant", messages[:1]), announced(t, "homeassistant", messages[1:])
	for key, platform := range map[string]string{"led": "light", "volume": "number", "battery": "sensor"} {
		if c := first.Components[key]; len(c) != 1 || c["platform"] != platform {
			t.Errorf("%s is reduced to %v", key, c)
		}
		if _, there := last.Components[key]; there {
			t.Errorf("%s is not left out", key)
		}
	}
	if len(first.Components["mute"]) < 2 || len(last.Components["mute"]) < 2 {
		t.Error("what stays is not whole")
	}
	if again := discovery.Robot(n, less, a.IDs).Payloads; len(again) != 2 {
		t.Errorf("announced anew: %d messages", len(again))
	}
}

// TestAPlatformThatChanged tests that a key that was announced with several platforms gets a message for each removed
// platform.
func TestAPlatformThatChanged(t *testing.T) {
	before := []string{"sensor/led", "switch/led", "light/led", "", "nonsense", "robot/x", "sensor/a b", "light/led"}
	a := discovery.Robot(discoveryNames(), stackChan(), before)
	var led []any
	for _, m := range messagesOf(a) {
		c := announced(t, "homeassistant", []message{m}).Components["led"]
		led = append(led, c["platform"])
	}
	if !slices.Equal(led, []any{"sensor", "switch", "light"}) {
		t.Errorf("led is in turn %v", led)
	}
	for _, id := range a.IDs {
		if strings.Contains(id, "nonsense") || strings.Contains(id, " ") || strings.HasPrefix(id, "robot/") {
			t.Errorf("remembered is %q", id)
		}
	}
}

// TestDeviceNamesRepeatNoEntity tests the device name of a robot whose name is the beginning of an entity's name.
func TestDeviceNamesRepeatNoEntity(t *testing.T) {
	for given, want := range map[string]string{
		"": "Stack-chan E4F5", "  \n": "Stack-chan E4F5", "Chan": "Chan", "S": "S robot", "Head": "Head robot", "Ag\x00ent": "Agent robot",
		"Küche\u200b": "Küche", strings.Repeat("ü", 100): strings.Repeat("ü", 32),
	} {
		c := stackChan()
		c.Name = given
		if name := announcedRobot(t, c).Device["name"]; name != want {
			t.Errorf("%q is called %q, not %q", given, name, want)
		}
	}
}

// TestMakersAndModels tests that the device has the maker and the model that the name of the board contains.
func TestMakersAndModels(t *testing.T) {
	for board, want := range map[string][3]any{
		"m5stack-stack-chan": {"M5Stack", "Stack-chan", "m5stack-stack-chan"}, "esp-box-3": {"Espressif", "Box-3", "esp-box-3"},
		"bread-compact-wifi": {nil, "bread-compact-wifi", "bread-compact-wifi"}, "m5stack": {nil, "m5stack", "m5stack"}, "": {},
	} {
		d := announcedRobot(t, discovery.Card{ID: discovered, Board: board}).Device
		if got := [3]any{d["manufacturer"], d["model"], d["model_id"]}; got != want {
			t.Errorf("%q is %q", board, got)
		}
	}
}

// TestAnnouncedStatesAreTheAgents tests that every constant of type agent.Shown is announced. A state that was not
// announced would be an error in Home Assistant's log.
func TestAnnouncedStatesAreTheAgents(t *testing.T) {
	f := must.Value(parser.ParseFile(token.NewFileSet(), "../../agent/state.go", nil, 0))(t)
	var words []string
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if kind, named := specType(spec, ok); named && kind == "Shown" {
			word := must.Value(strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value))(t)
			words = append(words, word)
		}
		return true
	})
	var options []string
	for _, option := range announcedRobot(t, stackChan()).Components["agent_state"]["options"].([]any) {
		options = append(options, option.(string))
	}
	if !slices.Equal(words, options) || len(words) < 10 || words[0] != string(agent.Idle) {
		t.Errorf("the agent shows %v, announced are %v", words, options)
	}
}

func specType(spec *ast.ValueSpec, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	ident, named := spec.Type.(*ast.Ident)
	if !named {
		return "", false
	}
	return ident.Name, true
}

// anyTool generates tools that some build of the firmware might list.
func anyTool() *rapid.Generator[device.Tool] {
	names := []string{
		"self.audio_speaker.set_volume", "self.screen.set_brightness", "self.robot.set_head_angles", "self.robot.set_led_color",
		"self.led_strip.set_all_color", "set volume", "self.get_device_status", "head.set", "", "set_rgb",
	}
	arguments := []string{"volume", "Volume", "level", "value", "brightness", "yaw", "pan", "x", "pitch", "tilt", "y", "red", "green", "blue", "r",
		"g", "b", "index"}
	limit := rapid.Ptr(rapid.OneOf(rapid.IntRange(-200, 200), rapid.SampledFrom([]int{-9999, 9999, -2147483648, 2147483647})), true)
	return rapid.Custom(func(t *rapid.T) device.Tool {
		tool := device.Tool{Name: rapid.OneOf(rapid.SampledFrom(names), rapid.String()).Draw(t, "name")}
		tool.Schema.Properties = map[string]device.Argument{}
		for _, name := range rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(arguments), rapid.String()), 0, 5).Draw(t, "arguments") {
			tool.Schema.Properties[name] = device.Argument{
				Type:    rapid.SampledFrom([]string{"integer", "integer", "integer", "string", ""}).Draw(t, "type"),
				Minimum: limit.Draw(t, "least"), Maximum: limit.Draw(t, "most"),
			}
		}
		if rapid.IntRange(0, 4).Draw(t, "required") == 0 {
			tool.Schema.Required = []string{rapid.SampledFrom(arguments).Draw(t, "which")}
		}
		return tool
	})
}

// anyIDs generates IDs of gestures or characters. Their packages allow only letters, digits, - and _ in an ID, and no ID
// twice.
func anyIDs() *rapid.Generator[[]string] {
	return rapid.SliceOfDistinct(rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`), func(id string) string { return id })
}

// TestEveryAnnouncementPasses tests that Home Assistant accepts the announcement of a robot with any tools, senses,
// names and earlier components.
func TestEveryAnnouncementPasses(t *testing.T) {
	senses := []string{"battery", "charging", "signal", "temperature", "face", "identity", "touch", "perception", "booted", "firmware", "mood",
		"unheard"}
	known := []string{"sensor/battery", "number/led", "light/led", "event/touch", "sensor/a", "x", "", "robot/y", "update/firmware",
		"sensor/agent_state"}
	rapid.Check(t, func(t *rapid.T) {
		n := topic.Names{
			Base:   rapid.SampledFrom([]string{"perch", "home/perch", "p", "Küche", "a.b c"}).Draw(t, "base"),
			Prefix: rapid.SampledFrom([]string{"homeassistant", "ha/discovery"}).Draw(t, "prefix"), Appliance: "12ab34cd",
		}
		c := discovery.Card{
			ID: discovered, Name: rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "S", "Say", "Agent state", "Battery", " "})).Draw(t,
				"name"),
			Board: rapid.String().Draw(t, "board"), Firmware: rapid.String().Draw(t, "firmware"),
			BaseURL: rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"http://192.168.1.2:8003", "ftp://x/", "http://", "http://u:p@x/"})).Draw(
				t, "url"),
			Tools: rapid.SliceOfN(anyTool(), 0, 6).Draw(t, "tools"), Senses: discovery.Senses{}, Version: rapid.String().Draw(t, "version"),
			Gestures: anyIDs().Draw(t, "gestures"), Characters: anyIDs().Draw(t, "characters"), Brains: anyIDs().Draw(t, "brains"),
			Languages: anyIDs().Draw(t, "languages"),
		}
		for _, s := range senses {
			c.Senses[s] = rapid.Bool().Draw(t, s)
		}
		before := rapid.SliceOf(rapid.SampledFrom(known)).Draw(t, "before")
		robot := discovery.Robot(n, c, before)
		bridge := discovery.Bridge(n, c.Firmware, c.BaseURL, before)
		agent := discovery.Agent(n, topic.AgentID(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"s", "coding-", "vtb_Allow", "Tool"})).Draw(t,
			"session")), c.Firmware, before)
		for _, m := range messagesOf(robot, bridge, agent, discovery.RemovedRobot(n, c.ID)) {
			if err := checkDiscovery(n.Prefix, m); err != nil {
				t.Fatalf("%v: %s", err, m.Payload)
			}
		}
		for _, s := range senses[:len(senses)-1] {
			if _, there := announced(t, n.Prefix, messagesOf(robot)).Components[s]; there != c.Senses[s] {
				t.Fatalf("of %v it has %v", c.Senses, robot.IDs)
			}
		}
		again := discovery.Robot(n, c, robot.IDs)
		if !slices.Equal(robot.IDs, again.IDs) || !bytes.Equal(again.Payloads[len(again.Payloads)-1], robot.Payloads[len(robot.Payloads)-1]) {
			t.Fatalf("announced anew: %v, then %v", robot.IDs, again.IDs)
		}
	})
}

// FuzzHostileRobot announces a robot whose fields are any bytes, and an agent with any session name.
func FuzzHostileRobot(f *testing.F) {
	f.Add("Chan", "m5stack-stack-chan", "1.2.4", "http://perch.local:8003", "self.audio_speaker.set_volume", "volume", 0, 100)
	f.Add("{{ states('door') }}", "{% raw %}", "\x00\xff\u2028", "http://x/{{ 1 }}", "self.robot.set_head_angles", "yaw", -9999, 2147483647)
	f.Add("Head", "Say text", "+/#", "javascript:alert(1)", "set_rgb", "red", 5, 5)
	f.Add("\u202eevil", `","components":{}`, "\n", "http://[::1%25x]/", "set brightness", "value", 7, -7)
	f.Add(strings.Repeat("ü", 5000), strings.Repeat("x", 5000), strings.Repeat("\u200b", 99), "http://h/"+strings.Repeat("a", 2000), "", "", 0, 0)
	f.Fuzz(func(t *testing.T, name, board, firmware, url, tool, argument string, least, most int) {
		n := discoveryNames()
		c := discovery.Card{ID: discovered, Name: name, Board: board, Firmware: firmware, Version: firmware, BaseURL: url,
			Tools: []device.Tool{integers(tool, argument, least, most, "pitch", most, least), integers(name, board, least, most)}}
		robot := discovery.Robot(n, c, []string{name, "sensor/" + board, "number/volume"})
		for _, m := range messagesOf(robot, discovery.Bridge(n, firmware, url, []string{"event/" + name}),
			discovery.Agent(n, topic.AgentID(name), firmware, nil), discovery.Robot(n, c, robot.IDs), discovery.RemovedRobot(n, c.ID)) {
			if err := checkDiscovery(n.Prefix, m); err != nil {
				t.Errorf("%v: %s", err, m.Payload)
			}
		}
	})
}
