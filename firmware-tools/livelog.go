package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"perch/firmware-tools/simrobot"
)

// liveLog prints a talk as it happens, a line for each observation.
type liveLog struct {
	out      lines
	mac      string
	upgrades bool     // the robot installs what it is offered
	picture  *picture // nil: print a log
}

func (l *liveLog) line(who, does, words string) {
	words = strings.ReplaceAll(plainText(strings.ToValidUTF8(words, "�")), "\t", " ")
	if l.picture != nil {
		fmt.Fprintln(l.out.to, l.picture.line(who, does, words))
		return
	}
	l.out.line(who, does, words)
}

func (l *liveLog) observe(h simrobot.Observation) {
	if l.picture != nil {
		l.picture.look(h)
	}
	switch h := h.(type) {
	case simrobot.CheckedIn:
		l.checkedIn(h)
	case simrobot.AwaitsAdoption:
		l.line("robot", "waits", "for its owner, and shows the code "+h.Code+" ("+h.Message+")")
	case simrobot.Upgraded:
		l.line("robot", "runs", "version "+h.Version+" now")
	case simrobot.NotUpgraded:
		l.line("robot", "keeps", "what it has: "+h.Why)
	case simrobot.Fetched:
		l.line("robot", "fetches", fmt.Sprintf("assets: %d files", len(h.Assets.Files)))
	case simrobot.NotFetched:
		l.line("robot", "lacks", "the assets it was told of: "+h.Why)
	case simrobot.RolledBack:
		l.line("robot", "goes back", "from "+h.From+" to "+h.To)
	case simrobot.Welcomed:
		l.line("perch", "hello", fmt.Sprintf("%d Hz, %d ms, after %v", h.Audio.SampleRate, h.Audio.FrameDuration,
			h.Latency.Round(100*time.Microsecond)))
	case simrobot.Spoken:
		l.line("robot", "says", strconv.Quote(h.Text))
	case simrobot.Sensed:
		l.line("robot", "senses", h.Event.Name+" "+string(h.Event.Data))
	case simrobot.Transcript:
		l.line("perch", "heard", h.Text)
	case simrobot.EmotionShown:
		words := strings.TrimSpace(h.Emoji + " " + h.Emotion)
		if h.Face != h.Emotion {
			words += " (this robot shows " + h.Face + ")"
		}
		l.line("perch", "feels", words)
	case simrobot.SentenceShown:
		l.line("perch", "says", h.Text)
	case simrobot.Alerted:
		l.line("perch", "alerts", h.Status+": "+h.Message+" ("+h.Emotion+")")
	case simrobot.Listed:
		l.line("robot", "lists", fmt.Sprintf("%d tools", h.Tools))
	case simrobot.Called:
		l.called(h)
	case simrobot.HeadMoved:
		l.line("robot", "moves", fmt.Sprintf("its head to yaw %d, pitch %d", h.Yaw, h.Pitch))
	case simrobot.VolumeChanged:
		l.line("robot", "sets", fmt.Sprintf("its volume to %d", h.Volume))
	case simrobot.MessageIgnored:
		l.line("robot", "ignores", h.Why)
	case simrobot.Woken:
		l.line("robot", "wakes", "by "+strconv.Quote(h.Phrase))
	case simrobot.WakeLost:
		l.line("robot", "misses", strconv.Quote(h.Phrase)+", a fault of this build")
	case simrobot.WentStale:
		l.line("robot", "forgets", "its channel, quiet for more than 120 s")
	case simrobot.Reminded:
		l.line("robot", "rings", h.Message)
	case simrobot.HungUp:
		if h.ByServer {
			l.line("perch", "hangs up", "")
		} else {
			l.line("robot", "hangs up", h.Why)
		}
	case simrobot.TurnEnded:
		if l.picture != nil { // a log ends with a report
			l.line("robot", "waited", waited(h.Turn))
		}
	case simrobot.Stopped:
		if h.Cut > 0 {
			l.line("robot", "cuts off", fmt.Sprintf("%d packets that it had not played", h.Cut))
		}
	}
}

func (l *liveLog) checkedIn(h simrobot.CheckedIn) {
	l.line("robot", l.mac, "checked in at "+h.OTA+" -> "+h.Boot.URL)
	if h.Boot.Upgrade != "" && !l.upgrades {
		l.line("robot", "upgrades", "a real one would install "+h.Boot.Upgrade+" now")
	}
	for _, odd := range h.Boot.Oddities {
		l.line("robot", "ignores", odd)
	}
}

func (l *liveLog) called(h simrobot.Called) {
	if l.picture != nil && strings.Contains(h.Name, ".get_") {
		return // its state is read at every turn, and nothing changes
	}
	if h.Err != "" {
		l.line("robot", "tool", h.Name+" "+h.Arguments+" -> error: "+h.Err)
		return
	}
	l.line("robot", "tool", h.Name+" "+h.Arguments+" -> "+h.Result)
}
