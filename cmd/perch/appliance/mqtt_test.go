package appliance_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/event"
	"perch/firmware-tools/simrobot"
	"perch/gateway/owner/admin"
	"perch/must"
	"perch/waittest"
)

// entity is an entity of Home Assistant in a discovery message.
type entity struct {
	Platform, Name string
	CommandTopic   string `json:"command_topic"`
	StateTopic     string `json:"state_topic"`
	Press          string `json:"payload_press"`
}

// entities returns the entities in discovery messages. The keys are the entity IDs that Home Assistant derives from the
// names.
func entities(l *appliancetest.Listener) map[string]entity {
	all := map[string]entity{}
	for _, line := range l.Lines() {
		var announced struct {
			Device     struct{ Name string }
			Components map[string]entity
		}
		if topic, payload, _ := strings.Cut(line, " "); !strings.HasPrefix(topic, "homeassistant/device/") ||
			json.Unmarshal([]byte(payload), &announced) != nil {
			continue
		}
		for _, e := range announced.Components {
			slug := strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(announced.Device.Name + " " + e.Name))
			all[e.Platform+"."+slug] = e
		}
	}
	return all
}

// TestTheCharacterOverMQTT checks that a robot's character can be chosen over MQTT, that a choice by the admin API is
// published, and that the list of choices contains imported characters.
func TestTheCharacterOverMQTT(t *testing.T) {
	t.Parallel()
	h, l := appliancetest.StartWithBroker(t)
	who := func() string { return h.Characters.Who("a0b1c2d3e4f5", "") }
	const at, config = appliancetest.RobotTopic + "character/set", "homeassistant/device/perch_a0b1c2d3e4f5/config"
	shown := func(id string) {
		t.Helper()
		h.Eventually(id+" shows", func() bool {
			var latest string
			for _, line := range l.Lines() {
				if payload, found := strings.CutPrefix(line, appliancetest.RobotTopic+"state "); found {
					latest = payload
				}
			}
			return strings.Contains(latest, `"character":"`+id+`"`) && who() == id
		})
	}
	shown("default")
	h.Admin("POST", "/api/v1/characters?id=leo", `{"spec":"agent-manifest/0.2","name":"Leo"}`, nil)
	h.Eventually("it can be chosen", func() bool { return l.Has(config, `"options":["default","leo"]`, `"command_topic":"`+at+`"`) })
	h.Publish(at, "leo")
	shown("leo")
	h.Admin("PUT", "/api/v1/devices/a0b1c2d3e4f5", `{"character":"default"}`, nil)
	shown("default")
	h.Admin("PUT", "/api/v1/devices/a0b1c2d3e4f5", `{"character":"leo"}`, nil)
	shown("leo")
	before := len(l.Lines())
	h.Publish(at, "nobody")
	h.Eventually("it is refused and the state told again", func() bool {
		lines := l.Lines()[before:]
		told := slices.ContainsFunc(lines, func(line string) bool {
			return strings.HasPrefix(line, appliancetest.RobotTopic+"state ") && strings.Contains(line, `"character":"leo"`)
		})
		return told && l.Has(appliancetest.RobotTopic+"conversation", `"command_rejected"`, `"thing":"character"`, `there is no character`)
	})
	if text := h.Logged.String(); !strings.Contains(text, `a command over MQTT is refused`) || !strings.Contains(text, `there is no character`) {
		t.Errorf("logged is %s", text)
	}
	h.Publish(at, "default")
	shown("default")
}

// TestAnAutomation checks what an automation of Home Assistant sees and does: the states of a robot's talk are
// published in order, each once, and a notification for a robot whose channel is closed is spoken when the robot next
// opens its channel.
func TestAnAutomation(t *testing.T) {
	t.Parallel()
	h, l := appliancetest.StartWithBroker(t)
	h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what can you do", "who are you")}).CheckComplete(t)
	talk := []string{"listening", "thinking", "speaking", "attention"}
	want := slices.Concat([]string{"idle"}, talk, talk, []string{"listening", "idle"})
	h.Eventually("the robot has hung up and is idle", func() bool {
		got := l.AgentStates()
		return len(got) >= len(want) && got[len(got)-1] == "idle"
	})
	if got := l.AgentStates(); !slices.Equal(got, want) {
		t.Errorf("agent_state was %v, want %v", got, want)
	}
	if !l.Has(appliancetest.RobotTopic+"status", "online") || !l.Has("homeassistant/device/perch_a0b1c2d3e4f5/config", "agent_state") {
		t.Errorf("the robot is no device that is there:\n%s", strings.Join(l.Lines(), "\n"))
	}
	h.Publish(appliancetest.RobotTopic+"notify/set", `{"id":"washing","text":"the washing is done","urgency":"normal"}`)
	h.Eventually("the notification is kept", func() bool {
		return l.Has(appliancetest.RobotTopic+"notification", `"received"`, `"washing"`) && l.Has(appliancetest.RobotTopic+"conversation", `"queued"`)
	})
	if l.Has(appliancetest.RobotTopic+"notification", `"spoken"`) {
		t.Error("it was spoken to nobody")
	}
	if r := h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "look up", "look down")}); !r.HasShown("the washing is done") {
		t.Error("it was not spoken")
	}
	h.Eventually("it is told that it was spoken", func() bool {
		return l.Has(appliancetest.RobotTopic+"notification", `"spoken"`, `"washing"`) && l.Has(appliancetest.RobotTopic+"conversation", `"done"`)
	})
}

