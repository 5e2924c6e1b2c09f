package acp

import (
	"strings"

	"perch/agent"
	"perch/device"
)

// Phrases are what the brain says of its own accord. A sentence may begin with
// an emoji for the face.
type Phrases struct {
	Ask    string            // {what} is done, in Does; {title} is the tool's own
	AskOf  string            // the same where the tool has no title
	Does   map[string]string // by kind of tool; "other" is for all the rest
	AndOn  string            // after a title that is cut
	Again  string            // {question} was not understood
	NotYou string            // this robot may not answer permissions
	// ForGood is said where the agent asks for something that could only be
	// allowed for all time, which is never asked.
	ForGood string
	// Hidden is said of a command of which a part would be blanked that is no key.
	Hidden string

	Refused string // why a turn ended: the agent refuses,
	CutOff  string // ran out of words,
	TooLong string // or out of steps
	Stopped string // or stopped by itself
	Done    string // where it ended well and said nothing

	language string // BCP 47
}

// execute is the kind of tool that runs a command.
const execute = "execute"

// PhrasesIn are those of a language, given by its BCP 47 tag: German, and
// English for all others.
func PhrasesIn(language string) Phrases {
	if tag, _, _ := strings.Cut(strings.ToLower(language), "-"); tag == "de" {
		return german()
	}
	return Phrases{
		Ask:   "May I {what}: {title}?",
		AskOf: "May I {what}?",
		Does: map[string]string{
			"read": "read something", "edit": "change something", "delete": "delete something", "move": "move something",
			"search": "search for something", "execute": "run a command", "fetch": "fetch something from the network",
			"switch_mode": "change how I work", "other": "use a tool",
		},
		AndOn:   "and so on",
		Again:   "I did not understand. {question} Please say yes or no.",
		NotYou:  "😐 I may not do that: only a robot that was adopted by name can allow it.",
		ForGood: "😐 I did not do that: it can only be allowed for good, and that is not for me to ask.",
		Hidden:  "😐 I did not do that: a part of the command cannot be told aloud.",
		Refused: "😐 I may not answer that.",
		CutOff:  "😐 I was cut off: the answer was too long.",
		TooLong: "😐 I stopped here: it took too many steps.",
		Stopped: "😐 I have stopped.",
		Done:    "😊 Done.",
	}
}

func german() Phrases {
	return Phrases{
		Ask:      "Darf ich {what}: {title}?",
		AskOf:    "Darf ich {what}?",
		language: "de",
		Does: map[string]string{
			"read": "etwas lesen", "edit": "etwas ändern", "delete": "etwas löschen", "move": "etwas verschieben",
			"search": "etwas suchen", "execute": "einen Befehl ausführen", "fetch": "etwas aus dem Netz holen",
			"switch_mode": "meine Arbeitsweise ändern", "other": "ein Werkzeug benutzen",
		},
		AndOn:   "und so weiter",
		Again:   "Das habe ich nicht verstanden. {question} Bitte sag ja oder nein.",
		NotYou:  "😐 Das darf ich nicht: Nur ein mit Namen angenommener Roboter kann es erlauben.",
		ForGood: "😐 Das habe ich gelassen: Es ließe sich nur für immer erlauben, und danach frage ich nicht.",
		Hidden:  "😐 Das habe ich gelassen: Ein Teil des Befehls lässt sich nicht laut sagen.",
		Refused: "😐 Darauf darf ich nicht antworten.",
		CutOff:  "😐 Ich wurde unterbrochen: Die Antwort war zu lang.",
		TooLong: "😐 Ich höre hier auf: Es waren zu viele Schritte.",
		Stopped: "😐 Ich habe aufgehört.",
		Done:    "😊 Erledigt.",
	}
}

// question is one sentence that can be spoken. Who hears it decides by it, so
// the signs of a command are spoken as words, and a title that is cut says that it
// is.
func (p Phrases) question(kind, title string, cut bool) string {
	what := p.Does[kind]
	if what == "" {
		what = p.Does["other"]
	}
	if kind == execute {
		title = agent.ShellAloud(title, p.language)
	}
	if title = agent.Aloud(title); cut || len(title) > mostAloud {
		title = strings.TrimSpace(device.Clip(title, mostAloud)) + " " + p.AndOn
	}
	if title == "" {
		return agent.Fill(p.AskOf, "what", what)
	}
	return agent.Fill(p.Ask, "what", what, "title", title)
}
