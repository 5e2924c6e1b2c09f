package device

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func integer(least, most int) Argument {
	return Argument{Type: "integer", Minimum: &least, Maximum: &most}
}

func TestFit(t *testing.T) {
	head := Tool{Name: "self.robot.set_head_angles", Schema: Schema{Properties: map[string]Argument{
		"yaw": integer(-9999, 128), "pitch": integer(-9999, 90), "speed": integer(100, 1000)}}}
	leds := Tool{Name: "self.robot.set_led_color", Schema: Schema{Properties: map[string]Argument{
		"red": integer(0, 168), "green": integer(0, 168), "blue": integer(0, 168)}}}
	volume := Tool{Name: "self.audio_speaker.set_volume", Schema: Schema{
		Properties: map[string]Argument{"volume": integer(0, 100)}, Required: []string{"volume"}}}
	reminder := Tool{Name: "self.robot.create_reminder", Schema: Schema{Properties: map[string]Argument{
		"duration_seconds": integer(1, 86400), "message": {Type: "string"}, "repeat": {Type: "boolean"}}}}
	type m = map[string]any
	for name, c := range map[string]struct {
		tool  Tool
		given m
		want  m
		error string // part of the expected error; empty for no error
	}{
		"as they are":            {volume, m{"volume": 40}, m{"volume": 40}, ""},
		"from JSON":              {volume, m{"volume": 40.0}, m{"volume": 40}, ""},
		"the point is dropped":   {volume, m{"volume": 40.9}, m{"volume": 40}, ""},
		"a number in quotes":     {volume, m{"volume": " 40"}, m{"volume": 40}, ""},
		"a json.Number":          {volume, m{"volume": json.Number("40")}, m{"volume": 40}, ""},
		"capitals":               {volume, m{"Volume": 40}, m{"volume": 40}, ""},
		"twice":                  {volume, m{"Volume": 40, "volume": 50}, nil, "twice"},
		"missing":                {volume, m{}, nil, `needs "volume"`},
		"null is left out":       {volume, m{"volume": nil}, nil, `needs "volume"`},
		"not a number":           {volume, m{"volume": "loud"}, nil, "type integer"},
		"not even a word":        {volume, m{"volume": []int{1}}, nil, "type integer"},
		"infinite":               {volume, m{"volume": 1e300}, nil, "type integer"},
		"out of range":           {volume, m{"volume": 101}, nil, "from 0 to 100, not 101"},
		"misnamed":               {leds, m{"r": 255}, nil, "it takes blue, green, red"},
		"lights are clamped":     {leds, m{"red": 255, "green": -5, "blue": 9}, m{"red": 168, "green": 0, "blue": 9}, ""},
		"pitch is kept in":       {head, m{"pitch": 0, "yaw": 10}, m{"pitch": 5, "yaw": 10}, ""},
		"pitch at the other end": {head, m{"pitch": 90}, m{"pitch": 85}, ""},
		"yaw to the left":        {head, m{"yaw": -200}, m{"yaw": -128}, ""},
		"yaw to the right":       {head, m{"yaw": 200, "speed": 5}, m{"yaw": 128, "speed": 100}, ""},
		"keep is left out":       {head, m{"yaw": -9999, "pitch": -9999.0}, m{}, ""},
		"words and switches": {reminder, m{"message": "tea", "repeat": "false", "duration_seconds": 60}, m{"message": "tea", "repeat": false,
			"duration_seconds": 60}, ""},
		"a word that is none":   {reminder, m{"message": 7}, nil, "type string"},
		"a switch that is none": {reminder, m{"repeat": "maybe"}, nil, "type boolean"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.tool.Fit(c.given)
			if c.error != "" {
				if !errors.Is(err, ErrArguments) || !strings.Contains(err.Error(), c.error) {
					t.Errorf("error %v, want one with %q", err, c.error)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, %v; want %v", got, err, c.want)
			}
		})
	}
}

func TestModelNames(t *testing.T) {
	long := strings.Repeat("x", 70)
	tools := []Tool{{Name: "self.a.b"}, {Name: "self.a_b"}, {Name: "self_a_b_2"}, {Name: "self/a/b"}, {Name: long + "1"}, {Name: long + "2"},
		{Name: "ä"}, {Name: ""}, {Name: "self.a.b"}}
	n := NewModelNames(tools)
	seen := map[string]bool{}
	for _, tool := range tools[:8] {
		safe := n.Safe(tool.Name)
		if seen[safe] || safe == "" || len(safe) > 64 || strings.ContainsAny(safe, "./ä") {
			t.Errorf("%q is named %q", tool.Name, safe)
		}
		seen[safe] = true
		if own, ok := n.Own(safe); !ok || own != tool.Name {
			t.Errorf("%q leads to %q, not %q", safe, own, tool.Name)
		}
	}
	if n.Safe("self.a.b") != "self_a_b" {
		t.Errorf("the first is %q", n.Safe("self.a.b"))
	}
	if own, ok := n.Own("self.a.b"); !ok || own != "self.a.b" {
		t.Error("a tool's own name is not understood")
	}
	if _, ok := n.Own("self_other"); ok {
		t.Error("a tool that is not there was found")
	}
}

func FuzzFit(f *testing.F) {
	f.Add(`{"name":"self.robot.set_head_angles","inputSchema":{"properties":{"yaw":{"type":"integer","minimum":-9999,"maximum":128}}}}`,
		`{"yaw":-9999}`)
	f.Add(`{"name":"a.led","inputSchema":{"properties":{"red":{"type":"integer","maximum":5}},"required":["red"]}}`, `{"RED":"1e9"}`)
	f.Fuzz(func(t *testing.T, tool, arguments string) {
		var described Tool
		var given map[string]any
		if json.Unmarshal([]byte(tool), &described) != nil || json.Unmarshal([]byte(arguments), &given) != nil {
			t.Skip("no tool and no object: there is nothing to fit")
		}
		fitted, err := described.Fit(given)
		if err != nil {
			if !errors.Is(err, ErrArguments) {
				t.Errorf("an error of another kind: %v", err)
			}
			return
		}
		for name := range fitted {
			if _, listed := described.Schema.Properties[name]; !listed {
				t.Errorf("%q is sent and not listed", name)
			}
		}
	})
}
