package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
	"perch/voice"
)

// The inputs of an engine, for trying it.
const (
	TryText  = "text"  // to speak or answer
	TrySound = "sound" // a recording to understand
)

// Engine is a recognizer, a synthesizer or a brain, and its condition.
type Engine struct {
	Part  string    `json:"part"` // its name: "brain openai 2"
	List  string    `json:"list"` // recognizer, synthesizer, brain or brain_deep
	Kind  string    `json:"kind"`
	Where string    `json:"where"`
	OK    bool      `json:"ok"`
	Note  string    `json:"note"`
	Since time.Time `json:"since,omitzero"` // when its condition began, if known
	Try   string    `json:"try"`            // TryText or TrySound
	// Sample is a text to try it with, in the language of the household.
	Sample string `json:"sample,omitempty"`
}

// ErrNoEngine is returned for an engine that is not configured.
var ErrNoEngine = errors.New("there is no such engine")

// engines are the configured engines. Each can be used once by name.
type engines interface {
	Engines() []Engine
	// Recognize transcribes a recording of 16 kHz.
	Recognize(ctx context.Context, part string, pcm []int16) (string, error)
	// Speak calls out with pieces of sound of 24 kHz.
	Speak(ctx context.Context, part, text string, out func(pcm []int16) error) error
	// Answer calls out with the sentences of an answer.
	Answer(ctx context.Context, part, text string, out func(sentence string) error) error
}

// Bounds of a try.
const (
	tryWithin     = 30 * time.Second
	mostRecording = 15 // seconds of a recording
	mostSpoken    = 60 // seconds of synthesized sound
	mostWAV       = 1024 + mostRecording*voice.MicRate*2
)

// Tried is the text that a recognizer has understood or a brain has answered.
type Tried struct {
	Text   string `json:"text"`
	Millis int64  `json:"ms"` // it took
}

// errEnough ends a try that has reached its bound.
var errEnough = errors.New("that is enough")

// testEngine uses an engine once, with a text in JSON or a recording. A synthesizer's
// result is a WAV file, any other's a text.
func (a *API) testEngine(ctx context.Context, part string, body io.Reader) (wav []byte, tried Tried, err error) {
	all := a.o.Engines.Engines()
	i := slices.IndexFunc(all, func(e Engine) bool { return e.Part == part })
	if i < 0 {
		return nil, tried, ErrNoEngine
	}
	if _, busy := a.trying.LoadOrStore(part, true); busy {
		return nil, tried, &httpserver.Fault{Word: "busy", HTTP: http.StatusConflict, Sentence: "this engine is being tried already; wait for the result"}
	}
	defer a.trying.Delete(part)
	var text string
	var pcm []int16
	if all[i].Try == TrySound {
		pcm, err = readRecording(body)
	} else {
		text, err = readTry(body)
	}
	if err != nil {
		return nil, tried, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, tryWithin, errTryTimeout)
	defer cancel()
	began := time.Now()
	switch all[i].List {
	case "recognizer":
		tried.Text, err = a.o.Engines.Recognize(ctx, part, pcm)
	case "synthesizer":
		wav, err = a.speak(ctx, part, text)
	default:
		tried.Text, err = a.answer(ctx, part, text)
	}
	tried.Millis = time.Since(began).Milliseconds()
	return wav, tried, tryFault(ctx, err)
}

// errTryTimeout is the cause of a try that took longer than tryWithin.
var errTryTimeout error = &httpserver.Fault{Word: "engine_timeout", HTTP: http.StatusGatewayTimeout,
	Sentence: "the engine gave no answer within 30 seconds"}

// tryFault is the error of a try as its owner sees it.
func tryFault(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, ErrNoEngine):
		return err
	case context.Cause(ctx) == errTryTimeout:
		return errTryTimeout
	case ctx.Err() != nil:
		return err // its client has gone
	}
	return &httpserver.Fault{Word: "engine_failed", Sentence: err.Error(), HTTP: http.StatusBadGateway}
}

// readTry reads the text of a try.
func readTry(body io.Reader) (string, error) {
	read, err := io.ReadAll(io.LimitReader(body, limit.Body))
	if err != nil {
		return "", unreadable(err)
	}
	var given fact
	if err := httpserver.Decode(read, &given); err != nil {
		return "", err
	}
	text := agent.Speakable(given.Text)
	if text == "" || len(text) > limit.Line {
		return "", httpserver.BadBody("text is needed, of at most 1000 bytes")
	}
	return text, nil
}

// readRecording reads the sound of a try.
func readRecording(body io.Reader) ([]int16, error) {
	wrong := func(why string) error {
		return &httpserver.Fault{Word: "bad_sound", HTTP: http.StatusUnprocessableEntity,
			Sentence: "the body is a WAV file with 16-bit PCM of 16000 Hz, mono, of at most 15 seconds: " + why}
	}
	wav, err := voice.NewWAVReader(body)
	if err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return nil, err
		}
		return nil, wrong(err.Error())
	}
	if wav.Rate != voice.MicRate || wav.Channels() != 1 {
		return nil, wrong(fmt.Sprintf("this one has %d Hz and %d channels", wav.Rate, wav.Channels()))
	}
	pcm := make([]int16, 0, voice.MicRate)
	piece := make([]int16, 2048)
	for {
		n, err := wav.Read(piece)
		pcm = append(pcm, piece[:n]...)
		switch {
		case len(pcm) > mostRecording*voice.MicRate:
			return nil, wrong("this one is longer")
		case err == io.EOF && len(pcm) == 0:
			return nil, wrong("this one has no sound")
		case err == io.EOF:
			return pcm, nil
		case err != nil:
			return nil, unreadable(err)
		}
	}
}

// speak returns a WAV file of a text.
func (a *API) speak(ctx context.Context, part, text string) ([]byte, error) {
	const most = mostSpoken * voice.SpeakerRate
	var pcm []int16
	err := a.o.Engines.Speak(ctx, part, text, func(piece []int16) error {
		if pcm = append(pcm, piece...); len(pcm) > most {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		pcm, err = pcm[:most], nil
	}
	if err != nil {
		return nil, err
	}
	if len(pcm) == 0 {
		return nil, errors.New("it made no sound of the text; is it the voice for that language?")
	}
	var wav bytes.Buffer
	err = voice.WriteWAV(&wav, voice.SpeakerRate, pcm)
	return wav.Bytes(), err
}

// answer returns a brain's answer. Some sentences of it are enough.
func (a *API) answer(ctx context.Context, part, text string) (string, error) {
	var said strings.Builder
	err := a.o.Engines.Answer(ctx, part, text, func(sentence string) error {
		if said.Len() > 0 {
			said.WriteByte(' ')
		}
		if said.WriteString(sentence); said.Len() > limit.Said {
			return errEnough
		}
		return nil
	})
	if said.Len() > 0 && (errors.Is(err, errEnough) || context.Cause(ctx) == errTryTimeout) {
		err = nil
	}
	return plain.Clip(said.String(), limit.Said), err
}
