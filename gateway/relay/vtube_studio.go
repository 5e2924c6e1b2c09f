package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"perch/agent/feed"
)

// vtubeStudio is VTube Studio, with its public API 1.0. It knows a plugin again by
// a token that its user has once allowed in a popup. Expressions and hotkeys are those of
// the model that is loaded; parameters are what a face tracker would say.
type vtubeStudio struct {
	*own
	usual      string            // where it is looked for first
	last       string            // where a broadcast said that it is, and it has let us in
	broadcasts string            // where it says each two seconds where it is, for UDP
	here       func(net.IP) bool // an address is of this machine
	denied     time.Time         // when somebody denied access in the popup
	denier     string            // where that was
}

const (
	vtubeAPI        = "VTubeStudioPublicAPI"
	vtubeURL        = "ws://127.0.0.1:8001"
	vtubeBroadcasts = ":47779"
	// askedAgain is how long nobody is shown a popup after one was denied.
	askedAgain = time.Hour
)

func vtubeStudioKind() kind {
	return kind{
		Kind: Kind{Name: "vtube_studio", Title: "VTube Studio", URL: vtubeURL, Finds: true,
			Shows: []string{"states", "faces", "moods", "gestures", "mouth"}},
		schemes: []string{"ws", "wss"},
		make: func(o *own) (program, error) {
			return &vtubeStudio{own: o, usual: vtubeURL, broadcasts: vtubeBroadcasts, here: ofThisMachine}, nil
		},
	}
}

func (p *vtubeStudio) open(ctx context.Context, note func(error)) (link, error) {
	l := &vtubeLink{program: p}
	l.remarks.tell, l.remarks.note = note, l.note
	if err := l.reach(ctx); err != nil {
		return nil, err
	}
	err := l.authenticate(ctx, note)
	if err == nil {
		err = l.learn(ctx)
	}
	if err != nil {
		l.wire.close()
		return nil, err
	}
	if l.found() {
		p.last = l.at
	}
	return l, nil
}

// reach connects to where the program is configured to be, or else to where it usually is,
// or else to where it was found last, or else to where it says it is. Any machine of the
// network could say that, and would be told what the agents do: unless its owner has named
// it, only this one is believed.
func (l *vtubeLink) reach(ctx context.Context) error {
	p := l.program
	if p.URL != "" {
		return l.dial(ctx, p.URL)
	}
	err := l.dial(ctx, p.usual)
	if err == nil || p.last != "" && p.here(hostOf(p.last)) && l.dial(ctx, p.last) == nil {
		return nil
	}
	found, elsewhere := findVTube(ctx, p.broadcasts, p.here)
	if found != "" {
		return l.dial(ctx, found)
	}
	if elsewhere != "" {
		return fmt.Errorf("VTube Studio does not listen at %s, and another machine says that it does at %s; if that is yours, set url: %s",
			p.usual, elsewhere, elsewhere)
	}
	return fmt.Errorf("%w; nor does VTube Studio say on this machine where it is", err)
}

func (l *vtubeLink) dial(ctx context.Context, url string) (err error) {
	l.at = url
	l.wire, err = dial(ctx, url, l.take)
	return err
}

// found reports whether only a broadcast has said where the program is.
func (l *vtubeLink) found() bool { return l.program.URL == "" && l.at != l.program.usual }

// vtubeLink is the connection to it.
type vtubeLink struct {
	*wire
	program *vtubeStudio
	at      string // the address
	remarks remarks
	calls   int
	news    atomic.Bool // there is another model, or it has other hotkeys
	model   vtubeModel
	is      Scene
	level   float64
	set     held
	add     held
}

// vtubeMessage is a request, an answer or an event.
type vtubeMessage struct {
	API     string `json:"apiName"`
	Version string `json:"apiVersion"`
	ID      string `json:"requestID"`
	Type    string `json:"messageType"`
	Data    any    `json:"data,omitempty"`
}

// take notes what is new of the model, and returns the call that a message answers.
func (l *vtubeLink) take(message []byte) string {
	var m vtubeMessage
	m.Data = &struct{}{}
	if json.Unmarshal(message, &m) != nil {
		return ""
	}
	if m.Type == "ModelLoadedEvent" || m.Type == "ModelConfigChangedEvent" {
		l.news.Store(true)
	}
	return m.ID
}

