package wyoming

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
)

// tone returns a sine of 440 Hz as bytes, the same on both channels.
func tone(d time.Duration, f Format) (b []byte) {
	for _, v := range voicetest.Tone(f.Rate, 440, 8000, d) {
		for range f.Channels {
			b = binary.LittleEndian.AppendUint16(b, uint16(v))
		}
	}
	return b
}

// pitch returns the number of zero crossings from below per second.
func pitch(pcm []int16) float64 {
	n := 0
	for i := 1; i < len(pcm); i++ {
		if pcm[i-1] < 0 && pcm[i] >= 0 {
			n++
		}
	}
	return float64(n) * voice.SpeakerRate / float64(len(pcm))
}

// speak sends sound in events with a payload of at most size bytes.
func (p *peer) speak(f Format, sound []byte, size int) {
	p.event(TypeAudioStart, f, nil)
	for part := range slices.Chunk(sound, size) {
		p.event(TypeAudioChunk, f, part)
	}
	p.event(TypeAudioStop, nil, nil)
}

func TestRatesAndChannels(t *testing.T) {
	for _, f := range []Format{{16000, 2, 1}, {22050, 2, 1}, {24000, 2, 1}, {44100, 2, 2}, {48000, 2, 1}, {22050, 2, 2}} {
		for _, size := range []int{2048, 333} { // a chunk may end within a sample
			server := &fake{info: piper, script: func(p *peer, _ Event) { p.speak(f, tone(time.Second, f), size) }}
			got, err := voicetest.Synthesize(t, newEngine(t, Options{Address: server.listen(t)}), "hello", voice.Options{})
			if err != nil || math.Abs(float64(len(got)-voice.SpeakerRate)) > 50 {
				t.Errorf("%+v in chunks of %d: %d samples (%v)", f, size, len(got), err)
			} else if p := pitch(got[1000:23000]); math.Abs(p-440) > 3 {
				t.Errorf("%+v in chunks of %d: %.1f Hz", f, size, p)
			}
		}
	}
}

