package engines

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/must"
	"perch/voice"
)

// BenchmarkPauses compares the silence that depends on the recognized text ("sentences") with a fixed silence
// ("600ms"). It measures the silence before an utterance ends, the utterances that are cut at a pause between two
// words, and the utterances that are transcribed wrongly.
func BenchmarkPauses(b *testing.B) {
	c := config.Default()
	e := must.Value(New(nil, &c, drivers.Brain{}, nil, nil, slog.New(slog.DiscardHandler)))(b)
	b.Cleanup(e.Close)
	rules := map[string]func(string) voice.Ending{
		"600ms":     func(string) voice.Ending { return voice.UnknownEnding },
		"sentences": func(text string) voice.Ending { return e.Ending(text, "en", false) },
	}
	for _, pause := range []time.Duration{0, 200 * time.Millisecond, 350 * time.Millisecond, 500 * time.Millisecond} {
		said := spokenWithPauses(b, pause)
		for _, name := range []string{"600ms", "sentences"} {
			b.Run("pause="+pause.String()+"/rule="+name, func(b *testing.B) {
				for b.Loop() {
					var waits []time.Duration
					cut, wrong := 0, 0
					for text, pcm := range said {
						heard := listenAsASession(b, e.Recognizers, pcm, rules[name])
						waits = append(waits, heard.quiet)
						if heard.utterances != 1 {
							cut++
							b.Logf("%q was cut: %q", text, heard.text)
						} else if heard.text != text {
							wrong++
							b.Logf("%q was understood as %q", text, heard.text)
						}
					}
					slices.Sort(waits)
					b.ReportMetric(float64(len(said)), "sentences")
					b.ReportMetric(float64(cut), "cut")
					b.ReportMetric(float64(wrong), "wrong")
					b.ReportMetric(float64(waits[len(waits)/2].Milliseconds()), "ms-quiet-p50")
					b.ReportMetric(float64(waits[len(waits)*9/10].Milliseconds()), "ms-quiet-p90")
				}
			})
		}
	}
}

// spokenWithPauses returns the sound of commandsSpoken by their texts, each with a pause between two of its
// words.
func spokenWithPauses(b *testing.B, pause time.Duration) map[string][]int16 {
	r := rand.New(rand.NewPCG(7, uint64(pause)))
	said := map[string][]int16{}
	for i, text := range commandsSpoken {
		name := []string{"slt", "rms", "awb"}[i%3]
		words := strings.Fields(text)
		if pause == 0 || len(words) == 1 {
			said[text] = frames(b, asARobotSendsIt(b, name, text))
			continue
		}
		at := 1 + r.IntN(len(words)-1)
		part := func(words []string) []int16 { return frames(b, asARobotSendsIt(b, name, strings.Join(words, " "))) }
		said[text] = slices.Concat(trimmed(part(words[:at]), false, pause), trimmed(part(words[at:]), true, 0))
	}
	return said
}

// frames returns the sound of an utterance.
func frames(b *testing.B, u *voice.Utterance) []int16 {
	pcm := make([]int16, voice.MicRate*15)
	n := 0
	for {
		read := must.Value(u.Read(b.Context(), pcm[n:], n))(b)
		if read == 0 {
			return pcm[:n]
		}
		n += read
	}
}

// trimmed returns speech without the silence before its beginning if beginning is true, and otherwise with a
// silence of the duration quiet after its end.
func trimmed(pcm []int16, beginning bool, quiet time.Duration) []int16 {
	loud := func(s int16) bool { return s > 400 || s < -400 }
	if beginning {
		return pcm[max(0, slices.IndexFunc(pcm, loud)-voice.MicRate/50):]
	}
	end := len(pcm)
	for end > 0 && !loud(pcm[end-1]) {
		end--
	}
	return pcm[:min(len(pcm), end+int(quiet/time.Millisecond)*voice.MicRate/1000)]
}

// listened is the result of listening to one sentence.
type listened struct {
	utterances int           // number of utterances
	text       string        // transcript of the first utterance
	quiet      time.Duration // silence that ended the first utterance
}

// listenAsASession passes sound packet by packet to an end-pointer and the recognizer, as a robot's session
// does. After each packet it waits until the recognizer has caught up.
func listenAsASession(b *testing.B, recognizer voice.Recognizer, pcm []int16, ending func(string) voice.Ending) (got listened) {
	pointer := must.Value(voice.NewEndPointer(0))(b)
	pcm = append(slices.Clone(pcm), make([]int16, voice.MicRate)...)
	var u *voice.Utterance
	result := make(chan string, 1)
	for at := 0; at+voice.MicFrame <= len(pcm); at += voice.MicFrame {
		packet := pcm[at : at+voice.MicFrame]
		if u != nil {
			u.Write(packet)
			if got.utterances == 1 {
				keepUp(u)
			}
		}
		if u != nil {
			pointer.Expect(u, ending)
		}
		switch pointer.Feed(packet) {
		case voice.SpeechBegan:
			u = voice.NewUtterance()
			u.Write(pcm[max(0, at+voice.MicFrame-voice.MicRate/2) : at+voice.MicFrame])
			if got.utterances++; got.utterances > 1 {
				continue
			}
			go func(u *voice.Utterance) {
				text, err := recognizer.Recognize(b.Context(), u, voice.Options{Language: "en"})
				if err != nil {
					b.Error(err)
				}
				result <- text.Text
			}(u)
		case voice.SpeechEnded:
			if got.utterances == 1 {
				got.quiet = pointer.Quiet()
				u.Finish()
				got.text = <-result
			}
			u = nil
		}
	}
	return got
}

// keepUp waits until the recognizer has processed the sound of u, at most 200 ms. It does not wait during the
// first second of sound, for which the recognizer itself waits.
func keepUp(u *voice.Utterance) {
	for range 200 {
		if u.Duration() < time.Second || u.Partial().Behind == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
