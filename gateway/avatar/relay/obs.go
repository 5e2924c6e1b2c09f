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
	"perch/gateway/avatar/feed"
	"perch/limit"
	"perch/plain"
	"perch/remote"
)

// obs is OBS Studio, by obs-websocket 5. A text source shows what is said; scene items are
// visible while the agent speaks, and in the states, faces and feelings whose words name an
// item.
type obs struct{ *programConfig }

func obsKind() kind {
	return kind{
		Kind: Kind{Name: "obs", Title: "OBS", URL: "ws://127.0.0.1:4455",
			Shows: []string{"states", "faces", "moods", "speech", "notifications", "questions"}},
		schemes: []string{"ws", "wss"},
		words:   map[string]string{"input": "Stack-chan text", "item": "Stack-chan", "scene": ""},
		make:    func(o *programConfig) (program, error) { return obs{o}, nil },
	}
}

// The op codes of obs-websocket messages.
const (
	obsHello      = 0
	obsIdentify   = 1
	obsIdentified = 2
	obsEvent      = 5
	obsRequest    = 6
	obsResponse   = 7
)

const (
	obsVersion = 1                         // rpcVersion of the protocol
	obsEvents  = 1<<1 | 1<<2 | 1<<3 | 1<<7 // Config, Scenes, Inputs, SceneItems
	obsNotNow  = 207                       // NotReady: OBS is changing scenes
	obsMissing = 600                       // ResourceNotFound
	noticeFor  = 10 * time.Second          // how long a notification is shown while nothing is said
	restWithin = time.Second               // time to clear the stream on close
)

type obsMessage[T any] struct {
	Op int `json:"op"`
	D  T   `json:"d"`
}

// obsAny has the fields of all messages from OBS that matter here.
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

// obsAuthentication returns the response to a challenge, so that the password is not sent.
func obsAuthentication(password, salt, challenge string) string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return base64.StdEncoding.EncodeToString(sum[:])
	}
	return hash(hash(password+salt) + challenge)
}

func (p obs) open(ctx context.Context, note func(error)) (link, error) {
	l := &obsLink{obs: p, now: time.Now, shown: map[string]bool{}}
	l.warnings.report = note
	hello := make(chan obsAny, 1)
	wire, err := dial(ctx, p.URL, func(message []byte) string { return l.handleMessage(message, hello) })
	if err != nil {
		return nil, err
	}
	l.wire = wire
	ctx, cancel := context.WithTimeout(ctx, callWithin)
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
	warnings warnings // by item; "" is the text source
	now      func() time.Time
	stale    atomic.Bool // sources or scenes have changed in OBS: everything has to be sent again
	calls    int

	text   *string         // as sent; nil is unknown
	shown  map[string]bool // the items as sent: whether each is visible
	notice string
	until  time.Time // when the notification disappears
}

// handleMessage passes a hello on, and returns the id of the call that a message answers.
func (l *obsLink) handleMessage(message []byte, hello chan<- obsAny) string {
	var m obsMessage[obsAny]
	if json.Unmarshal(message, &m) != nil {
		return ""
	}
	switch m.Op {
	case obsHello:
		select {
		case hello <- m.D:
		default: // a second hello
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
	case err := <-l.wire.disconnected():
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

// request sends a request. Its error ends the link; a refusal by OBS is in answer.Status.
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

// obsText returns the text to show: a question, a sentence, or else a notification.
func obsText(is Scene, notice string) string { return cmp.Or(is.Question, is.Said, notice) }

// obsItems returns the scene items that the words name, and whether each is visible.
func obsItems(w words, is Scene) map[string]bool {
	items := map[string]bool{}
	for key, item := range w.table {
		if key == "input" || key == "scene" {
			continue
		}
		items[item] = items[item] || key == "item" && is.State == agent.Speaking || key == "state."+string(is.State) ||
			key == "face."+is.Expression() || key == "feeling."+is.Mood.Dominant
	}
	delete(items, "")
	return items
}

// dropStale forgets what was sent if OBS has changed its scenes.
func (l *obsLink) dropStale() {
	if l.stale.Swap(false) {
		l.text, l.shown = nil, map[string]bool{}
	}
}

func (l *obsLink) update(ctx context.Context, is, _ Scene) error {
	l.dropStale()
	if l.notice != "" && l.now().After(l.until) {
		l.notice = ""
	}
	if err := l.showText(ctx, obsText(is, l.notice)); err != nil {
		return err
	}
	return l.showItems(ctx, obsItems(l.words, is))
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
		if shown, sent := l.shown[item]; sent && shown == items[item] {
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

// check turns a refusal by OBS into a warning about the item, or the text if that is "";
// missing is the error when the requested resource does not exist.
func (l *obsLink) check(item string, a obsAny, missing error) (done bool) {
	switch {
	case a.Status.Result:
		l.warnings.set(item, nil)
	case a.Status.Code == obsNotNow:
		l.stale.Store(true)
	case a.Status.Code == obsMissing:
		l.warnings.set(item, missing)
	default:
		l.warnings.set(item, fmt.Errorf("OBS refuses what it is told (code %d: %s)", a.Status.Code, remote.Quote(a.Status.Comment, l.Key)))
	}
	return a.Status.Result
}

func (l *obsLink) frame(ctx context.Context, f *feed.Frame, is Scene) error {
	if n, notice := f.Body.(feed.Notice); notice && n.Question == "" {
		l.notice, l.until = n.Text, l.now().Add(noticeFor)
		if err := l.update(ctx, is, is); err != nil {
			return err
		}
		if l.words.of("input") == "" || l.warnings.has("") {
			return errNotShown
		}
	}
	return nil
}

// refresh removes a notification that was shown long enough, and sends everything again after
// OBS has changed its scenes.
func (l *obsLink) refresh(ctx context.Context, is Scene) error { return l.update(ctx, is, is) }
func (l *obsLink) refreshEvery() time.Duration                 { return time.Second }

// close clears what is shown on the stream.
func (l *obsLink) close() {
	ctx, cancel := context.WithTimeout(context.Background(), restWithin)
	defer cancel()
	l.dropStale()
	_ = l.showText(ctx, "")
	items := obsItems(l.words, Scene{})
	for item := range items {
		items[item] = false
	}
	_ = l.showItems(ctx, items)
	l.wire.close()
}
