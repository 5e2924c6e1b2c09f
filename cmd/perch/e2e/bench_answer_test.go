package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/device/xiaozhi"
	"perch/driver"
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/waittest"
)

// waits returns the times from the end of each utterance, that is the robot's listen stop message, to the first packet
// of sound, and to the utterance's words, if it was recognized.
func waits(t testing.TB, transcript string) (sounds, words []time.Duration) {
	var stopped time.Time
	sounded := true
	for lines := bufio.NewScanner(strings.NewReader(transcript)); lines.Scan(); {
		var l struct {
			At    time.Time
			From  string
			JSON  struct{ Type, State, Text string }
			Bytes *int
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatalf("%v in %s", err, lines.Text())
		}
		switch {
		case l.From == "robot" && l.JSON.Type == "listen" && l.JSON.State == "stop":
			stopped, sounded = l.At, false
		case l.From == "server" && l.JSON.Type == "stt" && l.JSON.Text != "…" && !stopped.IsZero():
			words = append(words, l.At.Sub(stopped))
		case l.From == "server" && l.Bytes != nil && !sounded:
			sounds, sounded = append(sounds, l.At.Sub(stopped)), true
		}
	}
	return sounds, words
}

// writtenConfig writes the engines of a configuration into a file, and returns its path.
func writtenConfig(t testing.TB, c config.Config) string {
	t.Helper()
	entries := func(engines []config.Engine) (all []map[string]any) {
		for _, e := range engines {
			entry := map[string]any{}
			for _, f := range driver.Fields(reflect.ValueOf(e)) {
				entry[f.Key] = f.Value.Interface()
			}
			all = append(all, entry)
		}
		return all
	}
	text, err := yaml.Marshal(map[string]any{"mdns": map[string]any{"enabled": false}, "brain_deep": entries(c.BrainDeep),
		"brains": entries(c.Brains), "speech": map[string]any{"recognizers": entries(c.Speech.Recognizers), "synthesizers": entries(c.Speech.Synthesizers)}})
	must.Succeed(t, err)
	// Remove keys with zero values, which were not set.
	text = regexp.MustCompile(`(?m)^ +\w+: (""|0s?|false|null|\[\]|\{\})\n`).ReplaceAll(text, nil)
	path := filepath.Join(t.TempDir(), "perch.yaml")
	must.Succeed(t, os.WriteFile(path, text, 0o600))
	return path
}

// BenchmarkAnswer measures the time from the end of speech to the first packet of the answer, and how much of this
// time the appliance adds to the time of its engines. The robot reports the end of speech, as with a button. The
// brain answers at once, or sends a word of a long answer every 20 ms.
func BenchmarkAnswer(b *testing.B) {
	say := appliancetest.Sentences(b, "what time is it")
	// The pieces of a language model begin with a space.
	var long []string
	for i, word := range strings.Fields("😊 It is three o'clock. And now " + strings.Repeat("I go on and on ", 20)) {
		if i > 0 {
			word = " " + word
		}
		long = append(long, word)
	}
	for name, c := range map[string]struct {
		words []string
		every time.Duration
	}{
		"at-once":          {[]string{"😊", " It", " is", " three", " o'clock."}, 0},
		"a-word-each-20ms": {long, 20 * time.Millisecond},
	} {
		b.Run(name, func(b *testing.B) {
			p := appliancetest.NewPeers(b)
			p.Words, p.Every = c.words, c.every
			configured := appliancetest.Config()
			p.Use(&configured)
			a := start(b, b.TempDir(), "--config", writtenConfig(b, configured))
			defer a.stop()
			say[0].TapAfter = 500 * time.Millisecond // ends the answer, because only its beginning is measured
			var added, whole []time.Duration
			turn := func() {
				f := &waittest.Buffer{}
				robot, err := simrobot.New(simrobot.Options{OTA: a.ota(), MAC: "A0:B1:C2:D3:E4:F5", Mode: xiaozhi.Manual,
					Say: say, Transcript: f})
				must.Succeed(b, err)
				must.Succeed(b, robot.Run(b.Context()))
				times, _ := waits(b, f.String())
				if len(times) != 1 {
					b.Fatalf("%d answers to one utterance", len(times))
				}
				whole, added = append(whole, times[0]), append(added, times[0]-p.Latency())
			}
			turn() // not measured, because the phrases are synthesized when the first robot checks in
			added, whole = nil, nil
			for b.Loop() {
				turn()
			}
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
			b.ReportMetric(ms(simrobot.Quantile(whole, 0.5)), "ms-end-of-speech-to-sound-p50")
			b.ReportMetric(ms(simrobot.Quantile(added, 0.5)), "ms-over-the-engines-p50")
			b.ReportMetric(ms(simrobot.Quantile(added, 1)), "ms-over-the-engines-max")
		})
	}
}
