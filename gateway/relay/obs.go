package relay

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/agent/feed"
	"perch/limit"
	"perch/plain"
	"perch/remote"
)

// obs is OBS Studio, by obs-websocket 5. A text source shows the words; scene items are
// shown while the agent speaks, and in the states, faces and feelings whose words name
// one.
type obs struct{ *own }

func obsKind() kind {
	return kind{
		Kind: Kind{Name: "obs", Title: "OBS", URL: "ws://127.0.0.1:4455",
			Shows: []string{"states", "faces", "moods", "speech", "notifications", "questions"}},
		schemes: []string{"ws", "wss"},
		words:   map[string]string{"input": "Stack-chan text", "item": "Stack-chan", "scene": ""},
		make:    func(o *own) (program, error) { return obs{o}, nil },
	}
}

// The messages of obs-websocket, by their op.
const (
	obsHello      = 0
	obsIdentify   = 1
	obsIdentified = 2
	obsEvent      = 5
	obsRequest    = 6
	obsResponse   = 7
)

const (
	obsVersion = 1                         // of the protocol, rpcVersion
	obsEvents  = 1<<1 | 1<<2 | 1<<3 | 1<<7 // Config, Scenes, Inputs, SceneItems
	obsNotNow  = 207                       // NotReady: it changes its scenes
	obsMissing = 600                       // ResourceNotFound
	noticeFor  = 10 * time.Second          // a notification is shown where nothing is said
	restWithin = time.Second               // a stream is left at rest
)

type obsMessage[T any] struct {
	Op int `json:"op"`
	D  T   `json:"d"`
}

// obsAny is what OBS sends, as far as it matters.
type obsAny struct {
	Authentication *struct {
		Challenge string `json:"challenge"`
		Salt      string `json:"salt"`
	} `json:"authentication"`
	Event  string `json:"eventType"`
	ID     string `json:"requestId"`
	Status struct {
		Result  bool   `json:"result"`
		Code    int    `json:"code"`
		Comment string `json:"comment"`
	} `json:"requestStatus"`
	Data struct {
		Scene string `json:"currentProgramSceneName"`
		Item  int    `json:"sceneItemId"`
	} `json:"responseData"`
}

type obsIdentity struct {
	RPC            int    `json:"rpcVersion"`
	Authentication string `json:"authentication,omitempty"`
	Events         int    `json:"eventSubscriptions"`
}

type obsAsk struct {
	Kind string         `json:"requestType"`
	ID   string         `json:"requestId"`
	Data map[string]any `json:"requestData,omitempty"`
}

// obsAuthentication answers a challenge: the password is not sent.
func obsAuthentication(password, salt, challenge string) string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return base64.StdEncoding.EncodeToString(sum[:])
	}
	return hash(hash(password+salt) + challenge)
}

func (p obs) open(ctx context.Context, note func(error)) (link, error) {
	l := &obsLink{obs: p, now: time.Now, shown: map[string]bool{}}
	l.remarks.tell = note
	hello := make(chan obsAny, 1)
	wire, err := dial(ctx, p.URL, func(message []byte) string { return l.take(message, hello) })
	if err != nil {
		return nil, err
	}
	l.wire = wire
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	if err := l.identify(ctx, hello); err != nil {
		wire.close()
		return nil, err
	}
	return l, nil
}

// obsLink is a connection to OBS.
type obsLink struct {
	*wire
	obs
	remarks remarks // by the item, or nothing for the text
	now     func() time.Time
	stale   atomic.Bool // sources or scenes have changed there: all is to be told anew
	calls   int

	text   *string         // that it shows; nil is not known
	shown  map[string]bool // the items that it was told of, and whether they are to be seen
	notice string
	until  time.Time // the notification is shown
}

// take hands on a message, and returns the call that it answers.
func (l *obsLink) take(message []byte, hello chan<- obsAny) string {
	var m obsMessage[obsAny]
	if json.Unmarshal(message, &m) != nil {
		return ""
	}
	switch m.Op {
	case obsHello:
		select {
		case hello <- m.D:
		default: // it has said so before
		}
	case obsIdentified:
		return "identified"
	case obsResponse:
		return m.D.ID
	case obsEvent:
		switch m.D.Event {
		case "CurrentProgramSceneChanged", "CurrentSceneCollectionChanged", "InputCreated", "InputNameChanged", "SceneItemCreated":
			l.stale.Store(true)
		}
	}
	return ""
}

func (l *obsLink) identify(ctx context.Context, hello <-chan obsAny) error {
	var h obsAny
	select {
	case h = <-hello:
	case err := <-l.wire.ended():
		return err
	case <-ctx.Done():
		return fmt.Errorf("what listens at %s does not greet as OBS does; correct url", l.address())
	}
	me := obsIdentity{RPC: obsVersion, Events: obsEvents}
	if a := h.Authentication; a != nil {
		if l.Key == "" {
			return errors.New("OBS wants a password; put it into key (in OBS: Tools, WebSocket Server Settings, Show Connect Info)")
		}
		me.Authentication = obsAuthentication(l.Key, a.Salt, a.Challenge)
	}
	_, err := l.call(ctx, "identified", obsMessage[obsIdentity]{obsIdentify, me})
	if err != nil && ctx.Err() == nil && h.Authentication != nil {
		return errors.New("OBS has refused the password; key is the one that OBS shows (Tools, WebSocket Server Settings, Show Connect Info)")
	}
	return err
}

