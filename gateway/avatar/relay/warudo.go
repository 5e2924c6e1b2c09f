package relay

import (
	"context"

	"perch/gateway/avatar/feed"
)

// warudo is Warudo. Its WebSocket passes {"action": name, "data": any} to the node "On
// WebSocket Action" of a blueprint that the user makes, and answers nothing. The action names
// are Perch's: stackchan.state, .emotion, .gesture, .mood, .say and .notify.
type warudo struct{ *programConfig }

func warudoKind() kind {
	return kind{
		Kind: Kind{Name: "warudo", Title: "Warudo", URL: "ws://127.0.0.1:19190",
			Shows: []string{"states", "faces", "gestures", "moods", "speech", "notifications", "questions", "mouth"}},
		schemes: []string{"ws", "wss"},
		mute:    true,
		faces:   "vrm",
		words: map[string]string{
			"action.state": "stackchan.state", "action.emotion": "stackchan.emotion", "action.gesture": "stackchan.gesture",
			"action.mood": "stackchan.mood", "action.say": "stackchan.say", "action.notify": "stackchan.notify", "action.mouth": "stackchan.mouth",
		},
		make: func(o *programConfig) (program, error) { return warudo{o}, nil },
	}
}

func (p warudo) open(ctx context.Context, _ func(error)) (link, error) {
	w, err := dial(ctx, p.URL, func([]byte) string { return "" })
	if err != nil {
		return nil, err
	}
	return &warudoLink{wire: w, words: p.words}, nil
}

type warudoLink struct {
	*wire
	words words
}

// warudoAction is a message to a blueprint.
type warudoAction struct {
	Action string `json:"action"`
	Data   any    `json:"data"`
}

// sendAction sends an action, unless words leave it or its data out.
func (l *warudoLink) sendAction(key string, data any) error {
	name := l.words.of("action." + key)
	if name == "" || data == "" {
		return nil
	}
	return l.send(warudoAction{name, data})
}

func (l *warudoLink) update(_ context.Context, is, was Scene) error {
	for _, one := range []struct {
		key  string
		news bool
		data string
	}{
		{"state", is.State != was.State, l.words.orName("state", string(is.State))},
		{"emotion", is.Expression() != was.Expression(), l.words.face(is.Expression())},
		{"mood", is.Mood.Dominant != was.Mood.Dominant, l.words.orName("feeling", is.Mood.Dominant)},
		{"say", is.Said != was.Said, is.Said},
		{"notify", is.Question != was.Question, is.Question},
	} {
		if !one.news {
			continue
		}
		if err := l.sendAction(one.key, one.data); err != nil {
			return err
		}
	}
	return nil
}

func (l *warudoLink) frame(_ context.Context, f *feed.Frame, _ Scene) error {
	switch b := f.Body.(type) {
	case feed.Gesture:
		return l.sendAction("gesture", l.words.orName("gesture", b.Name))
	case feed.Notice:
		if l.words.of("action.notify") == "" {
			return errNotShown
		}
		if b.Question == "" {
			return l.sendAction("notify", b.Text)
		}
	}
	return nil
}

func (l *warudoLink) setMouth(_ context.Context, level float64) error {
	return l.sendAction("mouth", level)
}
