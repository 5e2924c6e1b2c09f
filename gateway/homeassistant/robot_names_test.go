package homeassistant

import (
	"sync"
	"testing"

	"perch/device"
	"perch/event"
	"perch/must"
	"perch/voice"
)

// TestARobotIsRenamed tests that the text entity "name" renames the robot and its device, and that fields and topics that
// name a robot accept the new name.
func TestARobotIsRenamed(t *testing.T) {
	const set = "perch/a0b1c2d3e4f4/name/set"
	b, h, e, _ := mirrored(t, func(h *harness) { h.meet(chan2) })
	e.await(config1, has(`"name":"Stack-chan E4F4"`, `"command_topic":"`+set+`"`))
	e.await(state1, has(`"name":null`))
	b.publish(set, "Kitchen")
	e.await(config1, has(`"device":{`, `"name":"Kitchen"`))
	e.await(state1, has(`"name":"Kitchen"`))
	if got := h.registry.Settings(chan1).Name; got != "Kitchen" {
		t.Errorf("the registry has %q", got)
	}
	b.publish("perch/kitchen/say/set", "by its name")
	h.talk.await(t, "say by its name")
	b.publish("perch/bridge/request/notify", `{"text":"tea","robot":"kitchen","transaction":"t1"}`)
	e.await("perch/bridge/response/notify", has(`"transaction":"t1"`, `"status":"ok"`))
	e.await("perch/a0b1c2d3e4f4/notification", has(`"received"`, `"tea"`))
	b.publish("perch/kitchen/notify/set", `{"text":"biscuits","robot":"KITCHEN"}`)
	e.await("perch/a0b1c2d3e4f4/notification", has(`"received"`, `"biscuits"`))
	b.publish("perch/bridge/request/devices", `{"transaction":"t2"}`)
	e.await("perch/bridge/response/devices", has(`"transaction":"t2"`, `"name":"Kitchen"`))
	must.Value(h.registry.Configure(chan2, device.Change{Name: new("hall")}))(t)
	b.publish(set, "HALL")
	e.await(conversation1, has(`"command_rejected"`, `"thing":"name"`, string(chan2)))
	b.publish("perch/bridge/request/forget", `{"robot":"Hall","transaction":"t3"}`)
	e.await("perch/bridge/response/forget", has(`"transaction":"t3"`, `"status":"ok"`, string(chan2)))
	e.forget()
	b.publish(set, "")
	e.await(config1, has(`"name":"Stack-chan E4F4"`))
	e.await(state1, has(`"name":null`))
}

// TestAListOfVoicesIsASelect tests that the voice is a select with the titles of the voices once the synthesizer has
// listed its voices, and a text once it lists none. The old entity is removed by its platform. A list that is not known
// yet does not change the kind of the entity.
func TestAListOfVoicesIsASelect(t *testing.T) {
	var mu sync.Mutex
	var list []voice.Named
	known := false
	b, h, e, _ := mirrored(t, func(h *harness) {
		h.options.Voices = func() ([]voice.Named, bool) {
			mu.Lock()
			defer mu.Unlock()
			return list, known
		}
	})
	list2 := func(isKnown bool, names ...voice.Named) {
		mu.Lock()
		list, known = names, isKnown
		mu.Unlock()
		e.forget()
		h.bus.Publish("", "", event.Changed{What: "voices"})
	}
	const set = "perch/a0b1c2d3e4f4/voice/set"
	e.await(config1, has(`"voice":{"command_topic":"`+set+`"`, `"platform":"text"`))
	list2(true, voice.Named{Name: "af_heart"}, voice.Named{Name: "3", Title: "ずんだもん（ノーマル）"})
	e.await(config1, has(`"voice":{"platform":"text"}`))
	e.await(config1, has(`"options":["default","af_heart","ずんだもん（ノーマル）"]`,
		`"value_template":"{% set v = value_json.get('voice') or 'default' %}{{ {\"3\":\"ずんだもん（ノーマル）\",\"af_heart\":\"af_heart\",\"default\":\"default\"}.get(v) }}"`,
		`"command_template":"{{ {\"af_heart\":\"af_heart\",\"default\":\"default\",\"ずんだもん（ノーマル）\":\"3\"}.get(value, value) }}"`))
	b.publish(set, "3")
	e.await(state1, has(`"voice":"3"`))
	b.publish(set, "default")
	e.await(state1, has(`"voice":null`))
	b.publish(set, "en-us") // a voice that the synthesizer does not list
	e.await(config1, has(`"options":["default","af_heart","ずんだもん（ノーマル）","en-us"]`))
	list2(false) // after a restart, before the synthesizer has listed its voices
	e.await(config1, has(`"options":["default","en-us"]`))
	list2(true)
	e.await(config1, has(`"voice":{"platform":"select"}`))
	e.await(config1, has(`"voice":{"command_topic":"`+set+`"`, `"min":0`))
}

// TestARobotsSettingsAreEntities tests that brain and language are selects and that the voice is a text. The registry
// stores a choice, and "default" removes it.
func TestARobotsSettingsAreEntities(t *testing.T) {
	b, h, e, _ := mirrored(t, unchanged)
	e.await(config1, has(`"options":["default","openai","reflex"]`, `"options":["default","en","de",`,
		`"command_topic":"perch/a0b1c2d3e4f4/brain/set"`, `"command_topic":"perch/a0b1c2d3e4f4/language/set"`))
	e.await(state1, has(`"brain":"default","voice":null,"language":"default"`))
	for thing, value := range map[string]string{"brain": "reflex", "language": "de", "voice": "af_heart"} {
		b.publish("perch/a0b1c2d3e4f4/"+thing+"/set", value)
		e.await(state1, has(`"`+thing+`":"`+value+`"`))
	}
	if got := h.registry.Settings(chan1); got.Brain != "reflex" || got.Language != "de" || got.Voice != "af_heart" {
		t.Errorf("the registry has %+v", got)
	}
	must.Value(h.registry.Configure(chan1, device.Change{Language: new("de-AT")}))(t) // as the command line does
	e.await(config1, has(`"zh-Hans","es","fr","de-AT"]`))
	e.forget()
	for thing, value := range map[string]string{"brain": "default", "language": "default", "voice": ""} {
		b.publish("perch/a0b1c2d3e4f4/"+thing+"/set", value)
	}
	e.await(state1, has(`"brain":"default","voice":null,"language":"default"`))
	if got := h.registry.Settings(chan1); got.Brain != "" || got.Language != "" || got.Voice != "" {
		t.Errorf("left to the household, the registry has %+v", got)
	}
}
