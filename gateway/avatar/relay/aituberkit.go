package relay

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/remote"
)

// aituberkit is AITuberKit by its external API: its character speaks the text it is sent, with
// its own voice and face. An open page of it is a receiver.
type aituberkit struct {
	*programConfig
	base   *url.URL
	spoken *recent // ids of notifications
}

const (
	aituberWithin = 4 * time.Second
	aituberEvery  = 15 * time.Second // how often the open page is checked
)

func aituberkitKind() kind {
	return kind{
		Kind: Kind{Name: "aituberkit", Title: "AITuberKit", URL: "http://127.0.0.1:3000",
			Shows: []string{"faces", "speech", "notifications", "questions"}},
		schemes: []string{"http", "https"},
		faces:   agent.VocabularyVRM,
		words:   map[string]string{"receiver": "", "speak.sentence": "normal", "speak.notification": "high", "speak.question": "high"},
		make:    newAITuberKit,
	}
}

func newAITuberKit(o *programConfig) (program, error) {
	for _, key := range []string{"speak.sentence", "speak.notification", "speak.question"} {
		if word := o.words.of(key); !slices.Contains([]string{"", "normal", "high"}, word) {
			return nil, fmt.Errorf("words.%s is %.40q; it is the priority, normal or high, or empty where such is not to be spoken", key, word)
		}
	}
	base, err := url.Parse(o.URL)
	return aituberkit{o, base, &recent{}}, err
}

// aituberReceiver is an open page.
type aituberReceiver struct {
	ID           string   `json:"receiverId"`
	Configured   string   `json:"configuredClientId"`
	Name         string   `json:"displayName"`
	Capabilities []string `json:"capabilities"`
}

// aituberSpeech is the body of POST /api/v1/speak/.
type aituberSpeech struct {
	Receiver string `json:"receiverId"`
	Text     string `json:"text"`
	Emotion  string `json:"emotion,omitempty"`
	Priority string `json:"priority"`
	Session  string `json:"speechSessionId,omitempty"`
}

func (p aituberkit) open(ctx context.Context, note func(error)) (link, error) {
	l := &aituberLink{aituberkit: p, httpLink: newHTTPLink(remote.Options{Base: p.base, Server: remote.Server{Service: "AITuberKit",
		Address: remote.Address(p.base), Key: p.Key, Setting: "key", Check: "its version"}}, aituberWithin, note)}
	if err := l.chooseReceiver(ctx); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// aituberLink is a link to an open page.
type aituberLink struct {
	*httpLink
	aituberkit
	receiver string
	answer   string // the session id of one answer's sentences, so that a later one does not displace earlier ones
}

// call sends a request; the API's paths end with a slash.
func (l *aituberLink) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	text, _, err := l.httpLink.call(ctx, remote.Request{Method: method, Path: "api/v1/" + path + "/", Body: body, Within: aituberWithin}, limit.List)
	fault, is := errors.AsType[*remote.Fault](err)
	if is && fault.Status == http.StatusServiceUnavailable && strings.Contains(fault.Reason, "API key") {
		return nil, errors.New("AITuberKit has no API key; set AITUBERKIT_API_KEY where it runs, start it anew, and give the same as key")
	}
	return text, err
}

// chooseReceiver chooses the page that speaks.
func (l *aituberLink) chooseReceiver(ctx context.Context) error {
	text, err := l.call(ctx, http.MethodGet, "receivers", nil)
	if err != nil {
		return err
	}
	var list struct {
		Receivers *[]aituberReceiver `json:"receivers"`
	}
	if json.Unmarshal(text, &list) != nil || list.Receivers == nil {
		return errors.New("what answers is not AITuberKit, or is older than version 2.69; correct url, or update it")
	}
	l.receiver = aituberChoice(*list.Receivers, l.words.of("receiver"), l.receiver)
	switch wanted := l.words.of("receiver"); {
	case l.receiver != "":
		return nil
	case wanted != "":
		return fmt.Errorf("AITuberKit has no open page %q that can speak; open it, and switch on its Message Receiver", wanted)
	}
	return errors.New("AITuberKit has no open page that can speak; open it in a browser, and switch on its Message Receiver")
}

// aituberChoice returns the page that the owner named, or the previous one, or the one listed
// first, or "".
func aituberChoice(all []aituberReceiver, wanted, before string) (id string) {
	for _, r := range all {
		switch {
		case !slices.Contains(r.Capabilities, "speech"),
			wanted != "" && !slices.Contains([]string{r.ID, r.Configured, r.Name}, wanted):
		case r.ID == before:
			return before
		case id == "":
			id = r.ID
		}
	}
	return id
}

// speak has a text spoken. It returns errNotShown where words leave it out, or when AITuberKit
// refuses this text for good.
func (l *aituberLink) speak(ctx context.Context, what, text string, is Scene) error {
	priority := l.words.of("speak." + what)
	if priority == "" || strings.TrimSpace(text) == "" {
		return errNotShown
	}
	s := aituberSpeech{Receiver: l.receiver, Text: text, Emotion: l.words.face(is.Expression()), Priority: priority}
	if what == "sentence" {
		l.answer = cmp.Or(l.answer, rand.Text())
		s.Session = l.answer
	}
	_, err := l.call(ctx, http.MethodPost, "speak", httpserver.Encode(s))
	return l.checkRefusal(err)
}

func (l *aituberLink) frame(ctx context.Context, f *feed.Frame, is Scene) error {
	switch b := f.Body.(type) {
	case feed.State:
		if b.State != agent.Speaking && cmp.Or(string(b.Robot), b.Session) == is.place() {
			l.answer = "" // the next sentence belongs to another answer
		}
	case feed.Face:
		if is.Session == trialSession { // faces are shown only with speech
			return l.speak(ctx, "sentence", b.Tag, is)
		}
	case feed.Said:
		if cmp.Or(string(b.Robot), b.Session) == is.place() {
			return l.speak(ctx, "sentence", b.Text, is)
		}
	case feed.Notice:
		what := "notification"
		if b.Question != "" {
			what = "question"
		}
		if l.spoken.has(idOf(f)) {
			return nil
		}
		if err := l.speak(ctx, what, b.Text, is); err != nil {
			return err
		}
		l.spoken.add(idOf(f))
	}
	return nil
}

// refresh chooses another page if the current one was closed.
func (l *aituberLink) refresh(ctx context.Context, _ Scene) error { return l.chooseReceiver(ctx) }
func (l *aituberLink) refreshEvery() time.Duration                { return aituberEvery }
