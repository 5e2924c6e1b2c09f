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

// Synthesizer implements voice.Synthesizer. It requests the URL of a sound over the REST API, and
// reads the sound from that URL while Home Assistant synthesizes it. (The text-to-speech stage of a
// pipeline returns only MP3.) The engine and the voice are from the options or, if the options name
// none, from the pipeline.
type Synthesizer struct {
	o      Options
	client *hass.Client  // for the WebSocket API
	media  *media.Client // for the REST API and sounds

	cachedPipeline remote.Cached[hass.Pipeline]
}

// pipelineExpiry is how long the settings of a pipeline are cached.
const pipelineExpiry = 5 * time.Minute

// NewSynthesizer returns a synthesizer, or an error if the options are invalid. It opens no
// connection.
func NewSynthesizer(o Options) (*Synthesizer, error) {
	client, err := o.newClient()
	if err != nil {
		return nil, err
	}
	mediaClient, err := media.New(media.Options{Service: "Home Assistant", URL: o.URL, Key: o.Token, FirstByte: o.AnswerWithin, Idle: o.IdleWithin})
	if err != nil {
		return nil, err
	}
	return &Synthesizer{o: o, client: client, media: mediaClient}, nil
}

// Name returns "assist".
func (*Synthesizer) Name() string { return "assist" }

// Close cancels running calls and closes the connections.
func (s *Synthesizer) Close() {
	s.client.Close()
	s.media.Close()
}

// Check returns an error unless Home Assistant responds, accepts the token, and has the engine
// or, if no engine is configured, the pipeline with text to speech. The error is one sentence.
func (s *Synthesizer) Check(ctx context.Context) error {
	if err := s.check(ctx); err != nil {
		return unavailable(ctx, err)
	}
	return nil
}

// check implements Check, without converting the error.
func (s *Synthesizer) check(ctx context.Context) error {
	if s.o.Engine == "" {
		s.cachedPipeline.Forget()
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

// Voices implements voice.Lister. It returns the voices of the configured engine in Options.Language, or the voices of
// the pipeline's engine in the pipeline's language, or in Options.Language if the pipeline has none.
func (s *Synthesizer) Voices(ctx context.Context) (list []voice.Named, err error) {
	engine, language := s.o.Engine, s.o.Language
	if engine == "" {
		p, err := s.pipeline(ctx)
		if err != nil {
			return nil, unavailable(ctx, err)
		}
		engine, language = p.TTS, cmp.Or(p.VoiceLanguage, language)
	}
	conn, err := s.client.Dial(ctx)
	if err != nil {
		return nil, unavailable(ctx, err)
	}
	defer conn.Close()
	var result struct {
		Voices []struct {
			ID   string `json:"voice_id"`
			Name string `json:"name"`
		} `json:"voices"`
	}
	err = conn.Call(ctx, s.o.ConnectWithin, "tts/engine/voices", map[string]any{"engine_id": engine, "language": language}, &result)
	if fault, ok := errors.AsType[*hass.Fault](err); ok && (fault.Code == "not_found" || fault.Code == "unknown_command" || fault.Code == "invalid_format") {
		return nil, nil
	}
	for _, v := range result.Voices { // empty if the engine has no voice for the language, or cannot list them
		list = append(list, voice.Named{Name: v.ID, Title: v.Name})
	}
	return list, err
}

// pipeline returns the settings of the pipeline, which may be up to pipelineExpiry old. It returns an
// error if the pipeline has no text to speech.
func (s *Synthesizer) pipeline(ctx context.Context) (hass.Pipeline, error) {
	if p, ok := s.cachedPipeline.Get(); ok {
		return p, nil
	}
	p, err := fetchPipeline(ctx, s.client, s.o)
	if err == nil && p.TTS == "" {
		err = s.client.Fault("has no text to speech in this Assist pipeline; choose one under Settings, Voice assistants, or set engine")
	}
	if err == nil {
		s.cachedPipeline.Put(p, pipelineExpiry)
	}
	return p, err
}

// speechRequest is the body of a request for the URL of a sound.
type speechRequest struct {
	Engine   string         `json:"engine_id"`
	Message  string         `json:"message"`
	Language string         `json:"language,omitempty"`
	Options  map[string]any `json:"options"`
}

// Synthesize implements voice.Synthesizer. For a text without letters and digits it makes no sound.
// It fails for a text of more than limit.Spoken characters.
func (s *Synthesizer) Synthesize(ctx context.Context, text string, o voice.Options, out func(pcm []int16) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return nil // engines fail on a text without words
	}
	if n := utf8.RuneCountInString(text); n > limit.Spoken {
		return fmt.Errorf("a text for Home Assistant has at most %d characters, not %d", limit.Spoken, n)
	}
	var outErr error
	err := s.speak(ctx, text, o, func(pcm []int16) error {
		outErr = out(pcm)
		return outErr
	})
	switch {
	case err == nil || outErr != nil:
		return outErr
	case ctx.Err() == nil:
		s.cachedPipeline.Forget() // the settings may have changed
	}
	if errors.Is(err, voice.ErrUnavailable) && ctx.Err() == nil {
		return err
	}
	return unavailable(ctx, err)
}

// speak requests the sound of a text and passes it to out.
func (s *Synthesizer) speak(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	request, err := s.newRequest(ctx, text, o)
	if err != nil {
		return err
	}
	path, err := s.requestPath(ctx, request)
	if err != nil {
		return err
	}
	err = s.media.FetchSound(ctx, remote.Request{Method: http.MethodGet, Path: path}, media.SoundOptions{Text: text, Format: "a WAV",
		FormatAdvice: "update it, or set an engine that gives WAV, such as tts.piper",
		WAVAdvice:    "set convert", SilenceAdvice: "see the log of its text to speech"}, out)
	return s.explain(err, "makes no sound with "+request.describe()+"; see its log")
}

func (s *Synthesizer) newRequest(ctx context.Context, text string, o voice.Options) (speechRequest, error) {
	request := speechRequest{Engine: s.o.Engine, Message: text, Options: map[string]any{"preferred_format": "wav"}}
	name := s.o.Voice
	if o.Voice != "" && len(o.Voice) <= limit.Name {
		name = o.Voice
	}
	if o.Language != "" && len(o.Language) <= limit.Name {
		request.Language = o.Language
	}
	if request.Engine == "" {
		p, err := s.pipeline(ctx)
		if err != nil {
			return request, err
		}
		request.Engine = p.TTS
		// If the call's language is "en", and the pipeline's is "en_GB", then the language and
		// the voice of the pipeline are used.
		if request.Language == "" || includes(request.Language, p.VoiceLanguage) {
			request.Language = p.VoiceLanguage
			name = cmp.Or(name, p.Voice)
		}
	}
	if name != "" {
		request.Options["voice"] = name
	}
	if s.o.Convert {
		request.Options["preferred_sample_rate"] = voice.SpeakerRate
		request.Options["preferred_sample_channels"] = 1
		request.Options["preferred_sample_bytes"] = 2
	}
	return request, nil
}

// includes reports whether the language wanted, such as "en" or "en-GB", includes the language
// offered, such as "en_GB". "en-GB" does not include "en_US".
func includes(wanted, offered string) bool {
	normalize := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "-")) }
	wanted, offered = normalize(wanted), normalize(offered)
	base, _, _ := strings.Cut(offered, "-")
	return offered == wanted || base == wanted
}

