package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// vtubeStudio is VTube Studio, through its public API 1.0. The API recognizes a plugin by a token,
// which it issues when the user allows the plugin in a popup. Perch activates the expressions and
// hotkeys of the loaded model, and sets the parameters that a face tracker would set.
type vtubeStudio struct {
	*programConfig
	defaultURL string            // address to try first
	lastFound  string            // latest address from a broadcast at which Perch has authenticated, or ""
	broadcasts string            // UDP address for broadcasts
	isLocal    func(net.IP) bool // reports whether an address belongs to this machine
	denied     time.Time         // when the user last denied access in the popup
	deniedAt   string            // address of the VTube Studio whose user denied access
}

const (
	vtubeAPI        = "VTubeStudioPublicAPI" // apiName of all messages
	vtubeURL        = "ws://127.0.0.1:8001"
	vtubeBroadcasts = ":47779"
	// askAgainAfter is how long Perch requests no popup after a denial.
	askAgainAfter = time.Hour
)

func vtubeStudioKind() kind {
	return kind{
		Kind: Kind{Name: "vtube_studio", Title: "VTube Studio", URL: vtubeURL, Finds: true,
			Shows: []string{"states", "faces", "moods", "gestures", "mouth"}},
		schemes: []string{"ws", "wss"},
		make: func(o *programConfig) (program, error) {
			return &vtubeStudio{programConfig: o, defaultURL: vtubeURL, broadcasts: vtubeBroadcasts, isLocal: isThisMachine}, nil
		},
	}
}

func (p *vtubeStudio) open(ctx context.Context, note func(error)) (link, error) {
	l := &vtubeLink{program: p}
	l.api = l
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
		p.lastFound = l.address
	}
	return l, nil
}

// connect dials the configured address. If no address is configured, it tries the default address,
// then p.lastFound, and then an address from a broadcast. Any machine on the network can send a
// broadcast, and its program would learn what the agents do. Unless the owner has configured an
// address, connect therefore uses only addresses of this machine.
func (l *vtubeLink) connect(ctx context.Context) error {
	p := l.program
	if p.URL != "" {
		return l.dial(ctx, p.URL)
	}
	err := l.dial(ctx, p.defaultURL)
	if err == nil || p.lastFound != "" && p.isLocal(hostOf(p.lastFound)) && l.dial(ctx, p.lastFound) == nil {
		return nil
	}
	found, elsewhere := findVTube(ctx, p.broadcasts, p.isLocal)
	if found != "" {
		return l.dial(ctx, found)
	}
	if elsewhere != "" {
		return fmt.Errorf("VTube Studio does not listen at %s, but another machine announces it at %s; if that machine is yours, set url: %s",
			p.defaultURL, elsewhere, elsewhere)
	}
	return fmt.Errorf("%w; VTube Studio does not announce another address on this machine either", err)
}

// dial opens the WebSocket at an address. While access is denied there, it does so only if a token is
// stored: the user may have allowed the plugin with that token again.
func (l *vtubeLink) dial(ctx context.Context, url string) error {
	l.address = url
	_, hasToken, err := l.program.tokens.Get(l.program.tokenKey(url))
	if err == nil && !hasToken && l.isDenied() {
		err = errDenied
	}
	if err == nil {
		l.wire, err = dial(ctx, url, l.handleMessage)
	}
	return err
}

// foundByBroadcast reports whether the address is neither configured nor the default one.
func (l *vtubeLink) foundByBroadcast() bool {
	return l.program.URL == "" && l.address != l.program.defaultURL
}

// vtubeLink is a connection to VTube Studio.
type vtubeLink struct {
	*wire
	program *vtubeStudio
	address string
	calls   int // number of requests
	modelLink
}

// vtubeMessage is a request, a response or an event.
type vtubeMessage struct {
	API     string `json:"apiName"`
	Version string `json:"apiVersion"`
	ID      string `json:"requestID"`
	Type    string `json:"messageType"`
	Data    any    `json:"data,omitempty"`
}

