package homeassistant

import (
	"testing"

	"perch/device"
	"perch/must"
)

// TestARobotIsRenamed: by its text entity; the device is called so, and every
// field and topic that names a robot takes the name.
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

// TestARobotsSettingsAreEntities: brain and language are selects, and the voice a text; what is chosen is the
// registry's, and default is the household's again.
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
	must.Value(h.registry.Configure(chan1, device.Change{Language: new("de-AT")}))(t) // by a command
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
