package appliance_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/voice/voicevox/voicevoxtest"
)

// TestVOICEVOX checks that an appliance that speaks by VOICEVOX speaks each sentence of a text by a request of its own,
// in the style that suits the face, and that its status names the speaker to credit.
func TestVOICEVOX(t *testing.T) {
	t.Parallel()
	server := voicevoxtest.Start(t)
	// A robot with a name does not ask for one.
	file := fmt.Sprintf("language: ja\nspeech: {synthesizers: [{kind: voicevox, url: %q, voice: 3}]}\nrobots: {each: [{robot: a0b1c2d3e4f5, name: kitchen}]}\n", server.URL)
	c, written := appliancetest.Config(), must.Value(appliancetest.Load(appliancetest.WriteConfig(t, file)))(t)
	c.Language, c.Speech, c.Robots.Each = written.Language, written.Speech, written.Robots.Each
	h := appliancetest.Start(t, c, t.TempDir())
	h.Eventually("the status has the credit", func() bool {
		return strings.HasSuffix(h.Part("synthesizer voicevox").Note, "credit it: VOICEVOX:ずんだもん")
	})
	r := h.StartRobot(simrobot.Options{Stay: true, Forever: true})
	h.Eventually("the channel is open", func() bool { return len(h.Talk.List()) == 1 })
	h.Admin(http.MethodPost, "/api/v1/devices/a0b1c2d3e4f5/say", `{"text":"😢 雨です。傘がありません。"}`, nil)
	want := []string{"POST /audio_query 76 雨です。", "POST /audio_query 76 傘がありません。"}
	var asked []string // without the phrases that are made ahead at the same time
	h.Eventually("both sentences are spoken", func() bool {
		for _, request := range server.Asked() {
			if slices.Contains(want, request) {
				asked = append(asked, request)
			}
		}
		return slices.Equal(asked, want)
	})
	h.Eventually("both sentences are shown", func() bool { return r.HasShown("雨です。") && r.HasShown("傘がありません。") })
}
