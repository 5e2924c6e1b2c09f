package relay

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"perch/event"
	"perch/must"
)

// unrealFake returns a fake of the Remote Control API. Its preset Stackchan has no property Tool.
func unrealFake(t testing.TB) *fake {
	return newFake(t, "", func(message []byte) []any {
		var m struct {
			MessageName string
			Parameters  struct {
				URL       string `json:"Url"`
				Verb      string
				RequestID int `json:"RequestId"`
			}
		}
		if err := json.Unmarshal(message, &m); err != nil || m.MessageName != "http" || m.Parameters.Verb == "" {
			t.Errorf("%s: %v", message, err)
		}
		code, body := 200, map[string]any{}
		if strings.HasSuffix(m.Parameters.URL, "/Tool") {
			code, body = 404, map[string]any{"errorMessage": "The property could not be found."}
		}
		return []any{"garbage", map[string]any{"RequestId": 12345678, "ResponseCode": 500},
			map[string]any{"RequestId": m.Parameters.RequestID, "ResponseCode": code, "ResponseBody": body}}
	})
}

func TestUnrealRequests(t *testing.T) {
	for word, want := range map[string]string{
		"property Stackchan State": `{"Url":"/remote/preset/Stackchan/property/State","Verb":"PUT","RequestId":0,` +
			`"Body":{"GenerateTransaction":false,"PropertyValue":"x"}}`,
		"function Stackchan Say Text": `{"Url":"/remote/preset/Stackchan/function/Say","Verb":"PUT","RequestId":0,` +
			`"Body":{"GenerateTransaction":false,"Parameters":{"Text":"x"}}}`,
		"set /Game/M.M:Level.A_1 State": `{"Url":"/remote/object/property","Verb":"PUT","RequestId":0,"Body":` +
			`{"access":"WRITE_ACCESS","objectPath":"/Game/M.M:Level.A_1","propertyName":"State","propertyValue":{"State":"x"}}}`,
		"call /Game/M.M:Level.A_1 Say Text": `{"Url":"/remote/object/call","Verb":"PUT","RequestId":0,"Body":` +
			`{"functionName":"Say","generateTransaction":false,"objectPath":"/Game/M.M:Level.A_1","parameters":{"Text":"x"}}}`,
	} {
		target, err := newUnrealTarget(word)
		must.Succeed(t, err)
		if got, err := json.Marshal(target.request("x")); err != nil || string(got) != want {
			t.Errorf("%s: %s %v", word, got, err)
		}
	}
}

// TestUnreal tests a spoken turn, and the note about a value that Unreal refuses.
func TestUnreal(t *testing.T) {
	f := unrealFake(t)
	h := newConnected(t, Target{Kind: "unreal", URL: "ws://" + f.address,
		Words: map[string]string{"state.speaking": "3", "gesture.nod": "Yes"}})
	h.happens(robotA, "s", turn()...)
	h.happens("", "", event.Notification{ID: "n", Text: "Bread is done.", Urgency: "normal"})
	h.voice.set(.5)
	for _, want := range []string{`property/State","Verb":"PUT","RequestId":`,
		`"PropertyValue":3`, `"PropertyValue":"happy"`, `"PropertyValue":"It is warm."`,
		`"Parameters":{"Name":"Yes"}`, `"Parameters":{"Text":"Bread is done."}`, `"PropertyValue":0.5`} {
		h.eventually(want, func() bool { return f.last(want) != "" })
	}
	h.eventually("what it refuses", func() bool {
		return h.note() == "refused by Unreal: property Stackchan Tool: The property could not be found."
	})
}

// TestEmptyWords tests that nothing is sent for an empty word, and not the name either.
func TestEmptyWords(t *testing.T) {
	empty := map[string]string{"state.thinking": "", "face.happy": "", "gesture.nod": "", "feeling.curiosity": ""}
	for _, c := range []struct{ kind, mouth string }{{"warudo", "action.mouth"}, {"unreal", "tell.mouth"}} {
		f := unrealFake(t)
		if c.kind == "warudo" {
			f = newFake(t, "", nil)
		}
		words := maps.Clone(empty)
		words[c.mouth] = ""
		h := newConnected(t, Target{Kind: c.kind, URL: "ws://" + f.address, Words: words})
		h.happens(robotA, "s", turn()...)
		h.eventually("the sentence", func() bool { return f.last("It is warm.") != "" })
		h.happens(robotA, "s", event.Mood{Dominant: "curiosity"})
		h.voice.set(.5)
		for _, text := range []string{"The end.", "The very end."} { // the mouth is sent before the second text
			h.happens(robotA, "s", event.Said{Text: text})
			h.eventually(text, func() bool { return f.last(text) != "" })
		}
		for _, never := range []string{`"thinking"`, `"happy"`, `"nod"`, `"curiosity"`, `"action":""`, `0.5`} {
			if told := f.last(never); told != "" {
				t.Errorf("%s is told %s", c.kind, told)
			}
		}
		h.stop()
	}
}