// TestTheLightFollowsSpeech checks that the entity of the lights shows the colour that the agent has set; robots do not
// report their colour.
func TestTheLightFollowsSpeech(t *testing.T) {
	t.Parallel()
	h, l := appliancetest.StartWithBroker(t)
	h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "turn the lights blue", "turn the lights off")}).CheckComplete(t)
	h.Eventually("the light has been blue", func() bool {
		return l.Has(appliancetest.RobotTopic+"led", `"state":"ON"`, `"color":{"r":0,"g":0,"b":255}`, `"brightness":255`)
	})
	h.Eventually("the light is off", func() bool { return l.Has(appliancetest.RobotTopic+"led", `{"state":"OFF"}`) })
}

// TestTheAutomationsOfThePage checks the MQTT part of automations in docs/home-assistant.md: each trigger is published
// on the topic of its entity, and each action has its effect. TestAnAutomation checks the states that the automations
// for a lamp need.
func TestTheAutomationsOfThePage(t *testing.T) {
	t.Parallel()
	h, l := appliancetest.StartWithBroker(t)
	h.RunRobot(simrobot.Options{})
	h.Bus.Publish("a0b1c2d3e4f5", "", event.Perceived{Name: "head_pet_started"}) // newer firmware sends this event
	h.Eventually("the touch is announced", func() bool { return entities(l)["event.stack_chan_e4f5_touch"].StateTopic != "" })
	of := func(id string) entity { return entities(l)[id] }

	expiring := func(rest string, after time.Duration) string { // with the time format of isoformat() in Home Assistant's templates
		return fmt.Sprintf(`{%s, "expires_at": %q}`, rest, time.Now().UTC().Add(after).Format("2006-01-02T15:04:05.000000+00:00"))
	}
	h.Publish(appliancetest.RobotTopic+"notify/set", expiring(`"id": "washing", "text": "😊 The washing is done."`, 3*time.Hour))
	h.Eventually("it waits", func() bool { return l.Has(of("event.stack_chan_e4f5_conversation").StateTopic, `"queued"`, `"notify"`) })

	h.Eventually("the hand is held there", func() bool { return l.Has(of("event.stack_chan_e4f5_touch").StateTopic, `"long_press_start"`) })
	h.Bus.Publish("a0b1c2d3e4f5", "", event.Perceived{Name: "head_pet_ended"})
	h.Eventually("the hand is gone", func() bool { return l.Has(of("event.stack_chan_e4f5_touch").StateTopic, `"long_press_end"`) })
	mute := of("switch.stack_chan_e4f5_mute")
	h.Publish(mute.CommandTopic, "ON")
	h.Eventually("it is mute", func() bool { return l.Has(mute.StateTopic, `"mute":true`) })
	h.Publish(mute.CommandTopic, "OFF")

	h.Publish(of("number.stack_chan_e4f5_volume").CommandTopic, "101")
	h.Eventually("what it could not do is told", func() bool {
		return l.Has(of("event.stack_chan_e4f5_conversation").StateTopic, `"command_rejected"`, "volume must be from 0 to 100")
	})

	var wg sync.WaitGroup
	wg.Go(func() {
		r := h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what can you do", "look up")})
		if !r.HasShown("The washing is done.") || !r.HasShown("Somebody is at the door.") ||
			r.HasShown("Ask me to remember where your keys are.") { // the last sentence of the answer, which the doorbell interrupts
			t.Errorf("it was told %+v", r.Stats().Turns)
		}
	})
	h.Eventually("it answers", func() bool {
		return l.Has(appliancetest.RobotTopic+"conversation", `"heard"`) && slices.Contains(l.AgentStates(), "speaking")
	})
	h.Eventually("it speaks", func() bool { return l.Has(appliancetest.RobotTopic+"conversation", `"replied"`) })
	h.Publish(appliancetest.RobotTopic+"notify/set", expiring(`"id": "doorbell", "text": "😮 Somebody is at the door.", "urgency": "high"`, 2*time.Minute))
	wg.Wait()
}

