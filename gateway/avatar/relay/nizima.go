package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"perch/gateway/avatar/feed"
)

// nizima is nizima LIVE, through its plugin API 1.0.0. The API issues a token to a new plugin, and
// recognizes the plugin by that token later. A plugin can do nothing until the user enables it in
// the plugin manager.
type nizima struct{ *programConfig }

func nizimaKind() kind {
	return kind{
		Kind: Kind{Name: "nizima", Title: "nizima LIVE", URL: "ws://127.0.0.1:22022",
			Shows: []string{"states", "faces", "moods", "gestures", "mouth"}},
		schemes: []string{"ws", "wss"},
		make:    func(o *programConfig) (program, error) { return nizima{o}, nil },
	}
}

func (p nizima) open(ctx context.Context, note func(error)) (link, error) {
	l := &nizimaLink{programConfig: p.programConfig, enabled: make(chan struct{}, 1)}
	l.warnings.report, l.warnings.summary = note, l.warning
	w, err := dial(ctx, p.URL, l.handleMessage)
	if err != nil {
		return nil, err
	}
	l.wire = w
	if err = l.register(ctx); err == nil {
		err = l.loadModel(ctx)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return l, nil
}

// nizimaMessage is a request, a response or an event.
type nizimaMessage struct {
	Version string `json:"nLPlugin"`
	Time    int64  `json:"Timestamp,omitempty"` // Unix milliseconds
	ID      string `json:"Id,omitempty"`
	Type    string // "Request", "Response", "Event" or "Error"
	Method  string
	Data    any `json:",omitempty"`
}

// nizimaLink is a connection to nizima LIVE.
type nizimaLink struct {
	*programConfig
	*wire
	warnings warnings      // refused requests; the subject is the method
	enabled  chan struct{} // receives an element when the user enables Perch
	off      atomic.Bool   // whether the user has disabled Perch
	changed  atomic.Bool   // whether the current model has changed since loadModel
	calls    int           // number of requests
	model    nizimaModel
	scene    Scene
	level    float64
	set      sentParameters // parameters that replace the values of a face tracker
	add      sentParameters // parameters that are combined with the values of a face tracker
}

// nizimaModel describes the current model, and the parameters of all models. Its vtubeModel has the
// paths of expressions instead of files, and motions instead of hotkeys.
type nizimaModel struct {
	vtubeModel
	id         string // empty if there is no model
	parameters []nizimaParameter
}

// nizimaParameter is a parameter that a plugin can set.
type nizimaParameter struct {
	ID        string `json:"Id"`
	Group     string `json:",omitempty"`
	Base      float64
	Max, Min  float64
	CreatedBy string `json:",omitempty"`
}

// handleMessage handles an event, or returns the ID of the call that the message responds to.
func (l *nizimaLink) handleMessage(message []byte) (callID string) {
	var m struct {
		ID           string `json:"Id"`
		Type, Method string
		Data         struct{ Enabled bool }
	}
	if json.Unmarshal(message, &m) != nil && m.Type == "" {
		return ""
	}
	if m.Type != "Event" {
		return m.ID
	}
	switch m.Method {
	case "NotifyEnabledChanged":
		l.off.Store(!m.Data.Enabled)
		if m.Data.Enabled {
			select {
			case l.enabled <- struct{}{}:
			default:
			}
		}
	case "NotifyCurrentModelChanged":
		l.changed.Store(true)
	}
	return ""
}

// nizimaError is an error response of nizima LIVE.
type nizimaError struct {
	method string
	Type   string `json:"ErrorType"`
}

func (e nizimaError) Error() string {
	return fmt.Sprintf("nizima LIVE refuses %s: %.60q", e.method, e.Type)
}

// ask sends a request, and decodes the data of the response into result. It does not require the
// type Response, because some responses in nizima's documentation have the type Request.
func (l *nizimaLink) ask(ctx context.Context, method string, data, result any) error {
	l.calls++
	id := strconv.Itoa(l.calls)
	request := nizimaMessage{Version: "1.0.0", Time: time.Now().UnixMilli(), ID: id, Type: "Request", Method: method, Data: data}
	message, err := l.call(ctx, id, request)
	if err != nil {
		return err
	}
	refusal := nizimaError{method: method}
	response := nizimaMessage{Data: &refusal}
	if json.Unmarshal(message, &response) == nil && response.Type == "Error" {
		return refusal
	}
	response.Data = result
	if err := json.Unmarshal(message, &response); err != nil || response.Method != method {
		return fmt.Errorf("the program at this address is not nizima LIVE (it sent %.40q in response to %s); correct url", response.Method, method)
	}
	return nil
}

// askOptional sends a request that is not essential: a refusal becomes a warning instead of an error.
func (l *nizimaLink) askOptional(ctx context.Context, method string, data any) error {
	err := l.ask(ctx, method, data, &struct{}{})
	refusal, ok := errors.AsType[nizimaError](err)
	switch {
	case err == nil:
		l.warnings.set(method, nil)
	case ok && refusal.Type != "PluginDisabled":
		l.warnings.set(method, refusal)
		return nil
	}
	return err
}

// register authenticates with the stored token, or registers Perch as a plugin. It then waits until
// the user has enabled Perch.
func (l *nizimaLink) register(ctx context.Context) error {
	var registration struct {
		Token   string
		Enabled bool
	}
	token, found, err := l.tokens.Get(l.tokenKey(l.URL))
	if err != nil {
		return err
	}
	plugin := map[string]string{"Name": pluginName(l.appliance)}
	if found {
		plugin["Token"] = token
		err := l.ask(ctx, "EstablishConnection", plugin, &registration)
		if refusal, ok := errors.AsType[nizimaError](err); ok && refusal.Type == "InvalidToken" {
			found = false // the user has removed Perch
			delete(plugin, "Token")
		} else if err != nil {
			return err
		}
	}
	if !found {
		plugin["Developer"] = "Perch"
		if err := l.ask(ctx, "RegisterPlugin", plugin, &registration); err != nil {
			return err
		}
		if registration.Token == "" || len(registration.Token) > maxToken {
			return errors.New("nizima LIVE returned an invalid token")
		}
		if err := l.tokens.Put(l.tokenKey(l.URL), registration.Token); err != nil {
			return err
		}
	}
	if registration.Enabled {
		return nil
	}
	l.warnings.report(errors.New("nizima LIVE waits for you to switch Perch on in its plugin manager"))
	select {
	case <-l.enabled:
		return nil
	case err := <-l.wire.disconnected():
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// loadModel sets l.model to what the current model can show.
func (l *nizimaLink) loadModel(ctx context.Context) error {
	if err := l.askOptional(ctx, "NotifyCurrentModelChanged", map[string]bool{"Enabled": true}); err != nil {
		return err
	}
	l.changed.Store(false)
	m := nizimaModel{vtubeModel: vtubeModel{words: l.words, Name: "in front"}}
	var current struct {
		ModelID string `json:"ModelId"`
	}
	var content struct {
		Expressions    []struct{ Name, ExpressionPath string }
		Motions        []struct{ Name, MotionPath string }
		LiveParameters []nizimaParameter
	}
	err := l.ask(ctx, "GetCurrentModelId", struct{}{}, &current)
	if _, noModel := errors.AsType[nizimaError](err); err != nil && !noModel {
		return err
	}
	if m.id = current.ModelID; m.id != "" {
		model := map[string]string{"ModelId": m.id}
		if err := errors.Join(l.ask(ctx, "GetExpressions", model, &content), l.ask(ctx, "GetMotions", model, &content)); err != nil {
			return err
		}
	}
	if err := l.ask(ctx, "GetLiveParameters", struct{}{}, &content); err != nil {
		return err
	}
	m.Loaded = m.id != ""
	for _, e := range content.Expressions {
		m.Expressions = append(m.Expressions, vtubeExpression{e.Name, e.ExpressionPath})
	}
	for _, motion := range content.Motions {
		m.Hotkeys = append(m.Hotkeys, vtubeHotkey{Name: motion.Name, Type: "TriggerAnimation", ID: motion.MotionPath})
	}
	m.parameters = content.LiveParameters
	for _, p := range m.parameters {
		m.Default = append(m.Default, vtubeParameter{p.ID})
	}
	var missing []nizimaParameter
	for _, name := range m.missingParameters() { // nizima LIVE removes a plugin's parameters when the connection ends
		missing = append(missing, nizimaParameter{ID: name, Group: "Stackchan", Max: float64(customMax(name))})
		m.Default = append(m.Default, vtubeParameter{name})
	}
	l.model = m
	l.model.parameters = append(l.model.parameters, missing...)
	if len(missing) > 0 {
		return l.askOptional(ctx, "InsertLiveParameters", map[string]any{"LiveParameters": missing})
	}
	return nil
}

// addValues returns the parameters that the mood changes.
func (m nizimaModel) addValues(scene Scene) (values []value) {
	for _, p := range offsets(scene.Mood) {
		if i := slices.IndexFunc(m.parameters, func(q nizimaParameter) bool { return q.ID == p.id }); i >= 0 {
			q := m.parameters[i]
			values = append(values, value{p.id, round(max(q.Min, min(q.Max, q.Base+p.by*(q.Max-q.Min))))})
		}
	}
	return values
}

// base returns the value of a parameter at rest.
func (m nizimaModel) base(id string) float64 {
	for _, p := range m.parameters {
		if p.ID == id {
			return p.Base
		}
	}
	return 0
}

// calls returns the requests for a change of scene. They have only a method and data.
func (m nizimaModel) calls(scene, previous Scene) (calls []nizimaMessage) {
	for _, step := range m.steps(scene, previous) {
		switch d := step.data.(type) {
		case vtubeActivation:
			method := "StopExpression"
			if d.Active {
				method = "StartExpression"
			}
			calls = append(calls, nizimaMessage{Method: method, Data: map[string]string{"ModelId": m.id, "ExpressionPath": d.File}})
		case vtubeTrigger:
			calls = append(calls, m.startMotion(d.Hotkey))
		}
	}
	return calls
}

// startMotion returns the request that starts a motion.
func (m nizimaModel) startMotion(path string) nizimaMessage {
	return nizimaMessage{Method: "StartMotion", Data: map[string]string{"ModelId": m.id, "MotionPath": path}}
}

func (l *nizimaLink) update(ctx context.Context, scene, _ Scene) error {
	calls := l.model.calls(scene, l.scene)
	l.scene = scene
	for _, call := range calls {
		if err := l.askOptional(ctx, call.Method, call.Data); err != nil {
			return err
		}
	}
	return nil
}

func (l *nizimaLink) frame(ctx context.Context, f *feed.Frame, scene Scene) error {
	switch b := f.Body.(type) {
	case feed.State:
		if l.model.hasHotkey(b, scene) {
			return l.update(ctx, scene, l.scene)
		}
	case feed.Gesture:
		if _, path := l.model.match("gesture", b.Name); path != "" {
			call := l.model.startMotion(path)
			return l.askOptional(ctx, call.Method, call.Data)
		}
	}
	return nil
}

func (l *nizimaLink) setMouth(ctx context.Context, level float64) error {
	l.level = level
	return l.move(ctx, l.scene)
}

// refresh sends the parameters that are due. If the model has changed, it loads the new one first.
func (l *nizimaLink) refresh(ctx context.Context, scene Scene) error {
	if l.off.Load() {
		return errors.New("the plugin manager of nizima LIVE has switched Perch off")
	}
	if l.changed.Load() {
		if err := l.loadModel(ctx); err != nil {
			return err
		}
		l.warnings.report(l.warning())
		l.scene = Scene{} // the new model shows nothing yet
		if err := l.update(ctx, scene, l.scene); err != nil {
			return err
		}
	}
	return l.move(ctx, scene)
}

// move sends the parameters that are due.
func (l *nizimaLink) move(ctx context.Context, scene Scene) error {
	now := time.Now()
	if err := l.setParameters(ctx, &l.set, l.model.setValues(scene, l.level), true, now); err != nil {
		return err
	}
	return l.setParameters(ctx, &l.add, l.model.addValues(scene), false, now)
}

// setParameters sends the parameters that are due. A parameter that is no longer in values gets its
// value at rest. overwrite tells whether the values replace those of a face tracker.
func (l *nizimaLink) setParameters(ctx context.Context, h *sentParameters, values []value, overwrite bool, now time.Time) error {
	due := h.next(values, now)
	if len(due) == 0 {
		return nil
	}
	type parameter struct {
		ID    string `json:"Id"`
		Value float64
	}
	var parameters []parameter
	for i, v := range due {
		if i >= len(values) {
			v.Value = l.model.base(v.ID)
		}
		parameters = append(parameters, parameter(v))
	}
	data := map[string]any{"LiveParameterValues": parameters, "Overwrite": overwrite}
	if l.model.id != "" {
		data["ModelId"] = l.model.id
	}
	return l.askOptional(ctx, "SetLiveParameterValues", data)
}

func (l *nizimaLink) refreshEvery() time.Duration { return moveEvery }

func (l *nizimaLink) warning() error {
	return join(l.model.warning("nizima LIVE", "motions"), l.warnings.all())
}

// close ends the expressions of the current scene, and closes the connection.
func (l *nizimaLink) close() {
	for _, call := range l.model.calls(Scene{}, l.scene) {
		call.Version, call.Type = "1.0.0", "Request"
		_ = l.send(call)
	}
	l.wire.close()
}
