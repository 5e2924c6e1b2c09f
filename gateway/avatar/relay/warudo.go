package relay

import (
	"context"

	"perch/gateway/avatar/feed"
)

// warudo is Warudo. It passes messages of the form {"action": name, "data": any} from a WebSocket to
// the node "On WebSocket Action" of a blueprint that the user makes, and sends no responses. Perch
// defines the names of the actions, such as stackchan.state.
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

// warudoLink is a connection to Warudo.
type warudoLink struct {
	*wire
	words words
}

// warudoAction is a message to a blueprint.
type warudoAction struct {
	Action string `json:"action"`
	Data   any    `json:"data"`
}

// sendAction sends an action. The word with the key "action."+key is the name of the action. If that
// word or data is empty, sendAction sends nothing.
func (l *warudoLink) sendAction(key string, data any) error {
	name := l.words.get("action." + key)
	if name == "" || data == "" {
		return nil
	}
	return l.send(warudoAction{name, data})
}

func (l *warudoLink) update(_ context.Context, scene, previous Scene) error {
	for _, action := range []struct {
		key     string
		changed bool
		data    string
	}{
		{"state", scene.State != previous.State, l.words.orName("state", string(scene.State))},
		{"emotion", scene.Expression() != previous.Expression(), l.words.face(scene.Expression())},
		{"mood", scene.Mood.Dominant != previous.Mood.Dominant, l.words.orName("feeling", scene.Mood.Dominant)},
		{"say", scene.Said != previous.Said, scene.Said},
		{"notify", scene.Question != previous.Question, scene.Question},
	} {
		if !action.changed {
			continue
		}
		if err := l.sendAction(action.key, action.data); err != nil {
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
		if l.words.get("action.notify") == "" {
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
