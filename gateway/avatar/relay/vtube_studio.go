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

	"perch/gateway/avatar/feed"
)

// vtubeStudio is VTube Studio, with its public API 1.0. It recognizes a plugin by a token,
// which is issued when the user allows the plugin in a popup. Expressions and hotkeys belong to
// the loaded model; parameters are what a face tracker would set.
type vtubeStudio struct {
	*programConfig
	usual      string            // the address tried first
	last       string            // the address from a broadcast at which authentication has succeeded
	broadcasts string            // UDP address of its broadcasts, one every two seconds
	here       func(net.IP) bool // reports whether an address belongs to this machine
	denied     time.Time         // when access was denied in the popup
	denier     string            // the address at which that happened
}

const (
	vtubeAPI        = "VTubeStudioPublicAPI"
	vtubeURL        = "ws://127.0.0.1:8001"
	vtubeBroadcasts = ":47779"
	// askAgainAfter is how long no popup is shown after a denial.
	askAgainAfter = time.Hour
)

func vtubeStudioKind() kind {
	return kind{
		Kind: Kind{Name: "vtube_studio", Title: "VTube Studio", URL: vtubeURL, Finds: true,
			Shows: []string{"states", "faces", "moods", "gestures", "mouth"}},
		schemes: []string{"ws", "wss"},
		make: func(o *programConfig) (program, error) {
			return &vtubeStudio{programConfig: o, usual: vtubeURL, broadcasts: vtubeBroadcasts, here: ofThisMachine}, nil
		},
	}
}

func (p *vtubeStudio) open(ctx context.Context, note func(error)) (link, error) {
	l := &vtubeLink{program: p}
	l.warnings.report, l.warnings.summary = note, l.warning
	if err := l.connect(ctx); err != nil {
		return nil, err
	}
	err := l.authenticate(ctx, note)
	if err == nil {
		err = l.loadModel(ctx)
	}
	if err != nil {
		l.wire.close()
		return nil, err
	}
	if l.foundByBroadcast() {
		p.last = l.at
	}
	return l, nil
}

// connect dials the configured address; without one it tries the usual address, the last one
// found, and the broadcast one. Any machine on the network can broadcast, and would learn what
// the agents do, so only this machine is trusted unless the owner configured another.
func (l *vtubeLink) connect(ctx context.Context) error {
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
	l.wire, err = dial(ctx, url, l.handleMessage)
	return err
}

// foundByBroadcast reports whether the address is known from a broadcast only.
func (l *vtubeLink) foundByBroadcast() bool { return l.program.URL == "" && l.at != l.program.usual }

// vtubeLink is a connection to VTube Studio.
type vtubeLink struct {
	*wire
	program  *vtubeStudio
	at       string // the address
	warnings warnings
	calls    int
	news     atomic.Bool // another model was loaded, or its hotkeys changed
	model    vtubeModel
	is       Scene
	level    float64
	set      heldParameters
	add      heldParameters
}

// vtubeMessage is a request, a response or an event.
type vtubeMessage struct {
	API     string `json:"apiName"`
	Version string `json:"apiVersion"`
	ID      string `json:"requestID"`
	Type    string `json:"messageType"`
	Data    any    `json:"data,omitempty"`
}

// handleMessage handles events, and returns the id of the call that a message answers.
func (l *vtubeLink) handleMessage(message []byte) string {
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

// vtubeError is an error response of VTube Studio.
type vtubeError struct {
	ID      int    `json:"errorID"`
	Message string `json:"message"`
}

// Error ids that end a link or have their own sentence.
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

// askOptional is ask for requests whose refusal, such as for an expression that was deleted,
// becomes a warning and does not end the link.
func (l *vtubeLink) askOptional(ctx context.Context, request string, data any) error {
	err := l.ask(ctx, request, data, &struct{}{})
	refusal, is := errors.AsType[vtubeError](err)
	switch {
	case err == nil:
		l.warnings.set(request, nil)
		return nil
	case !is || refusal.ID == vtubeStranger || refusal.ID == vtubeOff:
		return err
	case refusal.ID == vtubeDenied: // the user has withdrawn the permission: do not show a popup now
		l.recordDenial()
		return errDenied
	}
	l.warnings.set(request, refusal)
	return nil
}

// authenticate authenticates by the stored token, or else asks the user for one.
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
		kept = false // the user has withdrawn the permission
		delete(who, "authenticationToken")
	}
}

