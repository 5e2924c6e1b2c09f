package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"perch/gateway/avatar/feed"
)

// unreal is an Unreal Engine project with the Remote Control API on, whose HTTP routes are
// called through a WebSocket. An owner's words map values to properties and functions; the
// defaults are those of a preset called Stackchan.
type unreal struct{ *programConfig }

func unrealKind() kind {
	return kind{
		Kind: Kind{Name: "unreal", Title: "Unreal Engine", URL: "ws://127.0.0.1:30020",
			Shows: []string{"states", "tools", "faces", "gestures", "moods", "speech", "notifications", "questions", "mouth"}},
		schemes: []string{"ws", "wss"},
		words: map[string]string{
			"tell.state": "property Stackchan State", "tell.tool": "property Stackchan Tool", "tell.face": "property Stackchan Face",
			"tell.feeling": "property Stackchan Feeling", "tell.said": "property Stackchan Said", "tell.question": "property Stackchan Question",
			"tell.mouth": "property Stackchan Mouth", "tell.gesture": "function Stackchan Gesture Name",
			"tell.notify": "function Stackchan Notify Text",
		},
		make: func(o *programConfig) (program, error) {
			for _, key := range slices.Sorted(maps.Keys(o.words.table)) {
				if word := o.words.of(key); strings.HasPrefix(key, "tell.") && word != "" {
					if _, err := newUnrealTarget(word); err != nil {
						return nil, fmt.Errorf("words: %s: %w", key, err)
					}
				}
			}
			return unreal{o}, nil
		},
	}
}

// unrealTarget is a property or a function of a preset or an object.
type unrealTarget struct {
	form      string // property or function of a preset, set or call of an object
	of        string // the preset's name or the object's path
	member    string // the property or function
	parameter string // of the function
}

var errUnrealTarget = fmt.Errorf(`it has the form "property PRESET LABEL", "function PRESET LABEL PARAMETER", "set OBJECT PROPERTY" ` +
	`or "call OBJECT FUNCTION PARAMETER"; labels have letters, digits, - and _`)

func newUnrealTarget(word string) (t unrealTarget, err error) {
	parts := strings.Fields(word)
	switch {
	case len(parts) == 3 && (parts[0] == "property" || parts[0] == "set"):
		t = unrealTarget{parts[0], parts[1], parts[2], ""}
	case len(parts) == 4 && (parts[0] == "function" || parts[0] == "call"):
		t = unrealTarget{parts[0], parts[1], parts[2], parts[3]}
	default:
		return t, errUnrealTarget
	}
	if strings.ContainsAny(t.member, "/?&#%") || t.preset() && strings.ContainsAny(t.of, "/?&#%") {
		return t, errUnrealTarget // they are used in a path
	}
	return t, nil
}

func (t unrealTarget) preset() bool   { return t.form == "property" || t.form == "function" }
func (t unrealTarget) function() bool { return t.parameter != "" }

// unrealRequest is a call of an HTTP route. The answer has its RequestId.
type unrealRequest struct {
	URL       string `json:"Url"`
	Verb      string
	RequestID int `json:"RequestId"`
	Body      any `json:",omitempty"`
}

// unrealMessage is a message to the WebSocket.
type unrealMessage struct {
	MessageName string
	ID          int `json:"Id"`
	Parameters  unrealRequest
}

// unrealAnswer is the answer to a call, or a general error.
type unrealAnswer struct {
	RequestID    *int `json:"RequestId"`
	ResponseCode int
	ResponseBody struct {
		ErrorMessage string `json:"errorMessage"`
	}
	ErrorMessage string `json:"errorMessage"`
}

// request returns the call that sets a value.
func (t unrealTarget) request(value any) unrealRequest {
	switch t.form {
	case "property", "function":
		body := map[string]any{"GenerateTransaction": false}
		if t.function() {
			body["Parameters"] = map[string]any{t.parameter: value}
		} else {
			body["PropertyValue"] = value
		}
		return unrealRequest{URL: "/remote/preset/" + t.of + "/" + t.form + "/" + t.member, Verb: http.MethodPut, Body: body}
	case "call":
		return unrealRequest{URL: "/remote/object/call", Verb: http.MethodPut, Body: map[string]any{"objectPath": t.of, "functionName": t.member,
			"parameters": map[string]any{t.parameter: value}, "generateTransaction": false}}
	}
	return unrealRequest{URL: "/remote/object/property", Verb: http.MethodPut, Body: map[string]any{"objectPath": t.of, "propertyName": t.member,
		"propertyValue": map[string]any{t.member: value}, "access": "WRITE_ACCESS"}}
}

