package engines

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
	"perch/voice/wyoming"
)

// BenchmarkEndOfTurnBySound measures the figures of BenchmarkEndOfTurn with a real model for the end of turns in perch-speech, and
// without it. The sentences are the English ones, spoken by a Piper voice. The model answers after 100 ms, like the
// recognizer. PERCH_SPEECH_MODELS is a folder of models; packaging/speech.sh fills one.
//
// Half of the pauses follow a whole sentence, after which the voice falls as at an end. The model was trained with voices of
// people.
func BenchmarkEndOfTurnBySound(b *testing.B) {
	engine := realSpeech(b)
	c := config.Default()
	e := must.Value(New(nil, &c, drivers.Brain{}, nil, nil, slog.New(slog.DiscardHandler)))(b)
	b.Cleanup(e.Close)
	turns := slices.DeleteFunc(unspokenTurns(b, logNormal), func(p *pausedTurn) bool { return p.language != "en" })
	for _, p := range turns {
		p.speakBy(b, engine)
	}
	judge := func(pcm []int16) float64 {
		return must.Value(engine.JudgeEnd(b.Context(), voicetest.Utterance(pcm)))(b)
	}
	for _, rule := range []string{"silence", "silence+model", "sentences", "sentences+model"} {
		for _, group := range []string{"known", "free"} {
			words, byModel := strings.CutSuffix(rule, "+model")
			b.Run("rule="+rule+"/"+group, func(b *testing.B) {
				var chosen []*pausedTurn
				for _, p := range turns {
					if p.known != (group == "known") {
						continue
					}
					if p.judge = nil; byModel {
						p.judge = judge
					}
					chosen = append(chosen, p)
				}
				for b.Loop() {
					reportEnds(b, chosen, endRule(e, words))
				}
			})
		}
	}
}

// realSpeech returns an engine for a perch-speech that runs until the benchmark ends.
func realSpeech(b *testing.B) *wyoming.Engine {
	dir := os.Getenv("PERCH_SPEECH_MODELS")
	if dir == "" {
		b.Skip("real models are needed, in PERCH_SPEECH_MODELS")
	}
	program := filepath.Join(b.TempDir(), "perch-speech")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", program, "perch/cmd/perch-speech").CombinedOutput(); err != nil {
		b.Fatalf("build perch-speech: %v: %s", err, out)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, program, "serve", "--listen", "127.0.0.1:0", "--models", dir)
	server.Cancel = func() error { return server.Process.Signal(syscall.SIGTERM) }
	log := must.Value(server.StderrPipe())(b)
	must.Succeed(b, server.Start())
	b.Cleanup(func() {
		cancel()
		_, _ = io.Copy(io.Discard, log)
		_ = server.Wait() // it was ended
	})
	line := must.Value(bufio.NewReader(log).ReadString('\n'))(b)
	address := regexp.MustCompile(`tcp://[0-9.:]+`).FindString(line)
	return must.Value(wyoming.New(wyoming.Options{Address: address, AnswerWithin: 2 * time.Minute}))(b)
}

// speakBy synthesizes the turn with a voice, in one piece, and puts the pause where the voice makes a short one itself, at a comma after the first
// part. A part ends where it becomes inaudible, but its sound goes on until the voice is silent.
func (p *pausedTurn) speakBy(b *testing.B, s voice.Synthesizer) {
	say := func(text string) []int16 {
		var pcm []int16
		must.Succeed(b, s.Synthesize(b.Context(), text, voice.Options{Language: "en"}, func(piece []int16) error {
			pcm = append(pcm, piece...)
			return nil
		}))
		return trimmed(voice.NewResampler(voice.SpeakerRate, voice.MicRate).Resample(pcm), true, 0)
	}
	p.judged = map[int]float64{}
	silence := func(samples int) []int16 { return make([]int16, max(0, samples)) }
	all := say(p.first + ", " + p.rest + ".")
	cut := quietestNear(all, len(trimmed(say(p.first+","), false, 0)))
	first, rest := all[:cut], trimmed(all[cut:], true, 0)
	before := silence(voice.MicRate / 2)
	p.firstEnds = len(before) + len(trimmed(first, false, 0))
	p.restBegins = max(p.firstEnds+int(p.pause*voice.MicRate/time.Second), len(before)+len(first))
	p.restEnds = p.restBegins + len(trimmed(rest, false, 0))
	p.pcm = must.Value(throughOpus(slices.Concat(before, first, silence(p.restBegins-len(before)-len(first)), rest, silence(8*voice.MicRate)), len(p.first)))(b)
}

// quietestNear returns the middle of the quietest 60 ms whose middle is at most 200 ms from a sample of speech.
func quietestNear(pcm []int16, at int) (middle int) {
	const half, near = voice.MicRate * 30 / 1000, voice.MicRate * 200 / 1000
	least := math.Inf(1)
	for m := max(half, at-near); m < min(len(pcm)-half, at+near); m += half / 6 {
		loud := 0.0
		for _, s := range pcm[m-half : m+half] {
			loud += float64(s) * float64(s)
		}
		if loud < least {
			least, middle = loud, m
		}
	}
	return middle
}