// askUser requests a token, which is issued when the user allows it in the popup.
func (l *vtubeLink) askUser(ctx context.Context, who map[string]string, note func(error)) (string, error) {
	p := l.program
	if p.denier == l.at && time.Since(p.denied) < askAgainAfter {
		return "", errDenied
	}
	note(fmt.Errorf("VTube Studio at %s shows a popup, and asks whether Perch may control it; press Allow there", shownAddress(l.at)))
	var is struct {
		Token string `json:"authenticationToken"`
	}
	err := l.ask(ctx, "AuthenticationToken", who, &is)
	refusal, _ := errors.AsType[vtubeError](err)
	switch {
	case refusal.ID == vtubeDenied:
		l.recordDenial()
		return "", errDenied
	case refusal.ID == vtubePopupOpen:
		return "", errors.New("VTube Studio shows a popup already; answer it there")
	case refusal.ID == vtubeOff:
		return "", errors.New("the API of VTube Studio is switched off; switch on Settings, General, Start API")
	case err != nil:
		return "", err
	case is.Token == "" || len(is.Token) > mostToken:
		return "", errors.New("VTube Studio returned an invalid token")
	}
	p.denier = ""
	return is.Token, p.tokens.Put(p.tokenKey(l.at), is.Token)
}

func (l *vtubeLink) recordDenial() { l.program.denied, l.program.denier = time.Now(), l.at }

var errDenied = errors.New("somebody has denied Perch access in VTube Studio; it is asked again in an hour, or when Perch is started anew")

// pluginName returns a valid plugin name, which has 3 to 32 characters, for an appliance.
func pluginName(appliance string) string {
	if n := len([]rune(appliance)); n < 3 || n > 32 {
		return "Perch"
	}
	return appliance
}

// loadModel asks what the loaded model can show, and creates missing parameters.
func (l *vtubeLink) loadModel(ctx context.Context) error {
	for _, event := range []string{"ModelLoadedEvent", "ModelConfigChangedEvent"} {
		if err := l.askOptional(ctx, "EventSubscription", map[string]any{"eventName": event, "subscribe": true, "config": struct{}{}}); err != nil {
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
	for _, name := range l.model.missingParameters() {
		err := l.askOptional(ctx, "ParameterCreation", map[string]any{"parameterName": name, "explanation": "of the agent that Perch shows",
			"min": 0, "max": customMost(name), "defaultValue": 0})
		if err != nil {
			return err
		}
		l.model.Custom = append(l.model.Custom, vtubeParameter{Name: name})
	}
	return nil
}

func (l *vtubeLink) update(ctx context.Context, is, was Scene) error {
	l.is = is
	for _, step := range l.model.steps(is, was) {
		if err := l.askOptional(ctx, step.request, step.data); err != nil {
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
	if _, hotkey := l.model.match("gesture", gesture.Name); hotkey != "" {
		return l.askOptional(ctx, "HotkeyTrigger", map[string]string{"hotkeyID": hotkey})
	}
	return nil
}

func (l *vtubeLink) setMouth(ctx context.Context, level float64) error {
	l.level = level
	return l.inject(ctx, &l.set, "set", l.model.setValues(l.is, level), time.Now())
}

// refresh repeats held parameters, and loads the model again after a change.
func (l *vtubeLink) refresh(ctx context.Context, is Scene) error {
	if l.news.Load() {
		if err := l.loadModel(ctx); err != nil {
			return err
		}
		l.warnings.report(l.warning())
		if err := l.update(ctx, is, Scene{}); err != nil {
			return err
		}
	}
	now := time.Now()
	if err := l.inject(ctx, &l.set, "set", l.model.setValues(is, l.level), now); err != nil {
		return err
	}
	return l.inject(ctx, &l.add, "add", l.model.addValues(is), now)
}

// inject sends the parameters that are due.
func (l *vtubeLink) inject(ctx context.Context, h *heldParameters, mode string, values []value, now time.Time) error {
	if values = h.next(values, now); len(values) == 0 {
		return nil
	}
	return l.askOptional(ctx, "InjectParameterData", map[string]any{"faceFound": true, "mode": mode, "parameterValues": values})
}

func (l *vtubeLink) refreshEvery() time.Duration { return movesEvery }

// warning also names an address that is known from a broadcast only, since any machine can send
// one.
func (l *vtubeLink) warning() error {
	note := l.model.warning("VTube Studio", "hotkeys")
	if l.foundByBroadcast() {
		note = join(fmt.Errorf("found at %s", shownAddress(l.at)), note)
	}
	return join(note, l.warnings.all())
}

// close undoes what is shown, if the program is still there.
func (l *vtubeLink) close() {
	for _, step := range l.model.steps(Scene{}, l.is) {
		l.calls++
		_ = l.send(vtubeMessage{vtubeAPI, "1.0", strconv.Itoa(l.calls), step.request + "Request", step.data})
	}
	l.wire.close()
}