// unrealWaiting bounds the calls whose answers may be late.
const unrealWaiting = 64

type unrealLink struct {
	*wire
	words    words
	warnings warnings // refusals by Unreal

	mu    sync.Mutex
	calls int
	keys  [unrealWaiting]string // the values that the latest calls set, by call number
}

func (p unreal) open(ctx context.Context, note func(error)) (link, error) {
	l := &unrealLink{words: p.words}
	l.warnings.report = note
	var err error
	if l.wire, err = dial(ctx, p.URL, l.handleMessage); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	message, err := l.call(ctx, "0", unrealMessage{"http", 0, unrealRequest{URL: "/remote/info", Verb: http.MethodGet}})
	var a unrealAnswer
	if err == nil {
		err = json.Unmarshal(message, &a)
	}
	if err == nil && a.ResponseCode != http.StatusOK {
		err = fmt.Errorf("the Remote Control API refuses: %.200s; start its web server too, and allow this machine",
			cmp.Or(a.ErrorMessage, a.ResponseBody.ErrorMessage, strconv.Itoa(a.ResponseCode)))
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// handleMessage reads an answer. An answer without a RequestId belongs to the first call, which is
// the only awaited one.
func (l *unrealLink) handleMessage(message []byte) (answers string) {
	var a unrealAnswer
	if json.Unmarshal(message, &a) != nil {
		return ""
	}
	if a.RequestID == nil {
		if a.ErrorMessage != "" {
			return "0"
		}
		return ""
	}
	if n := *a.RequestID; n > 0 {
		l.answered(n, a)
	}
	return strconv.Itoa(*a.RequestID)
}

// answered sets or clears the warning about the value of a call.
func (l *unrealLink) answered(n int, a unrealAnswer) {
	l.mu.Lock()
	key := l.keys[n%unrealWaiting]
	if n <= l.calls-unrealWaiting || n > l.calls {
		key = "" // reused by a later call
	}
	l.mu.Unlock()
	switch {
	case key == "":
	case a.ResponseCode == http.StatusOK:
		l.warnings.set(key, nil)
	default:
		why := cmp.Or(a.ResponseBody.ErrorMessage, fmt.Sprintf("status %d", a.ResponseCode))
		l.warnings.set(key, fmt.Errorf("refused by Unreal: %s: %.80s", l.words.of("tell."+key), why))
	}
}

// setValue sends a value. It calls no function for "".
func (l *unrealLink) setValue(key string, value any) error {
	word := l.words.of("tell." + key)
	if word == "" {
		return nil
	}
	t, err := newUnrealTarget(word)
	if err != nil || t.function() && value == "" {
		return err
	}
	r := t.request(value)
	l.mu.Lock()
	l.calls++
	r.RequestID = l.calls
	l.keys[r.RequestID%unrealWaiting] = key
	l.mu.Unlock()
	return l.send(unrealMessage{"http", r.RequestID, r})
}

// number returns word as a number if it is one, since a property may be numeric.
func number(word string) any {
	if x, err := strconv.ParseFloat(word, 64); err == nil {
		return x
	}
	return word
}

// values returns the values of a scene that words do not leave out.
func (l *unrealLink) values(s Scene) map[string]any {
	all := map[string]any{"tool": s.Tool, "said": s.Said, "question": s.Question}
	for of, name := range map[string]string{"state": string(s.State), "face": s.Expression(), "feeling": s.Mood.Dominant} {
		if word := l.words.orName(of, name); word != "" || name == "" {
			all[of] = number(word)
		}
	}
	return all
}

func (l *unrealLink) update(_ context.Context, is, was Scene) error {
	now, before := l.values(is), l.values(was)
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if was != (Scene{}) && now[key] == before[key] {
			continue
		}
		if err := l.setValue(key, now[key]); err != nil {
			return err
		}
	}
	return nil
}

func (l *unrealLink) frame(_ context.Context, f *feed.Frame, _ Scene) error {
	switch b := f.Body.(type) {
	case feed.Gesture:
		if word := l.words.orName("gesture", b.Name); word != "" {
			return l.setValue("gesture", word)
		}
	case feed.Notice:
		if l.words.of("tell.notify") == "" {
			return errNotShown
		}
		if b.Question == "" { // update shows questions
			return l.setValue("notify", b.Text)
		}
	}
	return nil
}

// setMouth retries a refused property only when the mouth closes: Unreal logs each refusal.
func (l *unrealLink) setMouth(_ context.Context, level float64) error {
	if level > 0 && l.warnings.has("mouth") {
		return nil
	}
	return l.setValue("mouth", hundredths(level))
}

func (l *unrealLink) warning() error { return l.warnings.all() }
