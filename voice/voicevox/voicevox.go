// Package voicevox synthesizes Japanese speech with the HTTP API of VOICEVOX, which AivisSpeech
// and other programs also have. A text takes two calls: audio_query returns an analysis of the text,
// and synthesis returns the sound for the analysis. The server has speakers, each with one or more styles:
// ways to speak, such as a whisper. Each style has a number.
package voicevox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	URL   string `yaml:"url" doc:"The engine's address. If empty, http://127.0.0.1:50021."`
	Voice string `yaml:"voice" doc:"The number of a style, as the engine's /speakers lists it. If empty, the first style there."`
	Speed int    `yaml:"speed" unit:"%" doc:"In percent of the voice's own, 50 to 200. If 0, 100."`
	Pitch int    `yaml:"pitch" doc:"In hundredths of an octave above the voice's own, -15 to 15. Negative numbers make the voice deeper."`
	// Styles maps names of faces to names of styles; nil means those of faceStyles.
	Styles  map[string]string `yaml:"styles" doc:"Which style of the speaker a face is spoken in: {happy: あまあま, sad: なみだめ}. If left out, the style that suits the face, if voice is the speaker's first style. If {}, always voice."`
	Key     string            `yaml:"key" doc:"The bearer token that a proxy before the engine wants; the engine itself wants none."`
	KeyFile string            `yaml:"key_file" doc:"A file that holds the key."`
	Within  time.Duration     `yaml:"within" doc:"The longest time until sound begins: the engine makes a whole sentence first. If 0s, 10s."`
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
	if o.Pitch < -15 || o.Pitch > 15 {
		return fmt.Errorf("the pitch of VOICEVOX is -15 to 15 hundredths of an octave, not %d", o.Pitch)
	}
	for face := range o.Styles {
		if _, found := faceStyles()[face]; !found {
			return fmt.Errorf("styles has a face %.80q, but the faces are %s", face, strings.Join(slices.Sorted(maps.Keys(faceStyles())), ", "))
		}
	}
	return o.media().Check()
}

