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

// nizima is nizima LIVE, with its plugin API 1.0.0. A plugin registers, is recognized by the
// token it was issued, and is allowed to act once the user enables it in the plugin manager.
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

type nizimaLink struct {
	*programConfig
	*wire
	warnings warnings
	enabled  chan struct{} // receives when the user enables Perch
	off      atomic.Bool   // the user has disabled Perch
	news     atomic.Bool   // another model is in front
	calls    int
	model    nizimaModel
	is       Scene
	level    float64
	held     heldParameters
}

// nizimaModel describes the model in front, with the parameters of all models.
type nizimaModel struct {
	vtubeModel // expressions by path, and motions, as hotkeys, by path
	id         string
	parameters []nizimaParameter
}

type nizimaParameter struct {
	ID        string `json:"Id"`
	Group     string `json:",omitempty"`
	Base      float64
	Max, Min  float64
	CreatedBy string `json:",omitempty"`
}

// handleMessage handles events, and returns the id of the call that a message answers.
func (l *nizimaLink) handleMessage(message []byte) string {
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
		l.news.Store(true)
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

// ask sends a request and reads its answer. It does not check for the type Response: in
// nizima's documentation some answers carry the type Request.
func (l *nizimaLink) ask(ctx context.Context, method string, data, answer any) error {
	l.calls++
	id := strconv.Itoa(l.calls)
	request := nizimaMessage{Version: "1.0.0", Time: time.Now().UnixMilli(), ID: id, Type: "Request", Method: method, Data: data}
	message, err := l.call(ctx, id, request)
	if err != nil {
		return err
	}
	refusal := nizimaError{method: method}
	is := nizimaMessage{Data: &refusal}
	if json.Unmarshal(message, &is) == nil && is.Type == "Error" {
		return refusal
	}
	is.Data = answer
	if err := json.Unmarshal(message, &is); err != nil || is.Method != method {
		return fmt.Errorf("something else than nizima LIVE answers (%.40q to %s); correct url", is.Method, method)
	}
	return nil
}

// askOptional is ask for requests whose refusal becomes a warning and does not end the link.
func (l *nizimaLink) askOptional(ctx context.Context, method string, data any) error {
	err := l.ask(ctx, method, data, &struct{}{})
	refusal, is := errors.AsType[nizimaError](err)
	switch {
	case err == nil:
		l.warnings.set(method, nil)
	case is && refusal.Type != "PluginDisabled":
		l.warnings.set(method, refusal)
		return nil
	}
	return err
}

// register authenticates, and waits until the user has enabled Perch.
func (l *nizimaLink) register(ctx context.Context) error {
	var got struct {
		Token   string
		Enabled bool
	}
	token, kept, err := l.tokens.Get(l.tokenKey(l.URL))
	if err != nil {
		return err
	}
	who := map[string]string{"Name": pluginName(l.appliance)}
	if kept {
		who["Token"] = token
		err := l.ask(ctx, "EstablishConnection", who, &got)
		if refusal, is := errors.AsType[nizimaError](err); is && refusal.Type == "InvalidToken" {
			kept = false // the user has removed Perch
			delete(who, "Token")
		} else if err != nil {
			return err
		}
	}
	if !kept {
		who["Developer"] = "Perch"
		if err := l.ask(ctx, "RegisterPlugin", who, &got); err != nil {
			return err
		}
		if got.Token == "" || len(got.Token) > mostToken {
			return errors.New("nizima LIVE returned an invalid token")
		}
		if err := l.tokens.Put(l.tokenKey(l.URL), got.Token); err != nil {
			return err
		}
	}
	if got.Enabled {
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

// loadModel asks what the model in front can show.
func (l *nizimaLink) loadModel(ctx context.Context) error {
	if err := l.askOptional(ctx, "NotifyCurrentModelChanged", map[string]bool{"Enabled": true}); err != nil {
		return err
	}
	l.news.Store(false)
	m := nizimaModel{vtubeModel: vtubeModel{words: l.words, Name: "in front"}}
	var front struct {
		ModelID string `json:"ModelId"`
	}
	var has struct {
		Expressions    []struct{ Name, ExpressionPath string }
		Motions        []struct{ Name, MotionPath string }
		LiveParameters []nizimaParameter
	}
	err := l.ask(ctx, "GetCurrentModelId", struct{}{}, &front)
	if _, none := errors.AsType[nizimaError](err); err != nil && !none {
		return err
	}
	if m.id = front.ModelID; m.id != "" {
		of := map[string]string{"ModelId": m.id}
		if err := errors.Join(l.ask(ctx, "GetExpressions", of, &has), l.ask(ctx, "GetMotions", of, &has)); err != nil {
			return err
		}
	}
	if err := l.ask(ctx, "GetLiveParameters", struct{}{}, &has); err != nil {
		return err
	}
	m.Loaded = m.id != ""
	for _, e := range has.Expressions {
		m.Expressions = append(m.Expressions, vtubeExpression{e.Name, e.ExpressionPath})
	}
	for _, motion := range has.Motions {
		m.Hotkeys = append(m.Hotkeys, vtubeHotkey{Name: motion.Name, Type: "TriggerAnimation", ID: motion.MotionPath})
	}
	m.parameters = has.LiveParameters
	for _, p := range m.parameters {
		m.Default = append(m.Default, vtubeParameter{p.ID})
	}
	var lacks []nizimaParameter
	for _, name := range m.missingParameters() { // nizima forgets them when the connection ends
		lacks = append(lacks, nizimaParameter{ID: name, Group: "Stackchan", Max: float64(customMost(name))})
		m.Default = append(m.Default, vtubeParameter{name})
	}
	l.model = m
	l.model.parameters = append(l.model.parameters, lacks...)
	if len(lacks) > 0 {
		return l.askOptional(ctx, "InsertLiveParameters", map[string]any{"LiveParameters": lacks})
	}
	return nil
}

// values returns the parameters for a scene and an open mouth.
func (m nizimaModel) values(is Scene, level float64) []value {
	all := m.setValues(is, level)
	for _, p := range pushes(is.Mood) {
		if i := slices.IndexFunc(m.parameters, func(q nizimaParameter) bool { return q.ID == p.id }); i >= 0 {
			q := m.parameters[i]
			all = append(all, value{p.id, round(max(q.Min, min(q.Max, q.Base+p.by*(q.Max-q.Min))))})
		}
	}
	return all
}

// base returns a parameter's value at rest.
func (m nizimaModel) base(id string) float64 {
	for _, p := range m.parameters {
		if p.ID == id {
			return p.Base
		}
	}
	return 0
}

// calls returns the requests for a change of scene.
func (m nizimaModel) calls(is, was Scene) (all []nizimaMessage) {
	for _, step := range m.steps(is, was) {
		switch d := step.data.(type) {
		case vtubeActivation:
			method := "StopExpression"
			if d.Active {
				method = "StartExpression"
			}
			all = append(all, nizimaMessage{Method: method, Data: map[string]string{"ModelId": m.id, "ExpressionPath": d.File}})
		case vtubeTrigger:
			all = append(all, m.motion(d.Hotkey))
		}
	}
	return all
}

func (m nizimaModel) motion(path string) nizimaMessage {
	return nizimaMessage{Method: "StartMotion", Data: map[string]string{"ModelId": m.id, "MotionPath": path}}
}

func (l *nizimaLink) update(ctx context.Context, is, was Scene) error {
	l.is = is
	for _, call := range l.model.calls(is, was) {
		if err := l.askOptional(ctx, call.Method, call.Data); err != nil {
			return err
		}
	}
	return nil
}

func (l *nizimaLink) frame(ctx context.Context, f *feed.Frame, _ Scene) error {
	if gesture, is := f.Body.(feed.Gesture); is {
		if _, path := l.model.match("gesture", gesture.Name); path != "" {
			call := l.model.motion(path)
			return l.askOptional(ctx, call.Method, call.Data)
		}
	}
	return nil
}

func (l *nizimaLink) setMouth(ctx context.Context, level float64) error {
	l.level = level
	return l.move(ctx, l.is)
}

// refresh repeats held parameters, and loads the model again after a change.
func (l *nizimaLink) refresh(ctx context.Context, is Scene) error {
	if l.off.Load() {
		return errors.New("nizima LIVE has Perch switched off in its plugin manager")
	}
	if l.news.Load() {
		if err := l.loadModel(ctx); err != nil {
			return err
		}
		l.warnings.report(l.warning())
		if err := l.update(ctx, is, Scene{}); err != nil {
			return err
		}
	}
	return l.move(ctx, is)
}

// move sends parameters that are due. A released parameter returns to its value at rest.
func (l *nizimaLink) move(ctx context.Context, is Scene) error {
	values := l.model.values(is, l.level)
	due := l.held.next(values, time.Now())
	if len(due) == 0 {
		return nil
	}
	type parameter struct {
		ID    string `json:"Id"`
		Value float64
	}
	var all []parameter
	for i, v := range due {
		if i >= len(values) {
			v.Value = l.model.base(v.ID)
		}
		all = append(all, parameter(v))
	}
	data := map[string]any{"LiveParameterValues": all}
	if l.model.id != "" {
		data["ModelId"] = l.model.id
	}
	return l.askOptional(ctx, "SetLiveParameterValues", data)
}

func (l *nizimaLink) refreshEvery() time.Duration { return movesEvery }

func (l *nizimaLink) warning() error {
	return join(l.model.warning("nizima LIVE", "motions"), l.warnings.all())
}

// close undoes what is shown, if the program is still there.
func (l *nizimaLink) close() {
	for _, call := range l.model.calls(Scene{}, l.is) {
		call.Version, call.Type = "1.0.0", "Request"
		_ = l.send(call)
	}
	l.wire.close()
}
