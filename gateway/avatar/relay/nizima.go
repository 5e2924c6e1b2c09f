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
	l.api = l
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
	enabled chan struct{} // receives a value when the user enables Perch
	off     atomic.Bool   // whether the user has disabled Perch
	calls   int           // number of requests

	// modelLink.model has the paths of expressions instead of files, and motions instead of hotkeys.
	modelLink
	modelID    string            // ID of the current model; empty if there is no model
	parameters []nizimaParameter // parameters of all models
}

// nizimaParameter is a parameter that a plugin can set.
type nizimaParameter struct {
	ID        string  `json:"Id"`
	Group     string  `json:",omitempty"`
	Base      float64 // value at rest
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

// askOptional sends a request that is not essential: a refusal becomes a warning instead of an error,
// unless the user has disabled Perch.
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

// loadModel implements modelAPI.
func (l *nizimaLink) loadModel(ctx context.Context) error {
	if err := l.askOptional(ctx, "NotifyCurrentModelChanged", map[string]bool{"Enabled": true}); err != nil {
		return err
	}
	l.changed.Store(false)
	m := vtubeModel{words: l.words, Name: "in front"}
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
	if current.ModelID != "" {
		model := map[string]string{"ModelId": current.ModelID}
		if err := errors.Join(l.ask(ctx, "GetExpressions", model, &content), l.ask(ctx, "GetMotions", model, &content)); err != nil {
			return err
		}
	}
	if err := l.ask(ctx, "GetLiveParameters", struct{}{}, &content); err != nil {
		return err
	}
	m.Loaded = current.ModelID != ""
	for _, e := range content.Expressions {
		m.Expressions = append(m.Expressions, vtubeExpression{e.Name, e.ExpressionPath})
	}
	for _, motion := range content.Motions {
		m.Hotkeys = append(m.Hotkeys, vtubeHotkey{Name: motion.Name, Type: "TriggerAnimation", ID: motion.MotionPath})
	}
	for _, p := range content.LiveParameters {
		m.Default = append(m.Default, vtubeParameter{p.ID})
	}
	var missing []nizimaParameter
	for _, name := range m.missingParameters() { // nizima LIVE removes a plugin's parameters when the connection ends
		missing = append(missing, nizimaParameter{ID: name, Group: "Stackchan", Max: float64(customMax(name))})
		m.Default = append(m.Default, vtubeParameter{name})
	}
	l.model, l.modelID, l.parameters = m, current.ModelID, append(content.LiveParameters, missing...)
	if len(missing) > 0 {
		return l.askOptional(ctx, "InsertLiveParameters", map[string]any{"LiveParameters": missing})
	}
	return nil
}

// addValues implements modelAPI.
func (l *nizimaLink) addValues(scene Scene) (values []value) {
	for _, p := range offsets(scene.Mood) {
		if i := slices.IndexFunc(l.parameters, func(q nizimaParameter) bool { return q.ID == p.id }); i >= 0 {
			q := l.parameters[i]
			values = append(values, value{p.id, round(max(q.Min, min(q.Max, q.Base+p.by*(q.Max-q.Min))))})
		}
	}
	return values
}

// base returns the value of a parameter at rest.
func (l *nizimaLink) base(id string) float64 {
	for _, p := range l.parameters {
		if p.ID == id {
			return p.Base
		}
	}
	return 0
}

// request returns the method and the data of the request for a step.
func (l *nizimaLink) request(step vtubeStep) (method string, data map[string]string) {
	switch d := step.data.(type) {
	case vtubeActivation:
		method = "StopExpression"
		if d.Active {
			method = "StartExpression"
		}
		return method, map[string]string{"ModelId": l.modelID, "ExpressionPath": d.File}
	case vtubeTrigger:
		return "StartMotion", map[string]string{"ModelId": l.modelID, "MotionPath": d.Hotkey}
	}
	return "", nil
}

// runStep implements modelAPI.
func (l *nizimaLink) runStep(ctx context.Context, step vtubeStep) error {
	method, data := l.request(step)
	return l.askOptional(ctx, method, data)
}

// refresh is like modelLink.refresh, but returns an error if the user has disabled Perch.
func (l *nizimaLink) refresh(ctx context.Context, scene Scene) error {
	if l.off.Load() {
		return errors.New("the plugin manager of nizima LIVE has switched Perch off")
	}
	return l.modelLink.refresh(ctx, scene)
}

// sendValues implements modelAPI. It sends the value at rest for each released parameter.
func (l *nizimaLink) sendValues(ctx context.Context, due []value, released int, add bool) error {
	type parameter struct {
		ID    string `json:"Id"`
		Value float64
	}
	var parameters []parameter
	for i, v := range due {
		if i >= len(due)-released {
			v.Value = l.base(v.ID)
		}
		parameters = append(parameters, parameter(v))
	}
	data := map[string]any{"LiveParameterValues": parameters, "Overwrite": !add}
	if l.modelID != "" {
		data["ModelId"] = l.modelID
	}
	return l.askOptional(ctx, "SetLiveParameterValues", data)
}

func (l *nizimaLink) warning() error {
	return join(l.model.warning("nizima LIVE", "motions"), l.warnings.all())
}

// close ends the expressions of the current scene, and closes the connection.
func (l *nizimaLink) close() {
	for _, step := range l.model.steps(Scene{}, l.scene) {
		method, data := l.request(step)
		_ = l.send(nizimaMessage{Version: "1.0.0", Type: "Request", Method: method, Data: data})
	}
	l.wire.close()
}
