package engines

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/must"
	"perch/voice"
)

// pausedTurn is a turn with a pause: a line of testdata/turns.txt.
type pausedTurn struct {
	language    string
	known       bool // the reflex brain knows the sentence before the pause, or of which that is the beginning
	first, rest string
	pause       time.Duration
	pcm         []int16
	firstEnds   int // samples, as are the following fields
	restBegins  int
	restEnds    int

	judge  func([]int16) float64 // returns the probability that the person has finished after a sound; nil without a model
	judged map[int]float64       // its results, by the number of samples
}

// text returns the words that were said before a sample.
func (p *pausedTurn) text(at int) string {
	switch {
	case at >= p.restEnds:
		return p.first + " " + p.rest
	case at >= p.firstEnds:
		return p.first
	}
	return "" // only pauses matter, and a pause that the synthesizer makes is not judged
}

// BenchmarkEndOfTurn measures the two figures of eot-bench (LiveKit, 2026) with the 300 sentences of
// testdata/turns.txt, spoken by three voices of each language, with a pause in each: how many are cut off at the
// pause if the mean wait at their end is 300 ms, and the mean wait if 5 % are cut off. Half of the pauses follow
// a whole sentence. Their lengths have the distribution for which silence alone has the figures that eot-bench
// has published of it, 55.6 % and 1600 ms: a log-normal one. In another figure they take 350 to 500 ms. The end-pointer is the real one. The recognizer is
// not: it tells what was said without errors, 100 ms late, so that languages can be measured that no recognizer
// here knows, and so that recognition is measured elsewhere.
func BenchmarkEndOfTurn(b *testing.B) {
	c := config.Default()
	c.Language = "en, de, ja"
	e := must.Value(New(nil, &c, drivers.Brain{}, nil, nil, slog.New(slog.DiscardHandler)))(b)
	b.Cleanup(e.Close)
	turns, short := pausedTurns(b, logNormal), pausedTurns(b, func(quantile float64) time.Duration {
		return 350*time.Millisecond + time.Duration(quantile*150)*time.Millisecond
	})
	for _, rule := range []string{"silence", "sentences"} {
		for _, group := range []string{"known", "free"} {
			b.Run("rule="+rule+"/"+group, func(b *testing.B) {
				other := func(p *pausedTurn) bool { return p.known != (group == "known") }
				chosen, short := slices.DeleteFunc(slices.Clone(turns), other), slices.DeleteFunc(slices.Clone(short), other)
				for b.Loop() {
					reportEnds(b, chosen, endRule(e, rule))
					b.ReportMetric(cutsAndWait(b, short, voice.DefaultSilence, endRule(e, rule)).cut, "%cut-at-350-to-500ms")
				}
			})
		}
	}
}

// endRule returns the rule "silence", by which words do not count, or else the rule of the appliance.
func endRule(e *Set, name string) func(*pausedTurn) func(string) voice.Ending {
	return func(p *pausedTurn) func(string) voice.Ending {
		return func(text string) voice.Ending {
			if name == "silence" {
				return voice.UnknownEnding
			}
			return e.Ending(text, p.language, false)
		}
	}
}

// reportEnds reports the figures of turns by a rule.
func reportEnds(b *testing.B, turns []*pausedTurn, rule func(*pausedTurn) func(string) voice.Ending) {
	var points []point
	for silence := 100 * time.Millisecond; silence <= 5*time.Second; silence += 100 * time.Millisecond {
		points = append(points, cutsAndWait(b, turns, silence, rule))
		if last := points[len(points)-1]; last.cut <= 5 && last.ms() >= 300 {
			break
		}
	}
	used := cutsAndWait(b, turns, voice.DefaultSilence, rule)
	b.ReportMetric(float64(len(turns)), "sentences")
	b.ReportMetric(at(points, 300, point.ms, point.percent), "%cut-at-300ms")
	b.ReportMetric(at(points, -5, func(p point) float64 { return -p.cut }, point.ms), "ms-wait-at-5%-cut")
	b.ReportMetric(used.cut, "%cut-as-configured")
	b.ReportMetric(used.ms(), "ms-wait-as-configured")
}

// point is the result of one silence.
type point struct {
	cut  float64 // percentage of the turns that are cut off at their pause
	wait time.Duration
}

func (p point) ms() float64      { return float64(p.wait.Milliseconds()) }
func (p point) percent() float64 { return p.cut }

// at returns y where x reaches a value, interpolated between points whose x grows; NaN if no point reaches it.
func at(points []point, value float64, x, y func(point) float64) float64 {
	for i, p := range points {
		switch {
		case x(p) < value:
		case i == 0:
			return y(p)
		default:
			before := points[i-1]
			part := (value - x(before)) / (x(p) - x(before))
			return y(before) + part*(y(p)-y(before))
		}
	}
	return math.NaN()
}

// cutsAndWait listens to turns with this silence. The wait is the mean of those that are not cut off.
func cutsAndWait(b *testing.B, turns []*pausedTurn, silence time.Duration, rule func(*pausedTurn) func(string) voice.Ending) point {
	cut, wait := 0, time.Duration(0)
	for _, p := range turns {
		ended := p.ending(b, silence, rule(p))
		if ended < p.restBegins {
			cut++
		} else {
			wait += time.Duration(ended-p.restEnds) * time.Second / voice.MicRate
		}
	}
	return point{100 * float64(cut) / float64(len(turns)), wait / time.Duration(max(1, len(turns)-cut))}
}

