// Package voicevox synthesizes Japanese speech with the HTTP API of VOICEVOX's engine, which
// AivisSpeech and others share. A sentence takes two calls: audio_query analyses the text,
// synthesis speaks the result.
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

// Options of the engine.
type Options struct {
	URL     string        `yaml:"url" doc:"The engine's address. If empty, http://127.0.0.1:50021."`
	Voice   string        `yaml:"voice" doc:"The number of a style, as the engine's /speakers lists it. If empty, the first style there."`
	Speed   int           `yaml:"speed" doc:"In percent of the voice's own, 50 to 200. If 0, 100."`
	Key     string        `yaml:"key" doc:"The bearer token that a proxy before the engine wants; the engine itself wants none."`
	KeyFile string        `yaml:"key_file" doc:"A file that holds the key."`
	Within  time.Duration `yaml:"within" doc:"The longest time until sound begins: the engine makes a whole sentence first. If 0s, 10s."`
	// Language of calls that name none, BCP 47. Empty means Japanese.
	Language string
}

// Driver declares the synthesizer voicevox.
func Driver() voice.SynthesizerDriver {
	return driver.Of(voice.SynthesizerDriver{Kind: "voicevox", Runs: []string{"VOICEVOX or AivisSpeech, for Japanese"},
		Sample: `{kind: voicevox, url: "http://192.168.1.9:50021", voice: 3, speed: 100}    # Japanese only, before espeak`},
		Options.with, func(o Options) (voice.Synthesizer, error) { return New(o) })
}

func (o Options) with(s voice.Setup) (_ Options, err error) {
	o.Voice, o.Language = cmp.Or(s.Voice, o.Voice), s.Language
	o.Key, err = secret.Read("key", o.Key, o.KeyFile)
	return o, err
}

// Speaks reports whether the engine may know a language.
func (Options) Speaks(language string) bool { return language == "ja" }

// Check validates the options.
func (o Options) Check() error {
	if o.Voice != "" && !styleID().MatchString(o.Voice) {
		return fmt.Errorf("%.80q is no voice of VOICEVOX: it is the number of a style, which /speakers lists", o.Voice)
	}
	if o.Speed != 0 && (o.Speed < 50 || o.Speed > 200) {
		return fmt.Errorf("VOICEVOX speaks at 50 to 200 percent of a voice's speed, not %d", o.Speed)
	}
	return o.media().Check()
}

var styleID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{1,10}$`) })

func (o Options) media() media.Options {
	return media.Options{Service: "VOICEVOX", URL: cmp.Or(o.URL, "http://127.0.0.1:50021"), Key: o.Key, FirstByte: o.Within, Idle: o.Within}
}

// Engine implements voice.Synthesizer.
type Engine struct {
	o      Options
	client *media.Client
	first  remote.Cached[string] // the server's first style
}

// firstFor is how long the server's first style is cached.
const firstFor = 5 * time.Minute

// New returns the engine. It opens no connection.
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

// Check reports whether the server has the voice. Its error is one sentence.
func (e *Engine) Check(ctx context.Context) error {
	_, err := e.style(ctx)
	return err
}

// style requests the server's styles and returns the configured one, or else the first.
func (e *Engine) style(ctx context.Context) (id string, err error) {
	answer, err := e.client.Call(ctx, remote.Request{Method: http.MethodGet, Path: "speakers"})
	if err != nil {
		return "", err
	}
	defer answer.Close()
	body, err := answer.Whole(limit.File)
	if err != nil {
		return "", err
	}
	var speakers []struct {
		Name   string
		Styles []struct {
			ID   uint32
			Type string // "talk" or empty; others sing
		}
	}
	if json.Unmarshal(body, &speakers) != nil {
		return "", e.client.Fault("answers with something else than a list of speakers; check the url, whose port is mostly 50021")
	}
	for _, speaker := range speakers {
		for _, style := range speaker.Styles {
			id := strconv.FormatUint(uint64(style.ID), 10)
			if (style.Type == "" || style.Type == "talk") && (e.o.Voice == "" || e.o.Voice == id) {
				return id, nil
			}
		}
	}
	if e.o.Voice == "" {
		return "", e.client.Fault("has no voice; install one in it")
	}
	return "", e.client.Fault("has no style " + e.o.Voice + "; its /speakers lists those that it has")
}

// styleFor returns the style for a call.
func (e *Engine) styleFor(ctx context.Context, o voice.Options) (id string, err error) {
	if styleID().MatchString(o.Voice) {
		return o.Voice, nil
	}
	if e.o.Voice != "" {
		return e.o.Voice, nil
	}
	id, fresh := e.first.Get()
	if !fresh {
		if id, err = e.style(ctx); err == nil {
			e.first.Put(id, firstFor)
		}
	}
	return id, err
}

// longestText bounds a text, in characters, since it is part of a URL.
const longestText = 1000

// Synthesize implements voice.Synthesizer. It wraps voice.ErrLanguage for any language but Japanese.
func (e *Engine) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	language := cmp.Or(o.Language, e.o.Language, "ja")
	if voice.BaseLanguage(language) != "ja" {
		return fmt.Errorf("%w: VOICEVOX only speaks Japanese, not %.40q", voice.ErrLanguage, language)
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if n := utf8.RuneCountInString(text); n > longestText {
		return fmt.Errorf("VOICEVOX is given %d characters at once, not %d", longestText, n)
	}
	style, err := e.styleFor(ctx, o)
	if err != nil {
		return err
	}
	query, err := e.query(ctx, text, style)
	if err != nil || query == nil {
		return err
	}
	return e.client.Sound(ctx, remote.Request{Method: http.MethodPost, Path: "synthesis", Query: url.Values{"speaker": {style}},
		ContentType: "application/json", Body: query},
		media.Wanted{Text: text, Format: "wav", Cure: "check the url", Convert: "check the url", Silence: "check the voice"}, out)
}

// query makes the server analyse a text. It returns the query for synthesis, or nil if there is nothing
// to speak.
func (e *Engine) query(ctx context.Context, text, style string) ([]byte, error) {
	answer, err := e.client.Call(ctx, remote.Request{Method: http.MethodPost, Path: "audio_query",
		Query: url.Values{"text": {text}, "speaker": {style}}})
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	body, err := answer.Whole(limit.File)
	if err != nil {
		return nil, err
	}
	var query map[string]any // a map, to pass on unknown fields
	if json.Unmarshal(body, &query) != nil || query["accent_phrases"] == nil {
		return nil, e.client.Fault("answers audio_query with something else than a query; check the url, whose port is mostly 50021")
	}
	if phrases, is := query["accent_phrases"].([]any); is && len(phrases) == 0 {
		return nil, nil
	}
	query["speedScale"] = float64(cmp.Or(e.o.Speed, 100)) / 100
	query["outputSamplingRate"], query["outputStereo"] = voice.SpeakerRate, false
	return json.Marshal(query)
}
