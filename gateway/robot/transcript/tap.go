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

// Tap passes what happens in a session to a recorder, if one is attached. The zero value has no recorder.
// A Tap is safe for concurrent use.
type Tap struct {
	recorder atomic.Pointer[Recorder]

	mu    sync.Mutex
	hello []byte // latest hello of the robot; nil before the first
}

// Attach attaches a recorder, and records the robot's latest hello, which a replay needs. It returns false
// if another recorder is attached.
func (t *Tap) Attach(r *Recorder) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.recorder.CompareAndSwap(nil, r) {
		return false
	}
	if t.hello != nil {
		r.add('<', redact(r.session, t.hello))
	}
	return true
}

// Detach detaches a recorder, if it is attached.
func (t *Tap) Detach(r *Recorder) { t.recorder.CompareAndSwap(r, nil) }

// FromRobot records a message from the robot.
func (t *Tap) FromRobot(text []byte, m xiaozhi.FromRobot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := m.(xiaozhi.Hello); ok {
		t.hello = bytes.Clone(text)
	}
	if r := t.recorder.Load(); r != nil {
		r.add('<', redact(r.session, text))
	}
}

// ToRobot records a message to the robot.
func (t *Tap) ToRobot(text []byte) {
	if r := t.recorder.Load(); r != nil {
		r.add('>', redact(r.session, text))
	}
}

// PacketFromRobot records a packet of sound from the robot, as speech or as quiet.
func (t *Tap) PacketFromRobot(speech bool) {
	if r := t.recorder.Load(); r != nil {
		kind := "quiet"
		if speech {
			kind = "speech"
		}
		r.addPacket('<', kind)
	}
}

// PacketToRobot records a packet of sound to the robot.
func (t *Tap) PacketToRobot() {
	if r := t.recorder.Load(); r != nil {
		r.addPacket('>', "")
	}
}

// Recognized records the output of a recognizer: a string, or nil or "" if the recognizer has understood nothing.
func (t *Tap) Recognized(text any) { t.record("recognizer", text) }

// Called records that a brain calls a tool.
func (t *Tap) Called(name string, arguments map[string]any) {
	t.record("mind call", map[string]any{"name": name, "arguments": arguments})
}

// record records the name of an engine's output or of a command of the appliance, and a value as JSON. A nil
// value is left out.
func (t *Tap) record(name string, v any) {
	if r := t.recorder.Load(); r != nil {
		r.add('!', strings.TrimSpace(name+" "+redact(r.session, encode(v))))
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
	case dialogue.PlayMusic:
		t.record("play", in.Sound.Name)
	case dialogue.StopMusic:
		t.record("stop music", nil)
	case dialogue.Ask:
		q := in.Question
		t.record("ask", map[string]any{"id": q.ID, "text": q.Text, "within": q.Until.Sub(q.Asked).String()})
	case dialogue.Withdraw:
		t.record("withdraw", in.Question.ID)
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

// Reply records a reply of a brain.
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
	case agent.Heard, agent.Sound, agent.Used: // what follows from them is recorded
	default:
		t.record("mind", nil) // the status of a tool, which is recorded as an event too
	}
}
