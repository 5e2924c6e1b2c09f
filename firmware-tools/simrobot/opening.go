package simrobot

import (
	"fmt"
	"time"

	"perch/device/xiaozhi"
)

// opening is a command that opens a channel. On the open channel the robot sends the command's
// events, and then listens, unless the command is doSense. If a method of a session returns an
// *opening as its error, the current channel ends, and Talk opens the next channel at once.
type opening struct {
	command

	// replaces is true if the new channel replaces a stale one. The firmware's main loop
	// notices the end of the stale channel only after the new one has opened.
	replaces bool
}

// Error implements error.
func (*opening) Error() string { return "the robot opens a new channel" }

// usualOpening returns the command that opens the first channel of the conversation, and each channel
// in which the conversation continues: a wake word, events or a tap, depending on the options.
func (r *Robot) usualOpening() opening {
	c := command{do: doTap, events: r.o.Events}
	switch {
	case r.o.Wake != "":
		c.do, c.phrase = doWake, r.o.Wake
	case r.o.Mode == xiaozhi.Manual, len(r.o.Events) > 0 && len(r.o.Say) == 0:
		c.do = doSense // in manual mode the person presses the button for each sentence
	}
	return opening{command: c}
}

// hello returns the robot's hello, with keys in the order of the firmware's GetHelloMessage.
func (s *session) hello() []byte {
	features, font := `"mcp":true`, ""
	if s.r.o.AEC == AECServer {
		features = `"aec":true,` + features
	}
	if s.r.firmware.glyphs {
		features += `,"glyph_push":true`
		font = `"text_font":{"bundle":"noto-v1","charset":"common","size":20,"bpp":4},`
	}
	const audio = `"audio_params":{"format":"opus","sample_rate":16000,"channels":1,"frame_duration":60}}`
	if s.mqtt != nil {
		return fmt.Appendf(nil, `{"type":"hello","version":3,"transport":"udp","features":{%s},%s`+audio, features, font)
	}
	return fmt.Appendf(nil, `{"type":"hello","version":%d,"features":{%s},%s"transport":"websocket",`+audio, s.framing, features, font)
}

// channelOpened handles the server's hello, after which the channel is open. It sends the events of the
// command that opened the channel, and then listens, unless that command is doSense.
func (s *session) channelOpened(now time.Time) error {
	s.enterState(Idle)
	s.lastText = now
	if s.r.firmware.events {
		s.checkAt = now.Add(checkInterval)
	}
	if after := s.r.o.StopReadingAfter; after > 0 {
		s.stopReadingAt = now.Add(after)
	}
	if s.opening.replaces {
		s.idleAt = now.Add(mainLoopLag)
	}
	if err := s.sendEvents(now, s.firstEvents()); err != nil {
		return err
	}
	switch s.opening.do {
	case doWake:
		return s.wakeUp(now, s.opening.phrase)
	case doPress:
		s.mode = xiaozhi.Manual
		return s.listen(now)
	case doTap:
		s.mode = s.defaultMode
		return s.listen(now)
	}
	return nil
}

// firstEvents returns the events that the robot sends first on an open channel: those of the command
// that opened the channel and, with dotty's firmware, state_changed and wake_word_detected.
func (s *session) firstEvents() []xiaozhi.Event {
	if !s.r.firmware.events {
		return s.opening.events
	}
	events := []xiaozhi.Event{{Name: "state_changed", Data: []byte(`{"state":"idle"}`)}}
	phrase := s.opening.phrase
	if s.opening.do == doWake && phrase != "face" && phrase != "head_pet_hold" { // for these two the robot sends other events
		events = append(events, xiaozhi.Event{Name: "wake_word_detected",
			Data: fmt.Appendf(nil, `{"phrase":%s,"direction":"centre","balance":0.02,"energy":910000000,"state":3}`, quote(phrase))})
	}
	return append(events, s.opening.events...)
}

// sendEvents sends events, and passes them to Options.Observe.
func (s *session) sendEvents(now time.Time, events []xiaozhi.Event) error {
	for _, e := range events {
		if err := s.send(now, e); err != nil {
			return err
		}
		s.r.o.Observe(Sensed{Event: e})
	}
	return nil
}

// wakeUp sends the two seconds of sound before the detection of a wake word, tells the server the wake
// word, and listens.
func (s *session) wakeUp(now time.Time, phrase string) error {
	s.r.o.Observe(Woken{Phrase: phrase})
	var pcm []int16
	if phrase == s.r.o.Wake {
		pcm = s.r.o.WakePCM
	}
	err := preroll(pcm, s.r.seed(), func(p []byte) error { return s.sendAudio(now, xiaozhi.Audio{Opus: p}) })
	if err != nil {
		return err
	}
	// Like the firmware this does not escape the phrase.
	if err := s.sendText(now, fmt.Appendf(nil, `{"session_id":"%s","type":"listen","state":"detect","text":"%s"}`, s.id, phrase)); err != nil {
		return err
	}
	s.mode = s.defaultMode
	return s.listen(now)
}
