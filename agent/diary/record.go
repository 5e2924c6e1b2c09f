package diary

import (
	"encoding/json"
	"strings"

	"perch/event"
)

// Types are those of what the diary keeps.
func Types() []string {
	return []string{"speak", "remember", "sign", "skill-done", "validate", "load-end"}
}

// mostText bounds each text of an entry, in bytes.
const mostText = 2000

// recorded is what the diary keeps of an event; of most it keeps nothing.
func recorded(e event.Event) (kind string, payload any, skill string) {
	switch e := e.(type) {
	case event.Said:
		return "speak", object{"text": clipped(e.Text)}, ""
	case event.Remembered:
		return "remember", object{"id": clipped(e.ID), "type": clipped(e.Type), "content": clipped(stated(e))}, ""
	case event.Signed:
		return "sign", object{"message": clipped(e.Message), "address": clipped(e.Address), "signature": clipped(e.Signature)}, ""
	case event.SkillDone:
		result := object{"success": true, "output": clipped(e.Output)}
		if e.Sentiment != nil {
			result["sentiment"] = *e.Sentiment
		}
		return "skill-done", object{"skill": clipped(e.Skill), "result": result}, clipped(e.Skill)
	case event.Validated:
		return "validate", object{"errors": e.Errors, "warnings": e.Warnings}, ""
	case event.LoadEnded:
		return "load-end", object{"uri": clipped(e.URI), "error": clipped(e.Error)}, ""
	}
	return "", nil, ""
}

type object map[string]any

// stated is the fact of an entry of the memory.
func stated(e event.Remembered) string {
	if e.Body != "" {
		return e.Body
	}
	return e.Name
}

// clipped is as much of a text as an entry keeps.
func clipped(text string) string {
	if len(text) > mostText {
		text = text[:mostText]
	}
	return strings.ToValidUTF8(text, "")
}

// entryOf is the entry of an event; ok is false if the diary does not keep it.
func entryOf(e event.Envelope, character string) (_ Entry, ok bool) {
	kind, payload, skill := recorded(e.Event)
	if kind == "" {
		return Entry{}, false
	}
	text, err := json.Marshal(payload)
	if err != nil { // of a number that is none
		return Entry{}, false
	}
	return Entry{At: e.At.UTC().Round(0), Character: clipped(character), Robot: e.Robot, Session: clipped(e.Session), Type: kind,
		Payload: text, Skill: skill}, true
}