// describe returns the engine, voice and language of a request for messages.
func (r speechRequest) describe() string {
	text := r.Engine
	if name, _ := r.Options["voice"].(string); name != "" {
		text += ", voice " + name
	}
	if r.Language != "" {
		text += ", language " + r.Language
	}
	return text
}

// soundPath matches the paths of sounds. Requests to other paths are not sent.
var soundPath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/api/tts_proxy/[A-Za-z0-9_-][A-Za-z0-9_.-]{0,300}$`)
})

// requestPath requests a sound and returns the path of the sound's URL. The host of that URL is
// ignored, because it may not be reachable from this machine.
func (s *Synthesizer) requestPath(ctx context.Context, r speechRequest) (string, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("request speech: %w", err)
	}
	const path = "api/tts_get_url"
	response, err := s.media.Call(ctx, remote.Request{Method: http.MethodPost, Path: path, ContentType: "application/json", Body: body})
	if err != nil {
		return "", s.explain(err, "cannot speak with "+s.client.Quote(r.describe())+"; check engine, voice and language")
	}
	defer response.Close()
	data, err := response.Whole(limit.Body)
	if err != nil {
		return "", err
	}
	var result struct{ Path string }
	if err := json.Unmarshal(data, &result); err != nil || !soundPath().MatchString(result.Path) {
		return "", s.client.Fault("does not say where the sound is; it may be too old, or the url is of something else")
	}
	return result.Path, nil
}

// explain replaces the error of an unsuccessful response of Home Assistant by one with advice.
// badRequest is the message if the engine, voice or language may be unknown. explain returns other
// errors unchanged.
func (s *Synthesizer) explain(err error, badRequest string) error {
	var fault *remote.Fault
	if !errors.As(err, &fault) || fault.Status == 0 {
		return err
	}
	switch fault.Status {
	// 400 means an unknown engine, voice or language. With some engines it is 500.
	case http.StatusBadRequest, http.StatusInternalServerError:
		return s.client.Fault(badRequest)
	}
	return s.client.StatusFault(fault.Refusal)
}