// handleMessage handles an event, or returns the ID of the call that the message responds to.
func (l *vtubeLink) handleMessage(message []byte) (callID string) {
	var m vtubeMessage
	m.Data = &struct{}{}
	if json.Unmarshal(message, &m) != nil {
		return ""
	}
	if m.Type == "ModelLoadedEvent" || m.Type == "ModelConfigChangedEvent" {
		l.changed.Store(true)
	}
	return m.ID
}

// vtubeError is an error response of VTube Studio.
type vtubeError struct {
	ID      int    `json:"errorID"`
	Message string `json:"message"`
}

// Values of vtubeError.ID.
const (
	vtubeOff             = 1  // the API is switched off
	vtubeUnauthenticated = 8  // the token is no longer valid
	vtubeDenied          = 50 // the user has denied access
	vtubePopupOpen       = 51
)

func (e vtubeError) Error() string {
	return fmt.Sprintf("VTube Studio refuses: %.120q (error %d)", e.Message, e.ID)
}

// ask sends a request, and decodes the data of the response into result.
func (l *vtubeLink) ask(ctx context.Context, request string, data, result any) error {
	l.calls++
	id := strconv.Itoa(l.calls)
	message, err := l.call(ctx, id, vtubeMessage{vtubeAPI, "1.0", id, request + "Request", data})
	if err != nil {
		return err
	}
	var response vtubeMessage
	var refusal vtubeError
	response.Data = &refusal
	if json.Unmarshal(message, &response) == nil && response.Type == "APIError" {
		return refusal
	}
	response.Data = result
	if err := json.Unmarshal(message, &response); err != nil || response.Type != request+"Response" {
		return fmt.Errorf("the program at this address is not VTube Studio (it sent %.40q in response to %s); correct url", response.Type, request)
	}
	return nil
}

// askOptional sends a request that is not essential. A refusal, for example because the user has
// deleted an expression, becomes a warning instead of an error, unless the API is switched off or the
// user has withdrawn the permission.
func (l *vtubeLink) askOptional(ctx context.Context, request string, data any) error {
	err := l.ask(ctx, request, data, &struct{}{})
	refusal, ok := errors.AsType[vtubeError](err)
	switch {
	case err == nil:
		l.warnings.set(request, nil)
		return nil
	case !ok || refusal.ID == vtubeOff:
		return err
	case refusal.ID == vtubeDenied, refusal.ID == vtubeUnauthenticated:
		l.recordDenial() // the user has withdrawn the permission or removed Perch, and should not see a popup now
		return errDenied
	}
	l.warnings.set(request, refusal)
	return nil
}

// authenticate authenticates with the stored token. If no token is stored, or the stored one is no
// longer valid, it requests a new one.
func (l *vtubeLink) authenticate(ctx context.Context, note func(error)) error {
	p := l.program
	plugin := map[string]string{"pluginName": pluginName(p.appliance), "pluginDeveloper": "Perch"}
	token, found, err := p.tokens.Get(p.tokenKey(l.address))
	if err != nil {
		return err
	}
	for {
		isNew := !found
		if isNew {
			if token, err = l.requestToken(ctx, plugin, note); err != nil {
				return err
			}
		}
		plugin["authenticationToken"] = token
		var response struct {
			Authenticated bool `json:"authenticated"`
		}
		if err := l.ask(ctx, "Authentication", plugin, &response); err != nil {
			return err
		}
		if response.Authenticated {
			return nil
		}
		if isNew {
			return errors.New("VTube Studio refuses the token that it has just issued; remove Perch from its plugins, and allow Perch again")
		}
		found = false // the user has withdrawn the permission
		delete(plugin, "authenticationToken")
	}
}

