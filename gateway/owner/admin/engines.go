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

// The kinds of input with which an engine can be tried.
const (
	TryText  = "text"  // a text to speak or to reply to
	TrySound = "sound" // a recording to transcribe
)

// Engine is a recognizer, a synthesizer or a brain, and its condition.
type Engine struct {
	Part  string    `json:"part"` // name of the engine, such as "brain openai 2"
	List  string    `json:"list"` // "recognizer", "synthesizer", "brain" or "brain_deep"
	Kind  string    `json:"kind"`
	Where string    `json:"where"`
	OK    bool      `json:"ok"`
	Note  string    `json:"note"`
	Since time.Time `json:"since,omitzero"` // when OK changed last; zero if unknown
	Try   string    `json:"try"`            // TryText or TrySound
	// Sample is a text for trying the engine, in the configured default language.
	Sample string `json:"sample,omitempty"`
	Key    string `json:"key"`            // place in the configuration, such as "speech.recognizers.0"
	Cost   string `json:"cost,omitempty"` // "free", "billed" or, if unknown, empty
	Wait   *Wait  `json:"wait,omitempty"` // nil before the first use
	// Voices are the voices of a synthesizer that can list them. A robot can use the voices of the first synthesizer.
	Voices []voice.Named `json:"voices,omitempty"`
}

// Wait describes how long people waited for an engine in its latest uses: from the end of their speech to its transcript,
// from a text to its first sound, or from a question to the beginning of the reply. People wait less for an engine that begins
// before their speech has certainly ended (agent.Draft).
type Wait struct {
	Uses   int   `json:"uses"`
	Median int64 `json:"median"` // in milliseconds
	P95    int64 `json:"p95"`    // in milliseconds
}

// ErrNoEngine is the error for the name of an engine that is not configured.
var ErrNoEngine = errors.New("there is no such engine")

// engines lists the configured engines and tries them by name.
type engines interface {
	Engines() []Engine
	// Kinds describes the kinds of engines that each list of the configuration may contain.
	Kinds() any
	// Recognize returns the transcript of a recording, which has 16000 samples per second.
	Recognize(ctx context.Context, part string, pcm []int16) (string, error)
	// Speak calls out with pieces of the synthesized sound, which has 24000 samples per second.
	Speak(ctx context.Context, part, text string, out func(pcm []int16) error) error
	// Answer calls out with each sentence of the reply to a text.
	Answer(ctx context.Context, part, text string, out func(sentence string) error) error
}

// Limits for trying an engine.
const (
	tryTimeout   = 30 * time.Second
	maxRecording = 15                                  // length of a recording, in seconds
	maxSpoken    = 60                                  // length of the synthesized sound, in seconds
	maxWAV       = 1024 + maxRecording*voice.MicRate*2 // size of a WAV file in bytes: room for the header, and two bytes per sample
)

// TryResult is the result of trying a recognizer or a brain.
type TryResult struct {
	Text   string `json:"text"` // transcript or reply
	Millis int64  `json:"ms"`   // duration in milliseconds
}

// errEnough stops an engine whose output has reached its limit.
var errEnough = errors.New("the output has reached its limit")

// testEngine tries an engine with the text or the recording in the body. It returns a WAV file for a synthesizer,
// and a text for other engines.
func (a *API) testEngine(ctx context.Context, part string, body io.Reader) (wav []byte, tried TryResult, err error) {
	configured := a.o.Engines.Engines()
	i := slices.IndexFunc(configured, func(e Engine) bool { return e.Part == part })
	if i < 0 {
		return nil, tried, ErrNoEngine
	}
	if _, busy := a.trying.LoadOrStore(part, true); busy {
		return nil, tried, &httpserver.Fault{Word: "busy", HTTP: http.StatusConflict, Sentence: "this engine is being tried already; wait for the result"}
	}
	defer a.trying.Delete(part)
	var text string
	var pcm []int16
	if configured[i].Try == TrySound {
		pcm, err = readRecording(body)
	} else {
		text, err = readTry(body)
	}
	if err != nil {
		return nil, tried, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, tryTimeout, errTryTimeout)
	defer cancel()
	began := time.Now()
	switch configured[i].List {
	case "recognizer":
		tried.Text, err = a.o.Engines.Recognize(ctx, part, pcm)
	case "synthesizer":
		wav, err = a.speak(ctx, part, text)
	default:
		tried.Text, err = a.reply(ctx, part, text)
	}
	tried.Millis = time.Since(began).Milliseconds()
	return wav, tried, tryFault(ctx, err)
}

