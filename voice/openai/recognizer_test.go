package openai

import (
	"bytes"
	"encoding/binary"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"

	"perch/voice"
	"perch/voice/voicetest"
)

// received is the content of a form that a server received.
type received struct {
	fields []string // "name=value" in order, the file without its value
	file   []byte
}

func readForm(t testing.TB, r *http.Request) received {
	t.Helper()
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" {
		t.Errorf("type %q: %v", kind, err)
	}
	var h received
	form := multipart.NewReader(r.Body, parameters["boundary"])
	for {
		part, err := form.NextPart()
		if err != nil {
			if err != io.EOF {
				t.Errorf("the form: %v", err)
			}
			return h
		}
		value, err := io.ReadAll(part)
		if err != nil {
			t.Errorf("the form: %v", err)
		}
		if part.FormName() == "file" {
			h.fields = append(h.fields, "file="+part.FileName()+" "+part.Header.Get("Content-Type"))
			h.file = value
			continue
		}
		h.fields = append(h.fields, part.FormName()+"="+string(value))
	}
}

func TestRecognizerSpeaksTheProtocol(t *testing.T) {
	var got received
	url := voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "POST" || r.URL.Path != "/v1/audio/transcriptions" || r.Header.Get("Authorization") != "Bearer "+canary {
			t.Errorf("%s %s with %q", r.Method, r.URL, r.Header)
		}
		if r.ContentLength < 2*8000 {
			t.Errorf("a length of %d", r.ContentLength)
		}
		got = readForm(t, r)
		for _, b := range []byte(` {"text":" Wie spät\n ist es?\u0020", "usage":{"type":"duration"}}`) {
			_, _ = w.Write([]byte{b})
			w.(http.Flusher).Flush()
		}
	})
	r := recognizer(t, Options{URL: url, Key: canary + "\n", Model: "tiny"})
	if r.Name() != "openai" {
		t.Errorf("its name is %q", r.Name())
	}
	u := voice.NewUtterance()
	u.Write(ramp(5000))
	go func() { u.Write(ramp(3000)); u.Finish() }()
	text, err := r.Recognize(t.Context(), u, voice.Options{Language: "de-CH"})
	if err != nil || text != (voice.Transcript{Text: "Wie spät ist es?"}) {
		t.Errorf("%+v, %v", text, err)
	}
	want := []string{"model=tiny", "language=de", "response_format=json", "file=utterance.wav audio/wav"}
	if !slices.Equal(got.fields, want) {
		t.Errorf("sent %q", got.fields)
	}
	if !bytes.Equal(got.file, voicetest.WAV(16000, append(ramp(5000), ramp(3000)...))) {
		t.Errorf("a file of %d bytes, which is not the WAV of what was spoken", len(got.file))
	}
}

// TestLanguageOfTheTranscript checks that Recognize requests the language if DetectLanguage is set, and no
// longer after a server has refused such a request.
func TestLanguageOfTheTranscript(t *testing.T) {
	for _, verbose := range []bool{true, false} {
		var asked []string
		r := recognizer(t, Options{URL: voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) {
			got := strings.Join(readForm(t, r).fields[:2], " ")
			asked = append(asked, got)
			switch {
			case !strings.Contains(got, "verbose_json"):
				_, _ = io.WriteString(w, `{"text":"Hallo"}`)
			case verbose:
				_, _ = io.WriteString(w, `{"task":"transcribe","language":"german","duration":1,"text":"Hallo"}`)
			default:
				http.Error(w, `{"error":{"message":"response_format is not supported"}}`, http.StatusBadRequest)
			}
		}), Model: "m"})
		want, once := voice.Transcript{Text: "Hallo", Language: "german"}, []string{"model=m response_format=verbose_json"}
		all := append(once, once...)
		if !verbose {
			want.Language = ""
			all = append(once, "model=m language=en", "model=m language=en")
		}
		for range 2 {
			u := voice.NewUtterance()
			u.Write(ramp(8000))
			u.Finish()
			if got, err := r.Recognize(t.Context(), u, voice.Options{Language: "en", DetectLanguage: true}); err != nil || got != want {
				t.Errorf("%+v, %v", got, err)
			}
		}
		if !slices.Equal(asked, all) {
			t.Errorf("asked for %q", asked)
		}
	}
}

func TestLanguages(t *testing.T) {
	for tag, want := range map[string]string{"en": "en", "en-GB": "en", "DE_de": "", "": "", "yue-HK": "yue", "x": "", "english": "", "e\r\n": ""} {
		if got := languageOf(tag); got != want {
			t.Errorf("%q is %q, want %q", tag, got, want)
		}
	}
}

