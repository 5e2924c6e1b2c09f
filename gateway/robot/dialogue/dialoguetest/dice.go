// Package dialoguetest makes inputs of package dialogue from the bytes of a fuzz test.
package dialoguetest

import (
	"context"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/gateway/robot/dialogue"
	"perch/voice"
)

// Dice chooses inputs by the bytes of a fuzz test.
type Dice struct {
	Bytes []byte               // remaining bytes
	asked []*dialogue.Question // questions that Command has returned so far
}

// Left reports whether any bytes are left.
func (d *Dice) Left() bool { return len(d.Bytes) > 0 }

// Roll returns a number from 0 to n-1, chosen by the next byte, or 0 if no bytes are left.
func (d *Dice) Roll(n int) int {
	if len(d.Bytes) == 0 {
		return 0
	}
	b := d.Bytes[0]
	d.Bytes = d.Bytes[1:]
	return int(b) % n
}

// Mode returns a listening mode.
func (d *Dice) Mode() xiaozhi.Mode {
	return []xiaozhi.Mode{xiaozhi.Auto, xiaozhi.Manual, xiaozhi.Realtime}[d.Roll(3)]
}

// FromRobot returns a message that a robot may send.
func (d *Dice) FromRobot() xiaozhi.FromRobot {
	switch d.Roll(9) {
	case 0:
		return xiaozhi.Hello{Features: xiaozhi.Features{MCP: d.Roll(2) == 1}}
	case 1, 2:
		return xiaozhi.ListenStart{Mode: d.Mode()}
	case 3:
		return xiaozhi.ListenStop{}
	case 4:
		kind := d.Roll(6)
		return xiaozhi.ListenDetect{Text: []string{"hi", "face", ""}[kind%3], Typed: kind > 2}
	case 5:
		return xiaozhi.Abort{}
	case 6:
		return xiaozhi.Event{Name: []string{"face_detected", "head_pet_started"}[d.Roll(2)], Data: []byte("{}")}
	case 7:
		return xiaozhi.FromMCP{Payload: []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)}
	}
	return xiaozhi.UnknownFromRobot{Type: "x"}
}

// Command returns an input of the appliance. A question expires less than 40 s after now.
func (d *Dice) Command(now time.Time) dialogue.Input {
	switch d.Roll(15) {
	case 0:
		return dialogue.Announce{Announcement: dialogue.Announcement{Text: "a"}}
	case 1:
		return dialogue.Announce{Announcement: dialogue.Announcement{Text: "b", Notice: "n", Urgent: true}}
	case 2:
		return dialogue.ShowAlert{Notice: "s"}
	case 3:
		return dialogue.InjectText{Text: "hello"}
	case 4:
		return dialogue.Abort{}
	case 5:
		return dialogue.HoldChannel{Until: time.Unix(int64(d.Roll(256)), 0)}
	case 6:
		return dialogue.ShowEmotion{Emotion: agent.Neutral}
	case 7:
		return dialogue.DecideQuestion{ID: "q", Allow: d.Roll(2) == 0}
	case 8:
		return dialogue.PlaySound{Sound: &dialogue.Sound{Name: "s", PCM: make([]int16, 3*voice.SpeakerFrame)}, Answer: make(chan error, 1)}
	case 13:
		return dialogue.PlayMusic{Sound: &dialogue.Sound{Name: "m", Music: song{}}, Answer: make(chan error, 1)}
	case 14:
		return dialogue.StopMusic{}
	case 9, 10:
		until := now.Add(time.Duration(d.Roll(40)) * time.Second)
		d.asked = append(d.asked, &dialogue.Question{Question: agent.Question{ID: "q", Text: "may we?", Asked: now, Until: until}, Ended: make(chan dialogue.Ending, 1)})
		return dialogue.Ask{Question: d.asked[len(d.asked)-1]}
	case 11:
		if len(d.asked) > 0 {
			return dialogue.Withdraw{Question: d.asked[d.Roll(len(d.asked))]}
		}
	}
	return dialogue.Reboot{}
}

// song is music of 3 s.
type song struct{}

// Play implements dialogue.Music.
func (song) Play(_ context.Context, out func([]int16) error) error {
	return out(make([]int16, 50*voice.SpeakerFrame))
}
