package wyoming

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/voice"
	"perch/voice/voicetest"
)

func TestSoundIsSentWhileItIsSpoken(t *testing.T) {
	reached := make(chan int16)
	f := &fake{info: whisper, script: func(p *peer, first Event) {
		var ask Transcribe
		if err := first.Decode(&ask); err != nil || first.Type != TypeTranscribe || ask != (Transcribe{Language: "en"}) {
			t.Errorf("asked by %s %s", first.Type, first.Data)
		}
		for {
			e := p.next()
			var got Format
			switch e.Type {
			case TypeAudioStart, TypeAudioChunk:
				if err := e.Decode(&got); err != nil || got != (Format{16000, 2, 1}) || len(e.Payload) > 4*voice.MicFrame {
					t.Errorf("%s of %s with %d bytes", e.Type, e.Data, len(e.Payload))
				}
				for i := 0; i < len(e.Payload); i += 2 * voice.MicFrame {
					reached <- int16(binary.LittleEndian.Uint16(e.Payload[i:]))
				}
			case TypeAudioStop:
				p.event(TypeTranscript, Text{Text: " turn the\nlight on "}, nil)
				p.hangUp()
			}
		}
	}}
	e := newEngine(t, Options{Address: f.listen(t)})
	u := voice.NewUtterance()
	go func() {
		for i := range int16(20) {
			frame := make([]int16, voice.MicFrame)
			frame[0] = -i
			u.Write(frame)
			if got := <-reached; got != -i {
				t.Errorf("frame %d was heard as %d", -i, got)
			}
		}
		u.Finish()
	}()
	got, err := e.Recognize(t.Context(), u, voice.Options{Language: "en-GB"})
	if err != nil || got != (voice.Transcript{Text: "turn the light on"}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestLanguageOfTheTranscript checks that the transcript has the language that the server reports,
// and that with DetectLanguage the request names no language.
func TestLanguageOfTheTranscript(t *testing.T) {
	f := &fake{info: whisper, script: func(p *peer, first Event) {
		var ask Transcribe
		if err := first.Decode(&ask); err != nil || ask != (Transcribe{}) {
			t.Errorf("asked by %s", first.Data)
		}
		for p.next().Type != TypeAudioStop {
		}
		p.event(TypeTranscript, Text{Text: "Hallo", Language: "de"}, nil)
		p.hangUp()
	}}
	got, err := newEngine(t, Options{Address: f.listen(t)}).Recognize(t.Context(), said(time.Second), voice.Options{Language: "en", DetectLanguage: true})
	if err != nil || got != (voice.Transcript{Text: "Hallo", Language: "de"}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestTranscripts(t *testing.T) {
	part := func(s string) string { return `{"type":"transcript-chunk","data":{"text":"` + s + `"}}` + "\n" }
	for name, test := range map[string]struct {
		raw  string
		want voice.Transcript
	}{
		"whole": {`{"type":"transcript","data":{"text":"hello"}}` + "\n", voice.Transcript{Text: "hello"}},
		"data behind": {`{"type": "transcript", "version": "1.9.0", "data_length": 17}` + "\n" + `{"text": "hello"}`[:17] + "",
			voice.Transcript{Text: "hello"}},
		"streamed": {`{"type":"transcript-start"}` + "\n" + part("hel") + part("o") + `{"type":"transcript","data":{"text":"hello"}}` + "\n" +
			`{"type":"transcript-stop"}` + "\n", voice.Transcript{Text: "hello"}},
		"never whole": {`{"type":"transcript-start"}` + "\n" + part("hel") + part("lo") + `{"type":"transcript-stop"}` + "\n",
			voice.Transcript{Text: "hello"}},
		"after other words": {`{"type":"ping"}` + "\n" + `{"type":"voice-stopped","data":{"timestamp":1}}` + "\n" +
			`{"type":"transcript","data":{"text":"hello"}}` + "\n", voice.Transcript{Text: "hello"}},
		"empty":             {`{"type":"transcript","data":{"text":" \n"}}` + "\n", voice.Transcript{Refused: true, Silence: true}},
		"no text":           {`{"type":"transcript"}` + "\n", voice.Transcript{Refused: true, Silence: true}},
		"a remark":          {`{"type":"transcript","data":{"text":" [BLANK_AUDIO]"}}` + "\n", voice.Transcript{Refused: true, Silence: true}},
		"remarks":           {`{"type":"transcript","data":{"text":"(music) *sighs*. ♪"}}` + "\n", voice.Transcript{Refused: true, Silence: true}},
		"a remark and more": {`{"type":"transcript","data":{"text":"(coughs) stop"}}` + "\n", voice.Transcript{Text: "stop"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{info: whisper, script: func(p *peer, _ Event) {
				p.until(TypeAudioStop)
				for i := range len(test.raw) { // send byte by byte
					p.say(test.raw[i : i+1])
				}
			}}
			got, err := newEngine(t, Options{Address: f.listen(t)}).Recognize(t.Context(), said(time.Second), voice.Options{})
			if err != nil || got != test.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestServerEndsTheUtterance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{info: whisper, script: func(p *peer, _ Event) {
			p.until(TypeAudioChunk)
			p.event(TypeTranscript, Text{Text: "stop"}, nil)
			p.hangUp()
		}}
		e := f.piped(t, Options{})
		u := voice.NewUtterance()
		u.Write(make([]int16, voice.MicFrame))
		got := make(chan voice.Transcript, 1)
		go func() {
			transcript, err := e.Recognize(t.Context(), u, voice.Options{})
			if err != nil {
				t.Error(err)
			}
			got <- transcript
		}()
		synctest.Wait()
		u.Write(make([]int16, voice.MicFrame))
		if len(got) > 0 {
			t.Error("it answered while somebody spoke")
		}
		u.Finish()
		if transcript := <-got; transcript.Text != "stop" {
			t.Errorf("%+v", transcript)
		}
	})
}

func TestRecognizerFailures(t *testing.T) {
	for name, test := range map[string]struct {
		script script
		words  []string
	}{
		"complains": {func(p *peer, _ Event) {
			p.until(TypeAudioStop)
			p.event(TypeError, Failure{Text: "CUDA out of\nmemory", Code: "RuntimeError"}, nil)
		}, []string{"it says: CUDA out of memory (RuntimeError)"}},
		"complains at once and closes": {func(p *peer, _ Event) {
			p.event(TypeError, Failure{Text: "no such model"}, nil)
		}, []string{"no such model"}},
		"closes":     {func(p *peer, _ Event) { p.until(TypeAudioStop) }, []string{"closed the connection"}},
		"cuts":       {func(p *peer, _ Event) { p.until(TypeAudioStop); p.say(`{"type":"transcript","da`) }, []string{"closed the connection"}},
		"is no such": {func(p *peer, _ Event) { p.say("SSH-2.0-OpenSSH_9.6\r\n"); p.hangUp() }, []string{"SSH-2.0", "another program"}},
		"floods":     {func(p *peer, _ Event) { p.say(strings.Repeat("x", 2<<20)); p.hangUp() }, []string{"a line of more than"}},
		"writes data": {func(p *peer, _ Event) { p.say(`{"type":"transcript","data":{"text":7}}` + "\n"); p.hangUp() },
			[]string{"data of a transcript"}},
		"runs in circles": {func(p *peer, _ Event) {
			p.until(TypeAudioStop)
			for {
				p.event(TypeTranscriptChunk, Text{Text: "thank you "}, nil)
			}
		}, []string{"may repeat itself endlessly"}},
		"has no end": {func(p *peer, _ Event) {
			p.until(TypeAudioStop)
			p.event(TypeTranscript, Text{Text: strings.Repeat("thank you ", 1000)}, nil)
		}, []string{"may repeat itself endlessly"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{info: whisper, script: test.script}
			address := f.listen(t)
			e := newEngine(t, Options{Address: address})
			got, err := e.Recognize(t.Context(), said(time.Second), voice.Options{})
			voicetest.Sentence(t, err, append(test.words, address)...)
			if got != (voice.Transcript{}) {
				t.Errorf("%+v", got)
			}
			if _, err := e.fixed.info(t.Context()); err != nil || f.described.Load() != 2 {
				t.Errorf("asked %d times what it serves (%v); a failure asks anew", f.described.Load(), err)
			}
		})
	}
}

// TestAnErrorDoesNotWaitForTheSpeaker checks that an error is returned while the person is still
// speaking, so that the next engine can be used.
func TestAnErrorDoesNotWaitForTheSpeaker(t *testing.T) {
	f := &fake{info: whisper, script: func(p *peer, _ Event) { p.event(TypeError, Failure{Text: "busy"}, nil) }}
	u := voice.NewUtterance() // never finished
	_, err := newEngine(t, Options{Address: f.listen(t)}).Recognize(t.Context(), u, voice.Options{})
	voicetest.Sentence(t, err, "busy")
}

func TestSilentRecognizer(t *testing.T) {
	for name, test := range map[string]struct {
		script script
		words  string
		took   time.Duration // time from the end of the utterance to the result
	}{
		"never answers": {func(p *peer, _ Event) { p.hangUp() }, "did not answer within 4s", 4 * time.Second},
		"never reads":   {func(*peer, Event) { time.Sleep(time.Minute) }, "read nothing for 4s", -6*time.Second + grace},
		"chatters": {func(p *peer, _ Event) {
			p.until(TypeAudioStop)
			for {
				p.event(TypePing, nil, nil)
				time.Sleep(time.Second)
			}
		}, "did not answer within 4s", 4 * time.Second},
		"writes along": {func(p *peer, _ Event) { // sends parts of the transcript from the first word on
			p.until(TypeAudioChunk)
			p.event(TypeTranscriptChunk, Text{Text: "a"}, nil)
			p.until(TypeAudioStop)
			time.Sleep(3 * time.Second)
			p.event(TypeTranscript, Text{Text: "aaa"}, nil)
		}, "", 3 * time.Second},
		"works on": {func(p *peer, _ Event) {
			p.until(TypeAudioStop)
			for range 3 {
				time.Sleep(3 * time.Second)
				p.event(TypeTranscriptChunk, Text{Text: "and so on"}, nil) // extends the deadline by 3.7 s
			}
			p.event(TypeTranscript, Text{Text: "aaa"}, nil)
		}, "", 9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{info: whisper, script: test.script}
				defer f.done.Wait()
				e := f.piped(t, Options{AnswerWithin: 4 * time.Second})
				u := voice.NewUtterance()
				end := time.Now().Add(10 * time.Second)
				go func() { // ten seconds of speech, which do not count for the timeout
					for time.Now().Before(end) {
						u.Write(make([]int16, voice.MicRate))
						time.Sleep(time.Second)
					}
					u.Finish()
				}()
				got, err := e.Recognize(t.Context(), u, voice.Options{})
				if took := time.Since(end); took != test.took {
					t.Errorf("it took %s after the end, want %s", took, test.took)
				}
				_ = u.Wait(t.Context())
				if test.words == "" {
					if err != nil || got.Text != "aaa" {
						t.Errorf("%+v, %v", got, err)
					}
					return
				}
				voicetest.Sentence(t, err, test.words)
			})
		})
	}
}

func TestCancelledWhileListening(t *testing.T) {
	for name, when := range map[string]string{"while it is spoken": TypeAudioChunk, "while the server thinks": TypeAudioStop} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan struct{})
			f := &fake{info: whisper, script: func(p *peer, _ Event) {
				p.until(when)
				cancel()
				p.hangUp()
				close(gone)
			}}
			e := newEngine(t, Options{Address: f.listen(t)})
			u := voice.NewUtterance()
			u.Write(make([]int16, voice.MicRate))
			if when == TypeAudioStop {
				u.Finish()
			}
			if _, err := e.Recognize(ctx, u, voice.Options{}); !errors.Is(err, context.Canceled) || errors.Is(err, voice.ErrUnavailable) {
				t.Errorf("%v", err)
			}
			<-gone
			if _, fresh := e.fixed.cachedInfo.Get(); !fresh {
				t.Error("being interrupted was taken for a failure of the server")
			}
		})
	}
}

