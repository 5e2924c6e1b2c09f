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

// aituberkit is AITuberKit, through its external API. Its character speaks the texts that Perch sends,
// in its own voice and with a face. A receiver is an open web page of AITuberKit.
type aituberkit struct {
	*programConfig
	base   *url.URL
	spoken *recent // notifications that were spoken
}

const (
	aituberFirstTimeout = 30 * time.Second // timeout of the first requests: a development server compiles each route when it is first used
	aituberTimeout      = 4 * time.Second  // timeout of later requests
	aituberEvery        = 15 * time.Second // interval of checking that the page is still open
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
		if word := o.words.get(key); !slices.Contains([]string{"", "normal", "high"}, word) {
			return nil, fmt.Errorf("words.%s is %.40q; it must be the priority normal or high, or empty if these texts are not to be spoken", key, word)
		}
	}
	base, err := url.Parse(o.URL)
	return aituberkit{o, base, &recent{}}, err
}

// aituberReceiver is an entry of the response to GET /api/v1/receivers/.
type aituberReceiver struct {
	ID           string   `json:"receiverId"`
	Configured   string   `json:"configuredClientId"`
	Name         string   `json:"displayName"`
	Capabilities []string `json:"capabilities"`
}

// aituberSpeech is the body of POST /api/v1/speak/.
type aituberSpeech struct {
	Receiver string `json:"receiverId"`
	Text     string `json:"text"` // begins with the tag of a face, such as [happy]
	Priority string `json:"priority"`
	Session  string `json:"speechSessionId,omitempty"`
}

func (p aituberkit) open(ctx context.Context, note func(error)) (link, error) {
	l := &aituberLink{aituberkit: p, httpLink: newHTTPLink(remote.Options{Base: p.base, Server: remote.Server{Service: "AITuberKit",
		Address: remote.Address(p.base), Key: p.Key, Setting: "key", Check: "its version"}}, aituberTimeout, note)}
	err := l.chooseReceiver(ctx, aituberFirstTimeout)
	if err == nil {
		_, err = l.call(ctx, http.MethodGet, "speak", nil, aituberFirstTimeout) // makes a development server compile the route
		if fault, ok := errors.AsType[*remote.Fault](err); ok && fault.Code == remote.CodeRefused {
			err = nil // the route takes only POST
		}
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// aituberLink is a link to an open page.
type aituberLink struct {
	*httpLink
	aituberkit
	receiver string // ID of the page
	// reply is the speech session ID of the current reply, or "" before the reply's first sentence.
	// A sentence does not interrupt a previous sentence with the same ID.
	reply string
}

// call sends a request to a path of the API, and returns the body of the response.
func (l *aituberLink) call(ctx context.Context, method, path string, body []byte, timeout time.Duration) ([]byte, error) {
	text, _, err := l.httpLink.call(ctx, remote.Request{Method: method, Path: "api/v1/" + path + "/", Body: body, Within: timeout}, limit.List)
	fault, ok := errors.AsType[*remote.Fault](err)
	switch {
	case ok && fault.Status == http.StatusServiceUnavailable && strings.Contains(fault.Reason, "API key"):
		return nil, errors.New("AITuberKit has no API key; set AITUBERKIT_API_KEY and NEXT_PUBLIC_AITUBERKIT_API_KEY in its .env.local, restart it, and set key to the same value")
	case ok && fault.Code == remote.CodeSilent:
		return nil, fmt.Errorf("AITuberKit at %s does not answer within %s; it may still be compiling, or hang", l.address(), timeout)
	}
	return text, err
}

// chooseReceiver sets l.receiver. It returns an error if no suitable page is open.
func (l *aituberLink) chooseReceiver(ctx context.Context, timeout time.Duration) error {
	text, err := l.call(ctx, http.MethodGet, "receivers", nil, timeout)
	if err != nil {
		return err
	}
	var list struct {
		Receivers *[]aituberReceiver `json:"receivers"`
	}
	if json.Unmarshal(text, &list) != nil || list.Receivers == nil {
		return errors.New("the program at this address is not AITuberKit, or is older than version 2.69; correct url, or update AITuberKit")
	}
	l.receiver = aituberChoice(*list.Receivers, l.words.get("receiver"), l.receiver)
	switch wanted := l.words.get("receiver"); {
	case l.receiver != "":
		return nil
	case wanted != "":
		return fmt.Errorf("AITuberKit has no open page %q that can speak; open it, and switch on its Message Receiver", wanted)
	}
	return errors.New("AITuberKit has no open page that can speak; open it in a browser, and switch on its Message Receiver")
}

// aituberChoice returns the ID of a page that can speak, or "" if there is no such page. Unless wanted
// is empty, the page must have wanted as its ID, configured ID or name. If several pages match, the
// page with the ID previous has priority, and then the first page.
func aituberChoice(receivers []aituberReceiver, wanted, previous string) (id string) {
	for _, r := range receivers {
		switch {
		case !slices.Contains(r.Capabilities, "speech"),
			wanted != "" && !slices.Contains([]string{r.ID, r.Configured, r.Name}, wanted):
		case r.ID == previous:
			return previous
		case id == "":
			id = r.ID
		}
	}
	return id
}

// speak makes the page speak a text. kind is sentence, notification or question. speak returns
// errNotShown if the words exclude this kind, if the text is blank, or if AITuberKit refuses the text.
func (l *aituberLink) speak(ctx context.Context, kind, text string, scene Scene) error {
	priority := l.words.get("speak." + kind)
	if priority == "" || strings.TrimSpace(text) == "" {
		return errNotShown
	}
	if face := l.words.face(scene.Expression()); face != "" {
		text = "[" + face + "] " + text // a tag, because the page ignores the field emotion of the request
	}
	s := aituberSpeech{Receiver: l.receiver, Text: text, Priority: priority}
	if kind == "sentence" {
		l.reply = cmp.Or(l.reply, rand.Text())
		s.Session = l.reply
	}
	_, err := l.call(ctx, http.MethodPost, "speak", httpserver.Encode(s), aituberTimeout)
	return l.checkRefusal(err)
}

func (l *aituberLink) frame(ctx context.Context, f *feed.Frame, scene Scene) error {
	switch b := f.Body.(type) {
	case feed.State:
		if b.State != agent.Speaking && cmp.Or(string(b.Robot), b.Session) == scene.place() {
			l.reply = "" // the next sentence will begin another reply
		}
	case feed.Face:
		if scene.Session == trialSession { // the page shows a face only while it speaks
			return l.speak(ctx, "sentence", b.Tag, scene)
		}
	case feed.Said:
		if cmp.Or(string(b.Robot), b.Session) == scene.place() {
			return l.speak(ctx, "sentence", b.Text, scene)
		}
	case feed.Notice:
		kind := "notification"
		if b.Question != "" {
			kind = "question"
		}
		if l.spoken.has(frameID(f)) {
			return nil
		}
		if err := l.speak(ctx, kind, b.Text, scene); err != nil {
			return err
		}
		l.spoken.add(frameID(f))
	}
	return nil
}

// refresh chooses another page if the current one was closed.
func (l *aituberLink) refresh(ctx context.Context, _ Scene) error {
	return l.chooseReceiver(ctx, aituberTimeout)
}

func (l *aituberLink) refreshEvery() time.Duration { return aituberEvery }
