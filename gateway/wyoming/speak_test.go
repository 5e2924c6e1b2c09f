package wyoming

import (
	"context"
	"encoding/binary"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/must"
	"perch/voice"
	wire "perch/voice/wyoming"
)

// sound reads audio-chunk events up to the next event of another type, and returns this event too.
func (g *client) sound() (pcm []int16, last wire.Event) {
	g.t.Helper()
	for {
		e, err := g.r.Read()
		must.Succeed(g.t, err)
		if e.Type != wire.TypeAudioChunk {
			return pcm, e
		}
		if got := string(e.Data); got != `{"rate":24000,"width":2,"channels":1}` || len(e.Payload)%2 != 0 || len(e.Payload) > 2*maxSamples {
			g.t.Errorf("a chunk of %s, %d bytes", got, len(e.Payload))
		}
		for i := 0; i < len(e.Payload); i += 2 {
			pcm = append(pcm, int16(binary.LittleEndian.Uint16(e.Payload[i:])))
		}
	}
}

const started = `{"rate":24000,"width":2,"channels":1}`

// TestATextIsOneSound checks that a text is sent as one sound, without emoji, markup and URLs.
func TestATextIsOneSound(t *testing.T) {
	g := dial(t, serve(t, Options{Synthesizer: synthesizer(letters)}))
	g.event(wire.TypeSynthesize, map[string]any{"text": "😀 It is **three**. See https://example.com now.",
		"voice": map[string]any{"name": "x", "speaker": "y"}, "text_format": "text"}, nil)
	g.expect(wire.TypeAudioStart, started)
	pcm, last := g.sound()
	if want := append(lettersOf("It is three."), lettersOf("See now.")...); !slices.Equal(pcm, want) || last.Type != wire.TypeAudioStop {
		t.Errorf("%d samples, want %d, then %s", len(pcm), len(want), last.Type)
	}
	// A text without words has no sound.
	g.event(wire.TypeSynthesize, wire.Text{Text: "..."}, nil)
	g.expect(wire.TypeAudioStart, started, wire.TypeAudioStop, "")
}

// TestSentencesAreSpokenAsTheyCome checks that the first sentence of a stream is sent before the second
// is complete.
func TestSentencesAreSpokenAsTheyCome(t *testing.T) {
	g := dial(t, serve(t, Options{Synthesizer: synthesizer(letters)}))
	for range 2 {
		g.event(wire.TypeSynthesizeStart, map[string]any{"voice": nil}, nil)
		g.event(wire.TypeSynthesizeChunk, wire.Text{Text: "It is th"}, nil)
		g.event(wire.TypeSynthesizeChunk, wire.Text{Text: "ree. And"}, nil)
		g.expect(wire.TypeAudioStart, started)
		if pcm, last := g.sound(); !slices.Equal(pcm, lettersOf("It is three.")) || last.Type != wire.TypeAudioStop {
			t.Errorf("the first sentence: %d samples, then %s", len(pcm), last.Type)
		}
		g.event(wire.TypeSynthesizeChunk, wire.Text{Text: " so to bed"}, nil)
		g.event(wire.TypeSynthesize, wire.Text{Text: "It is three. And so to bed"}, nil)
		g.event(wire.TypeSynthesizeStop, nil, nil)
		g.expect(wire.TypeAudioStart, started)
		if pcm, last := g.sound(); !slices.Equal(pcm, lettersOf("And so to bed")) || last.Type != wire.TypeAudioStop {
			t.Errorf("the second sentence: %d samples, then %s", len(pcm), last.Type)
		}
		g.expect(wire.TypeSynthesizeStopped, "")
	}
	g.event(wire.TypeSynthesizeStart, nil, nil)
	g.event(wire.TypeSynthesizeStop, nil, nil)
	g.expect(wire.TypeSynthesizeStopped, "")
}

// TestVoices checks which language the engine receives for a voice in the request. The name of the voice must
// not reach the engine.
func TestVoices(t *testing.T) {
	asked := make(chan voice.Options, 1)
	address := serve(t, Options{
		Synthesizer: synthesizer(func(_ context.Context, _ string, o voice.Options, _ func([]int16) error) error {
			asked <- o
			return nil
		}),
		Languages: []string{"en-GB", "de"},
	})
	for v, want := range map[string]voice.Options{
		`null`:                           {Language: "en-GB"},
		`{}`:                             {Language: "en-GB"},
		`{"name":"de"}`:                  {Language: "en-GB"},
		`{"name":"de","language":"tlh"}`: {Language: "en-GB"},
		`{"name":"-w /etc/passwd"}`:      {Language: "en-GB"},
		`{"language":"en_AU"}`:           {Language: "en-AU"},
		`{"language":"de_AT"}`:           {Language: "de-AT"},
		`{"name":"","language":"en-US","more":{}}`: {Language: "en-US"},
	} {
		for _, name := range []string{wire.TypeSynthesize, wire.TypeSynthesizeStart} {
			g := dial(t, address)
			g.raw(`{"type":"` + name + `","data":{"text":"Hi","voice":` + v + `}}` + "\n")
			if name == wire.TypeSynthesizeStart {
				g.event(wire.TypeSynthesizeChunk, wire.Text{Text: "Hi"}, nil)
				g.event(wire.TypeSynthesizeStop, nil, nil)
			}
			if got := <-asked; got != want {
				t.Errorf("%s: %+v, want %+v", v, got, want)
			}
			g.Close()
		}
	}
}

