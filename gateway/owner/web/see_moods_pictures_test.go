package web_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/page"

	"perch/agent/mood"
	"perch/event"
	"perch/must"
)

// TestMoodPictures makes the pictures of the moods in the folder that PERCH_SCREENSHOTS names (see TestPictures).
func TestMoodPictures(t *testing.T) {
	to := os.Getenv("PERCH_SCREENSHOTS")
	if to == "" {
		t.Skip("PERCH_SCREENSHOTS names no folder for them")
	}
	c := startChromium(t)
	h := startAppliance(t, kitchenMAC)
	b := c.visit(t, h, "face?robot="+kitchen+"&background=white")
	b.at(320, 288)
	b.sees("stack-chan-face")
	for _, name := range []string{"neutral", "concern", "celebration", "patience", "curiosity", "empathy", "uncertain"} {
		m := felt(t, name)
		// Sets the mood in the face in the same way as an event does.
		value[bool](b, `(() => { const f = see.one("stack-chan-face"), m = `+encoded(t, m)+`;
			f.state = "idle"; f.emotion = "neutral"; f.feels = { dominant: m.dominant, morphs: m.morphs, ...m.head }; return true; })()`)
		value[bool](b, `new Promise((r) => setTimeout(() => r(true), 1200))`)
		shot := call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng})
		must.Succeed(t, os.WriteFile(filepath.Join(to, "mood-"+name+".png"), shot.Data, 0o644))
	}
}

// encoded returns a mood in JSON.
func encoded(t *testing.T, m event.Mood) string {
	t.Helper()
	text, err := json.Marshal(m)
	must.Succeed(t, err)
	return string(text)
}

// felt returns the mood after two seconds of the named feeling.
func felt(t *testing.T, name string) event.Mood {
	t.Helper()
	var s mood.State
	for range 20 {
		happened, _ := mood.Of(event.Emote{Trigger: name, Weight: 1}) // neutral has no effect
		s = mood.Step(s, happened, 0.1)
	}
	return s.Mood()
}
