package wyoming

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/voice"
	"perch/voice/voicetest"
	wire "perch/voice/wyoming"
)

// given is the input of a recognizer.
type given struct {
	pcm      []int16
	language string
}

// recorder returns a recognizer that returns a text and sends its input to a channel.
func recorder(to chan<- given, text string) recognizer {
	return func(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
		h := given{language: o.Language}
		var buf [1000]int16
		for {
			n, err := u.Read(ctx, buf[:], len(h.pcm))
			if err != nil {
				return voice.Transcript{}, err
			}
			if n == 0 {
				to <- h
				return voice.Transcript{Text: text}, nil
			}
			h.pcm = append(h.pcm, buf[:n]...)
		}
	}
}

// tone returns half a second of a 440 Hz tone as bytes. All channels but the first are silent.
func tone(rate, channels int) (b []byte) {
	for _, s := range voicetest.Tone(rate, 440, 8000, time.Second/2) {
		b = binary.LittleEndian.AppendUint16(b, uint16(s))
		b = append(b, make([]byte, 2*channels-2)...)
	}
	return b
}

func TestSoundOfEveryForm(t *testing.T) {
	for name, f := range map[string]wire.Format{
		"as Home Assistant sends it": {Rate: 16000, Width: 2, Channels: 1},
		"a telephone's":              {Rate: 8000, Width: 2, Channels: 1},
		"a disc's, in stereo":        {Rate: 44100, Width: 2, Channels: 2},
		"piper's":                    {Rate: 22050, Width: 2, Channels: 1},
		"a studio's, in stereo":      {Rate: 96000, Width: 2, Channels: 2},
	} {
		for _, piece := range []int{1 << 20, 2048, 1021, 3} {
			calls := make(chan given, 1)
			g := dial(t, serve(t, Options{Recognizer: recorder(calls, " hello "), Languages: []string{"de"}}))
			g.event(wire.TypeTranscribe, map[string]any{"language": "de_CH", "name": "any"}, nil)
			g.event(wire.TypeAudioStart, f, nil)
			sound := tone(f.Rate, f.Channels)
			if piece == 3 {
				sound = sound[:6000]
			}
			for len(sound) > 0 {
				n := min(piece, len(sound))
				g.event(wire.TypeAudioChunk, f, sound[:n])
				sound = sound[n:]
			}
			g.event(wire.TypeAudioStop, nil, nil)
			g.expect(wire.TypeTranscript, `{"text":"hello"}`)
			h := <-calls
			if h.language != "de-CH" {
				t.Errorf("%s: in %q", name, h.language)
			}
			want := 8000 / float64(f.Channels)
			if got := voicetest.Amplitude(h.pcm, voice.MicRate, 440); piece > 3 && (math.Abs(got-want) > want/20 || len(h.pcm) < voice.MicRate*48/100 ||
				len(h.pcm) > voice.MicRate/2) {
				t.Errorf("%s in pieces of %d: %d samples of %.0f, want %.0f", name, piece, len(h.pcm), got, want)
			}
		}
	}
}

// TestRecognizesDuringSpeech checks that the recognizer receives sound before the utterance has ended.
func TestRecognizesDuringSpeech(t *testing.T) {
	early := make(chan int)
	g := dial(t, serve(t, Options{Recognizer: recognizer(func(ctx context.Context, u *voice.Utterance, _ voice.Options) (voice.Transcript, error) {
		var buf [1600]int16
		n, err := u.Read(ctx, buf[:], 0)
		if err != nil {
			return voice.Transcript{}, err
		}
		early <- n
		return voice.Transcript{Text: "so early"}, u.Wait(ctx)
	})}))
	f := wire.Format{Rate: 16000, Width: 2, Channels: 1}
	// Without an audio-start, as some clients do.
	g.event(wire.TypeAudioChunk, f, make([]byte, 640))
	if n := <-early; n != 320 {
		t.Errorf("%d samples were there", n)
	}
	g.event(wire.TypeAudioStop, nil, nil)
	g.expect(wire.TypeTranscript, `{"text":"so early"}`)
}

