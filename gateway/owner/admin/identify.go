package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"perch/agent"
	"perch/device"
)

// How a robot shows which one it is. Its main loop carries out one call after the
// other, so that it blinks no faster.
const (
	blinks         = 3
	blinkFor       = 300 * time.Millisecond
	nodBy          = 15 // degrees
	nodSpeed       = 400
	identifyWithin = 15 * time.Second
	undoWithin     = 2 * time.Second // to turn the lights off and the head back
	phraseHere     = "here"          // names the phrase that it says
)

// identify has a robot show which one it is: by a message with its sound, by its voice if its channel is open, and by its
// lights and head. A robot that cannot be reached only shows the message, when it next connects.
func (a *API) identify(ctx context.Context, r device.Robot) (Taken, error) {
	face, words := agent.SplitEmotion(a.o.Phrase(r.ID, phraseHere))
	queued, err := a.o.Talk.Alert(ctx, r.ID, cmp.Or(a.o.Robots.Settings(r.ID).Name, "Perch"), words, face.On(r.Board).Name)
	if err != nil || queued {
		return Taken{err == nil, queued}, err
	}
	if _, busy := a.identifying.LoadOrStore(r.ID, true); busy {
		return Taken{OK: true}, nil
	}
	defer a.identifying.Delete(r.ID)
	if a.o.Board.Robot(r.ID).Talking {
		_, _ = a.o.Talk.Speak(ctx, r.ID, a.o.Phrase(r.ID, phraseHere)) // the message shows already which it is
	}
	ctx, cancel := context.WithTimeout(ctx, identifyWithin)
	defer cancel()
	a.blink(ctx, r.ID)
	return Taken{OK: true}, nil
}

// motion is a call that changes a robot's lights or head, and the call that undoes it.
type motion struct {
	tool     device.Tool
	do, undo map[string]any
}

// blink blinks with a robot's lights and nods, as far as it can. In the end the lights are off, since their
// colour cannot be read, and the head is where it was.
func (a *API) blink(ctx context.Context, id device.ID) {
	motions := a.motions(ctx, id)
	if len(motions) == 0 {
		return
	}
	move := func(ctx context.Context, undo bool) {
		for _, m := range motions {
			arguments := m.do
			if undo {
				arguments = m.undo
			}
			if fitted, err := m.tool.Fit(arguments); err == nil {
				_, _ = a.o.Talk.Call(ctx, id, m.tool.Name, fitted) // the message shows already which it is
			}
		}
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
		defer cancel()
		move(ctx, true)
	}()
	for n := range 2 * blinks {
		move(ctx, n%2 == 1)
		select {
		case <-time.After(blinkFor):
		case <-ctx.Done():
			return
		}
	}
}

// motions returns the motions of a robot's lights and head. A head whose angle cannot be read is left out: it could
// not be put back.
func (a *API) motions(ctx context.Context, id device.ID) (list []motion) {
	tools := a.o.Talk.Tools(id)
	if lights, found := device.FindLights(tools); found {
		list = append(list, motion{lights.Tool, lights.Shine([3]int{255, 255, 255}), lights.Shine([3]int{})})
	}
	head, turns := device.FindHead(tools)
	angles, readable := device.FindAngles(tools)
	if !turns || !readable || head.Arguments[1] == "" {
		return list
	}
	answer, err := a.o.Talk.Call(ctx, id, angles.Name, map[string]any{})
	var at struct{ Pitch *float64 }
	if err != nil || json.Unmarshal([]byte(answer.Text), &at) != nil || at.Pitch == nil {
		return list
	}
	tilt := func(pitch int) map[string]any {
		arguments := map[string]any{head.Arguments[1]: pitch, head.Arguments[0]: device.KeepHeadAxis}
		if speed := head.Integer("speed", "velocity"); speed != "" {
			arguments[speed] = nodSpeed
		}
		return arguments
	}
	pitch := min(max(int(*at.Pitch), device.MinHeadPitch), device.MaxHeadPitch-nodBy)
	return append(list, motion{head.Tool, tilt(pitch + nodBy), tilt(pitch)})
}
