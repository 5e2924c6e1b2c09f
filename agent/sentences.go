package agent

import "strings"

// mostSentence is how long a sentence may get before it is cut at a space;
// a robot's screen and a synthesizer both want less.
const mostSentence = 300

// Sentences cuts a text into what is spoken at a time: at a full stop,
// question or exclamation mark before a space, and at the end of a line.
func Sentences(text string) []string {
	var all []string
	add := func(s string) {
		for s = strings.TrimSpace(s); len(s) > mostSentence; {
			cut := strings.LastIndexByte(s[:mostSentence], ' ')
			if cut <= 0 {
				cut = len(strings.ToValidUTF8(s[:mostSentence], ""))
			}
			all = append(all, s[:cut])
			s = strings.TrimSpace(s[cut:])
		}
		if s != "" {
			all = append(all, s)
		}
	}
	from := 0
	for i, r := range text {
		end := i + len(string(r))
		switch {
		case r == '\n':
			add(text[from:i])
			from = end
		case strings.ContainsRune(".!?", r) && strings.HasPrefix(text[end:], " "):
			add(text[from:end])
			from = end
		case strings.ContainsRune("。！？", r):
			add(text[from:end])
			from = end
		}
	}
	add(text[from:])
	return all
}