// vtubeError is what VTube Studio refuses.
type vtubeError struct {
	ID      int    `json:"errorID"`
	Message string `json:"message"`
}

// Errors that end a link, or are spoken of.
const (
	vtubeOff       = 1
	vtubeStranger  = 8
	vtubeDenied    = 50
	vtubePopupOpen = 51
)

func (e vtubeError) Error() string {
	return fmt.Sprintf("VTube Studio refuses: %.120q (error %d)", e.Message, e.ID)
}

// ask sends a request and reads its answer.
func (l *vtubeLink) ask(ctx context.Context, request string, data, answer any) error {
	l.calls++
	id := strconv.Itoa(l.calls)
	message, err := l.call(ctx, id, vtubeMessage{vtubeAPI, "1.0", id, request + "Request", data})
	if err != nil {
		return err
	}
	var is vtubeMessage
	var refusal vtubeError
	is.Data = &refusal
	if json.Unmarshal(message, &is) == nil && is.Type == "APIError" {
		return refusal
	}
	is.Data = answer
	if err := json.Unmarshal(message, &is); err != nil || is.Type != request+"Response" {
		return fmt.Errorf("something else than VTube Studio answers (%.40q to %s); correct url", is.Type, request)
	}
	return nil
}

// pardon is ask for what a link outlives the refusal of, such as an expression that has
// gone. Its owner is told.
func (l *vtubeLink) pardon(ctx context.Context, request string, data any) error {
	err := l.ask(ctx, request, data, &struct{}{})
	var refusal vtubeError
	switch {
	case err == nil:
		l.remarks.say(request, nil)
		return nil
	case !errors.As(err, &refusal) || refusal.ID == vtubeStranger || refusal.ID == vtubeOff:
		return err
	case refusal.ID == vtubeDenied: // its user has taken the permission back: a popup now would be impudent
		l.denied()
		return errDenied
	}
	l.remarks.say(request, refusal)
	return nil
}

// authenticate has the program know us: by the token that is kept, or by asking its user.
func (l *vtubeLink) authenticate(ctx context.Context, note func(error)) error {
	p := l.program
	who := map[string]string{"pluginName": pluginName(p.appliance), "pluginDeveloper": "Perch"}
	token, kept, err := p.tokens.Get(p.tokenKey(l.at))
	if err != nil {
		return err
	}
	for {
		fresh := !kept
		if fresh {
			if token, err = l.askUser(ctx, who, note); err != nil {
				return err
			}
		}
		who["authenticationToken"] = token
		var is struct {
			Authenticated bool `json:"authenticated"`
		}
		if err := l.ask(ctx, "Authentication", who, &is); err != nil {
			return err
		}
		if is.Authenticated {
			return nil
		}
		if fresh {
			return errors.New("VTube Studio refuses the token that it has just given; remove Perch from its plugins and allow it again")
		}
		kept = false // its user has taken the permission back
		delete(who, "authenticationToken")
	}
}

// askUser asks for a token, which VTube Studio gives when its user allows it.
func (l *vtubeLink) askUser(ctx context.Context, who map[string]string, note func(error)) (string, error) {
	p := l.program
	if p.denier == l.at && time.Since(p.denied) < askedAgain {
		return "", errDenied
	}
	note(fmt.Errorf("VTube Studio at %s shows a popup, and asks whether Perch may control it; press Allow there", shownAddress(l.at)))
	var is struct {
		Token string `json:"authenticationToken"`
	}
	err := l.ask(ctx, "AuthenticationToken", who, &is)
	var refusal vtubeError
	switch {
	case errors.As(err, &refusal) && refusal.ID == vtubeDenied:
		l.denied()
		return "", errDenied
	case errors.As(err, &refusal) && refusal.ID == vtubePopupOpen:
		return "", errors.New("VTube Studio shows a popup already; answer it there")
	case errors.As(err, &refusal) && refusal.ID == vtubeOff:
		return "", errors.New("the API of VTube Studio is switched off; switch on Settings, General, Start API")
	case err != nil:
		return "", err
	case is.Token == "" || len(is.Token) > mostToken:
		return "", errors.New("VTube Studio has given a token that is none")
	}
	p.denier = ""
	return is.Token, p.tokens.Put(p.tokenKey(l.at), is.Token)
}