func TestUtterancesOneAfterTheOther(t *testing.T) {
	calls := make(chan given, 1)
	g := dial(t, serve(t, Options{Recognizer: recorder(calls, "again")}))
	for n := range 3 {
		g.event(wire.TypeAudioStart, wire.Format{Rate: 16000, Width: 2, Channels: 1}, nil)
		g.event(wire.TypeAudioChunk, nil, make([]byte, 2*n+1)) // the half sample at the end must not affect the next utterance
		g.event(wire.TypeAudioStop, nil, nil)
		g.expect(wire.TypeTranscript, `{"text":"again"}`)
		if h := <-calls; len(h.pcm) != n || h.language != "en" {
			t.Errorf("utterance %d: %d samples in %q", n, len(h.pcm), h.language)
		}
	}
}

func TestRefusedUtteranceHasNoText(t *testing.T) {
	g := dial(t, serve(t, Options{Recognizer: recognizer(refuses)}))
	g.event(wire.TypeAudioStart, wire.Format{Rate: 16000, Width: 2, Channels: 1}, nil)
	g.event(wire.TypeAudioStop, nil, nil)
	g.expect(wire.TypeTranscript, `{"text":""}`)
}

// TestARecognizerThatFails checks that the client does not receive the text of the recognizer's error.
func TestARecognizerThatFails(t *testing.T) {
	g := dial(t, serve(t, Options{Recognizer: recognizer(func(context.Context, *voice.Utterance, voice.Options) (voice.Transcript, error) {
		return voice.Transcript{}, errors.New("the server at tcp://10.0.0.7 said canary")
	})}))
	g.event(wire.TypeAudioStart, wire.Format{Rate: 16000, Width: 2, Channels: 1}, nil)
	g.expect(wire.TypeError, `{"text":"The recognizer did not answer.","code":"failed"}`)
	g.ended()
}

// TestTooLongAnUtterance checks that an utterance ends at the maximum length, and is recognized up to there.
func TestTooLongAnUtterance(t *testing.T) {
	calls := make(chan given, 1)
	g := dial(t, serve(t, Options{Recognizer: recorder(calls, "enough")}))
	f := wire.Format{Rate: 16000, Width: 2, Channels: 1}
	g.event(wire.TypeAudioStart, f, nil)
	second := make([]byte, 2*voice.MicRate)
	for range int(voice.MaxUtterance/time.Second) + 1 {
		g.event(wire.TypeAudioChunk, f, second)
	}
	g.expect(wire.TypeTranscript, `{"text":"enough"}`)
	if h := <-calls; len(h.pcm) != int(voice.MaxUtterance/time.Second)*voice.MicRate {
		t.Errorf("%d samples were heard", len(h.pcm))
	}
	// The rest of the sound is ignored, and the next utterance is a new one.
	g.event(wire.TypeAudioChunk, f, second)
	g.event(wire.TypeAudioStop, nil, nil)
	g.event(wire.TypeAudioStart, f, nil)
	g.event(wire.TypeAudioStop, nil, nil)
	g.expect(wire.TypeTranscript, `{"text":"enough"}`)
	if h := <-calls; len(h.pcm) != 0 {
		t.Errorf("%d samples are in the next utterance", len(h.pcm))
	}
}

// TestASlowClientFreesTheRecognizer checks that a second client can use the recognizer after maxListening,
// although the first client keeps sending sound. Only one utterance is recognized at a time.
func TestASlowClientFreesTheRecognizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		run(t, Options{Recognizer: recognizer(refuses)}, l)
		f := wire.Format{Rate: 16000, Width: 2, Channels: 1}
		slow := l.dial(t, "192.0.2.1:4000")
		slow.event(wire.TypeAudioStart, f, nil)
		dawdled := make(chan struct{})
		go func() {
			defer close(dawdled)
			for {
				e, err := wire.NewEvent(wire.TypeAudioChunk, nil, make([]byte, 2))
				if err != nil || slow.w.Write(e) != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		began := time.Now()
		synctest.Wait()
		quick := l.dial(t, "192.0.2.2:4000")
		quick.event(wire.TypeAudioStart, f, nil)
		quick.event(wire.TypeAudioStop, nil, nil)
		slow.expect(wire.TypeTranscript, `{"text":""}`)
		quick.expect(wire.TypeTranscript, `{"text":""}`)
		if took := time.Since(began); took != maxListening {
			t.Errorf("it took %s", took)
		}
		slow.Close()
		<-dawdled
	})
}

func TestARecognizerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := piped(t, Options{Recognizer: recognizer(func(ctx context.Context, _ *voice.Utterance, _ voice.Options) (voice.Transcript, error) {
			<-ctx.Done()
			return voice.Transcript{}, ctx.Err()
		})})
		began := time.Now()
		g.event(wire.TypeAudioStart, wire.Format{Rate: 16000, Width: 2, Channels: 1}, nil)
		g.event(wire.TypeAudioStop, nil, nil)
		g.refused(codeFailed)
		if took := time.Since(began); took != recognizeTimeout {
			t.Errorf("it took %s", took)
		}
	})
}

// TestEndOfTurnIsJudged checks that an utterance is judged only if the client asks for it, also where nothing is recognized, and
// while a recognizer is in use.
func TestEndOfTurnIsJudged(t *testing.T) {
	f := wire.Format{Rate: 16000, Width: 2, Channels: 1}
	o := Options{Synthesizer: synthesizer(letters), Judge: judge(func(ctx context.Context, u *voice.Utterance) (float64, error) {
		err := u.Wait(ctx)
		return 0.25 + u.Duration().Seconds(), err
	})}
	for name, o := range map[string]Options{"no recognizer": o, "a busy recognizer": {Judge: o.Judge,
		Recognizer: recognizer(func(ctx context.Context, _ *voice.Utterance, _ voice.Options) (voice.Transcript, error) {
			<-ctx.Done()
			return voice.Transcript{}, ctx.Err()
		})}} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, o)
			g := dial(t, address)
			g.event(wire.TypeDescribe, nil, nil)
			if info := string(g.next(wire.TypeInfo).Data); !strings.Contains(info, `"perch-turn":[{"name":`) {
				t.Errorf("the info is %s", info)
			}
			for range 2 {
				g.event(wire.TypeTurn, nil, nil)
				g.event(wire.TypeAudioStart, f, nil)
				g.event(wire.TypeAudioChunk, f, make([]byte, 16000))
				g.event(wire.TypeAudioStop, nil, nil)
				g.expect(wire.TypeTurn, `{"complete":0.75}`)
			}
			g.event(wire.TypeAudioStart, f, nil)
			if o.Recognizer == nil {
				g.refused(codeNone)
				return
			}
			g.event(wire.TypeAudioStop, nil, nil) // the recognizer has it, and does not answer
			other := dial(t, address)
			other.event(wire.TypeTurn, nil, nil)
			other.event(wire.TypeAudioStart, f, nil)
			other.event(wire.TypeAudioStop, nil, nil)
			other.expect(wire.TypeTurn, `{"complete":0.25}`)
		})
	}
}

// TestEndlessSoundIsJudgedOnce checks that a client that sends sound without end is judged at the maximum length.
func TestEndlessSoundIsJudgedOnce(t *testing.T) {
	judged := make(chan time.Duration, 2)
	g := dial(t, serve(t, Options{Synthesizer: synthesizer(letters), Judge: judge(func(ctx context.Context, u *voice.Utterance) (float64, error) {
		err := u.Wait(ctx)
		judged <- u.Duration()
		return 1, err
	})}))
	f := wire.Format{Rate: 16000, Width: 2, Channels: 1}
	g.event(wire.TypeTurn, nil, nil)
	g.event(wire.TypeAudioStart, f, nil)
	for range int(voice.MaxUtterance/time.Second) + 5 {
		g.event(wire.TypeAudioChunk, f, make([]byte, 2*voice.MicRate))
	}
	g.expect(wire.TypeTurn, `{"complete":1}`)
	if d := <-judged; d != voice.MaxUtterance || len(judged) > 0 {
		t.Errorf("%s of sound were judged, and %d times more", d, len(judged))
	}
}

// TestAJudgeThatIsMissingOrFails checks that the client is told.
func TestAJudgeThatIsMissingOrFails(t *testing.T) {
	g := dial(t, serve(t, all()))
	g.event(wire.TypeTurn, nil, nil)
	g.refused(codeNone)
	o := all()
	o.Judge = judge(func(context.Context, *voice.Utterance) (float64, error) {
		return 0, errors.New("the file of the canary")
	})
	g = dial(t, serve(t, o))
	g.event(wire.TypeTurn, nil, nil)
	g.event(wire.TypeAudioStart, wire.Format{Rate: 16000, Width: 2, Channels: 1}, nil)
	g.expect(wire.TypeError, `{"text":"The end of the turn was not judged.","code":"failed"}`)
	g.ended()
}
