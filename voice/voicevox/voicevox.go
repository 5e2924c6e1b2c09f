// Package voicevox synthesizes Japanese speech with the HTTP API of VOICEVOX, which AivisSpeech
// and other programs also have. A text takes two calls: audio_query returns an analysis of the text,
// and synthesis returns the sound for the analysis.
package voicevox

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"perch/driver"
	"perch/limit"
	"perch/remote"
	"perch/secret"
	"perch/voice"
	"perch/voice/media"
)

// Options are the options of an engine.
type Options struct {
	URL     string        `yaml:"url" doc:"The engine's address. If empty, http://127.0.0.1:50021."`
	Voice   string        `yaml:"voice" doc:"The number of a style, as the engine's /speakers lists it. If empty, the first style there."`
	Speed   int           `yaml:"speed" unit:"%" doc:"In percent of the voice's own, 50 to 200. If 0, 100."`
	Key     string        `yaml:"key" doc:"The bearer token that a proxy before the engine wants; the engine itself wants none."`
	KeyFile string        `yaml:"key_file" doc:"A file that holds the key."`
	Within  time.Duration `yaml:"within" doc:"The longest time until sound begins: the engine makes a whole sentence first. If 0s, 10s."`
	// Language is the BCP 47 tag of the language for calls that name none; "" means Japanese.
	Language string
}

// Driver declares the synthesizer voicevox.
func Driver() voice.SynthesizerDriver {
	return driver.Of(voice.SynthesizerDriver{Kind: "voicevox", Runs: []string{"VOICEVOX or AivisSpeech, for Japanese"},
		Summary: "Lively Japanese voices, by VOICEVOX or AivisSpeech on a computer of yours.",
		Sample:  `{kind: voicevox, url: "http://192.168.1.9:50021", voice: 3, speed: 100}    # Japanese only, before espeak`},
		Options.withSetup, func(o Options) (voice.Synthesizer, error) { return New(o) })
}

// withSetup returns o with the voice and language of the setup, and with the key from KeyFile.
func (o Options) withSetup(s voice.Setup) (_ Options, err error) {
	o.Voice, o.Language = cmp.Or(s.Voice, o.Voice), s.Language
	o.Key, err = secret.Read("key", o.Key, o.KeyFile)
	return o, err
}

// Speaks reports whether the engine may support a language.
func (Options) Speaks(language string) bool { return language == "ja" }

// Check returns an error if the options are invalid.
func (o Options) Check() error {
	if o.Voice != "" && !styleID().MatchString(o.Voice) {
		return fmt.Errorf("%.80q cannot be a voice of VOICEVOX: use the number of a style, which /speakers lists", o.Voice)
	}
	if o.Speed != 0 && (o.Speed < 50 || o.Speed > 200) {
		return fmt.Errorf("VOICEVOX speaks at 50 to 200 percent of a voice's speed, not %d", o.Speed)
	}
	return o.media().Check()
}

