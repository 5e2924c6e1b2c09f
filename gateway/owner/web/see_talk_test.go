package web_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"perch/cmd/perch/appliancetest"
	"perch/must"
	"perch/voice"
)

// recorded makes a WAV file with two seconds of silence, in which the robot opens its microphone, a sentence, and twenty
// seconds of silence, by which the end of the sentence is detected. It returns the path of the file.
func recorded(t *testing.T, text string) string {
	t.Helper()
	const rate = 16000
	said := appliancetest.Sentences(t, text)[0].PCM
	pcm := append(append(make([]int16, 2*rate), said...), make([]int16, 20*rate)...)
	name := filepath.Join(t.TempDir(), "microphone.wav")
	f, err := os.Create(name)
	must.Succeed(t, err)
	must.Succeed(t, voice.WriteWAV(f, rate, pcm))
	must.Succeed(t, f.Close())
	return name
}

// boots opens the robot in the page, and waits until the robot is connected to a server.
func (b *tab) boots(url string) {
	b.t.Helper()
	b.open(url)
	b.until(`see.one("[data-test=status]")?.dataset.state === "idle"`)
}

// answers waits until the robot has heard a text, called a tool and said a text, and checks the sound that was played.
func (b *tab) answers(heard, tool, said string) {
	b.t.Helper()
	b.says("[data-test=said-you]", heard)
	b.says("[data-test=tool]", tool)
	b.says("[data-test=said-robot]", said)
	b.until(`see.one("[data-test=status]").dataset.state !== "speaking" && Number(see.one("[data-test=played]").dataset.packets) > 5`)
	var played [4]float64
	for i, what := range []string{"packets", "rms", "dropped", "bad"} {
		n, err := strconv.ParseFloat(value[string](b, `see.one("[data-test=played]").dataset.`+what), 64)
		must.Succeed(b.t, err)
		played[i] = n
	}
	// The RMS of a sine wave at full volume is 0.7.
	if played[1] < 0.01 || played[1] > 0.7 || played[2]+played[3] > 0 {
		b.t.Errorf("it has played %.0f packets with an RMS of %.4f, %.0f were dropped and %.0f bad", played[0], played[1], played[2], played[3])
	}
	b.t.Logf("%q: %.0f packets, RMS %.4f", heard, played[0], played[1])
}

// TestTalkWithTheRobotInThePage checks that speech from the browser's microphone is recognized word for word and answered
// with speech and a call of a tool.
func TestTalkWithTheRobotInThePage(t *testing.T) {
	t.Parallel()
	const sentence = "set the volume to forty percent"
	c := startChromium(t, chromedp.Flag("use-fake-ui-for-media-stream", true), chromedp.Flag("use-fake-device-for-media-stream", true),
		chromedp.Flag("use-file-for-fake-audio-capture", recorded(t, sentence)+"%noloop"),
		chromedp.Flag("autoplay-policy", "no-user-gesture-required"))
	h := startAppliance(t)
	b := c.browse(t)
	b.boots(h.LocalURL() + "robot")
	if value[bool](b, `see.has("[data-test=deaf]")`) {
		t.Fatal("it does not hear on an address of this machine")
	}
	b.click("[data-test=talk]")
	b.answers(sentence, "self.audio_speaker.set_volume", "40 percent")
	if volume := value[float64](b, `see.one("p-web-robot").robot.body.volume`); volume != 40 {
		t.Errorf("its volume is %v", volume)
	}
	if robots := h.Robots.List(); len(robots) != 1 || !robots[0].Adopted() {
		t.Errorf("the appliance knows %+v", robots)
	}
}

// TestWriteToTheRobotInThePage checks the robot in the page at a plain http address of another machine. The browser has no
// microphone there, the page says so, and the robot answers a written text.
func TestWriteToTheRobotInThePage(t *testing.T) {
	t.Parallel()
	c := startChromium(t, chromedp.Flag("host-resolver-rules", "MAP perch.local 127.0.0.1"),
		chromedp.Flag("autoplay-policy", "no-user-gesture-required"))
	h := startAppliance(t)
	at := strings.Replace(h.URL("/"), "127.0.0.1", "perch.local", 1)
	b := c.browse(t)
	b.open(at)
	b.fill("#token", h.OwnerToken())
	b.click("[data-test=enter]")
	b.sees("nav")
	b.boots(at + "robot")
	if value[bool](b, "window.isSecureContext") {
		t.Fatal("the browser takes it for a secure context")
	}
	b.says("[data-test=deaf]", "https")
	b.fill("[data-test=write]", "look left")
	b.click("[data-test=send]")
	b.answers("look left", "self.robot.set_head_angles", "left")
	if yaw := value[float64](b, `see.one("[data-test=face]").yaw`); yaw >= 0 {
		t.Errorf("its head is turned by %v degrees", yaw)
	}
	b.axe("the robot after a talk")
}