func TestUploadStartsWhileTheUserSpeaks(t *testing.T) {
	begun, file := make(chan []byte), make(chan []byte, 1)
	url := voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != -1 {
			t.Errorf("a length of %d", r.ContentLength)
		}
		_, parameters, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		form := multipart.NewReader(r.Body, parameters["boundary"])
		for {
			part, err := form.NextPart()
			if err != nil {
				t.Error(err)
				return
			}
			if part.FormName() != "file" {
				continue
			}
			head := make([]byte, 44+2*1600)
			_, _ = io.ReadFull(part, head)
			begun <- head
			rest, _ := io.ReadAll(part)
			file <- append(head, rest...)
			_, _ = io.WriteString(w, `{"text":"Hello."}`)
			return
		}
	})
	r := recognizer(t, Options{URL: url, StreamUpload: true})
	u := voice.NewUtterance()
	u.Write(ramp(4000))
	go func() {
		head := <-begun // before the utterance is finished
		if size := binary.LittleEndian.Uint32(head[40:]); string(head[:4]) != "RIFF" || size != 0xffffffff {
			t.Errorf("begins with %q, %#x bytes of sound", head[:4], size)
		}
		u.Write(ramp(1001))
		u.Finish()
	}()
	text, err := r.Recognize(t.Context(), u, voice.Options{})
	if err != nil || text.Text != "Hello." {
		t.Fatalf("%+v, %v", text, err)
	}
	if want := raw(append(ramp(4000), ramp(1001)...)); !bytes.Equal((<-file)[44:], want) {
		t.Error("the samples are not those that were spoken")
	}
}

func TestTooShortForAServer(t *testing.T) {
	url := voicetest.Server(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") })
	for _, stream := range []bool{false, true} {
		r := recognizer(t, Options{URL: url, StreamUpload: stream})
		for _, n := range []int{0, 1599} {
			if text, err := r.Recognize(t.Context(), voicetest.Utterance(ramp(n)), voice.Options{}); err != nil || !text.Refused {
				t.Errorf("%d samples: %+v, %v", n, text, err)
			}
		}
	}
}

func TestAnswersThatAreNoTranscript(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":"FFmpeg conversion failed for Bearer ` + canary + `"}`: "FFmpeg conversion failed",
		`{"error":{"message":"no speech"}}`:                              "no speech",
		`{"error":{}}`:                                                   "does not say why",
		`{"error":null}`:                                                 "something else than a transcript",
		`{"text":null}`:                                                  "something else than a transcript",
		`{"text":7}`:                                                     "something else than a transcript",
		`<html>` + canary:                                                "something else than a transcript",
		``:                                                               "something else than a transcript",
		`{"text":"` + strings.Repeat("a", 70000) + `"}`: "an answer that is too long",
	} {
		url := voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) {
			readForm(t, r)
			_, _ = io.WriteString(w, body)
		})
		_, err := recognizer(t, Options{URL: url, Key: canary}).Recognize(t.Context(), voicetest.Utterance(ramp(8000)), voice.Options{})
		voicetest.Sentence(t, err, want)
	}
}

func TestServerThatWantsWholeFiles(t *testing.T) {
	url := voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) {
		readForm(t, r)
		http.Error(w, "no length", http.StatusLengthRequired)
	})
	_, err := recognizer(t, Options{URL: url, StreamUpload: true}).Recognize(t.Context(), voicetest.Utterance(ramp(8000)), voice.Options{})
	voicetest.Sentence(t, err, "set stream_upload to false")
	_, err = recognizer(t, Options{URL: url}).Recognize(t.Context(), voicetest.Utterance(ramp(8000)), voice.Options{})
	if err == nil || strings.Contains(err.Error(), "streamed") {
		t.Errorf("without it: %v", err)
	}
}

func FuzzTranscript(f *testing.F) {
	for _, seed := range []string{`{"text":"hello"}`, `{"text":" [BLANK_AUDIO] "}`, `{"error":"x"}`, `{"error":{"message":"x"}}`, `[]`,
		`{"text":"("}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		heard, complaint, ok := parseTranscript(body)
		text := heard.Text
		if ok && complaint != "" || !ok && text != "" {
			t.Errorf("%q, %q, %v", text, complaint, ok)
		}
		if strings.TrimSpace(text) != text || strings.Contains(text, "\n") {
			t.Errorf("%q is not one line", text)
		}
	})
}
