package hooks

import (
	"path"
	"strings"

	"perch/agent"
	"perch/device"
	"perch/remote"
)

// phrases are the sentences about a permission.
type phrases struct {
	ask      string            // {where} is in, {what} is to be done, as in does
	in       string            // {folder} of the session
	does     map[string]string // by kind of tool; {title} is the tool's own
	other    string            // of every other tool; {title} is its name
	language string            // BCP 47
	andOn    string            // after a title that is cut
	again    string            // {question} was not understood
	denied   string            // the answer to the agent, where a person at the robot denies

	deniedElsewhere string // where a person elsewhere does
}

// phrasesIn are the phrases of a language, given by its BCP 47 tag: German, and
// English for all others.
func phrasesIn(language string) phrases {
	if tag, _, _ := strings.Cut(strings.ToLower(language), "-"); tag == "de" {
		return phrases{
			language: language,
			ask:      "Eine Programmiersitzung{where} fragt: Darf ich {what}?", in: " in {folder}",
			does: map[string]string{
				"execute": "einen Befehl ausführen: {title}", "edit": "eine Datei ändern: {title}", "read": "etwas lesen: {title}",
				"fetch": "etwas aus dem Netz holen: {title}",
			},
			other: "ein Werkzeug benutzen: {title}", andOn: "und so weiter",
			again:  "Das habe ich nicht verstanden. {question} Bitte sag ja oder nein.",
			denied: "Das wurde am Roboter abgelehnt.", deniedElsewhere: "Das wurde über Perch abgelehnt, von jemandem, der nicht am Roboter ist.",
		}
	}
	return phrases{
		language: language,
		ask:      "A coding session{where} asks: May I {what}?", in: " in {folder}",
		does: map[string]string{
			"execute": "run a command: {title}", "edit": "change a file: {title}", "read": "read something: {title}",
			"fetch": "fetch something from the network: {title}",
		},
		other: "use a tool: {title}", andOn: "and so on",
		again:  "I did not understand. {question} Please say yes or no.",
		denied: "This was denied by the person at the robot.", deniedElsewhere: "This was denied through Perch, by somebody who is not at the robot.",
	}
}

// What of a title is read, and what is spoken, in bytes. Keys in it are long, so
// that much more is read.
const (
	mostRead  = 2560
	mostAloud = 160
)

// question is one sentence that can be spoken. People decide by it, so it shows
// where a title is cut.
func (p phrases) question(w wish) string {
	kind, title := does(w.Tool, w.Input)
	words, known := p.does[kind]
	if !known {
		words, title = p.other, w.Tool
	}
	whole := len(title) <= mostRead
	if title = remote.Redact(device.Clip(title, mostRead), mostRead); kind == "execute" {
		title = agent.ShellAloud(title, p.language)
	}
	if title = agent.Aloud(title); !whole || len(title) > mostAloud {
		title = strings.TrimSpace(device.Clip(title, mostAloud)) + " " + p.andOn
	}
	where := ""
	if folder := agent.Aloud(path.Base(clean(w.CWD, mostPath))); folder != "" && folder != "." && folder != "/" {
		where = agent.Fill(p.in, "folder", device.Clip(folder, mostName))
	}
	return agent.Fill(p.ask, "where", where, "what", agent.Fill(words, "title", title))
}
