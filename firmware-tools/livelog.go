package main

import (
	"fmt"
	"strings"

	"perch/firmware-tools/simrobot"
	"perch/plain"
)

// liveLog prints a conversation as it happens. It prints a line for most observations of the
// simulated robot, and several lines for some.
type liveLog struct {
	out      output
	mac      string
	upgrades bool     // the robot installs offered firmware
	picture  *picture // nil to print a plain log
}

// line prints a line without control characters.
func (l *liveLog) line(actor, action, words string) {
	words = plain.Line(strings.ToValidUTF8(words, "�"))
	if l.picture != nil {
		fmt.Fprintln(l.out.to, l.picture.line(actor, action, words))
		return
	}
	l.out.line(actor, action, words)
}

// observe prints an observation.
func (l *liveLog) observe(h simrobot.Observation) {
	if l.picture != nil {
		l.picture.update(h)
	}
	switch h := h.(type) {
	case simrobot.CheckedIn:
		to := h.Boot.URL
		if h.Boot.MQTT != "" {
			to = "MQTT at " + h.Boot.MQTT
		}
		l.line("robot", l.mac, "checked in at "+h.OTA+" -> "+to)
		if h.Boot.Upgrade != "" && !l.upgrades {
			l.line("robot", "upgrades", "a real one would install "+h.Boot.Upgrade+" now")
		}
		for _, oddity := range h.Boot.Oddities {
			l.line("robot", "ignores", oddity)
		}
	case simrobot.Called:
		if l.picture != nil && strings.Contains(h.Name, ".get_") {
			return // a tool with such a name changes nothing
		}
	case simrobot.TurnEnded:
		if l.picture == nil {
			return // printReport prints all turns at the end
		}
	}
	if line := h.Line(); line.Who != "" {
		l.line(line.Who, line.Does, line.Words)
	}
}
