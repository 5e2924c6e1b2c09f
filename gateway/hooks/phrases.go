package hooks

import (
	"path"

	"perch/agent"
	"perch/language"
	"perch/limit"
	"perch/plain"
	"perch/remote"
)

// What of a title is read, and what is spoken, in bytes. Keys in it are long, so
// that much more is read.
const (
	mostRead  = 2560
	mostAloud = 160
)

// question is one sentence that can be spoken. People decide by it.
func question(words *language.Words, w wish) string {
	kind, title := does(w.Tool, w.Input)
	switch kind {
	case "edit":
		kind = "edit_file"
	case "execute", "read", "fetch":
	default:
		kind, title = "other", w.Tool
	}
	asked := agent.Permission(words, kind, remote.Redact(plain.Clip(title, mostRead), mostRead), mostAloud, len(title) > mostRead)
	if folder := agent.Aloud(path.Base(plain.Line(plain.Clip(w.CWD, limit.Line)))); folder != "" && folder != "." && folder != "/" {
		return words.Message("ask.session_in", "folder", plain.Clip(folder, limit.Word), "question", asked)
	}
	return words.Message("ask.session", "question", asked)
}