func TestStereoIsMixedDown(t *testing.T) {
	var got []int16
	s := newSound("", nil, func(pcm []int16) error { got = append(got, pcm...); return nil })
	must.Succeed(t, s.setFormat(Format{voice.SpeakerRate, 2, 2}))
	var b []byte
	for _, v := range []int16{100, 300, -32768, -32768, 32767, 32767, 5, -5} {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	if err := s.add(b); err != nil || !slices.Equal(got, []int16{200, -32768, 32767, 0}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestSoundIsPlayedWhileItIsMade(t *testing.T) {
	recognizeWith := make(chan struct{})
	f := Format{22050, 2, 1}
	server := &fake{info: piper, script: func(p *peer, _ Event) {
		p.event(TypeAudioStart, f, nil)
		for range 5 {
			p.event(TypeAudioChunk, f, tone(50*time.Millisecond, f))
			<-recognizeWith
		}
		p.event(TypeAudioStop, nil, nil)
	}}
	pieces := 0
	err := newEngine(t, Options{Address: server.listen(t)}).Synthesize(t.Context(), "hello", voice.Options{}, func([]int16) error {
		pieces++
		recognizeWith <- struct{}{}
		return nil
	})
	if err != nil || pieces != 5 {
		t.Errorf("%d pieces, %v", pieces, err)
	}
}

const long = "It is twenty past three, and the bus leaves in ten minutes from the stop behind the house. " +
	"Take an umbrella with you! Shall I remind you of the letter that is lying on the kitchen table? The timer for the rice has 3.5 minutes left."

// TestLongTextIsStreamed checks the events of a streamed text. Like piper, the server responds to
// each piece with sound, ignores the whole text, and sends synthesize-stopped at the end.
func TestLongTextIsStreamed(t *testing.T) {
	var asked []string
	f := Format{22050, 2, 1}
	server := &fake{info: piper, script: func(p *peer, first Event) {
		asked = append(asked, first.Type+string(first.Data))
		for {
			e := p.next()
			var text Text
			if err := e.Decode(&text); err != nil {
				t.Error(err)
			}
			asked = append(asked, e.Type+text.Text)
			switch e.Type {
			case TypeSynthesizeChunk:
				p.speak(f, tone(100*time.Millisecond, f), 2048)
			case TypeSynthesizeStop:
				p.event(TypeSynthesizeStopped, nil, nil)
				p.hangUp()
				return
			}
		}
	}}
	e := newEngine(t, Options{Address: server.listen(t), Voice: "en_GB-alba-medium"})
	got, err := voicetest.Synthesize(t, e, long, voice.Options{})
	want := []string{
		`synthesize-start{"voice":{"name":"en_GB-alba-medium"}}`,
		"synthesize-chunkIt is twenty past three, and the bus leaves in ten minutes from the stop behind the house. ",
		"synthesize-chunkTake an umbrella with you! Shall I remind you of the letter that is lying on the kitchen table? ",
		"synthesize-chunkThe timer for the rice has 3.5 minutes left.",
		"synthesize" + long, "synthesize-stop",
	}
	if err != nil || !slices.Equal(asked, want) || len(got) < 7150 || len(got) > 7200 {
		t.Errorf("%q were asked, %d samples heard (%v)", asked, len(got), err)
	}

	asked = nil
	server.script = func(p *peer, first Event) {
		asked = append(asked, first.Type+string(first.Data))
		p.speak(f, tone(100*time.Millisecond, f), 2048)
	}
	if _, err := voicetest.Synthesize(t, e, "Good night.", voice.Options{}); err != nil ||
		!slices.Equal(asked, []string{`synthesize{"text":"Good night.","voice":{"name":"en_GB-alba-medium"}}`}) {
		t.Errorf("%q were asked for a short one (%v)", asked, err)
	}
	asked, server.info = nil, strings.Replace(piper, "true,\"voices", "false,\"voices", 1)
	e.fixed.cachedInfo.Forget()
	if _, err := voicetest.Synthesize(t, e, long, voice.Options{}); err != nil || len(asked) != 1 ||
		!strings.HasPrefix(asked[0], `synthesize{"text":"It is`) {
		t.Errorf("%q were asked of one that does not stream (%v)", asked, err)
	}
}

func FuzzPieces(f *testing.F) {
	for _, s := range []string{long, strings.Repeat("今日はいい天気ですね。", 30), strings.Repeat("a\xff. ", 90), strings.Repeat(". ", 300), ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all := splitText(text)
		if strings.Join(all, "") != text || slices.Contains(all, "") {
			t.Errorf("%q became %q", text, all)
		}
	})
}

func FuzzSound(f *testing.F) {
	f.Add([]byte("some samples of no sound at all, which are enough"), uint8(3), true, uint16(22050))
	f.Add(tone(20*time.Millisecond, Format{16000, 2, 2}), uint8(255), false, uint16(16000))
	f.Fuzz(func(t *testing.T, b []byte, size uint8, stereo bool, rate uint16) {
		format := Format{int(rate), 2, 1}
		if stereo {
			format.Channels = 2
		}
		hear := func(parts ...[]byte) (all []int16) {
			s := newSound("Hello.", nil, func(pcm []int16) error { all = append(all, pcm...); return nil })
			if s.setFormat(format) != nil {
				return nil
			}
			for _, p := range parts {
				must.Succeed(t, s.add(p))
			}
			return all
		}
		if !slices.Equal(hear(b), hear(slices.Collect(slices.Chunk(b, int(size)+1))...)) {
			t.Errorf("%d bytes in pieces of %d sound different", len(b), int(size)+1)
		}
	})
}

func TestSynthesizerFailures(t *testing.T) {
	f := Format{22050, 2, 1}
	some := tone(100*time.Millisecond, f)
	play := func(f Format) script {
		return func(p *peer, _ Event) { p.speak(f, some, 2048); p.hangUp() }
	}
	for name, test := range map[string]struct {
		script script
		words  string
	}{
		"lacks a voice that it lists": {func(p *peer, _ Event) {
			p.event(TypeError, Failure{Text: "en_US-amy-low", Code: "VoiceNotFoundError"}, nil)
		},
			"it says: en_US-amy-low (VoiceNotFoundError)"},
		"complains":       {func(p *peer, _ Event) { p.event(TypeError, Failure{Text: "no voice"}, nil) }, "it says: no voice"},
		"says nothing":    {func(p *peer, _ Event) { p.event(TypeAudioStop, nil, nil); p.hangUp() }, "without any sound"},
		"closes":          {func(*peer, Event) {}, "closed the connection"},
		"is cut in sound": {func(p *peer, _ Event) { p.event(TypeAudioChunk, f, some) }, "closed the connection"},
		"is cut in a chunk": {func(p *peer, _ Event) {
			p.say(`{"type":"audio-chunk","data":{"rate":22050,"width":2,"channels":1},"payload_length":2048}` + "\nxx")
		}, "closed the connection"},
		"claims too much": {func(p *peer, _ Event) { p.say(`{"type":"audio-chunk","payload_length":9999999}` + "\n"); p.hangUp() },
			"4194304 at most"},
		"has bytes":       {play(Format{22050, 1, 1}), "samples of 1 bytes"},
		"has floats":      {play(Format{22050, 4, 1}), "samples of 4 bytes"},
		"has no rate":     {play(Format{0, 2, 1}), "0 samples a second"},
		"has a huge rate": {play(Format{1 << 40, 2, 1}), "samples a second"},
		"has no format":   {func(p *peer, _ Event) { p.event(TypeAudioChunk, nil, some); p.hangUp() }, "no format"},
	} {
		t.Run(name, func(t *testing.T) {
			server := &fake{info: piper, script: test.script}
			_, err := voicetest.Synthesize(t, newEngine(t, Options{Address: server.listen(t)}), "hello", voice.Options{})
			voicetest.Sentence(t, err, test.words)
		})
	}
}

func TestTextWithoutWordsMayBeSilent(t *testing.T) {
	server := &fake{info: piper, script: func(p *peer, _ Event) { p.event(TypeAudioStop, nil, nil) }}
	if got, err := voicetest.Synthesize(t, newEngine(t, Options{Address: server.listen(t)}), "... !", voice.Options{}); err != nil || len(got) > 0 {
		t.Errorf("%d samples, %v", len(got), err)
	}
}

func TestHalfASampleDoesNotShiftTheNextSentence(t *testing.T) {
	f := Format{24000, 2, 1}
	server := &fake{info: piper, script: func(p *peer, _ Event) {
		p.until(TypeSynthesizeStop)
		p.speak(f, []byte{1, 0, 9}, 100)
		p.speak(f, []byte{2, 0, 3, 0}, 100)
		p.event(TypeSynthesizeStopped, nil, nil)
	}}
	got, err := voicetest.Synthesize(t, newEngine(t, Options{Address: server.listen(t)}), long, voice.Options{})
	if err != nil || !slices.Equal(got, []int16{1, 2, 3}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestTheCallerStops(t *testing.T) {
	f := Format{22050, 2, 1}
	endless := func(p *peer, _ Event) {
		for {
			p.event(TypeAudioChunk, f, make([]byte, 2048))
		}
	}
	server := &fake{info: piper, script: endless}
	e := newEngine(t, Options{Address: server.listen(t)})
	stop := errors.New("stop")
	if err := e.Synthesize(t.Context(), "x", voice.Options{}, func([]int16) error { return stop }); err != stop {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := e.Synthesize(ctx, "x", voice.Options{}, func([]int16) error { cancel(); return ctx.Err() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, fresh := e.fixed.cachedInfo.Get(); !fresh {
		t.Error("a listener who left was taken for a failure of the server")
	}

	ctx, cancel = context.WithCancel(t.Context())
	server.script = func(p *peer, _ Event) { cancel(); p.hangUp() }
	if err := e.Synthesize(ctx, "x", voice.Options{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before any sound: %v", err)
	}
}

func TestSilentSynthesizer(t *testing.T) {
	f := Format{24000, 2, 1}
	for name, test := range map[string]struct {
		script script
		words  string
		took   time.Duration
	}{
		"never answers": {func(p *peer, _ Event) { p.hangUp() }, "did not answer within 4s", 4 * time.Second},
		"stops": {func(p *peer, _ Event) {
			p.event(TypeAudioChunk, f, make([]byte, 20))
			p.hangUp()
		}, "did not answer within 4s", 4*time.Second + 30*time.Second},
		"sends empty chunks": {func(p *peer, _ Event) {
			for {
				p.event(TypeAudioChunk, f, nil)
				time.Sleep(time.Second)
			}
		}, "did not answer within 4s", 4 * time.Second},
		"is slow, as is the listener": {func(p *peer, _ Event) {
			for range 3 {
				time.Sleep(3 * time.Second)
				p.event(TypeAudioChunk, f, make([]byte, 4096))
			}
			p.event(TypeAudioStop, nil, nil)
		}, "", 3*time.Second + 3*30*time.Second}, // the server works while the listener is slow
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &fake{info: piper, script: test.script}
				defer server.done.Wait()
				e := server.piped(t, Options{AnswerWithin: 4 * time.Second})
				began := time.Now()
				err := e.Synthesize(t.Context(), "hello", voice.Options{}, func([]int16) error {
					time.Sleep(30 * time.Second)
					return nil
				})
				if took := time.Since(began); took != test.took {
					t.Errorf("it took %s, want %s", took, test.took)
				}
				if test.words == "" {
					if err != nil {
						t.Error(err)
					}
					return
				}
				voicetest.Sentence(t, err, test.words)
			})
		})
	}
}

func TestChoosingAVoice(t *testing.T) {
	for name, test := range map[string]struct {
		info    string
		o       Options
		call    voice.Options
		want    string // data of the synthesize event in JSON
		failure string
	}{
		"nothing asked": {piper, Options{}, voice.Options{}, `{"text":"hi"}`, ""},
		"the engine's": {piper, Options{Voice: "EN_gb-alba-medium"}, voice.Options{Language: "de"},
			`{"text":"hi","voice":{"name":"en_GB-alba-medium"}}`, ""},
		"the engine's, in the household's language": {piper, Options{Voice: "en_GB-alba-medium", Language: "de-AT"}, voice.Options{Language: "de"},
			`{"text":"hi","voice":{"name":"en_GB-alba-medium"}}`, ""},
		"the engine's, in another language that it speaks": {piper, Options{Voice: "de_DE-thorsten-low", Language: "en"}, voice.Options{Language: "de"},
			`{"text":"hi","voice":{"name":"de_DE-thorsten-low"}}`, ""},
		"the engine's, in another language that it does not speak": {piper, Options{Voice: "en_GB-alba-medium", Language: "en"},
			voice.Options{Language: "de"}, "", `"en_GB-alba-medium" does not speak the language "de", only en_GB`},
		"the call's": {piper, Options{Voice: "en_GB-alba-medium", Language: "en"}, voice.Options{Voice: "de_DE-thorsten-low", Language: "ja"},
			`{"text":"hi","voice":{"name":"de_DE-thorsten-low"}}`, ""},
		"another engine's": {piper, Options{Voice: "en_GB-alba-medium"}, voice.Options{Voice: "af_heart"},
			`{"text":"hi","voice":{"name":"en_GB-alba-medium"}}`, ""},
		"a language":          {piper, Options{}, voice.Options{Language: "de"}, `{"text":"hi","voice":{"language":"de_DE"}}`, ""},
		"an unknown language": {piper, Options{}, voice.Options{Language: "ja"}, "", `language "ja", only for en_GB, de_DE`},
		"an unknown voice": {piper, Options{Voice: "af_heart"}, voice.Options{}, "",
			`no voice "af_heart"; it has en_GB-alba-medium, de_DE-thorsten-low`},
		"voices unlisted": {`{"tts":[{"installed":true}]}`, Options{Voice: "x"}, voice.Options{Language: "ja"}, `{"text":"hi","voice":{"name":"x"}}`,
			""},
		"voices called models": {`{"tts":[{"installed":true,"models":[{"name":"x","languages":["ja"]}]}]}`, Options{Voice: "x"}, voice.Options{},
			`{"text":"hi","voice":{"name":"x"}}`, ""},
		"only a recognizer": {whisper, Options{}, voice.Options{}, "", "no text to speech"},
	} {
		t.Run(name, func(t *testing.T) {
			f := Format{24000, 2, 1}
			server := &fake{info: test.info, script: func(p *peer, first Event) {
				if string(first.Data) != test.want {
					t.Errorf("asked with %s", first.Data)
				}
				p.speak(f, make([]byte, 100), 100)
			}}
			test.o.Address = server.listen(t)
			e := newEngine(t, test.o)
			_, err := voicetest.Synthesize(t, e, "hi", test.call)
			checked := e.CheckSynthesize(t.Context(), test.call)
			if test.failure == "" {
				if err != nil || checked != nil {
					t.Errorf("%v, checked: %v", err, checked)
				}
				return
			}
			voicetest.Sentence(t, err, test.failure)
			voicetest.Sentence(t, checked, test.failure)
			if errors.Is(err, voice.ErrLanguage) != strings.Contains(test.failure, "language") {
				t.Errorf("%v, which the next engine is told by", err)
			}
		})
	}
}

// TestAnotherLanguageIsLeftToTheNextEngine checks that the options of a configured engine contain the
// language of the setup, so that a voice does not read texts in languages that it does not speak.
func TestAnotherLanguageIsLeftToTheNextEngine(t *testing.T) {
	f := Format{24000, 2, 1}
	server := &fake{info: piper, script: func(p *peer, _ Event) { p.speak(f, make([]byte, 100), 100) }}
	o, err := SynthesizerKeys{URL: server.listen(t), Voice: "en_GB-alba-medium"}.options(Setup{Setup: voice.Setup{Language: "en"}})
	must.Succeed(t, err)
	for language, want := range map[string]error{"en": nil, "de": voice.ErrLanguage} {
		if _, err := voicetest.Synthesize(t, newEngine(t, o), "hi", voice.Options{Language: language}); !errors.Is(err, want) {
			t.Errorf("%s: %v", language, err)
		}
	}
}

// TestVoices checks that the voices for Options.Language come first.
func TestVoices(t *testing.T) {
	for language, first := range map[string]string{"en": "en_GB-alba-medium", "de": "de_DE-thorsten-low"} {
		f := &fake{info: piper}
		list, err := asSynthesizer{f.piped(t, Options{Language: language})}.Voices(t.Context())
		if err != nil || len(list) != 2 || list[0].Name != first {
			t.Errorf("%s: %v; %v", language, list, err)
		}
	}
}
