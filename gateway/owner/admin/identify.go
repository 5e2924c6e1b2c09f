package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
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
	undoWithin     = 2 * time.Second // the lights are off again, and the head is back
)

// phraseHere is the phrase that a robot is found by.
const phraseHere = "here"

// busy are the keys for which an action is running, at most one each.
type busy[K comparable] struct {
	mu  sync.Mutex
	now map[K]bool
}

// start reports whether the action may start; it may not while one is running.
func (b *busy[K]) start(one K) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now[one] {
		return false
	}
	if b.now == nil {
		b.now = map[K]bool{}
	}
	b.now[one] = true
	return true
}

func (b *busy[K]) finish(one K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.now, one)
}

// identify has a robot show which one it is, with all that it has: a message with its
// sound, its voice where its channel is open, its lights and its head. One that cannot
// be reached shows the message when it next connects, and does no more.
func (d *API) identify(ctx context.Context, r device.Robot) (Taken, error) {
	face, words := agent.SplitEmotion(d.o.Phrase(r.ID, phraseHere))
	queued, err := d.o.Talk.Alert(ctx, r.ID, cmp.Or(d.o.Robots.Settings(r.ID).Name, "Perch"), words, face.On(r.Board).Name)
	if err != nil || queued {
		return Taken{err == nil, queued}, err
	}
	if !d.identifying.start(r.ID) {
		return Taken{OK: true}, nil
	}
	defer d.identifying.finish(r.ID)
	if d.o.Board.Robot(r.ID).Talking {
		// It shows that it is there already: what else it cannot do is no failure.
		_, _ = d.o.Talk.Speak(ctx, r.ID, d.o.Phrase(r.ID, phraseHere))
	}
	ctx, cancel := context.WithTimeout(ctx, identifyWithin)
	defer cancel()
	gestures{ctx, d.o.Talk, r.ID}.identify()
	return Taken{OK: true}, nil
}

// gestures are what a robot's lights and head do, as far as it has them. What fails is
// left out.
type gestures struct {
	ctx   context.Context
	talk  talk
	robot device.ID
}

// identify blinks and nods. Whatever comes between, the lights are off in the end, for
// nobody can ask what they were, and the head is where it was.
func (g gestures) identify() {
	tools := g.talk.Tools(g.robot)
	lights, shines := device.FindLights(tools)
	head, pitch, nods := g.head(tools)
	if !shines && !nods {
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(g.ctx), undoWithin)
		defer cancel()
		undo := gestures{ctx, g.talk, g.robot}
		undo.shine(lights, shines, [3]int{})
		undo.nod(head, nods, pitch)
	}()
	for range blinks {
		g.shine(lights, shines, [3]int{255, 255, 255})
		g.nod(head, nods, pitch+nodBy)
		if !g.pause() {
			return
		}
		g.shine(lights, shines, [3]int{})
		g.nod(head, nods, pitch)
		if !g.pause() {
			return
		}
	}
}

// head is the tool that tilts the head, and how far it is tilted. A head that does not
// say so is left alone: it could not be put back.
func (g gestures) head(tools []device.Tool) (head device.Control, pitch int, nods bool) {
	head, turns := device.FindHead(tools)
	angles, tells := device.FindAngles(tools)
	if !turns || !tells || head.Arguments[1] == "" {
		return head, 0, false
	}
	answer, err := g.talk.Call(g.ctx, g.robot, angles.Name, map[string]any{})
	var at struct{ Pitch *float64 }
	if err != nil || json.Unmarshal([]byte(answer.Text), &at) != nil || at.Pitch == nil {
		return head, 0, false
	}
	return head, min(max(int(*at.Pitch), device.MinHeadPitch), device.MaxHeadPitch-nodBy), true
}

func (g gestures) shine(lights device.Control, has bool, colour [3]int) {
	if has {
		g.call(lights.Tool, lights.Shine(colour))
	}
}

func (g gestures) nod(head device.Control, has bool, pitch int) {
	if !has {
		return
	}
	arguments := map[string]any{head.Arguments[1]: pitch, head.Arguments[0]: device.KeepHeadAxis}
	if speed := head.Integer("speed", "velocity"); speed != "" {
		arguments[speed] = nodSpeed
	}
	g.call(head.Tool, arguments)
}

func (g gestures) call(t device.Tool, arguments map[string]any) {
	if fitted, err := t.Fit(arguments); err == nil {
		_, _ = g.talk.Call(g.ctx, g.robot, t.Name, fitted) // its message has shown that it is there
	}
}

// pause waits, and reports whether there is time left.
func (g gestures) pause() bool {
	select {
	case <-time.After(blinkFor):
		return true
	case <-g.ctx.Done():
		return false
	}
}
