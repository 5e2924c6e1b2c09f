package simrobot

import (
	"fmt"
	"strings"
	"time"
)

// receive does the work of the firmware's network task: it handles hello at once, queues
// sound, and leaves other texts to the main loop. welcomed reports whether the message was a
// valid hello.
func (s *session) receive(a arrival) (welcomed bool, err error) {
	if a.err != nil {
		return false, &closedError{a.err}
	}
	s.r.record(a.at, "server", a.isText, a.data)
	s.lastIn, s.stale = a.at, false
	if !a.isText {
		return false, s.queuePacket(a)
	}
	s.lastText = a.at
	o := parseObject(a.data)
	if kind, _ := o.text("type"); kind == "hello" {
		return s.handleHello(o)
	}
	s.inbox = append(s.inbox, a)
	return false, nil
}

// handleHello handles the server's hello. The server may send more than one.
func (s *session) handleHello(o object) (welcomed bool, err error) {
	transport, isString := o.text("transport")
	switch {
	case !isString:
		return false, crash("hello without a transport, which it dereferences")
	case transport != s.transport():
		s.ignore("hello for transport %q", transport)
		return false, nil
	}
	if id, ok := o.text("session_id"); ok {
		s.id = id
	}
	params := parseObject(o.lookup("audio_params"))
	if n, ok := asNumber(params.lookup("sample_rate")); ok {
		s.r.audio.SampleRate = n
	}
	if n, ok := asNumber(params.lookup("frame_duration")); ok {
		s.r.audio.FrameDuration = n
	}
	if s.mqtt != nil {
		if err := s.mqtt.openSound(parseObject(o.lookup("udp"))); err != nil {
			s.ignore("%s", err)
			return false, nil
		}
	}
	return true, s.play.open(s.r.audio)
}

// transport returns the name of the transport in hello messages.
func (s *session) transport() string {
	if s.mqtt != nil {
		return "udp"
	}
	return "websocket"
}

// queuePacket queues a packet if the robot is speaking. Otherwise it drops the packet, and counts it
// as late or ignored. A frame with a wrong size in its header is a Crash, because the firmware does not
// check the size.
func (s *session) queuePacket(a arrival) error {
	stats := &s.r.stats
	stats.Received++
	audio, err := s.framing.Parse(a.data)
	if err != nil {
		return crash("%v; the robot trusts that size and reads past its buffer", err)
	}
	switch {
	case s.state == Speaking:
	case s.stoppedEarly:
		stats.Late++
		return nil
	default:
		stats.Ignored++
		return nil
	}
	if d, ok := s.gaps.gap(a.at, s.play.frame); ok {
		stats.Gaps = append(stats.Gaps, d)
	}
	s.recordAnswerPacket(a.at)
	s.play.push(a.at, audio)
	return nil
}

// handleText handles a text as the firmware's main loop does.
func (s *session) handleText(now time.Time, text []byte) error {
	o := parseObject(text)
	kind, isString := o.text("type")
	if !isString {
		s.ignore("a message without a type: %.100s", text)
		return nil
	}
	switch kind {
	case "tts":
		return s.handleTTS(now, o)
	case "mcp":
		if payload := parseObject(o.lookup("payload")); payload != nil {
			return s.handleRPC(now, payload)
		}
		s.ignore("mcp without a payload object")
	case "stt":
		if text, ok := o.text("text"); ok {
			s.r.person.turn.Transcript = text
			s.r.o.Observe(Transcript{Text: text})
		}
	case "llm":
		if emotion, ok := o.text("emotion"); ok {
			emoji, _ := o.text("text")
			s.r.o.Observe(EmotionShown{Emotion: emotion, Emoji: emoji, Face: s.r.firmware.face(emotion)})
		}
	case "system":
		if command, _ := o.text("command"); command != "reboot" {
			s.ignore("system command %q", command)
			return nil
		}
		s.reboot(now)
	case "alert":
		s.handleAlert(o)
	case "notify":
		s.startNotification(now, o)
	case "goodbye":
		return s.handleGoodbye(o)
	default:
		s.ignore("unknown message type %q", kind)
	}
	return nil
}

// handleTTS handles a tts message: the server starts or stops speaking, or begins a sentence.
func (s *session) handleTTS(now time.Time, o object) error {
	state, isString := o.text("state")
	if !isString {
		if !s.r.firmware.strict {
			return crash("tts without a state, which firmware %s passes to strcmp", s.r.firmware.name)
		}
		s.ignore("tts without a state")
		return nil
	}
	switch state {
	case "start":
		if !s.r.firmware.lazy {
			s.startSpeaking(now)
		}
	case "sentence_start":
		text, isString := o.text("text")
		if !isString {
			s.ignore("sentence_start without a text")
			return nil
		}
		if s.r.firmware.lazy {
			s.startSpeaking(now)
		}
		if p := &s.r.person; p.doing == waiting && !p.overlap && text != "" {
			p.turn.Answer = append(p.turn.Answer, text)
		}
		s.r.o.Observe(SentenceShown{Text: text})
	case "stop":
		s.recordStop(now)
		return s.stopSpeaking(now)
	}
	return nil
}

// handleGoodbye handles the server's goodbye, which closes a channel with MQTT. Like the firmware the
// robot then sends no goodbye. It ignores a goodbye with another session ID, and one on a WebSocket.
func (s *session) handleGoodbye(o object) error {
	if id, ok := o.text("session_id"); s.mqtt != nil && ok && id == s.id {
		s.mqtt.bye = nil
		return &closedError{errGoodbye}
	}
	s.ignore("goodbye to another session")
	return nil
}

// reboot schedules a reboot in one second, as the firmware does.
func (s *session) reboot(now time.Time) { s.rebootAt = now.Add(time.Second) }

// handleAlert handles an alert.
func (s *session) handleAlert(o object) {
	status, ok1 := o.text("status")
	message, ok2 := o.text("message")
	emotion, ok3 := o.text("emotion")
	if !ok1 || !ok2 || !ok3 {
		s.ignore("alert without status, message or emotion")
		return
	}
	s.r.o.Observe(Alerted{Status: status, Message: message, Emotion: emotion})
}

// ignore reports a message that the firmware only logs.
func (s *session) ignore(format string, a ...any) {
	s.r.o.Observe(MessageIgnored{Why: strings.TrimSpace(fmt.Sprintf(format, a...))})
}