// TestAnAgentThatWaits checks the entities for a coding agent that waits for permission: the number of waiting agents,
// which the automation for the red lamp uses, the question, and the buttons that answer it. Claude Code asks in the
// same way over HTTP.
func TestAnAgentThatWaits(t *testing.T) {
	t.Parallel()
	c := appliancetest.WithBroker(t)
	c.Skins.Key = appliancetest.Key
	h := appliancetest.Start(t, c, t.TempDir())
	l := h.Listen()
	waiting := func() (all []string) { // values of the sensor that the automation uses
		topic := entities(l)["sensor.perch_agents_waiting"].StateTopic
		for _, line := range l.Lines() {
			var info struct{ Waiting *int }
			if payload, is := strings.CutPrefix(line, topic+" "); is && json.Unmarshal([]byte(payload), &info) == nil && info.Waiting != nil {
				all = append(all, fmt.Sprint(*info.Waiting))
			}
		}
		return slices.Compact(all)
	}
	h.Eventually("the lamp is off", func() bool { return slices.Equal(waiting(), []string{"0"}) })
	for _, press := range []string{"allow", "deny"} {
		before := len(waiting())
		answered := make(chan string, 1)
		go func() { answered <- h.AskPermission("make test") }()
		h.Eventually("the lamp is red", func() bool { w := waiting(); return len(w) == before+1 && w[before] == "1" })
		announced := entities(l)
		if !l.Has(announced["sensor.coding_1_question"].StateTopic, "make test", `"answerable":true`) ||
			!l.Has(announced["sensor.coding_1_agent_state"].StateTopic, `"notification"`) {
			t.Errorf("it does not ask:\n%s", strings.Join(l.Lines(), "\n"))
		}
		button, text := announced["button.coding_1_"+press], ""
		h.Eventually("a press answers", func() bool { // buttons have no effect until the question has been shown for a while
			h.Publish(button.CommandTopic, button.Press)
			select {
			case text = <-answered:
				return true
			default:
				return false
			}
		})
		if !strings.Contains(text, `"behavior":"`+press+`"`) {
			t.Errorf("%s answers %s", press, text)
		}
		h.Eventually("the lamp is as before", func() bool { w := waiting(); return len(w) == before+2 && w[before+1] == "0" })
	}
}

// TestAStoppedBrokerMovesNoRobot checks that robots lose no packets while the process of the MQTT broker is stopped, so
// that it neither reads from connections nor closes them.
func TestAStoppedBrokerMovesNoRobot(t *testing.T) {
	t.Parallel()
	mosquitto, address := appliancetest.StartMosquitto(t)
	c := appliancetest.Config()
	c.MQTT.Broker, c.MQTT.Listen = "mqtt://"+address, address
	h := appliancetest.Start(t, c, t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5", "A0:B1:C2:D3:E4:F6", "A0:B1:C2:D3:E4:F7")
	l := h.Listen()
	say := appliancetest.Sentences(t, "what can you do", "tell me a joke", "look up")
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			h.RunRobot(simrobot.Options{Say: say, MAC: fmt.Sprintf("A0:B1:C2:D3:E4:F%d", 5+i)}).CheckComplete(t)
		})
	}
	h.Eventually("a robot is spoken to", func() bool { return slices.Contains(l.AgentStates(), "speaking") })
	must.Succeed(t, mosquitto.Signal(syscall.SIGSTOP))
	wg.Wait()
	must.Succeed(t, mosquitto.Signal(syscall.SIGCONT))
	waittest.For(h.T, "the broker is told how things are", func() bool {
		states := l.AgentStates()
		return len(states) > 0 && states[len(states)-1] == "idle"
	})
}

// TestABusyMQTTPort checks that with a busy port for the embedded broker only MQTT fails, and that the status and the
// log say so.
func TestABusyMQTTPort(t *testing.T) {
	t.Parallel()
	taken := must.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	c := appliancetest.Config()
	c.MQTT.Broker, c.MQTT.Listen = config.EmbeddedBroker, taken.Addr().String()
	h := appliancetest.Start(t, c, t.TempDir())
	said := func() bool {
		var status admin.Status
		h.Admin("GET", "/api/v1/status", "{}", &status)
		return slices.ContainsFunc(status.Parts, func(p admin.Part) bool {
			return p.Name == "mqtt" && !p.OK && !p.Vital && strings.Contains(p.Note, "taken by another program")
		})
	}
	h.Eventually("the status says so", said)
	if n := strings.Count(h.Logged.String(), "taken by another program"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
	h.Expect(200, "", "GET", "/ready", "")
	h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "look up")}).CheckComplete(t)
}

