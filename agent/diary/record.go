package diary

import (
	"encoding/json"
	"slices"

	"perch/agent/action"
	"perch/event"
	"perch/limit"
	"perch/plain"
)

// Types returns the types of the recorded actions.
func Types() []action.Type {
	return []action.Type{action.Speak, action.Remember, action.Sign, action.SkillDone, action.Validate, action.LoadEnd}
}

// isReported reports whether a viewer has reported the entry.
func (e Entry) isReported() bool {
	var p struct {
		By string `json:"by"`
	}
	return json.Unmarshal(e.Payload, &p) == nil && p.By == event.ByViewer
}

// entryOf returns the entry for an event. ok is false if the diary does not record the event.
func (d *Diary) entryOf(e event.Envelope) (_ Entry, ok bool) {
	a, ok := action.Of(e, d.o.Who(e.Robot, e.Session), d.o.Sentiment)
	if !ok || !slices.Contains(Types(), a.Type) {
		return Entry{}, false
	}
	entry := Entry{At: e.At.UTC().Round(0), Character: plain.Clip(a.Agent, limit.Name), Robot: e.Robot, Session: plain.Clip(e.Session, limit.Name),
		Type: a.Type, Payload: a.Payload}
	if a.Skill != nil {
		entry.Skill = *a.Skill
	}
	return entry, true
}
