package appliance

import (
	"time"

	"perch/agent"
	"perch/agent/action"
	"perch/device"
	"perch/event"
	"perch/gateway/character"
)

// newCharacterDoor makes the log of what characters do, and the door to it.
func (a *Appliance) newCharacterDoor() error {
	a.actions = action.NewLog(a.Characters.Who, nil)
	a.character = character.New(character.Options{Bus: a.Bus, Log: a.actions, Who: a.Characters.Who, Robots: a.Robots, Find: a.Robots.Find,
		Say: a.Talk.Say, Remember: a.rememberReported})
	return nil
}

// rememberReported keeps a fact that a viewer reports.
func (a *Appliance) rememberReported(id device.ID, session string, fact event.Remembered) error {
	kept, err := a.Memory.Remember(agent.Entry{Name: fact.Name, Body: fact.Body, Robot: id, Source: "viewer"}, time.Now())
	if err == nil {
		a.Bus.Publish(id, session, event.Remembered{ID: kept.ID, Type: fact.Type, Name: kept.Name, Body: kept.Body})
	}
	return err
}