// styleID matches the IDs of styles.
var styleID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{1,10}$`) })

// media returns the options of the client.
func (o Options) media() media.Options {
	return media.Options{Service: "VOICEVOX", URL: cmp.Or(o.URL, "http://127.0.0.1:50021"), Key: o.Key, FirstByte: o.Within, Idle: o.Within}
}

// faceStyles maps the names of all faces to names of styles that suit them, the best first, separated by spaces. The
// names are those of the speakers of VOICEVOX 0.25 and AivisSpeech 1.1.
func faceStyles() map[string]string {
	const (
		joy    = "喜び よろこび わーい たのしい 楽々 うきうき 上機嫌 明るい 元気 テンション高め あまあま 甘々"
		sorrow = "悲しみ 哀しみ かなしみ かなしい なみだめ 泣き びえーん 怒り・悲しみ"
		fear   = "恐怖 こわがり びくびく おどおど おどろき"
		love   = "あまあま 甘々 喜び"
		calm   = "のんびり おちつき 落ち着き しっとり"
	)
	return map[string]string{
		"happy": joy, "laughing": joy, "funny": joy, "silly": joy, "winking": joy, "delicious": joy,
		"sad": sorrow, "crying": "泣き びえーん なみだめ " + sorrow,
		"angry":     "怒り おこ ツンギレ 不機嫌 人間（怒り）ver. ツンツン 怒り・悲しみ",
		"surprised": "おどろき", "shocked": fear, "embarrassed": "人見知り おどおど",
		"loving": love, "kissy": love,
		"relaxed": calm, "sleepy": "けだるげ 低血圧 " + calm,
		"confident": "つよつよ 熱血", "cool": "つよつよ",
		"neutral": "", "thinking": "", "confused": "",
	}
}

// ErrNoStyle is wrapped by the error of [Engine.Check] for a name in Options.Styles that no speaker has. The engine
// works: it speaks the face in the voice's own style.
var ErrNoStyle = errors.New("no speaker has a style of that name")

// Engine implements voice.Synthesizer.
type Engine struct {
	o        Options
	client   *media.Client
	speakers remote.Cached[[]speaker]
	brand    atomic.Pointer[string] // the server's product, such as "VOICEVOX"; nil if unknown
}

// speakersExpiry is how long the server's speakers are cached.
const speakersExpiry = 5 * time.Minute

// speaker is a speaker of the server, in the response to /speakers.
type speaker struct {
	Name   string
	Styles []style
}

// style is a style of a speaker.
type style struct {
	Name string
	ID   uint32
	Type string // "talk" or "" for speech; other types are for singing
}

// number returns the style's number, as in Options.Voice.
func (s style) number() string { return strconv.FormatUint(uint64(s.ID), 10) }

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

// Check returns an error of one sentence if the server does not respond or does not have the voice. The error wraps
// ErrNoStyle if only a name in Options.Styles is unknown.
func (e *Engine) Check(ctx context.Context) error {
	speakers, err := e.fetchSpeakers(ctx)
	if err != nil {
		return err
	}
	if e.brand.Load() == nil {
		e.fetchBrand(ctx)
	}
	own, _, found := find(speakers, e.o.Voice)
	if !found {
		return e.errNoStyle(speakers, e.o.Voice)
	}
	known := func(name string) bool {
		return slices.ContainsFunc(speakers, func(s speaker) bool { return s.styleNamed(name) != nil })
	}
	for _, face := range slices.Sorted(maps.Keys(e.o.Styles)) {
		if name := e.o.Styles[face]; name != "" && !known(name) {
			return fmt.Errorf("%w: styles has %s: %.80s; %s has %s", ErrNoStyle, face, name, e.client.Quote(own.Name), e.list([]speaker{own}))
		}
	}
	return nil
}

// StatusText returns the server's address and, once Check has found it, the name that has to be given where the
// voice is published, such as "VOICEVOX:ずんだもん".
func (e *Engine) StatusText() string {
	speakers, _ := e.speakers.Get()
	own, _, found := find(speakers, e.o.Voice)
	brand := e.brand.Load()
	if !found || brand == nil {
		return e.client.Address
	}
	return e.client.Address + "; where its voice is published, credit it: " + e.client.Quote(*brand+":"+own.Name)
}

// Voices implements voice.Lister. It returns the server's styles for speech, such as 3: ずんだもん（ノーマル）.
func (e *Engine) Voices(ctx context.Context) (list []voice.Named, err error) {
	speakers, err := e.fetchSpeakers(ctx)
	for _, speaker := range speakers {
		for _, style := range speaker.Styles {
			list = append(list, voice.Named{Name: style.number(), Title: speaker.Name + "（" + style.Name + "）"})
		}
	}
	return list, err
}

// fetchSpeakers requests the server's speakers, and caches them. Styles for singing are left out.
func (e *Engine) fetchSpeakers(ctx context.Context) (speakers []speaker, err error) {
	body, err := e.client.Get(ctx, "speakers", nil)
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(body, &speakers) != nil {
		return nil, e.client.Fault("sent a response that is not a list of speakers; check the url, whose port is mostly 50021")
	}
	for i := range speakers {
		speakers[i].Styles = slices.DeleteFunc(speakers[i].Styles, func(s style) bool { return s.Type != "" && s.Type != "talk" })
	}
	e.speakers.Put(speakers, speakersExpiry)
	return speakers, nil
}

// fetchBrand requests the name of the server's product. It ignores errors: old servers have no /engine_manifest. It
// reads the response only as far as the name, because the licences that follow may have megabytes.
func (e *Engine) fetchBrand(ctx context.Context) {
	response, err := e.client.Call(ctx, remote.Request{Method: http.MethodGet, Path: "engine_manifest"})
	if err != nil {
		return
	}
	defer response.Close()
	for fields := json.NewDecoder(io.LimitReader(response, limit.File)); ; {
		token, err := fields.Token()
		if err != nil {
			return
		}
		var brand string
		if token == "brand_name" && fields.Decode(&brand) == nil && brand != "" {
			e.brand.Store(&brand)
			return
		}
	}
}

// find returns the speaker that has the style with a number, and the index of the style among the speaker's styles.
// If number is "", that is the first style of all.
func find(speakers []speaker, number string) (of speaker, index int, found bool) {
	for _, speaker := range speakers {
		for i, style := range speaker.Styles {
			if number == "" || number == style.number() {
				return speaker, i, true
			}
		}
	}
	return speaker{}, 0, false
}

// styleNamed returns the speaker's style with a name, or nil.
func (s speaker) styleNamed(name string) *style {
	if i := slices.IndexFunc(s.Styles, func(s style) bool { return s.Name == name }); i >= 0 {
		return &s.Styles[i]
	}
	return nil
}

// errNoStyle returns the error for a number that no style has.
func (e *Engine) errNoStyle(speakers []speaker, number string) error {
	if number == "" {
		return e.client.Fault("has no voice; install one in it")
	}
	return e.client.Fault("has no style " + number + "; set voice to one that it has: " + e.list(speakers))
}

// maxListed is how many styles an error lists.
const maxListed = 8

// list returns the styles of speakers as a part of a sentence.
func (e *Engine) list(speakers []speaker) string {
	var list []string
	for _, speaker := range speakers {
		for _, style := range speaker.Styles {
			list = append(list, style.number()+" "+e.client.Quote(speaker.Name+"（"+style.Name+"）"))
		}
	}
	if more := len(list) - maxListed; more > 0 {
		list = append(list[:maxListed], fmt.Sprintf("and %d more, which its /speakers lists", more))
	}
	return cmp.Or(strings.Join(list, ", "), "none")
}

// style returns the number of the style for a call. The voice is the style that the call names, or else the configured
// style, or the server's first style. If the voice's speaker has a style for the emotion, style returns that one
// instead, unless Options.Styles is nil and the voice is not the speaker's first style. An error means that the server's
// first style is needed and cannot be found.
func (e *Engine) style(ctx context.Context, o voice.Options) (number string, err error) {
	number = e.o.Voice
	if styleID().MatchString(o.Voice) {
		number = o.Voice
	}
	names := strings.Fields(faceStyles()[o.Emotion])
	if e.o.Styles != nil {
		names = nil
		if name := e.o.Styles[o.Emotion]; name != "" {
			names = []string{name}
		}
	}
	if number != "" && len(names) == 0 {
		return number, nil
	}
	speakers, fresh := e.speakers.Get()
	if !fresh {
		if speakers, err = e.fetchSpeakers(ctx); err != nil {
			if number != "" {
				return number, nil // the voice can be used without the list
			}
			return "", err
		}
	}
	own, index, found := find(speakers, number)
	switch {
	case !found && number == "":
		return "", e.errNoStyle(speakers, "")
	case !found: // perhaps the speakers have changed since they were cached
		return number, nil
	case e.o.Styles != nil || index == 0: // an owner who has chosen another style than the first wants it for all faces
		for _, name := range names {
			if suiting := own.styleNamed(name); suiting != nil {
				return suiting.number(), nil
			}
		}
	}
	return own.Styles[index].number(), nil
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
	if media.IsRefusal(err) { // for example because the speaker was uninstalled
		if speakers, failure := e.fetchSpeakers(ctx); failure == nil {
			if _, _, found := find(speakers, style); !found {
				return e.errNoStyle(speakers, style)
			}
		}
	}
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
	query["pitchScale"] = float64(e.o.Pitch) / 100
	query["outputSamplingRate"], query["outputStereo"] = voice.SpeakerRate, false
	return json.Marshal(query)
}