// ending returns the sample at which the end of the turn is found, or the end of the sound.
func (p *pausedTurn) ending(b *testing.B, silence time.Duration, ending func(string) voice.Ending) int {
	const late = voice.MicRate / 10
	pointer := must.Value(voice.NewEndPointer(silence))(b)
	u := voice.NewUtterance()
	paused, since := false, 0
	for at := 0; at+voice.MicFrame <= len(p.pcm); at += voice.MicFrame {
		packet := p.pcm[at : at+voice.MicFrame]
		u.Write(packet)
		u.SetPartial(p.text(at+voice.MicFrame-late), at+voice.MicFrame)
		if paused && at+voice.MicFrame >= since+late && p.judge != nil {
			if _, is := p.judged[since]; !is {
				p.judged[since] = p.judge(p.pcm[:since])
			}
			u.SetEndProbability(p.judged[since])
		}
		pointer.Expect(u, ending)
		if pointer.Feed(packet) == voice.SpeechEnded {
			return at + voice.MicFrame
		}
		if pointer.Paused() && !paused {
			since = at + voice.MicFrame
		}
		paused = pointer.Paused()
		u.SetPaused(paused)
	}
	return len(p.pcm)
}

// logNormal returns a quantile of the log-normal distribution of which 55.6 % are above 300 ms, and 5 % above 1600 ms.
func logNormal(quantile float64) time.Duration {
	const median, sigma = 342.0, 0.937 // milliseconds, and the logarithm's standard deviation
	return time.Duration(median * math.Exp(sigma*math.Sqrt2*math.Erfinv(2*quantile-1)) * float64(time.Millisecond))
}

// pausedTurns returns the turns of testdata/turns.txt as a robot sends them. In each section the lengths of the
// pauses are quantiles of their distribution, in a random order.
func pausedTurns(b *testing.B, pause func(quantile float64) time.Duration) (turns []*pausedTurn) {
	for i, p := range unspokenTurns(b, pause) {
		p.speak(b, i%3)
		turns = append(turns, p)
	}
	return turns
}

// unspokenTurns returns the turns without their sound.
func unspokenTurns(b *testing.B, pause func(quantile float64) time.Duration) (turns []*pausedTurn) {
	r := rand.New(rand.NewPCG(9, 10))
	for section := range strings.SplitSeq(string(must.Value(os.ReadFile("testdata/turns.txt"))(b)), "\n== ") {
		if section[0] == '#' {
			continue
		}
		lines := strings.Split(strings.TrimSpace(section), "\n")
		of, lines := strings.Fields(lines[0]), lines[1:]
		for i, at := range r.Perm(len(lines)) {
			first, rest, _ := strings.Cut(lines[i], "|")
			p := &pausedTurn{language: of[0], known: of[1] == "known", first: strings.TrimSpace(first), rest: strings.TrimSpace(rest)}
			p.pause = pause((float64(at) + 0.5) / float64(len(lines)))
			turns = append(turns, p)
		}
	}
	return turns
}

// speak synthesizes the turn with one of three voices of its language.
func (p *pausedTurn) speak(b *testing.B, voiceNumber int) {
	words := func(text string) []int16 {
		pcm, err := sayIn(b, p.language, voiceNumber, text)
		if err != nil {
			b.Fatalf("%q: %v", text, err)
		}
		return trimmed(trimmed(pcm, false, 0), true, 0)
	}
	silence := func(d time.Duration) []int16 { return make([]int16, int(d*voice.MicRate/time.Second)) }
	before, first, pause, rest := silence(500*time.Millisecond), words(p.first), silence(p.pause), words(p.rest)
	p.firstEnds = len(before) + len(first)
	p.restBegins = p.firstEnds + len(pause)
	p.restEnds = p.restBegins + len(rest)
	p.pcm = must.Value(throughOpus(slices.Concat(before, first, pause, rest, silence(8*time.Second)), len(p.first)))(b)
}

// sayIn returns the sound of a text in a language, at the rate of a microphone.
func sayIn(b *testing.B, tag string, voiceNumber int, text string) ([]int16, error) {
	var command *exec.Cmd
	switch tag {
	case "en":
		return say(b.Context(), []string{"slt", "rms", "awb"}[voiceNumber], text)
	case "de":
		command = exec.CommandContext(b.Context(), "espeak-ng", "-v", []string{"de", "de+f3", "de+m5"}[voiceNumber], "--stdout", text)
	case "ja":
		command = exec.CommandContext(b.Context(), "open_jtalk", "-x", "/var/lib/mecab/dic/open-jtalk/naist-jdic",
			"-m", "/usr/share/hts-voice/nitech-jp-atr503-m001/nitech_jp_atr503_m001.htsvoice", "-fm", []string{"-3", "0", "5"}[voiceNumber], "-ow", "/dev/stdout")
		command.Stdin = strings.NewReader(text)
	}
	return soundOf(command)
}