func TestASynthesizerThatFails(t *testing.T) {
	g := dial(t, serve(t, Options{Synthesizer: synthesizer(func(_ context.Context, _ string, _ voice.Options, out func([]int16) error) error {
		_ = out([]int16{1, 2})
		return errors.New("canary")
	})}))
	g.event(wire.TypeSynthesize, wire.Text{Text: "Hi."}, nil)
	g.expect(wire.TypeAudioStart, started, wire.TypeAudioChunk, started,
		wire.TypeError, `{"text":"The synthesizer did not speak.","code":"failed"}`)
	g.ended()
}

// espeak is a synthesizer that runs the program espeak-ng.
func espeak(ctx context.Context, text string, _ voice.Options, out func([]int16) error) error {
	cmd := exec.CommandContext(ctx, "espeak-ng", "--stdin", "--stdout", "-v", "en-us")
	cmd.Stdin = strings.NewReader(text)
	b, err := cmd.Output()
	if err != nil {
		return err
	}
	wav, err := voice.NewWAVReader(strings.NewReader(string(b)))
	if err != nil {
		return err
	}
	resampler := voice.NewResampler(wav.Rate, voice.SpeakerRate)
	var pcm [4096]int16
	for {
		n, err := wav.Read(pcm[:])
		if err != nil {
			return nil
		}
		if err := out(resampler.Resample(pcm[:n])); err != nil {
			return err
		}
	}
}

// TestOurOwnClient checks with Perch's own client that the sound of a real synthesizer and the sound for the
// recognizer arrive unchanged.
func TestOurOwnClient(t *testing.T) {
	calls := make(chan given, 1)
	address := serve(t, Options{Recognizer: recorder(calls, "it is three"), Synthesizer: synthesizer(espeak), Mind: answering("Yes.")})
	client, err := wire.New(wire.Options{Address: "tcp://" + address})
	must.Succeed(t, err)
	must.Succeed(t, client.Check(t.Context()))
	for _, text := range []string{
		"It is twenty past three.",
		"It is twenty past three, and the cat has not come home yet. Nobody knows where it is. " +
			"We have looked under the stairs, behind the house, and on the roof of the old shed. Good night.", // is streamed
	} {
		var want, got []int16
		for _, sentence := range sentencesOf(text) {
			if err := espeak(t.Context(), sentence, voice.Options{},
				func(pcm []int16) error { want = append(want, pcm...); return nil }); err != nil {
				t.Fatalf("%v (apt install espeak-ng)", err)
			}
		}
		err := client.Synthesize(t.Context(), text, voice.Options{}, func(pcm []int16) error { got = append(got, pcm...); return nil })
		if err != nil || !slices.Equal(got, want) || len(got) < voice.SpeakerRate {
			t.Errorf("%d samples, want %d (%v)", len(got), len(want), err)
		}
	}
	u := voice.NewUtterance()
	go func() {
		for n := range 50 {
			u.Write(slices.Repeat([]int16{int16(n)}, 320))
		}
		u.Finish()
	}()
	transcript, err := client.Recognize(t.Context(), u, voice.Options{})
	if err != nil || transcript.Text != "it is three" {
		t.Errorf("%+v (%v)", transcript, err)
	}
	h := <-calls
	for i, s := range h.pcm {
		if s != int16(i/320) {
			t.Fatalf("sample %d is %d", i, s)
		}
	}
	if len(h.pcm) != 50*320 {
		t.Errorf("%d samples were heard", len(h.pcm))
	}
}

// sentencesOf returns the sentences into which a text is split.
func sentencesOf(text string) (all []string) {
	speech := thinker.NewSpeech("en")
	for _, r := range append(speech.Write(text), speech.Flush()...) {
		if s, ok := r.(agent.Say); ok {
			all = append(all, s.Text)
		}
	}
	return all
}

// TestLatency measures the time from the last sample to the transcript, and from the text to
// the first sound, with engines that answer at once.
func TestLatency(t *testing.T) {
	calls := make(chan given, 100)
	g := dial(t, serve(t, Options{Recognizer: recorder(calls, "yes"), Synthesizer: synthesizer(letters)}))
	f := wire.Format{Rate: 16000, Width: 2, Channels: 1}
	const rounds = 50
	var recognizing, speaking time.Duration
	for range rounds {
		g.event(wire.TypeAudioStart, f, nil)
		g.event(wire.TypeAudioChunk, f, make([]byte, 32000))
		began := time.Now()
		g.event(wire.TypeAudioStop, nil, nil)
		g.next(wire.TypeTranscript)
		recognizing += time.Since(began)
		began = time.Now()
		g.event(wire.TypeSynthesize, wire.Text{Text: "Hello."}, nil)
		g.next(wire.TypeAudioStart)
		g.next(wire.TypeAudioChunk)
		speaking += time.Since(began)
		g.next(wire.TypeAudioStop)
	}
	t.Logf("audio-stop to transcript %s, synthesize to first sound %s", recognizing/rounds, speaking/rounds)
	if m := max(recognizing, speaking) / rounds; m > 20*time.Millisecond {
		t.Errorf("the server adds %s", m)
	}
}
