package assist

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"perch/limit"
	"perch/remote"
	"perch/remote/hass"
	"perch/voice"
	"perch/voice/media"
)

// Synthesizer implements voice.Synthesizer. It requests the address of a sound through
// the REST API and reads the sound from there while it is made.
//
// The tts stage of a pipeline would do the same over the WebSocket, but only as MP3. The
// pipeline's settings are fetched now and then; the options override them.
type Synthesizer struct {
	o      Options
	client *hass.Client
	speech *media.Client

	known remote.Cached[hass.Pipeline]
}

// knownFor is how long a pipeline's settings are cached.
const knownFor = 5 * time.Minute

// NewSynthesizer checks the options and returns the engine. It opens no connection.
func NewSynthesizer(o Options) (*Synthesizer, error) {
	client, err := o.client()
	if err != nil {
		return nil, err
	}
	r, err := media.New(media.Options{Service: "Home Assistant", URL: o.URL, Key: o.Token, FirstByte: o.AnswerWithin, Idle: o.IdleWithin})
	if err != nil {
		return nil, err
	}
	return &Synthesizer{o: o, client: client, speech: r}, nil
}

// Name returns "assist".
func (*Synthesizer) Name() string { return "assist" }

// Close cancels running calls and closes the connections.
func (s *Synthesizer) Close() {
	s.client.Close()
	s.speech.Close()
}

// Check reports whether Home Assistant answers, accepts the token, and has the engine,
// or the pipeline with one. Its error is one sentence.
func (s *Synthesizer) Check(ctx context.Context) error {
	if err := s.check(ctx); err != nil {
		return unavailable(ctx, err)
	}
	return nil
}

func (s *Synthesizer) check(ctx context.Context) error {
	if s.o.Engine == "" {
		s.known.Forget()
		_, err := s.pipeline(ctx)
		return err
	}
	conn, err := s.client.Dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = conn.Call(ctx, s.o.ConnectWithin, "tts/engine/get", map[string]any{"engine_id": s.o.Engine}, nil)
	if fault, ok := errors.AsType[*hass.Fault](err); ok && (fault.Code == "not_found" || fault.Code == "unknown_command") {
		return s.client.Fault("has no text to speech called " + s.client.Quote(s.o.Engine) + "; check engine, which is like tts.piper")
	}
	return err
}

// pipeline returns the pipeline's settings for speech.
func (s *Synthesizer) pipeline(ctx context.Context) (hass.Pipeline, error) {
	if known, fresh := s.known.Get(); fresh {
		return known, nil
	}
	p, err := pipeline(ctx, s.client, s.o)
	if err == nil && p.TTS == "" {
		err = s.client.Fault("has no text to speech in this Assist pipeline; choose one under Settings, Voice assistants, or set engine")
	}
	if err == nil {
		s.known.Put(p, knownFor)
	}
	return p, err
}

// order is the body of a request for speech. Empty fields are left to the engine.
type order struct {
	Engine   string         `json:"engine_id"`
	Message  string         `json:"message"`
	Language string         `json:"language,omitempty"`
	Options  map[string]any `json:"options"`
}

// Synthesize implements voice.Synthesizer.
func (s *Synthesizer) Synthesize(ctx context.Context, text string, o voice.Options, out func(pcm []int16) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return nil // engines fail on a text without words
	}
	if n := utf8.RuneCountInString(text); n > limit.Spoken {
		return fmt.Errorf("at most %d characters are given to Home Assistant at once, not %d", limit.Spoken, n)
	}
	var own error // the listener's error, not the engine's
	err := s.speak(ctx, text, o, func(pcm []int16) error {
		own = out(pcm)
		return own
	})
	switch {
	case err == nil || own != nil:
		return own
	case ctx.Err() == nil:
		s.known.Forget() // its set-up may have changed
	}
	if errors.Is(err, voice.ErrUnavailable) && ctx.Err() == nil {
		return err
	}
	return unavailable(ctx, err)
}

