package homeassistant

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// oneComponent is a message with a component, made of what is the same in all
// and of what the test is about.
func oneComponent(component string) string {
	return `{"device":{"identifiers":["12ab34cd_a0b1c2d3e4f5"],"name":"Chan"},"origin":{"name":"Perch"},"components":{"thing":` + component + `}}`
}

// entityOf is a component with an id and a name.
func entityOf(platform, rest string) string {
	return oneComponent(`{"platform":"` + platform + `","unique_id":"12ab34cd_a0b1c2d3e4f5_thing","name":"Thing",` + rest + `}`)
}

const checkedTopic = "homeassistant/device/perch_a0b1c2d3e4f5/config"

// TestEachMistakeIsSeen has one message for each thing that Home Assistant
// refuses, warns of or drops, and a word of the reason.
func TestEachMistakeIsSeen(t *testing.T) {
	sensor := `"state_topic":"a/state"`
	changed := func(what, to string) string { return strings.Replace(entityOf("sensor", sensor), what, to, 1) }
	for name, mistake := range map[string]struct{ payload, reason string }{
		"no JSON":                       {`{"device":`, "unable to parse JSON"},
		"no object":                     {`[]`, "unable to parse JSON"},
		"null":                          {`null`, "unable to parse JSON"},
		"no UTF-8":                      {"{\"device\":\"\xff\"}", "unable to parse JSON"},
		"something after it":            {entityOf("sensor", sensor) + "x", "unable to parse JSON"},
		"a key at the root":             {changed(`{"device"`, `{"retain":true,"device"`), "extra keys"},
		"a mistyped key of all":         {changed(`"components"`, `"cmp"`), "extra keys"},
		"no device":                     {`{"origin":{"name":"Perch"},"components":{}}`, "required key not provided: device"},
		"no origin":                     {`{"device":{"identifiers":["a"]},"components":{}}`, "required key not provided: origin"},
		"no components":                 {`{"device":{"identifiers":["a"]},"origin":{"name":"Perch"}}`, "required key not provided: components"},
		"not one component":             {`{"device":{"identifiers":["a"]},"origin":{"name":"Perch"},"components":{}}`, "not one component"},
		"an origin without a name":      {changed(`{"name":"Perch"}`, `{"sw_version":"1"}`), "origin"},
		"an origin's extra key":         {changed(`{"name":"Perch"}`, `{"name":"Perch","version":"1"}`), "extra keys"},
		"a device without identity":     {changed(`"identifiers":["12ab34cd_a0b1c2d3e4f5"],`, ``), "at least one identifying value"},
		"an empty list of identifiers":  {changed(`["12ab34cd_a0b1c2d3e4f5"]`, `[]`), "at least one identifying value"},
		"an identifier of every device": {changed(`["12ab34cd_a0b1c2d3e4f5"]`, `["12ab34cd_a0b1c2d3e4f5","perch"]`), "several devices share"},
		"connections that are no pairs": {changed(`"name":"Chan"`, `"name":"Chan","connections":["mac","a0:b1:c2:d3:e4:f5"]`), "no pair"},
		"a MAC without colons":          {changed(`"name":"Chan"`, `"name":"Chan","connections":[["mac","a0b1c2d3e4f5"]]`), "no MAC address"},
		"a device's page":               {changed(`"name":"Chan"`, `"name":"Chan","configuration_url":"perch.local:8003"`), "configuration_url"},
		"a device's extra key":          {changed(`"name":"Chan"`, `"name":"Chan","firmware":"1"`), "extra keys"},
		"a device's number":             {changed(`"name":"Chan"`, `"name":"Chan","sw_version":1`), "not a text"},
		"a device behind itself":        {changed(`"name":"Chan"`, `"name":"Chan","via_device":"12ab34cd_a0b1c2d3e4f5"`), "behind itself"},

		"no platform":             {oneComponent(`{"unique_id":"12ab34cd_a0b1c2d3e4f5_thing","name":"Thing"}`), "required key not provided: platform"},
		"a platform there is not": {oneComponent(`{"platform":"robot"}`), "integration robot is not supported"},
		"a component's key":       {changed(`"thing":`, `"the thing":`), "the key may have"},
		"no unique id":            {oneComponent(`{"platform":"sensor","name":"Thing","state_topic":"a"}`), "required key not provided: unique_id"},
		"the same unique id": {oneComponent(`{"platform":"sensor","unique_id":"12ab34cd_a0b1c2d3e4f5_x","name":"A","state_topic":"a"},` +
			`"other":{"platform":"sensor","unique_id":"12ab34cd_a0b1c2d3e4f5_x","name":"B","state_topic":"a"}`), "does not generate unique IDs"},
		"no name": {oneComponent(`{"platform":"sensor","unique_id":"12ab34cd_a0b1c2d3e4f5_x","state_topic":"a"}`), "required key not provided: name"},
		"a name that repeats the device's": {
			changed(`"Thing"`, `"Chan battery"`), "starts with the device name"},
		"a name that is the device's":  {changed(`"Thing"`, `"Chan"`), "starts with the device name"},
		"object_id":                    {entityOf("sensor", sensor+`,"object_id":"x"`), "extra keys"},
		"a key of another platform":    {entityOf("sensor", sensor+`,"payload_press":"x"`), "extra keys"},
		"a mistyped key":               {entityOf("sensor", sensor+`,"val_tmpl":"x"`), "extra keys"},
		"a category there is not":      {entityOf("sensor", sensor+`,"entity_category":"system"`), "entity_category"},
		"a sensor to configure":        {entityOf("sensor", sensor+`,"entity_category":"config"`), "entity category config"},
		"a binary sensor to configure": {entityOf("binary_sensor", sensor+`,"entity_category":"config"`), "entity category config"},
		"an icon without prefix":       {entityOf("sensor", sensor+`,"icon":"robot"`), "icon"},
		"a topic with a wildcard":      {entityOf("sensor", `"state_topic":"perch/+/state"`), "wildcards"},
		"an empty topic":               {entityOf("sensor", `"state_topic":""`), "must not be empty"},
		"a topic with a control character": {
			entityOf("sensor", `"state_topic":"a\u0007"`), "control characters"},
		"a template not closed":    {entityOf("sensor", sensor+`,"value_template":"{{ value_json.get('x') }"`), "not closed"},
		"a template for lost keys": {entityOf("sensor", sensor+`,"value_template":"{{ value_json.x }}"`), "a key that is not there"},
		"a bool that is a text":    {entityOf("light", `"command_topic":"a","schema":"json","flash":"true"`), "not true or false"},
		"a quality there is not":   {entityOf("sensor", sensor+`,"qos":3`), "qos"},
		"a mode of availability":   {entityOf("sensor", sensor+`,"availability_mode":"any"`), "availability_mode"},
		"availability without":     {entityOf("sensor", sensor+`,"availability":[{}]`), "required key not provided: topic"},
		"availability's extra key": {entityOf("sensor", sensor+`,"availability":[{"topic":"a","state":"b"}]`), "extra keys"},
		"availability's template": {entityOf("sensor", sensor+`,"availability":[{"topic":"a","value_template":"{{ value_json.x }}"}]`),
			"a key that is not there"},
		"availability of two": {entityOf("sensor", sensor+`,"availability":[{"topic":"a"},{"topic":"b"}]`), "needs the mode all"},

		"a sensor without topic":     {entityOf("sensor", `"icon":"mdi:x"`), "required key not provided: state_topic"},
		"options without enum":       {entityOf("sensor", sensor+`,"options":["a"]`), "device class enum"},
		"enum without options":       {entityOf("sensor", sensor+`,"device_class":"enum"`), "without options"},
		"no options":                 {entityOf("sensor", sensor+`,"device_class":"enum","options":[]`), "empty options"},
		"an option twice":            {entityOf("sensor", sensor+`,"device_class":"enum","options":["a","a"]`), "twice"},
		"an option that is a number": {entityOf("sensor", sensor+`,"device_class":"enum","options":[1]`), "no text"},
		"enum with a unit":           {entityOf("sensor", sensor+`,"device_class":"enum","options":["a"],"unit_of_measurement":"%"`), "unit of measurement"},
		"enum with a state class": {entityOf("sensor", sensor+`,"device_class":"enum","options":["a"],"state_class":"measurement"`),
			"not allowed together"},
		"a device class there is not": {entityOf("sensor", sensor+`,"device_class":"mood"`), "expected a device class"},
		"another platform's class":    {entityOf("sensor", sensor+`,"device_class":"connectivity"`), "expected a device class"},
		"a unit of another class":     {entityOf("sensor", sensor+`,"device_class":"battery","unit_of_measurement":"V"`), "unit of measurement"},
		"a class without its unit":    {entityOf("sensor", sensor+`,"device_class":"temperature"`), "unit of measurement"},
		"a time that is measured":     {entityOf("sensor", sensor+`,"device_class":"timestamp","state_class":"measurement"`), "impossible"},
		"a state class there is not":  {entityOf("sensor", sensor+`,"state_class":"average"`), "state_class"},
		"an event without types":      {entityOf("event", `"state_topic":"a"`), "required key not provided: event_types"},
		"an event with none":          {entityOf("event", `"state_topic":"a","event_types":[]`), "event_types is empty"},
		"an event type twice":         {entityOf("event", `"state_topic":"a","event_types":["x","x"]`), "twice"},
		"a button without topic":      {entityOf("button", `"icon":"mdi:x"`), "required key not provided: command_topic"},
		"a notifier without topic":    {entityOf("notify", `"icon":"mdi:x"`), "required key not provided: command_topic"},
		"a choice without options":    {entityOf("select", `"command_topic":"a"`), "required key not provided: options"},
		"a choice of none":            {entityOf("select", `"command_topic":"a","options":[]`), "empty options"},
		"a range upside down":         {entityOf("number", `"command_topic":"a","min":5,"max":1`), "must be greater"},
		"a range of one":              {entityOf("number", `"command_topic":"a","min":5,"max":5`), "must be greater"},
		"half a range":                {entityOf("number", `"command_topic":"a","min":200`), "must be greater"},
		"a limit that is a text":      {entityOf("number", `"command_topic":"a","min":"0"`), "not a number"},
		"no step":                     {entityOf("number", `"command_topic":"a","step":0`), "step"},
		"a text too long":             {entityOf("text", `"command_topic":"a","max":256`), "at most 255"},
		"a text's range upside down":  {entityOf("text", `"command_topic":"a","min":9,"max":9`), "must be greater"},
		"a light of another schema":   {entityOf("light", `"command_topic":"a","schema":"basic"`), "schema"},
		"a light without schema":      {entityOf("light", `"command_topic":"a"`), "required key not provided: schema"},
		"a light of old":              {entityOf("light", `"command_topic":"a","schema":"json","rgb":true`), "extra keys"},
		"a light with a template":     {entityOf("light", `"command_topic":"a","schema":"json","value_template":"{{ value }}"`), "extra keys"},
		"a colour mode there is not": {entityOf("light", `"command_topic":"a","schema":"json","supported_color_modes":["cmyk"]`),
			"supported_color_modes"},
		"an update without payload":     {entityOf("update", `"state_topic":"a","command_topic":"b"`), "payload_install"},
		"an update's class":             {entityOf("update", `"state_topic":"a","device_class":"software"`), "expected a device class"},
		"a switch's class":              {entityOf("switch", `"command_topic":"a","device_class":"mute"`), "expected a device class"},
		"a payload that is no text":     {entityOf("binary_sensor", sensor+`,"payload_on":true`), "not a text"},
		"a component that is no object": {oneComponent(`"sensor"`), "no object"},
	} {
		err := checkDiscovery("homeassistant", message{topic: checkedTopic, payload: []byte(mistake.payload), retained: true, qos: 1})
		if !errors.Is(err, errDiscovery) || !strings.Contains(err.Error(), mistake.reason) {
			t.Errorf("%s: %v, not %q, of %s", name, err, mistake.reason, mistake.payload)
		}
	}
}

