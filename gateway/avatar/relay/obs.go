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

// obs is OBS Studio, through obs-websocket 5. A text source shows sentences, questions and
// notifications. One scene item is visible while the agent speaks. If the owner sets the word for a
// state, face or feeling to the name of another item, that item is visible while the agent has the
// state, face or feeling.
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

// Op codes of obs-websocket messages.
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
	obsEvents  = 1<<1 | 1<<2 | 1<<3 | 1<<7 // kinds of events to receive: Config, Scenes, Inputs, SceneItems
	obsNotNow  = 207                       // NotReady: OBS is changing scenes
	obsMissing = 600                       // ResourceNotFound

	noticeFor    = 10 * time.Second // how long a notification is shown, unless a sentence or question replaces it
	closeTimeout = time.Second      // maximum time for clearing the text and hiding the items when the link is closed
)

// obsMessage is a message of obs-websocket with data of type T.
type obsMessage[T any] struct {
	Op int `json:"op"`
	D  T   `json:"d"`
}

// obsReceived is the data of a message from OBS. It has the fields of all kinds of messages that
// Perch handles.
type obsReceived struct {
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

// obsIdentity is the data of obsIdentify.
type obsIdentity struct {
	RPC            int    `json:"rpcVersion"`
	Authentication string `json:"authentication,omitempty"`
	Events         int    `json:"eventSubscriptions"`
}

// obsCall is the data of obsRequest.
type obsCall struct {
	Kind string         `json:"requestType"`
	ID   string         `json:"requestId"`
	Data map[string]any `json:"requestData,omitempty"`
}

// obsAuthentication returns the response to a challenge, which proves that Perch has the password.
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
	hello := make(chan obsReceived, 1)
	wire, err := dial(ctx, p.URL, func(message []byte) string { return l.handleMessage(message, hello) })
	if err != nil {
		return nil, err
	}
	l.wire = wire
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
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
	warnings warnings // the subject is a scene item, or "" for the text source
	now      func() time.Time
	stale    atomic.Bool // whether sources or scenes have changed in OBS, so that everything must be sent again
	calls    int         // number of requests

	text   *string         // latest text that was sent; nil if unknown
	shown  map[string]bool // whether an item was last sent as visible; key: name of the item
	notice string          // text of the notification that is shown, or ""
	until  time.Time       // when the notification disappears
}

