package appliance

import (
	"context"
	"errors"
	"net/http"
	"time"

	"perch/agent"
	"perch/agent/action"
	"perch/agent/skill"
	"perch/device"
	"perch/event"
	"perch/gateway/character"
	"perch/gateway/door"
)

// newCharacterDoor makes the log of what characters do, and the door to it.
func (a *Appliance) newCharacterDoor() (err error) {
	if a.passports, err = a.newPassports(); err != nil {
		return err
	}
	a.actions = action.NewLog(a.Characters.Who, a.sentiment)
	a.character = character.New(character.Options{Bus: a.Bus, Log: a.actions, Who: a.Characters.Who, Robots: a.Robots, Find: a.Robots.Find,
		Passports: a.passports,
		Say:       a.Talk.Say, Remember: a.rememberReported, Perform: a.performReported})
	return nil
}

// rememberReported keeps a fact that a viewer reports; the memory publishes it.
func (a *Appliance) rememberReported(id device.ID, session string, fact event.Remembered) error {
	e := agent.Entry{Name: fact.Name, Body: fact.Body, Type: fact.Type, Robot: id, Session: session, Source: agent.SourceViewer}
	_, err := a.Memory.Remember(e, time.Now())
	return err
}

// languageOf is that of a robot, and the household's for no robot.
func (a *Appliance) languageOf(id device.ID) string {
	if id == "" {
		return a.Characters.Speech().Language
	}
	return a.Characters.Of(id).Speech.Language
}

// performReported has a skill do its work, and returns when it is done. How it went is
// published; what was not begun, and arguments that do not fit, are errors.
func (a *Appliance) performReported(ctx context.Context, id device.ID, session string, wish event.SkillStarted) error {
	_, err := a.Skills.Perform(ctx, skill.Call{Agent: a.Characters.Who(id, session), Robot: id, Session: session, Skill: wish.Skill, Args: wish.Args,
		Now: time.Now(), Language: a.languageOf(id), Untrusted: id != "" && !a.Robots.Trusts(id), Exposed: true})
	switch {
	case errors.Is(err, skill.ErrHidden):
		return &door.Fault{Word: "skill_not_exposed", Sentence: err.Error(), HTTP: http.StatusForbidden}
	case errors.Is(err, skill.ErrArguments):
		return &door.Fault{Word: "bad_arguments", Sentence: err.Error(), HTTP: http.StatusBadRequest}
	case errors.Is(err, skill.ErrElsewhere):
		return &door.Fault{Word: "no_skill", Sentence: err.Error(), HTTP: http.StatusNotFound}
	case errors.Is(err, skill.ErrUnknown):
		return &door.Fault{Word: "no_skill", HTTP: http.StatusNotFound,
			Sentence: "there is no such skill here; perch skill list shows those there are"}
	case errors.Is(err, skill.ErrBusy):
		return &door.Fault{Word: "skills_busy", Sentence: "too many skills are at work; try again in a moment", HTTP: http.StatusTooManyRequests}
	case errors.Is(err, skill.ErrDenied):
		return &door.Fault{Word: "not_adopted", Sentence: "this robot is not adopted by name, and may not use that skill", HTTP: http.StatusConflict}
	}
	return nil
}
