package simrobot

import (
	"fmt"
	"time"

	"perch/device/xiaozhi"
)

// opening is the command that opens a channel. The robot first sends its events, and then
// listens, except for doSense. As an error it ends a channel and opens the next at once.
type opening struct {
	command

	// replaces is set if a stale channel was still open. The main loop notices its end
	// after the new one has opened.
	replaces bool
}

func (*opening) Error() string { return "the robot opens a new channel" }

// usualOpening returns how the options open a channel.
func (r *Robot) usualOpening() opening {
	how := command{do: doTap, events: r.o.Events}
	switch {
	case r.o.Wake != "":
		how.do, how.phrase = doWake, r.o.Wake
	case r.o.Mode == xiaozhi.Manual, len(r.o.Events) > 0 && len(r.o.Say) == 0:
		how.do = doSense // the button is pressed later, to speak
	}
	return opening{command: how}
}

// hello returns the robot's hello, concatenated in the firmware's order (GetHelloMessage).
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
	if s.talk != nil {
		return fmt.Appendf(nil, `{"type":"hello","version":3,"transport":"udp","features":{%s},%s`+audio, features, font)
	}
	return fmt.Appendf(nil, `{"type":"hello","version":%d,"features":{%s},%s"transport":"websocket",`+audio, s.framing, features, font)
}

// opened does what a robot does first on an open channel: its events, then its action.
func (s *session) opened(now time.Time) error {
	s.enter(Idle)
	s.lastText = now
	if s.r.firmware.events {
		s.tickAt = now.Add(tick)
	}
	if after := s.r.o.StopReadingAfter; after > 0 {
		s.deafAt = now.Add(after)
	}
	if s.how.replaces {
		s.idleAt = now.Add(mainLoopLag)
	}
	if err := s.sendEvents(now, s.firstEvents()); err != nil {
		return err
	}
	switch s.how.do {
	case doWake:
		return s.wakeUp(now, s.how.phrase)
	case doPress:
		s.mode = xiaozhi.Manual
		return s.listen(now)
	case doTap:
		s.mode = s.usual
		return s.listen(now)
	}
	return nil
}

// firstEvents returns the events that are sent before everything else.
func (s *session) firstEvents() []xiaozhi.Event {
	if !s.r.firmware.events {
		return s.how.events
	}
	events := []xiaozhi.Event{{Name: "state_changed", Data: []byte(`{"state":"idle"}`)}}
	phrase := s.how.phrase
	if s.how.do == doWake && phrase != "face" && phrase != "head_pet_hold" { // these have their own events
		events = append(events, xiaozhi.Event{Name: "wake_word_detected",
			Data: fmt.Appendf(nil, `{"phrase":%s,"direction":"centre","balance":0.02,"energy":910000000,"state":3}`, quote(phrase))})
	}
	return append(events, s.how.events...)
}

func (s *session) sendEvents(now time.Time, events []xiaozhi.Event) error {
	for _, e := range events {
		if err := s.send(now, e); err != nil {
			return err
		}
		s.r.o.Observe(Sensed{Event: e})
	}
	return nil
}

// wakeUp sends the two seconds before the wake word at once, reports it, and listens.
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
	// The firmware concatenates it, without escapes.
	if err := s.sendText(now, fmt.Appendf(nil, `{"session_id":"%s","type":"listen","state":"detect","text":"%s"}`, s.id, phrase)); err != nil {
		return err
	}
	s.mode = s.usual
	return s.listen(now)
}
