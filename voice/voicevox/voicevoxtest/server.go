// Package voicevoxtest plays a server with VOICEVOX's HTTP API. It is written from the source of voicevox_engine of August 2026:
// the routers character, engine_info and tts_pipeline, the models that they validate, and the exception handlers.
package voicevoxtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/voice/voicetest"
)

// Speakers is a shortened response to /speakers. A speaker has styles for speech, for singing or for both.
const Speakers = `[
	{"name":"波音リツ","speaker_uuid":"b1a81618-b27b-40d2-b0ea-27a9ad408c4b","version":"0.16.2","supported_features":{},
	 "styles":[{"name":"歌","id":3009,"type":"frame_decode"}]},
	{"name":"ずんだもん","speaker_uuid":"388f246b-8c41-4ac1-8e2d-5d79f3ff56d9","version":"0.16.2","supported_features":{"permitted_synthesis_morphing":"ALL"},
	 "styles":[{"name":"ノーマル","id":3,"type":"talk"},{"name":"あまあま","id":1},{"name":"ツンツン","id":7,"type":"talk"},
	           {"name":"ささやき","id":22,"type":"talk"},{"name":"なみだめ","id":76,"type":"talk"},{"name":"ノーマル","id":3003,"type":"frame_decode"}]},
	{"name":"春日部つむぎ","speaker_uuid":"35b2c544-660e-401e-b503-0e14c635303a","version":"0.16.2","supported_features":{},
	 "styles":[{"name":"ノーマル","id":8,"type":"talk"}]}]`

// manifest is the beginning of a response to /engine_manifest. Long licences follow.
const manifest = `{"manifest_version":"0.13.1","name":"VOICEVOX Engine","brand_name":"VOICEVOX","uuid":"074fc39e-678b-4c13-8916-ffca8d505d1d",
	"url":"https://github.com/VOICEVOX/voicevox_engine","icon":"iVBORw0KGgo=","default_sampling_rate":24000,"frame_rate":93.75,
	"terms_of_service":"...","update_infos":[],"dependency_licenses":[{"name":"a","version":"1","license":"MIT","text":"`

// Phrase is an accent phrase in a response to /audio_query.
const Phrase = `{"moras":[{"text":"コ","consonant":"k","consonant_length":0.05,"vowel":"o","vowel_length":0.1,"pitch":5.7}],"accent":1,"pause_mora":null,"is_interrogative":false}`

// Server is the server. Its fields may be changed while no request is served.
type Server struct {
	URL      string
	Speakers string         // response to /speakers; empty for no speakers
	Manifest bool           // the server has /engine_manifest
	Phrases  string         // accent phrases in responses to /audio_query
	Rate     int            // rate of the sound in Hz, regardless of the requested rate
	Fails    map[string]int // status of each path that fails

	mu    sync.Mutex
	asked []string
	query map[string]any
}

// Start starts a server that ends with the test.
func Start(t testing.TB) *Server {
	s := &Server{Speakers: Speakers, Manifest: true, Phrases: Phrase, Rate: 24000, Fails: map[string]int{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Asked returns the requests so far, such as "POST /synthesis 3" or "POST /audio_query 3 はい", and forgets them.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

// Query returns the body of the latest request for synthesis.
func (s *Server) Query() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.query
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parameters := r.URL.Query()
	s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+parameters.Get("speaker")+" "+parameters.Get("text")))
	route, found := map[string]struct {
		method string
		serve  func(http.ResponseWriter, *http.Request, url.Values)
	}{
		"/speakers":               {http.MethodGet, s.speakers},
		"/engine_manifest":        {http.MethodGet, s.manifest},
		"/is_initialized_speaker": {http.MethodGet, s.styled(func(w http.ResponseWriter, _ *http.Request, _ url.Values) { reply(w, "true") })},
		"/initialize_speaker":     {http.MethodPost, s.styled(func(w http.ResponseWriter, _ *http.Request, _ url.Values) { w.WriteHeader(http.StatusNoContent) })},
		"/audio_query":            {http.MethodPost, s.styled(s.audioQuery)},
		"/synthesis":              {http.MethodPost, s.styled(s.synthesis)},
		"/cancellable_synthesis": {http.MethodPost, s.styled(func(w http.ResponseWriter, _ *http.Request, _ url.Values) {
			refuse(w, http.StatusNotFound, `{"detail":"実験的機能はデフォルトで無効になっています。使用するには引数を指定してください。"}`)
		})},
	}[r.URL.Path]
	switch status := s.Fails[r.URL.Path]; {
	case status != 0:
		refuse(w, status, `{"detail":"エンジンの都合"}`)
	case !found:
		refuse(w, http.StatusNotFound, `{"detail":"Not Found"}`)
	case r.Method != route.method:
		refuse(w, http.StatusMethodNotAllowed, `{"detail":"Method Not Allowed"}`)
	default:
		route.serve(w, r, parameters)
	}
}