func (l *vtubeLink) denied() { l.program.denied, l.program.denier = time.Now(), l.at }

var errDenied = errors.New("somebody has denied Perch access in VTube Studio; it is asked again in an hour, or when Perch is started anew")

// pluginName is an appliance's name as one for a plugin, which has 3 to 32 characters.
func pluginName(appliance string) string {
	if n := len([]rune(appliance)); n < 3 || n > 32 {
		return "Perch"
	}
	return appliance
}

// learn asks what the model that is loaded can show.
func (l *vtubeLink) learn(ctx context.Context) error {
	for _, event := range []string{"ModelLoadedEvent", "ModelConfigChangedEvent"} {
		if err := l.pardon(ctx, "EventSubscription", map[string]any{"eventName": event, "subscribe": true, "config": struct{}{}}); err != nil {
			return err
		}
	}
	l.news.Store(false)
	l.model = vtubeModel{words: l.program.words}
	if err := l.ask(ctx, "HotkeysInCurrentModel", nil, &l.model); err != nil {
		return err
	}
	if err := l.ask(ctx, "ExpressionState", map[string]bool{"details": false}, &l.model); err != nil {
		return err
	}
	if err := l.ask(ctx, "InputParameterList", nil, &l.model); err != nil {
		return err
	}
	for _, name := range l.model.lacks() {
		err := l.pardon(ctx, "ParameterCreation", map[string]any{"parameterName": name, "explanation": "of the agent that Perch shows",
			"min": 0, "max": customMost(name), "defaultValue": 0})
		if err != nil {
			return err
		}
		l.model.Custom = append(l.model.Custom, vtubeParameter{Name: name})
	}
	return nil
}

func (l *vtubeLink) show(ctx context.Context, is, was Scene) error {
	l.is = is
	for _, step := range l.model.steps(is, was) {
		if err := l.pardon(ctx, step.request, step.data); err != nil {
			return err
		}
	}
	return nil
}

func (l *vtubeLink) frame(ctx context.Context, f *feed.Frame, _ Scene) error {
	gesture, is := f.Body.(feed.Gesture)
	if !is {
		return nil
	}
	if _, hotkey := l.model.meant("gesture", gesture.Name); hotkey != "" {
		return l.pardon(ctx, "HotkeyTrigger", map[string]string{"hotkeyID": hotkey})
	}
	return nil
}

func (l *vtubeLink) mouth(ctx context.Context, level float64) error {
	l.level = level
	return l.inject(ctx, &l.set, "set", l.model.sets(l.is, level), time.Now())
}

// keep repeats what is held, and learns anew where there is another model.
func (l *vtubeLink) keep(ctx context.Context, is Scene) error {
	if l.news.Load() {
		if err := l.learn(ctx); err != nil {
			return err
		}
		l.remarks.tell(l.note())
		if err := l.show(ctx, is, Scene{}); err != nil {
			return err
		}
	}
	now := time.Now()
	if err := l.inject(ctx, &l.set, "set", l.model.sets(is, l.level), now); err != nil {
		return err
	}
	return l.inject(ctx, &l.add, "add", l.model.adds(is), now)
}

// inject says what parameters are, where that is due.
func (l *vtubeLink) inject(ctx context.Context, h *held, mode string, values []value, now time.Time) error {
	if values = h.due(values, now); len(values) == 0 {
		return nil
	}
	return l.pardon(ctx, "InjectParameterData", map[string]any{"faceFound": true, "mode": mode, "parameterValues": values})
}

func (l *vtubeLink) every() time.Duration { return movesEvery }

// note names an address that only a broadcast has said, since any machine can say one.
func (l *vtubeLink) note() error {
	note := l.model.note("VTube Studio", "hotkeys")
	if l.found() {
		note = join(fmt.Errorf("found at %s", shownAddress(l.at)), note)
	}
	return join(note, l.remarks.all())
}

// close takes back what is shown, if the program is still there.
func (l *vtubeLink) close() {
	for _, step := range l.model.steps(Scene{}, l.is) {
		l.calls++
		_ = l.send(vtubeMessage{vtubeAPI, "1.0", strconv.Itoa(l.calls), step.request + "Request", step.data})
	}
	l.wire.close()
}