// request asks OBS for something. An error is final; that OBS does not do it is none.
func (l *obsLink) request(ctx context.Context, kind string, data map[string]any) (answer obsAny, err error) {
	l.calls++
	id := strconv.Itoa(l.calls)
	message, err := l.call(ctx, id, obsMessage[obsAsk]{obsRequest, obsAsk{kind, id, data}})
	if err != nil {
		return obsAny{}, err
	}
	var m obsMessage[obsAny]
	return m.D, json.Unmarshal(message, &m)
}

// obsText is what the text source shows; a notification where nothing else is.
func obsText(is Scene, notice string) string { return cmp.Or(is.Question, is.Said, notice) }

// obsItems are the scene items that the words name, and whether each is to be seen.
func obsItems(w words, is Scene) map[string]bool {
	items := map[string]bool{}
	for key, item := range w.table {
		switch key {
		case "input", "scene":
			continue
		}
		items[item] = items[item] || key == "item" && is.State == agent.Speaking || key == "state."+string(is.State) ||
			key == "face."+is.Expression() || key == "feeling."+is.Mood.Dominant
	}
	delete(items, "")
	return items
}

// forget has all told anew where OBS has changed.
func (l *obsLink) forget() {
	if l.stale.Swap(false) {
		l.text, l.shown = nil, map[string]bool{}
	}
}

func (l *obsLink) show(ctx context.Context, is, _ Scene) error {
	l.forget()
	if l.notice != "" && l.now().After(l.until) {
		l.notice = ""
	}
	if err := l.showText(ctx, obsText(is, l.notice)); err != nil {
		return err
	}
	if err := l.showItems(ctx, obsItems(l.words, is)); err != nil {
		return err
	}
	return nil
}

func (l *obsLink) showText(ctx context.Context, text string) error {
	input := l.words.of("input")
	if input == "" || l.text != nil && *l.text == text {
		return nil
	}
	l.text = &text
	a, err := l.request(ctx, "SetInputSettings", map[string]any{"inputName": input, "inputSettings": map[string]string{"text": text}})
	l.check("", a, fmt.Errorf("OBS has no source %q; add a text source of that name, or set words.input", input))
	return err
}

func (l *obsLink) showItems(ctx context.Context, items map[string]bool) error {
	for _, item := range slices.Sorted(maps.Keys(items)) {
		if shown, told := l.shown[item]; told && shown == items[item] {
			continue
		}
		l.shown[item] = items[item]
		if err := l.showItem(ctx, item, items[item]); err != nil {
			return err
		}
	}
	return nil
}

func (l *obsLink) showItem(ctx context.Context, item string, visible bool) error {
	scene := l.words.of("scene")
	if scene == "" {
		a, err := l.request(ctx, "GetCurrentProgramScene", nil)
		if err != nil || !l.check(item, a, errors.New("OBS has no scene on air")) {
			return err
		}
		scene = a.Data.Scene
	}
	a, err := l.request(ctx, "GetSceneItemId", map[string]any{"sceneName": scene, "sourceName": item})
	missing := fmt.Errorf("OBS has no source %q in the scene %q; add one, or set words.item and words.scene", item, plain.Clip(scene, limit.Name))
	if err != nil || !l.check(item, a, missing) {
		return err
	}
	a, err = l.request(ctx, "SetSceneItemEnabled", map[string]any{"sceneName": scene, "sceneItemId": a.Data.Item, "sceneItemEnabled": visible})
	l.check(item, a, missing)
	return err
}

// check notes why OBS did not do something with an item, or with the text where that is
// empty; missing is the sentence where what was asked for is not there.
func (l *obsLink) check(item string, a obsAny, missing error) (done bool) {
	switch {
	case a.Status.Result:
		l.remarks.say(item, nil)
	case a.Status.Code == obsNotNow:
		l.stale.Store(true)
	case a.Status.Code == obsMissing:
		l.remarks.say(item, missing)
	default:
		l.remarks.say(item, fmt.Errorf("OBS refuses what it is told (code %d: %s)", a.Status.Code, remote.Quote(a.Status.Comment, l.Key)))
	}
	return a.Status.Result
}

func (l *obsLink) frame(ctx context.Context, f *feed.Frame, is Scene) error {
	if n, notice := f.Body.(feed.Notice); notice && n.Question == "" {
		l.notice, l.until = n.Text, l.now().Add(noticeFor)
		if err := l.show(ctx, is, is); err != nil {
			return err
		}
		if l.words.of("input") == "" || l.remarks.on("") {
			return errUntold
		}
	}
	return nil
}

// keep takes a notification away that was shown long enough, and tells what shows anew
// where OBS has changed.
func (l *obsLink) keep(ctx context.Context, is Scene) error { return l.show(ctx, is, is) }
func (l *obsLink) every() time.Duration                     { return time.Second }

// close leaves nothing on the stream.
func (l *obsLink) close() {
	ctx, cancel := context.WithTimeout(context.Background(), restWithin)
	defer cancel()
	l.forget()
	_ = l.showText(ctx, "")
	items := obsItems(l.words, Scene{})
	for item := range items {
		items[item] = false
	}
	_ = l.showItems(ctx, items)
	l.wire.close()
}
