package simrobot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// firmware describes a version of the firmware, with the differences that an appliance can notice.
type firmware struct {
	name    string // as Options.Firmware spells it
	board   string // BOARD_NAME, the first part of User-Agent
	project string // name of the application's project
	version string // version of the application
	elf     string // SHA-256 of the ELF file of an installed image; empty if none was installed

	drains bool // the queue is played to its end before the robot listens again; otherwise the queued packets are dropped
	blocks bool // the main loop is blocked while the queue is played to its end
	lazy   bool // the robot starts to speak at sentence_start, not at tts start
	strict bool // a tts message without a state is ignored; otherwise such a message makes the robot crash
	glyphs bool // hello contains features.glyph_push and a text font
	events bool // the robot opens a channel to send an event, and sends state_changed when a channel opens
	wake   wakeBehaviour
	queue  int      // maximum number of queued packets
	ready  int      // maximum number of decoded frames
	faces  []string // emotions that the robot can show
}

// wakeBehaviour says what a wake word does while a channel is open. A speaking robot always sends
// abort first.
type wakeBehaviour int

const (
	wakeWaits wakeBehaviour = iota // a speaking robot waits for tts stop; an idle robot listens
	wakeLost                       // a speaking robot listens at once; an idle robot ignores this and all later wake words
	wakeWorks                      // the robot listens at once
)

// firmwares returns the simulated versions of the Xiaozhi firmware: 2.1; 2.2.4, on which M5Stack's own
// Stack-chan firmware is based; 2.4; 2.5; and dotty, a fork of 2.2.4.
func firmwares() []firmware {
	const stackChan = "m5stack-stack-chan"
	avatar := []string{"neutral", "happy", "laughing", "angry", "sad", "crying", "sleepy", "doubtful"}
	emoji := []string{
		"neutral", "happy", "laughing", "funny", "sad", "angry", "crying", "loving", "embarrassed", "surprised", "shocked",
		"thinking", "winking", "cool", "relaxed", "delicious", "kissy", "confident", "sleepy", "silly", "confused",
	}
	return []firmware{
		{name: "2.1", board: "m5stack-core-s3", project: "xiaozhi", version: "2.1.0", queue: 40, ready: 2, faces: emoji},
		{name: "2.2.4", board: stackChan, project: "stack-chan", version: "1.2.4", queue: 40, ready: 2, faces: avatar, drains: true, blocks: true,
			wake: wakeLost},
		{name: "2.4", board: stackChan, project: "stack-chan", version: "2.4.2", queue: 40, ready: 2, faces: avatar, drains: true, strict: true,
			glyphs: true, wake: wakeWorks},
		{name: "2.5", board: stackChan, project: "stack-chan", version: "2.5.0", queue: 20, ready: 2, faces: avatar, drains: true, strict: true,
			glyphs: true, wake: wakeWorks},
		{name: "dotty", board: stackChan, project: "stack-chan", version: "1.3.2", queue: 40, ready: 4,
			faces: append(avatar[:len(avatar):len(avatar)],
				"thinking", "surprised", "loving"), drains: true, blocks: true, lazy: true, events: true, wake: wakeLost},
	}
}

// Firmwares returns the valid names for Options.Firmware.
func Firmwares() []string {
	var names []string
	for _, f := range firmwares() {
		names = append(names, f.name)
	}
	return names
}

// findFirmware returns the firmware with the given name. An empty name selects 2.2.4.
func findFirmware(name string) (firmware, error) {
	name = cmp.Or(name, "2.2.4")
	for _, f := range firmwares() {
		if f.name == name {
			return f, nil
		}
	}
	return firmware{}, fmt.Errorf("firmware %q: want one of %s", name, strings.Join(Firmwares(), ", "))
}

// face returns the emotion that the robot shows for an emotion from the server: the same emotion,
// or neutral if the firmware has no such face.
func (f firmware) face(emotion string) string {
	if slices.Contains(f.faces, emotion) {
		return emotion
	}
	return "neutral"
}
