package relay

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"perch/gateway/avatar/feed"
)

// modelLink is the common part of the links to VTube Studio and nizima LIVE: it shows scenes with the
// expressions, hotkeys and parameters of a model.
type modelLink struct {
	api      modelAPI
	warnings warnings    // refused requests; the subject is the kind of request
	changed  atomic.Bool // whether the model has changed since modelAPI.loadModel
	model    vtubeModel
	scene    Scene          // latest scene that was shown
	level    float64        // how far the mouth is open, from 0 to 1
	set      sentParameters // parameters that replace the values of a face tracker
	add      sentParameters // parameters that are combined with the values of a face tracker
}

// modelAPI is the API of VTube Studio or nizima LIVE.
type modelAPI interface {
	// loadModel sets modelLink.model to what the current model can show.
	loadModel(ctx context.Context) error
	// runStep sends the request of a step.
	runStep(ctx context.Context, step vtubeStep) error
	// addValues returns the parameters that the mood of a scene changes.
	addValues(scene Scene) []value
	// sendValues sends values of parameters. The number released tells how many values at the end are for
	// parameters that Perch no longer sets. add tells whether the values are combined with the values of a
	// face tracker.
	sendValues(ctx context.Context, values []value, released int, add bool) error
}

func (l *modelLink) update(ctx context.Context, scene, _ Scene) error {
	steps := l.model.steps(scene, l.scene)
	l.scene = scene
	for _, step := range steps {
		if err := l.api.runStep(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// frame presses the hotkey of a gesture. It also presses the hotkey of a state at once, because the
// next scene may have another state already.
func (l *modelLink) frame(ctx context.Context, f *feed.Frame, scene Scene) error {
	switch b := f.Body.(type) {
	case feed.State:
		_, hotkey := l.model.match("state", string(b.State))
		if hotkey != "" && b.State == scene.State && cmp.Or(string(b.Robot), b.Session) == scene.place() {
			return l.update(ctx, scene, l.scene)
		}
	case feed.Gesture:
		if _, hotkey := l.model.match("gesture", b.Name); hotkey != "" {
			return l.api.runStep(ctx, vtubeStep{"HotkeyTrigger", vtubeTrigger{hotkey}})
		}
	}
	return nil
}

func (l *modelLink) setMouth(ctx context.Context, level float64) error {
	l.level = level
	return l.move(ctx, &l.set, l.model.setValues(l.scene, level), false)
}

func (l *modelLink) refreshEvery() time.Duration { return moveEvery }

// refresh sends the parameters that are due. If the model has changed, it loads the new one first.
func (l *modelLink) refresh(ctx context.Context, scene Scene) error {
	if l.changed.Load() {
		if err := l.api.loadModel(ctx); err != nil {
			return err
		}
		l.warnings.report(l.warnings.summary())
		l.scene = Scene{} // the new model shows nothing yet
		if err := l.update(ctx, scene, l.scene); err != nil {
			return err
		}
	}
	if err := l.move(ctx, &l.set, l.model.setValues(scene, l.level), false); err != nil {
		return err
	}
	return l.move(ctx, &l.add, l.api.addValues(scene), true)
}

// move sends the parameters that are due. h holds the values that were sent last, and values are the current
// values.
func (l *modelLink) move(ctx context.Context, h *sentParameters, values []value, add bool) error {
	due := h.next(values, time.Now())
	if len(due) == 0 {
		return nil
	}
	return l.api.sendValues(ctx, due, len(due)-len(values), add)
}
