package main

import (
	"fmt"
	"strings"

	"perch/firmware-tools/simrobot"
	"perch/plain"
)

// liveLog prints a talk as it happens, a line for each observation.
type liveLog struct {
	out      lines
	mac      string
	upgrades bool     // the robot installs the firmware that it is offered
	picture  *picture // nil: print a log
}

func (l *liveLog) line(who, does, words string) {
	words = plain.Line(strings.ToValidUTF8(words, "�"))
	if l.picture != nil {
		fmt.Fprintln(l.out.to, l.picture.line(who, does, words))
		return
	}
	l.out.line(who, does, words)
}

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
		for _, odd := range h.Boot.Oddities {
			l.line("robot", "ignores", odd)
		}
	case simrobot.Called:
		if l.picture != nil && strings.Contains(h.Name, ".get_") {
			return // it is called in every turn and changes nothing
		}
	case simrobot.TurnEnded:
		if l.picture == nil {
			return // a log ends with a report
		}
	}
	if line := h.Line(); line.Who != "" {
		l.line(line.Who, line.Does, line.Words)
	}
}