// reply sends a response in JSON.
func reply(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, body)
}

// refuse sends an error.
func refuse(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// invalid sends FastAPI's error for a parameter or a field of the body.
func invalid(w http.ResponseWriter, kind, in, name string) {
	refuse(w, http.StatusUnprocessableEntity, fmt.Sprintf(`{"detail":[{"type":%q,"loc":[%q,%q],"msg":"Field required","input":null}]}`, kind, in, name))
}

// speakers serves /speakers.
func (s *Server) speakers(w http.ResponseWriter, _ *http.Request, _ url.Values) {
	if s.Speakers == "" {
		reply(w, "[]")
		return
	}
	reply(w, s.Speakers)
}

// manifest serves /engine_manifest, with licences of several megabytes.
func (s *Server) manifest(w http.ResponseWriter, _ *http.Request, _ url.Values) {
	if !s.Manifest {
		refuse(w, http.StatusNotFound, `{"detail":"Not Found"}`)
		return
	}
	reply(w, manifest+strings.Repeat("all of the licence ", 200_000)+`"}]}`)
}

// styled returns a handler that checks the parameter speaker before it calls serve.
func (s *Server) styled(serve func(http.ResponseWriter, *http.Request, url.Values)) func(http.ResponseWriter, *http.Request, url.Values) {
	return func(w http.ResponseWriter, r *http.Request, parameters url.Values) {
		number, err := strconv.Atoi(parameters.Get("speaker"))
		if err != nil {
			invalid(w, "missing", "query", "speaker")
			return
		}
		var speakers []struct {
			Styles []struct {
				ID   int
				Type string
			}
		}
		_ = json.Unmarshal([]byte(s.Speakers), &speakers)
		for _, speaker := range speakers {
			for _, style := range speaker.Styles {
				if style.ID == number && style.Type != "" && style.Type != "talk" {
					refuse(w, http.StatusUnprocessableEntity, `{"message":"指定されたスタイルはこの機能をサポートしていません。"}`)
					return
				}
				if style.ID == number {
					serve(w, r, parameters)
					return
				}
			}
		}
		refuse(w, http.StatusUnprocessableEntity, `{"message":"指定されたスタイルが見つかりませんでした。"}`)
	}
}

// audioQuery serves /audio_query.
func (s *Server) audioQuery(w http.ResponseWriter, _ *http.Request, parameters url.Values) {
	if !parameters.Has("text") {
		invalid(w, "missing", "query", "text")
		return
	}
	reply(w, `{"accent_phrases":[`+s.Phrases+`],"speedScale":1.0,"pitchScale":0.0,"intonationScale":1.0,"volumeScale":1.0,
		"prePhonemeLength":0.1,"postPhonemeLength":0.1,"pauseLength":null,"pauseLengthScale":1.0,"outputSamplingRate":24000,
		"outputStereo":false,"kana":"コンニチワ'"}`)
}

// synthesis serves /synthesis.
func (s *Server) synthesis(w http.ResponseWriter, r *http.Request, _ url.Values) {
	s.query = nil
	if r.Header.Get("Content-Type") != "application/json" || json.NewDecoder(r.Body).Decode(&s.query) != nil {
		invalid(w, "model_attributes_type", "body", "query")
		return
	}
	for _, name := range []string{"speedScale", "pitchScale", "intonationScale", "volumeScale", "prePhonemeLength", "postPhonemeLength", "outputSamplingRate"} {
		if _, ok := s.query[name].(float64); !ok {
			invalid(w, "missing", "body", name)
			return
		}
	}
	_, stereo := s.query["outputStereo"].(bool)
	phrases, ok := s.query["accent_phrases"].([]any)
	if !stereo || !ok || slices.ContainsFunc(phrases, func(p any) bool {
		phrase, _ := p.(map[string]any)
		return phrase["moras"] == nil || phrase["accent"] == nil
	}) {
		invalid(w, "missing", "body", "accent_phrases")
		return
	}
	w.Header().Set("Content-Type", "audio/wav")
	_, _ = w.Write(voicetest.WAV(s.Rate, voicetest.Tone(s.Rate, 400, 8000, time.Second/10))) // VOICEVOX also returns 16-bit PCM
}