func (s *Synthesizer) speak(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	order, err := s.order(ctx, text, o)
	if err != nil {
		return err
	}
	path, err := s.ask(ctx, order)
	if err != nil {
		return err
	}
	err = s.speech.Sound(ctx, remote.Request{Method: http.MethodGet, Path: path}, media.Wanted{Text: text, Format: "a WAV",
		Cure:    "update it, or set an engine that gives WAV, such as tts.piper",
		Convert: "set convert", Silence: "see the log of its text to speech"}, out)
	return s.explain(err, "makes no sound with "+order.with()+"; see its log")
}

// order returns the request for a text.
func (s *Synthesizer) order(ctx context.Context, text string, o voice.Options) (order, error) {
	made := order{Engine: s.o.Engine, Message: text, Options: map[string]any{"preferred_format": "wav"}}
	name := s.o.Voice
	if o.Voice != "" && len(o.Voice) <= limit.Name {
		name = o.Voice
	}
	if o.Language != "" && len(o.Language) <= limit.Name {
		made.Language = o.Language
	}
	if made.Engine == "" {
		p, err := s.pipeline(ctx)
		if err != nil {
			return made, err
		}
		made.Engine = p.TTS
		// A call may say "en" while the engine has only "en_GB" or "en-US". Its
		// spelling is used then, and its voice for that language.
		if made.Language == "" || speaks(p.VoiceLanguage, made.Language) {
			made.Language = p.VoiceLanguage
			name = cmp.Or(name, p.Voice)
		}
	}
	if name != "" {
		made.Options["voice"] = name
	}
	if s.o.Convert {
		made.Options["preferred_sample_rate"] = voice.SpeakerRate
		made.Options["preferred_sample_channels"] = 1
		made.Options["preferred_sample_bytes"] = 2
	}
	return made, nil
}

// speaks reports whether a language such as en_GB matches a request for "en" or
// "en-GB".
func speaks(has, asked string) bool {
	norm := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "-")) }
	has, asked = norm(has), norm(asked)
	main, _, _ := strings.Cut(has, "-")
	return has == asked || main == asked
}

// with describes an order in a sentence.
func (o order) with() string {
	with := o.Engine
	if name, _ := o.Options["voice"].(string); name != "" {
		with += ", voice " + name
	}
	if o.Language != "" {
		with += ", language " + o.Language
	}
	return with
}

// proxied matches the paths of sounds. Another path might lead anywhere.
var proxied = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/api/tts_proxy/[A-Za-z0-9_-][A-Za-z0-9_.-]{0,300}$`)
})

// ask requests a sound and returns its path below the URL. The whole address in the
// answer is what Home Assistant believes to be its own, and may not work from here.
func (s *Synthesizer) ask(ctx context.Context, o order) (string, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("ask for speech: %w", err)
	}
	const path = "api/tts_get_url"
	answer, err := s.speech.Call(ctx, remote.Request{Method: http.MethodPost, Path: path, ContentType: "application/json", Body: body})
	if err != nil {
		return "", s.explain(err, "cannot speak with "+s.client.Quote(o.with())+"; check engine, voice and language")
	}
	defer answer.Close()
	said, err := answer.Whole(limit.Body)
	if err != nil {
		return "", err
	}
	var at struct{ Path string }
	if err := json.Unmarshal(said, &at); err != nil || !proxied().MatchString(at.Path) {
		return "", s.client.Fault("does not say where the sound is; it may be too old, or the url is of something else")
	}
	return at.Path, nil
}

// explain returns a sentence for an HTTP status of Home Assistant.
func (s *Synthesizer) explain(err error, doubt string) error {
	var fault *remote.Fault
	if !errors.As(err, &fault) || fault.Status == 0 {
		return err
	}
	switch fault.Status {
	// 400 is an unknown engine, voice or language; some engines give 500 for
	// that too.
	case http.StatusBadRequest, http.StatusInternalServerError:
		return s.client.Fault(doubt)
	}
	return s.client.Status(fault.Refusal)
}
