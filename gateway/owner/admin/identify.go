package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"perch/agent"
	"perch/device"
)

// Parameters of identifying a robot. A robot executes one tool call after the other and cannot blink faster than this.
const (
	blinks          = 3
	blinkInterval   = 300 * time.Millisecond
	nodDegrees      = 15
	nodSpeed        = 400 // in the firmware's unit
	identifyTimeout = 15 * time.Second
	undoTimeout     = 2 * time.Second // for turning the lights off and the head back
	phraseHere      = "here"          // name of the phrase that the robot speaks
)

// identify makes a robot show which one it is: by a message on its screen, by its lights and head, and by its voice
// if its channel is open. A robot that is not connected only shows the message, when it connects next.
func (a *API) identify(ctx context.Context, r device.Robot) (Accepted, error) {
	face, words := agent.SplitEmotion(a.o.Phrase(r.ID, phraseHere))
	queued, err := a.o.Talk.Alert(ctx, r.ID, cmp.Or(a.o.Robots.Settings(r.ID).Name, "Perch"), words, face.On(r.Board).Name)
	if err != nil || queued {
		return Accepted{err == nil, queued}, err
	}
	if _, busy := a.identifying.LoadOrStore(r.ID, true); busy {
		return Accepted{OK: true}, nil
	}
	defer a.identifying.Delete(r.ID)
	if a.o.Board.Robot(r.ID).Talking {
		_, _ = a.o.Talk.Speak(ctx, r.ID, a.o.Phrase(r.ID, phraseHere)) // an error is ignored, since the message is shown already
	}
	ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	a.blink(ctx, r.ID)
	return Accepted{OK: true}, nil
}

// motion is a tool call that changes the lights or the head of a robot, and the call that undoes the change.
type motion struct {
	tool     device.Tool
	do, undo map[string]any // arguments of the two calls
}

// blink makes a robot blink with its lights and nod, if it has the tools for that. At the end it turns the head back
// and the lights off, because the previous colour of the lights cannot be read.
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
				_, _ = a.o.Talk.Call(ctx, id, m.tool.Name, fitted) // an error is ignored, since the message is shown already
			}
		}
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()
		move(ctx, true)
	}()
	for n := range 2 * blinks {
		move(ctx, n%2 == 1)
		select {
		case <-time.After(blinkInterval):
		case <-ctx.Done():
			return
		}
	}
}

// motions returns the motions for a robot's lights and head. It leaves out a head whose angle cannot be read,
// because the head could not be turned back.
func (a *API) motions(ctx context.Context, id device.ID) (list []motion) {
	tools := a.o.Talk.Tools(id)
	if lights, found := device.FindLights(tools); found {
		list = append(list, motion{lights.Tool, lights.ColourArguments([3]int{255, 255, 255}), lights.ColourArguments([3]int{})})
	}
	head, turns := device.FindHead(tools)
	angles, readable := device.FindAngles(tools)
	if !turns || !readable || head.Arguments[1] == "" {
		return list
	}
	result, err := a.o.Talk.Call(ctx, id, angles.Name, map[string]any{})
	var position struct{ Pitch *float64 }
	if err != nil || json.Unmarshal([]byte(result.Text), &position) != nil || position.Pitch == nil {
		return list
	}
	tilt := func(pitch int) map[string]any {
		arguments := map[string]any{head.Arguments[1]: pitch, head.Arguments[0]: device.KeepHeadAxis}
		if speed := head.Integer("speed", "velocity"); speed != "" {
			arguments[speed] = nodSpeed
		}
		return arguments
	}
	pitch := min(max(int(*position.Pitch), device.MinHeadPitch), device.MaxHeadPitch-nodDegrees)
	return append(list, motion{head.Tool, tilt(pitch + nodDegrees), tilt(pitch)})
}