// errTryTimeout is the error for an engine that took longer than tryTimeout.
var errTryTimeout error = &httpserver.Fault{Word: "engine_timeout", HTTP: http.StatusGatewayTimeout,
	Sentence: "the engine did not finish within 30 seconds"}

// tryFault converts the error of an engine to the error for the owner.
func tryFault(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, ErrNoEngine):
		return err
	case context.Cause(ctx) == errTryTimeout:
		return errTryTimeout
	case ctx.Err() != nil:
		return err // the client has disconnected
	}
	return &httpserver.Fault{Word: "engine_failed", Sentence: err.Error(), HTTP: http.StatusBadGateway}
}

// readTry reads and checks the text with which an engine is tried.
func readTry(body io.Reader) (string, error) {
	read, err := io.ReadAll(io.LimitReader(body, limit.Body))
	if err != nil {
		return "", badBodyError(err)
	}
	var input struct{ Text string }
	if err := httpserver.Decode(read, &input); err != nil {
		return "", err
	}
	text := agent.Speakable(input.Text)
	if text == "" || len(text) > limit.Line {
		return "", httpserver.BadBody("text is needed, of at most 1000 bytes")
	}
	return text, nil
}

// readRecording reads the WAV file with which an engine is tried.
func readRecording(body io.Reader) ([]int16, error) {
	badSound := func(why string) error {
		return &httpserver.Fault{Word: "bad_sound", HTTP: http.StatusUnprocessableEntity,
			Sentence: "the body has to be a WAV file with 16-bit PCM of 16000 Hz, mono, of at most 15 seconds: " + why}
	}
	wav, err := voice.NewWAVReader(body)
	if err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return nil, err
		}
		return nil, badSound(err.Error())
	}
	if wav.Rate != voice.MicRate || wav.Channels() != 1 {
		return nil, badSound(fmt.Sprintf("this one has %d Hz and %d channels", wav.Rate, wav.Channels()))
	}
	pcm := make([]int16, 0, voice.MicRate)
	piece := make([]int16, 2048)
	for {
		n, err := wav.Read(piece)
		pcm = append(pcm, piece[:n]...)
		switch {
		case len(pcm) > maxRecording*voice.MicRate:
			return nil, badSound("this one is longer")
		case err == io.EOF && len(pcm) == 0:
			return nil, badSound("this one has no sound")
		case err == io.EOF:
			return pcm, nil
		case err != nil:
			return nil, badBodyError(err)
		}
	}
}

// speak returns a WAV file with the spoken text. It cuts the sound after maxSpoken seconds.
func (a *API) speak(ctx context.Context, part, text string) ([]byte, error) {
	const maxSamples = maxSpoken * voice.SpeakerRate
	var pcm []int16
	err := a.o.Engines.Speak(ctx, part, text, func(piece []int16) error {
		if pcm = append(pcm, piece...); len(pcm) > maxSamples {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		pcm, err = pcm[:maxSamples], nil
	}
	if err != nil {
		return nil, err
	}
	if len(pcm) == 0 {
		return nil, errors.New("it returned no sound for the text; check that its voice is for the language of the text")
	}
	var wav bytes.Buffer
	err = voice.WriteWAV(&wav, voice.SpeakerRate, pcm)
	return wav.Bytes(), err
}

// reply returns the reply of a brain to a text, cut after limit.Said bytes. If the brain takes longer than tryTimeout,
// reply returns the sentences that have arrived in time.
func (a *API) reply(ctx context.Context, part, text string) (string, error) {
	var reply strings.Builder
	err := a.o.Engines.Answer(ctx, part, text, func(sentence string) error {
		if reply.Len() > 0 {
			reply.WriteByte(' ')
		}
		if reply.WriteString(sentence); reply.Len() > limit.Said {
			return errEnough
		}
		return nil
	})
	if reply.Len() > 0 && (errors.Is(err, errEnough) || context.Cause(ctx) == errTryTimeout) {
		err = nil
	}
	return plain.Clip(reply.String(), limit.Said), err
}