// FuzzCheckDiscovery sends anything: nothing makes it panic, and what it takes
// is a whole announcement or a removal.
func FuzzCheckDiscovery(f *testing.F) {
	f.Add(checkedTopic, []byte(entityOf("sensor", `"state_topic":"a","availability":[{"topic":"x"}]`)), true)
	f.Add(checkedTopic, []byte(entityOf("number", `"command_topic":"a","min":1e400`)), true)
	f.Add(checkedTopic, []byte(oneComponent(`{"platform":"sensor"}`)), true)
	f.Add(checkedTopic, []byte(oneComponent(`{"platform":"sensor","unique_id":null}`)), true)
	f.Add(checkedTopic, []byte(oneComponent(`{"platform":["sensor"],"unique_id":1,"name":[]}`)), true)
	f.Add(checkedTopic, []byte(`{"device":null,"origin":1,"components":[]}`), true)
	f.Add("homeassistant/device//config", []byte{}, false)
	f.Fuzz(func(t *testing.T, topic string, payload []byte, retained bool) {
		if checkDiscovery("homeassistant", message{topic: topic, payload: payload, retained: retained}) != nil {
			return
		}
		if !retained || !strings.HasPrefix(topic, "homeassistant/device/") {
			t.Fatalf("%q is taken", topic)
		}
		var whole map[string]any
		if err := json.Unmarshal(payload, &whole); len(payload) > 0 && err != nil {
			t.Fatalf("%q is taken: %v", payload, err)
		}
	})
}