func TestSpelled(t *testing.T) {
	models := func(languages ...string) []Model { return []Model{{Languages: languages}} }
	for _, test := range []struct {
		models    []Model
		tag, want string
		ok        bool
	}{
		{models("en", "de"), "", "", true},
		{models("en", "de"), "de", "de", true},
		{models("en", "de"), "de-CH", "de", true},
		{models("en_US", "en_GB"), "en-GB", "en_GB", true},
		{models("en_US", "en_GB"), "en", "en_US", true},
		{models("en_US", "en"), "en-AU", "en", true},
		{models("EN-us"), "en_us", "EN-us", true},
		{models("en"), "de", "de", false},
		{models("eng"), "en", "en", false},
		{models("auto"), "de", "de", true},
		{models("*"), "zh-TW", "zh-TW", true},
		{models(), "de-CH", "de-CH", true},
		{nil, "de", "de", true},
	} {
		if got, ok := matchLanguage(test.models, test.tag); ok != test.ok || ok && got != test.want {
			t.Errorf("%q among %v: %q, %v", test.tag, test.models, got, ok)
		}
	}
}

func TestChoosingARecognizer(t *testing.T) {
	two := `{"asr":[{"installed":true,"models":[{"name":"small-en","languages":["en"]},{"name":"small-de","languages":["de"]}]},
		{"installed":false,"models":[{"name":"large","languages":["fr"]}]}]}`
	for name, test := range map[string]struct {
		info    string
		o       Options
		call    voice.Options
		want    Transcribe
		failure string
	}{
		"nothing asked":       {two, Options{}, voice.Options{}, Transcribe{}, ""},
		"a language":          {two, Options{}, voice.Options{Language: "de-AT"}, Transcribe{Language: "de"}, ""},
		"an unknown language": {two, Options{}, voice.Options{Language: "fr"}, Transcribe{}, `the language "fr"; it knows en, de`},
		"a model":             {two, Options{Model: "SMALL-de"}, voice.Options{}, Transcribe{Name: "small-de"}, ""},
		"a model not its own": {two, Options{Model: "small-de"}, voice.Options{Language: "en"}, Transcribe{}, "it knows de"},
		"an unknown model":    {two, Options{Model: "large"}, voice.Options{}, Transcribe{}, `no model "large"; it has small-en, small-de`},
		"models unlisted": {`{"asr":[{"installed":true}]}`, Options{Model: "x"}, voice.Options{Language: "de"}, Transcribe{Name: "x", Language: "de"},
			""},
		"only a voice":         {piper, Options{}, voice.Options{}, Transcribe{}, "no speech to text"},
		"only wake words":      {`{"wake":[{"installed":true}]}`, Options{}, voice.Options{}, Transcribe{}, "only wake words"},
		"only not installed":   {`{"asr":[{"installed":false}]}`, Options{}, voice.Options{}, Transcribe{}, "neither speech to text nor"},
		"nothing":              {`{}`, Options{}, voice.Options{}, Transcribe{}, "neither speech to text nor"},
		"info of another kind": {`{"asr":7}`, Options{}, voice.Options{}, Transcribe{}, "neither speech to text nor"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{info: test.info, script: func(p *peer, first Event) {
				var got Transcribe
				if err := first.Decode(&got); err != nil || got != test.want {
					t.Errorf("asked with %s (%v)", first.Data, err)
				}
				p.until(TypeAudioStop)
				p.event(TypeTranscript, Text{Text: "yes"}, nil)
			}}
			test.o.Address = f.listen(t)
			e := newEngine(t, test.o)
			_, err := e.Recognize(t.Context(), said(0), test.call)
			checked := e.CheckRecognize(t.Context(), test.call)
			if test.failure == "" {
				if err != nil || checked != nil {
					t.Errorf("%v, checked: %v", err, checked)
				}
				return
			}
			voicetest.Sentence(t, err, test.failure)
			voicetest.Sentence(t, checked, test.failure)
		})
	}
}

// TestInfoIsWhatTheReferenceReads checks that the reference implementation can read an encoded Info:
// empty lists are absent and not null, and the attribution is present.
func TestInfoIsWhatTheReferenceReads(t *testing.T) {
	got, err := json.Marshal(
		Info{Handle: []Program{{Name: "perch", Installed: true, Models: []Model{{Name: "perch", Installed: true, Languages: []string{"en"}}}}}})
	want := `{"handle":[{"name":"perch","attribution":{"name":"","url":""},"installed":true,"description":"","version":"",` +
		`"models":[{"name":"perch","attribution":{"name":"","url":""},"installed":true,"description":"","version":"","languages":["en"]}]}]}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}