// TestRestartOverMQTT checks that a request over MQTT restarts the appliance, and that the request is refused while the
// configuration has a fault.
func TestRestartOverMQTT(t *testing.T) {
	c, data := appliancetest.WithBroker(t), t.TempDir()
	file := appliancetest.WriteConfig(t, "nonsense: 1\n")
	h := appliancetest.Start(t, c, data, func(o *appliance.Options) {
		o.Overlay = &config.Overlay{Source: config.Source{File: file, Overlay: filepath.Join(data, config.OverlayFile)}, Data: data}
	})
	l := h.Listen()
	h.Publish("perch/bridge/request/restart", "{}")
	h.Eventually("the fault is told", func() bool {
		return l.Has("perch/bridge/refused", `"event_type":"restart"`, "nonsense") && l.Has("perch/bridge/response/restart", `"error"`)
	})
	must.Succeed(t, os.WriteFile(file, nil, 0o600))
	h.Publish("perch/bridge/request/restart", `{"transaction":7}`)
	if err := h.Wait(); !errors.Is(err, appliance.ErrRestart) {
		t.Errorf("it ends with %v", err)
	}
	h.Eventually("the bridge is offline", func() bool {
		return l.Has("perch/bridge/response/restart", `"transaction":7`, `"ok"`) && l.Has("perch/bridge/status", "offline")
	})
}

// TestHomeAssistantDocumentationMatches checks docs/home-assistant.md, its how-to page and the blueprints: the YAML is
// valid, the entities in it are announced under these IDs, and the inputs of blueprints are declared and used.
func TestHomeAssistantDocumentationMatches(t *testing.T) {
	t.Parallel()
	h, l := appliancetest.StartWithBroker(t)
	h.RunRobot(simrobot.Options{})
	h.Bus.Publish("a0b1c2d3e4f5", "", event.Perceived{Name: "head_pet_started"}) // newer firmware sends this event
	h.Eventually("the touch is announced", func() bool { return l.Has(appliancetest.RobotConfig, `"Touch"`) })
	h.Bus.Publish("", "coding-1", event.ThinkingStarted{})
	h.Eventually("the agent is announced", func() bool { return l.Has("homeassistant/device/perch_agent_coding-1/config", `"Coding 1"`) })
	announced := entities(l)
	page := append(must.Value(os.ReadFile("../../../docs/home-assistant.md"))(t), must.Value(os.ReadFile("../../../docs/how-to/home-assistant-asks.md"))(t)...)
	named := regexp.MustCompile(`\b[a-z_]+\.(?:stack_chan_e4f5|coding_1|perch)_[a-z_]+`).FindAllString(string(page), -1)
	for _, id := range named {
		if _, there := announced[id]; !there {
			t.Errorf("the page names %s; there are %v", id, slices.Sorted(maps.Keys(announced)))
		}
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	automations := 0
	for _, b := range blocks {
		var block map[string]any
		if err := yaml.Unmarshal([]byte(b[1]), &block); err != nil {
			t.Errorf("%v in\n%s", err, b[1])
		}
		if block["triggers"] != nil && block["actions"] != nil {
			automations++
		}
	}
	if len(named) < 8 || automations != 10 {
		t.Errorf("the pages name %d entities and have %d automations", len(named), automations)
	}
	blueprints, err := filepath.Glob("../../../packaging/homeassistant/blueprints/automation/perch/*.yaml")
	if err != nil || len(blueprints) != 3 {
		t.Fatalf("blueprints %v, %v", blueprints, err)
	}
	for _, name := range blueprints {
		checkBlueprint(t, name, "http://perch.local:8003/blueprints/"+filepath.Base(name))
		h.Expect(200, string(must.Value(os.ReadFile(name))(t)), "GET", "/blueprints/"+filepath.Base(name), "")
	}
	h.Expect(404, "no such blueprint", "GET", "/blueprints/nothing.yaml", "")
}

// checkBlueprint checks the file of a blueprint. source is the expected source_url.
func checkBlueprint(t *testing.T, name, source string) {
	t.Helper()
	text := must.Value(os.ReadFile(name))(t)
	var b struct {
		Blueprint struct {
			Name, Domain string
			Source       string `yaml:"source_url"`
			Input        map[string]any
		}
		Triggers, Actions any
	}
	if err := yaml.Unmarshal(text, &b); err != nil || b.Blueprint.Domain != "automation" || b.Blueprint.Name == "" || b.Triggers == nil ||
		b.Actions == nil || b.Blueprint.Source != source {
		t.Errorf("%s: %v, %+v", name, err, b)
	}
	used := map[string]bool{}
	for _, m := range regexp.MustCompile(`!input (\w+)`).FindAllStringSubmatch(string(text), -1) {
		used[m[1]] = true
		if _, there := b.Blueprint.Input[m[1]]; !there {
			t.Errorf("%s: there is no input %s", name, m[1])
		}
	}
	for input := range b.Blueprint.Input {
		if !used[input] {
			t.Errorf("%s: nothing uses the input %s", name, input)
		}
	}
}