// requestToken makes VTube Studio show a popup, and waits until the user has allowed access there. It
// stores and returns the token that VTube Studio then issues.
func (l *vtubeLink) requestToken(ctx context.Context, plugin map[string]string, note func(error)) (string, error) {
	p := l.program
	if l.isDenied() {
		return "", errDenied
	}
	note(fmt.Errorf("VTube Studio at %s shows a popup, and asks whether Perch may control it; press Allow there", redact(l.address)))
	var response struct {
		Token string `json:"authenticationToken"`
	}
	err := l.ask(ctx, "AuthenticationToken", plugin, &response)
	refusal, _ := errors.AsType[vtubeError](err)
	switch {
	case refusal.ID == vtubeDenied:
		l.recordDenial()
		return "", errDenied
	case refusal.ID == vtubePopupOpen:
		return "", errors.New("VTube Studio already shows a popup; answer that first")
	case refusal.ID == vtubeOff:
		return "", errors.New("the API of VTube Studio is switched off; switch on Settings, General, Start API")
	case err != nil:
		return "", err
	case response.Token == "" || len(response.Token) > maxToken:
		return "", errors.New("VTube Studio returned an invalid token")
	}
	p.deniedAt = ""
	return response.Token, p.tokens.Put(p.tokenKey(l.address), response.Token)
}

func (l *vtubeLink) recordDenial() { l.program.denied, l.program.deniedAt = time.Now(), l.address }

// isDenied reports whether the user has denied access at this address in the last hour.
func (l *vtubeLink) isDenied() bool {
	return l.program.deniedAt == l.address && time.Since(l.program.denied) < askAgainAfter
}

var errDenied = errors.New("somebody has denied Perch access in VTube Studio; Perch asks again in an hour, or when it is restarted")

// pluginName returns the name under which Perch registers as a plugin: the name of the appliance if
// it has 3 to 32 characters, as plugins must, and otherwise "Perch".
func pluginName(appliance string) string {
	if n := len([]rune(appliance)); n < 3 || n > 32 {
		return "Perch"
	}
	return appliance
}

// loadModel implements modelAPI. It creates missing parameters.
func (l *vtubeLink) loadModel(ctx context.Context) error {
	for _, event := range []string{"ModelLoadedEvent", "ModelConfigChangedEvent"} {
		if err := l.askOptional(ctx, "EventSubscription", map[string]any{"eventName": event, "subscribe": true, "config": struct{}{}}); err != nil {
			return err
		}
	}
	l.changed.Store(false)
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
			"min": 0, "max": customMax(name), "defaultValue": 0})
		if err != nil {
			return err
		}
		l.model.Custom = append(l.model.Custom, vtubeParameter{Name: name})
	}
	return nil
}

// runStep implements modelAPI.
func (l *vtubeLink) runStep(ctx context.Context, step vtubeStep) error {
	return l.askOptional(ctx, step.request, step.data)
}

// addValues implements modelAPI.
func (l *vtubeLink) addValues(scene Scene) []value { return l.model.addValues(scene) }

// sendValues implements modelAPI.
func (l *vtubeLink) sendValues(ctx context.Context, due []value, _ int, add bool) error {
	mode := "set"
	if add {
		mode = "add"
	}
	return l.askOptional(ctx, "InjectParameterData", map[string]any{"faceFound": true, "mode": mode, "parameterValues": due})
}

// warning implements link. It includes an address that was found by a broadcast, so that the owner
// can check it.
func (l *vtubeLink) warning() error {
	note := l.model.warning("VTube Studio", "hotkeys")
	if l.foundByBroadcast() {
		note = join(fmt.Errorf("found at %s", redact(l.address)), note)
	}
	return join(note, l.warnings.all())
}

// close ends the expressions of the current scene, and closes the connection.
func (l *vtubeLink) close() {
	for _, step := range l.model.steps(Scene{}, l.scene) {
		l.calls++
		_ = l.send(vtubeMessage{vtubeAPI, "1.0", strconv.Itoa(l.calls), step.request + "Request", step.data})
	}
	l.wire.close()
}