// styleID matches the IDs of styles.
var styleID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{1,10}$`) })

// media returns the options of the client.
func (o Options) media() media.Options {
	return media.Options{Service: "VOICEVOX", URL: cmp.Or(o.URL, "http://127.0.0.1:50021"), Key: o.Key, FirstByte: o.Within, Idle: o.Within}
}

// Engine implements voice.Synthesizer.
type Engine struct {
	o          Options
	client     *media.Client
	firstStyle remote.Cached[string] // ID of the server's first style
}

// styleExpiry is how long the server's first style is cached.
const styleExpiry = 5 * time.Minute

// New returns an engine, or an error if the options are invalid. It opens no connection.
func New(o Options) (*Engine, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	client, err := media.New(o.media())
	if err != nil {
		return nil, err
	}
	return &Engine{o: o, client: client}, nil
}

// Name returns "voicevox".
func (*Engine) Name() string { return "voicevox" }

// Close cancels running calls and closes the connections.
func (e *Engine) Close() { e.client.Close() }

// Check returns an error of one sentence if the server does not respond or does not have the voice.
func (e *Engine) Check(ctx context.Context) error {
	_, err := e.fetchStyle(ctx)
	return err
}

// Voices implements voice.Lister. It returns the server's styles for speech, such as 3: ずんだもん（ノーマル）.
func (e *Engine) Voices(ctx context.Context) (list []voice.Named, err error) {
	body, err := e.client.Get(ctx, "speakers", nil)
	if err != nil {
		return nil, err
	}
	var speakers []struct {
		Name   string
		Styles []struct {
			Name string
			ID   uint32
			Type string // "talk" or "" for speech; other types are for singing
		}
	}
	if json.Unmarshal(body, &speakers) != nil {
		return nil, e.client.Fault("sent a response that is not a list of speakers; check the url, whose port is mostly 50021")
	}
	for _, speaker := range speakers {
		for _, style := range speaker.Styles {
			if style.Type == "" || style.Type == "talk" {
				list = append(list, voice.Named{Name: strconv.FormatUint(uint64(style.ID), 10), Title: speaker.Name + "（" + style.Name + "）"})
			}
		}
	}
	return list, nil
}

// fetchStyle requests the server's styles, and returns the ID of the configured style or, if no
// style is configured, of the first style for speech.
func (e *Engine) fetchStyle(ctx context.Context) (id string, err error) {
	styles, err := e.Voices(ctx)
	if err != nil {
		return "", err
	}
	for _, style := range styles {
		if e.o.Voice == "" || e.o.Voice == style.Name {
			return style.Name, nil
		}
	}
	if e.o.Voice == "" {
		return "", e.client.Fault("has no voice; install one in it")
	}
	return "", e.client.Fault("has no style " + e.o.Voice + "; its /speakers lists those that it has")
}

// style returns the ID of the style for a call: the style that the call names, or else the
// configured style, or else the server's first style.
func (e *Engine) style(ctx context.Context, o voice.Options) (id string, err error) {
	if styleID().MatchString(o.Voice) {
		return o.Voice, nil
	}
	if e.o.Voice != "" {
		return e.o.Voice, nil
	}
	id, ok := e.firstStyle.Get()
	if !ok {
		if id, err = e.fetchStyle(ctx); err == nil {
			e.firstStyle.Put(id, styleExpiry)
		}
	}
	return id, err
}

// maxText is the maximum length of a text, in characters. The text is part of a URL.
const maxText = 1000

// Synthesize implements voice.Synthesizer. It fails for a text of more than maxText characters.
// The error wraps voice.ErrLanguage for other languages than Japanese.
func (e *Engine) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	language := cmp.Or(o.Language, e.o.Language, "ja")
	if voice.BaseLanguage(language) != "ja" {
		return fmt.Errorf("%w: VOICEVOX only speaks Japanese, not %.40q", voice.ErrLanguage, language)
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if n := utf8.RuneCountInString(text); n > maxText {
		return fmt.Errorf("at most %d characters are sent to VOICEVOX at once, not %d", maxText, n)
	}
	style, err := e.style(ctx, o)
	if err != nil {
		return err
	}
	query, err := e.query(ctx, text, style)
	if err != nil || query == nil {
		return err
	}
	return e.client.FetchSound(ctx, remote.Request{Method: http.MethodPost, Path: "synthesis", Query: url.Values{"speaker": {style}},
		ContentType: "application/json", Body: query},
		media.SoundOptions{Text: text, Format: "wav", FormatAdvice: "check the url", WAVAdvice: "check the url", SilenceAdvice: "check the voice"}, out)
}

// query requests the server's analysis of a text. It returns the body of the request for
// synthesis, or nil if the text contains nothing to speak.
func (e *Engine) query(ctx context.Context, text, style string) ([]byte, error) {
	response, err := e.client.Call(ctx, remote.Request{Method: http.MethodPost, Path: "audio_query",
		Query: url.Values{"text": {text}, "speaker": {style}}})
	if err != nil {
		return nil, err
	}
	defer response.Close()
	body, err := response.Whole(limit.File)
	if err != nil {
		return nil, err
	}
	var query map[string]any // a map, so that unknown fields are returned to the server
	if json.Unmarshal(body, &query) != nil || query["accent_phrases"] == nil {
		return nil, e.client.Fault("sent a response to audio_query that is not a query; check the url, whose port is mostly 50021")
	}
	if phrases, ok := query["accent_phrases"].([]any); ok && len(phrases) == 0 {
		return nil, nil
	}
	query["speedScale"] = float64(cmp.Or(e.o.Speed, 100)) / 100
	query["outputSamplingRate"], query["outputStereo"] = voice.SpeakerRate, false
	return json.Marshal(query)
}
