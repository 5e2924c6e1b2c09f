package state

import (
	"encoding/json"

	"perch/event"
	"perch/gateway/homeassistant/discovery"
	"perch/limit"
	"perch/plain"
)

// Conversation translates an event of the bus to the event for the robot's topic "conversation". ok is false if the
// event of the bus is not reported. Of the events of type event.ListeningStarted, only the first since the robot opened its
// channel is reported. Texts are included only if share is true.
func (r *Robot) Conversation(envelope event.Envelope, share bool) (c Event, ok bool) {
	switch e := envelope.Event.(type) {
	case event.ListeningStarted:
		c, ok = Event{Type: "wake"}, !r.woken
		r.woken = true
	case event.Heard:
		c, ok = Event{Type: "heard", Text: shared(e.Text, share)}, true
	case event.Misheard:
		c, ok = Event{Type: "misheard"}, true
	case event.Said:
		c, ok = Event{Type: "replied", Text: shared(e.Text, share)}, true
	case event.Asked:
		c, ok = Event{Type: "asked", ID: e.ID, Text: shared(e.Text, share)}, true
	case event.Answered:
		c, ok = Event{Type: "answered", ID: e.ID, Answer: e.Answer}, true
	case event.ToolStatus:
		c, ok = Event{Type: "tool_called", ID: e.ID, Tool: e.Name}, e.Status == event.ToolRunning
	case event.TurnEnded:
		c, ok = Event{Type: "turn_ended", End: e.End, Reason: e.Reason}, true
	case event.Fault:
		c, ok = Event{Type: "error", Name: e.Part, Reason: e.Cause}, true
	case event.Command:
		c, ok = Event{Type: discovery.ListedOrOther(e.State, discovery.ConversationTypes()), Thing: e.Thing, Reason: e.Reason}, true
	case event.TimerRang:
		c, ok = Event{Type: discovery.Other, Name: event.Kind(e), ID: e.ID}, true
	}
	c.Session = envelope.Session
	return c, ok
}

// shared returns a pointer to text, or nil if share is false.
func shared(text string, share bool) *string {
	if !share {
		return nil
	}
	return &text
}

// Perception returns the MQTT event for a perception event.
func Perception(p event.Perceived) Event {
	return Event{Type: discovery.ListedOrOther(p.Name, discovery.PerceptionTypes()), Name: p.Name, Data: p.Data}
}

// Diary returns the MQTT event for a diary entry. Texts are included only if share is true.
func Diary(e event.Recorded, share bool) Event {
	d := Event{Type: discovery.ListedOrOther(e.Type, discovery.DiaryTypes()), Seq: e.Seq, Hash: e.Hash, Agent: e.Character, Session: e.Session}
	var p struct {
		Text, Content, Message, Name, ID, Address, Skill, URI, Error string

		Result struct{ Output string }
	}
	_ = json.Unmarshal(e.Payload, &p) // an invalid payload leaves the fields empty
	switch d.Type {
	case "speak":
		d.Text = shared(p.Text, share)
	case "remember":
		d.ID, d.Text = p.ID, shared(p.Content, share)
		if share { // the name is often the whole text
			d.Name = p.Name
		}
	case "sign":
		d.Name, d.Text = p.Address, shared(p.Message, share)
	case "skill-done":
		d.Name, d.Text = p.Skill, shared(p.Result.Output, share)
	case "validate":
		d.Data = e.Payload
	case "load-end":
		d.Name, d.Reason = plain.Clip(p.URI, limit.Name), p.Error
	default:
		d.Name = e.Type
	}
	return d
}