// handleMessage passes the data of the first obsHello to hello. If the message is the response to a
// call, it returns the ID of that call.
func (l *obsLink) handleMessage(message []byte, hello chan<- obsReceived) (callID string) {
	var m obsMessage[obsReceived]
	if json.Unmarshal(message, &m) != nil {
		return ""
	}
	switch m.Op {
	case obsHello:
		select {
		case hello <- m.D:
		default: // not the first
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

// identify waits for the obsHello, and authenticates.
func (l *obsLink) identify(ctx context.Context, hello <-chan obsReceived) error {
	var h obsReceived
	select {
	case h = <-hello:
	case err := <-l.wire.disconnected():
		return err
	case <-ctx.Done():
		return fmt.Errorf("the program at %s does not greet as OBS does; correct url", l.address())
	}
	identity := obsIdentity{RPC: obsVersion, Events: obsEvents}
	if a := h.Authentication; a != nil {
		if l.Key == "" {
			return errors.New("OBS requires a password; set key to it (in OBS: Tools, WebSocket Server Settings, Show Connect Info)")
		}
		identity.Authentication = obsAuthentication(l.Key, a.Salt, a.Challenge)
	}
	_, err := l.call(ctx, "identified", obsMessage[obsIdentity]{obsIdentify, identity})
	if err != nil && ctx.Err() == nil && h.Authentication != nil {
		return errors.New("OBS has refused the password; set key to the one that OBS shows (Tools, WebSocket Server Settings, Show Connect Info)")
	}
	return err
}

// request sends a request, and returns the response. If OBS refuses the request, err is nil, and
// response.Status has the reason.
func (l *obsLink) request(ctx context.Context, kind string, data map[string]any) (response obsReceived, err error) {
	l.calls++
	id := strconv.Itoa(l.calls)
	message, err := l.call(ctx, id, obsMessage[obsCall]{obsRequest, obsCall{kind, id, data}})
	if err != nil {
		return obsReceived{}, err
	}
	var m obsMessage[obsReceived]
	err = json.Unmarshal(message, &m)
	return m.D, err
}

// obsText returns the text to show. A question has priority over a sentence, and a sentence over a
// notification.
func obsText(scene Scene, notice string) string { return cmp.Or(scene.Question, scene.Said, notice) }

// obsItems returns whether each scene item is visible. The keys are the names of all items in the
// words.
func obsItems(w words, scene Scene) map[string]bool {
	items := map[string]bool{}
	for key, item := range w.table {
		if key == "input" || key == "scene" {
			continue
		}
		items[item] = items[item] || key == "item" && scene.State == agent.Speaking || key == "state."+string(scene.State) ||
			key == "face."+scene.Expression() || key == "feeling."+scene.Mood.Dominant
	}
	delete(items, "")
	return items
}

// dropStale resets the record of what was sent if sources or scenes have changed in OBS.
func (l *obsLink) dropStale() {
	if l.stale.Swap(false) {
		l.text, l.shown = nil, map[string]bool{}
	}
}

func (l *obsLink) update(ctx context.Context, scene, _ Scene) error {
	l.dropStale()
	if l.notice != "" && l.now().After(l.until) {
		l.notice = ""
	}
	if err := l.showText(ctx, obsText(scene, l.notice)); err != nil {
		return err
	}
	return l.showItems(ctx, obsItems(l.words, scene))
}

// showText sends the text, unless it is the latest text that was sent.
func (l *obsLink) showText(ctx context.Context, text string) error {
	input := l.words.get("input")
	if input == "" || l.text != nil && *l.text == text {
		return nil
	}
	l.text = &text
	a, err := l.request(ctx, "SetInputSettings", map[string]any{"inputName": input, "inputSettings": map[string]string{"text": text}})
	l.check("", a, fmt.Errorf("OBS has no source %q; add a text source of that name, or set words.input", input))
	return err
}

// showItems sends the visibility of each item whose visibility has changed.
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

// showItem sends the visibility of an item.
func (l *obsLink) showItem(ctx context.Context, item string, visible bool) error {
	scene := l.words.get("scene")
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

// check returns true if OBS has carried out a request. Otherwise it sets a warning about the item, or
// about the text source if item is "". missing is the warning for a source that does not exist. While OBS
// is changing scenes, check sets no warning, and sets l.stale so that everything is sent again.
func (l *obsLink) check(item string, a obsReceived, missing error) (done bool) {
	switch {
	case a.Status.Result:
		l.warnings.set(item, nil)
	case a.Status.Code == obsNotNow:
		l.stale.Store(true)
	case a.Status.Code == obsMissing:
		l.warnings.set(item, missing)
	default:
		l.warnings.set(item, fmt.Errorf("OBS has refused a request (code %d: %s)", a.Status.Code, remote.Quote(a.Status.Comment, l.Key)))
	}
	return a.Status.Result
}

func (l *obsLink) frame(ctx context.Context, f *feed.Frame, scene Scene) error {
	if n, notice := f.Body.(feed.Notice); notice && n.Question == "" {
		l.notice, l.until = n.Text, l.now().Add(noticeFor)
		if err := l.update(ctx, scene, scene); err != nil {
			return err
		}
		if l.words.get("input") == "" || l.warnings.has("") {
			return errNotShown
		}
	}
	return nil
}

// refresh removes a notification after noticeFor. If sources or scenes have changed in OBS, it sends
// everything again.
func (l *obsLink) refresh(ctx context.Context, scene Scene) error { return l.update(ctx, scene, scene) }
func (l *obsLink) refreshEvery() time.Duration                    { return time.Second }

// close clears the text, hides the items, and closes the connection.
func (l *obsLink) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
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
