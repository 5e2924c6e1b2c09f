package appliance_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/must"
	"perch/socket"
)

// avatarMessage has the fields of messages to avatar programs that the tests check.
type avatarMessage struct {
	Type, Text, Audio string
	Volumes           []float64
	Display           struct{ Text string } `json:"display_text"`
	Model             struct{ URL string }  `json:"model_info"`
	Payload           struct{ Text, Role, Emotion string }
}

// converse connects to path at the first address in local, sends messages, and returns the received messages
// up to the first one for which last returns true.
func converse(t *testing.T, h *appliancetest.Appliance, path string, messages []any, last func(avatarMessage) bool) (all []avatarMessage) {
	t.Helper()
	conn := must.Value(socket.Dial(t.Context(), "ws://"+h.Listeners.At("local")[0]+path, socket.Options{MaxMessage: 16 << 20}))(t)
	defer conn.Drop()
	for _, m := range messages {
		text, err := json.Marshal(m)
		if err == nil {
			err = conn.SendText(text)
		}
		must.Succeed(t, err)
	}
	for {
		_, data, err := conn.Receive()
		var m avatarMessage
		if err == nil {
			err = json.Unmarshal(data, &m)
		}
		if err != nil {
			t.Fatalf("after %+v: %v", all, err)
		}
		all = append(all, m)
		if last(m) {
			return all
		}
	}
}

// TestAvatarProgramsAreAnswered checks that Open-LLM-VTuber's client, which sends speech, receives a spoken answer,
// and that aituber-kit, which sends text, receives the answer as text.
func TestAvatarProgramsAreAnswered(t *testing.T) {
	t.Parallel()
	c := appliancetest.Config()
	file := filepath.Join(t.TempDir(), "model.json")
	must.Succeed(t, os.WriteFile(file, []byte(`{"url":"https://models.example/ann.model3.json","emotionMap":{"joy":1}}`), 0o600))
	c.Skins.Model = config.Live2DModel(file)
	h := appliancetest.Start(t, c, t.TempDir())
	question := appliancetest.Sentences(t, "what time is it")[0].PCM
	spoken := []any{}
	for piece := range slices.Chunk(question, 4096) {
		audio := make([]float64, len(piece))
		for i, s := range piece {
			audio[i] = float64(s) / 32768
		}
		spoken = append(spoken, map[string]any{"type": "mic-audio-data", "audio": audio})
	}
	spoken = append(spoken, map[string]any{"type": "mic-audio-end"})
	got := converse(t, h, "/client-ws", spoken, func(m avatarMessage) bool { return m.Type == "backend-synth-complete" })
	understood, said := "", false
	for _, m := range got {
		switch m.Type {
		case "set-model-and-conf":
			if m.Model.URL != "https://models.example/ann.model3.json" {
				t.Errorf("the model is %q", m.Model.URL)
			}
		case "user-input-transcription":
			understood = m.Text
		case "audio":
			said = said || len(m.Audio) > 10_000 && len(m.Volumes) > 10 && m.Display.Text != ""
		}
	}
	if understood != "what time is it" || !said {
		t.Errorf("understood %q, and an answer with sound came: %t", understood, said)
	}
	typed := []any{map[string]any{"version": "2", "id": "m1", "type": "chat.message", "payload": map[string]any{"text": "what time is it"}}}
	got = converse(t, h, "/ws", typed, func(m avatarMessage) bool { return m.Type == "chat.done" })
	if !slices.ContainsFunc(got, func(m avatarMessage) bool {
		return m.Type == "chat.delta" && m.Payload.Role == "assistant" && strings.Contains(m.Payload.Text, ":")
	}) {
		t.Errorf("aituber-kit is told %+v", got)
	}
}
