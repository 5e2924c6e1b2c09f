package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/voice"
)

// ffmpeg is a program in ffmpeg's place: the files that it decodes are PCM already.
const ffmpeg = `#!/bin/sh
for a; do [ "$next" ] && file=${a#file:}; [ "$a" = -i ] && next=1 || next=; done
exec cat "$file"
`

// putFFmpeg puts a program into the place of ffmpeg.
func putFFmpeg(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "ffmpeg"), []byte(ffmpeg), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// musicConfig returns a configuration with music: ten minutes of jazz, and a file that is missing.
func musicConfig(t *testing.T) config.Config {
	c := appliancetest.Config()
	path := filepath.Join(t.TempDir(), "jazz.mp3")
	must.Succeed(t, os.WriteFile(path, make([]byte, 2*voice.SpeakerRate*600), 0o644))
	c.Music = []config.Music{{Name: "smooth jazz", Source: path}, {Name: "news", Source: path + ".gone"}}
	return c
}

// playing returns what the appliance says that the robot plays.
func playing(h *running) string {
	var d struct{ Music string }
	h.Admin(http.MethodGet, "/api/v1/devices/a0b1c2d3e4f5", "", &d)
	return d.Music
}

// TestARobotPlaysMusic checks music by command and over the API, and what each error says.
func TestARobotPlaysMusic(t *testing.T) {
	putFFmpeg(t)
	h := open(t, musicConfig(t), t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	h.command("robot play a0b1c2d3e4f5", 0, "smooth jazz\nnews\n")
	h.command("robot play a0b1c2d3e4f5 smooth jazz", 1, "the robot's channel is closed")
	r := h.StartCompanion(simrobot.Options{Firmware: "dotty", Events: appliancetest.Idle()})
	h.WaitForTools(r.ID())
	h.command("robot play a0b1c2d3e4f5 rock", 1, `there is no music "rock"; there is smooth jazz, news`)
	h.command("robot play a0b1c2d3e4f5 news", 1, "news cannot be played: there is no", "correct its path in music")
	h.command("robot play a0b1c2d3e4f5 smooth jazz", 0, "smooth jazz")
	h.Eventually("it plays", func() bool { return playing(h) == "smooth jazz" })
	h.Await(r, "it speaks", appliancetest.Entered(simrobot.Speaking))
	h.command("robot say a0b1c2d3e4f5 dinner is ready", 0)
	h.Await(r, "it says so", appliancetest.Shows("dinner is ready"))
	if playing(h) != "smooth jazz" {
		t.Error("the music does not go on afterwards")
	}
	h.command("robot play a0b1c2d3e4f5 off", 0, "the music is off")
	h.Eventually("it is off", func() bool { return playing(h) == "" })
	if status, body := h.Owner(http.MethodPost, "/api/v1/devices/a0b1c2d3e4f5/music", ""); status != http.StatusAccepted {
		t.Errorf("without a name: %d %s", status, body)
	}
	h.Eventually("it plays the first", func() bool { return playing(h) == "smooth jazz" })
	if status, body := h.Owner(http.MethodDelete, "/api/v1/devices/a0b1c2d3e4f5/music", ""); status != http.StatusAccepted {
		t.Errorf("%d %s", status, body)
	}
}

// TestMusicIsPlayedByVoice checks that the embedded recognizer hears sentences about music, and that a language model
// has the tool for it.
func TestMusicIsPlayedByVoice(t *testing.T) {
	putFFmpeg(t)
	for _, said := range []string{"play smooth jazz", "turn on the radio"} {
		h := open(t, musicConfig(t), t.TempDir())
		h.Adopt("A0:B1:C2:D3:E4:F5")
		r := h.StartCompanion(simrobot.Options{Stay: true, Say: appliancetest.Sentences(t, said)})
		h.Await(r, "it answers "+said, appliancetest.Shows("Here is smooth jazz."))
		h.Eventually("it plays", func() bool { return playing(h) == "smooth jazz" })
		h.Stop()
	}
	p := appliancetest.NewPeers(t)
	p.Calls = `[{"index":0,"id":"c1","type":"function","function":{"name":"play_music","arguments":"{\"name\":\"smooth jazz\"}"}}]`
	c := musicConfig(t)
	p.Use(&c)
	h := open(t, c, t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	h.StartCompanion(simrobot.Options{Stay: true, Say: appliancetest.Sentences(t, "what time is it")})
	h.Eventually("the model plays music", func() bool { return playing(h) == "smooth jazz" })
}
