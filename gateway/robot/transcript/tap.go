package transcript

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/gateway/robot/dialogue"
)

// Tap is where a session can be recorded. Without a recorder it costs next to nothing. Its methods
// may be called from any goroutine.
type Tap struct {
	to atomic.Pointer[Recorder]

	mu    sync.Mutex
	hello []byte // the robot's latest
}

// Attach begins a recording, with the hello that came before it: a replay needs one. It reports
// whether nobody else records.
func (t *Tap) Attach(r *Recorder) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.to.CompareAndSwap(nil, r) {
		return false
	}
	if t.hello != nil {
		r.add('<', redact(r.session, t.hello))
	}
	return true
}

// Detach ends a recording.
func (t *Tap) Detach(r *Recorder) { t.to.CompareAndSwap(r, nil) }

// FromRobot records a message of the robot.
func (t *Tap) FromRobot(text []byte, m xiaozhi.FromRobot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := m.(xiaozhi.Hello); ok {
		t.hello = bytes.Clone(text)
	}
	if r := t.to.Load(); r != nil {
		r.add('<', redact(r.session, text))
	}
}

// ToRobot records a message to the robot.
func (t *Tap) ToRobot(text []byte) {
	if r := t.to.Load(); r != nil {
		r.add('>', redact(r.session, text))
	}
}

// PacketFromRobot records a packet of the robot's sound: speech, or quiet.
func (t *Tap) PacketFromRobot(speech bool) {
	if r := t.to.Load(); r != nil {
		kind := "quiet"
		if speech {
			kind = "speech"
		}
		r.addPacket('<', kind)
	}
}

// PacketToRobot records a packet of our sound.
func (t *Tap) PacketToRobot() {
	if r := t.to.Load(); r != nil {
		r.addPacket('>', "")
	}
}

// Recognized records what a recognizer has understood; nil is nothing.
func (t *Tap) Recognized(text any) { t.record("recognizer", text) }

// Called records a brain's call of a tool.
func (t *Tap) Called(name string, arguments map[string]any) {
	t.record("mind call", map[string]any{"name": name, "arguments": arguments})
}

// record records what an engine or the appliance has done.
func (t *Tap) record(what string, v any) {
	if r := t.to.Load(); r != nil {
		r.add('!', strings.TrimSpace(what+" "+string(encode(v))))
	}
}

// Command records a command of the appliance.
func (t *Tap) Command(in dialogue.Input) {
	switch in := in.(type) {
	case dialogue.Announce:
		t.record("say", map[string]any{"text": in.Text, "notice": in.Notice, "urgent": in.Urgent})
	case dialogue.ShowAlert:
		t.record("show", in.Alert)
	case dialogue.ShowEmotion:
		t.record("feel", in.Emotion)
	case dialogue.InjectText:
		t.record("hear", in.Text)
	case dialogue.Abort:
		t.record("abort", nil)
	case dialogue.PlaySound:
		t.record("play", in.Sound.Name)
	case dialogue.Ask:
		q := in.About
		t.record("ask", map[string]any{"id": q.ID, "text": q.Text, "within": q.Until.Sub(q.Asked).String()})
	case dialogue.Withdraw:
		t.record("withdraw", in.About.ID)
	case dialogue.DecideQuestion:
		t.record("decide", in.Allow)
	case dialogue.Reboot:
		t.record("reboot", nil)
	case dialogue.HoldChannel:
		t.record("hold", nil)
	case dialogue.HangUp:
		t.record("hang_up", in.Why)
	default:
		t.record(fmt.Sprintf("%T", in), nil)
	}
}

// Reply records a brain's reply.
func (t *Tap) Reply(r agent.Reply) {
	switch r := r.(type) {
	case agent.Felt:
		t.record("mind felt", r.Emotion.Name)
	case agent.Say:
		t.record("mind say", r.Text)
	case agent.Cue:
		t.record("mind "+r.Kind, r.Value)
	case agent.Ask:
		t.record("mind ask", r.Text)
	case agent.Done:
		t.record("mind done", r.End)
	default:
		t.record("mind", nil) // the status of a tool, which is an event as well
	}
}
