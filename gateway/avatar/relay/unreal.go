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

// unreal is an Unreal Engine project whose Remote Control API is enabled. The HTTP routes of that API
// are called through a WebSocket. A word with a key such as "tell.state" names the property or function
// that receives a value; by default, all of them are in a preset called Stackchan.
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
				if word := o.words.get(key); strings.HasPrefix(key, "tell.") && word != "" {
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
	form      string // property or function for a preset, set or call for an object
	owner     string // name of the preset, or path of the object
	member    string // name of the property or function
	parameter string // name of the function's parameter; empty for a property
}

var errUnrealTarget = fmt.Errorf(`it must have the form "property PRESET LABEL", "function PRESET LABEL PARAMETER", "set OBJECT PROPERTY" ` +
	`or "call OBJECT FUNCTION PARAMETER"; labels have letters, digits, - and _`)

// newUnrealTarget parses a word whose key begins with "tell.".
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
	if strings.ContainsAny(t.member, "/?&#%") || t.isOfPreset() && strings.ContainsAny(t.owner, "/?&#%") {
		return t, errUnrealTarget // request uses these names in a URL path
	}
	return t, nil
}

// isOfPreset reports whether the target belongs to a preset.
func (t unrealTarget) isOfPreset() bool { return t.form == "property" || t.form == "function" }

// isFunction reports whether the target is a function.
func (t unrealTarget) isFunction() bool { return t.parameter != "" }

// unrealRequest is a request to an HTTP route. The response has the same RequestId.
type unrealRequest struct {
	URL       string `json:"Url"`
	Verb      string
	RequestID int `json:"RequestId"`
	Body      any `json:",omitempty"`
}

// unrealMessage is a message to Unreal Engine that contains a request.
type unrealMessage struct {
	MessageName string
	ID          int `json:"Id"`
	Parameters  unrealRequest
}

// unrealResponse is the response to a request, or an error without a RequestId.
type unrealResponse struct {
	RequestID    *int `json:"RequestId"`
	ResponseCode int
	ResponseBody struct {
		ErrorMessage string `json:"errorMessage"`
	}
	ErrorMessage string `json:"errorMessage"`
}

// request returns the request that sets the property to a value, or calls the function with the value.
func (t unrealTarget) request(value any) unrealRequest {
	switch t.form {
	case "property", "function":
		body := map[string]any{"GenerateTransaction": false}
		if t.isFunction() {
			body["Parameters"] = map[string]any{t.parameter: value}
		} else {
			body["PropertyValue"] = value
		}
		return unrealRequest{URL: "/remote/preset/" + t.owner + "/" + t.form + "/" + t.member, Verb: http.MethodPut, Body: body}
	case "call":
		return unrealRequest{URL: "/remote/object/call", Verb: http.MethodPut, Body: map[string]any{"objectPath": t.owner, "functionName": t.member,
			"parameters": map[string]any{t.parameter: value}, "generateTransaction": false}}
	}
	return unrealRequest{URL: "/remote/object/property", Verb: http.MethodPut, Body: map[string]any{"objectPath": t.owner, "propertyName": t.member,
		"propertyValue": map[string]any{t.member: value}, "access": "WRITE_ACCESS"}}
}

// maxPending is how many of the latest requests are stored. Responses to earlier requests are ignored.
const maxPending = 64

// unrealLink is a connection to Unreal Engine.
type unrealLink struct {
	*wire
	words    words
	warnings warnings // refused values; the subject is the key of the value

	mu    sync.Mutex
	calls int                // number of requests
	keys  [maxPending]string // keys of the values that the latest requests set; index: RequestId modulo maxPending
}

func (p unreal) open(ctx context.Context, note func(error)) (link, error) {
	l := &unrealLink{words: p.words}
	l.warnings.report = note
	var err error
	if l.wire, err = dial(ctx, p.URL, l.handleMessage); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	message, err := l.call(ctx, "0", unrealMessage{"http", 0, unrealRequest{URL: "/remote/info", Verb: http.MethodGet}})
	var a unrealResponse
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

// handleMessage handles a response, and returns its ID. It treats an error without a RequestId as the
// response to the request of open, because no other request waits for its response.
func (l *unrealLink) handleMessage(message []byte) (callID string) {
	var a unrealResponse
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
		l.setWarning(n, a)
	}
	return strconv.Itoa(*a.RequestID)
}

// setWarning sets or removes the warning about the value that the request with the ID n has set.
func (l *unrealLink) setWarning(n int, a unrealResponse) {
	l.mu.Lock()
	key := l.keys[n%maxPending]
	if n <= l.calls-maxPending || n > l.calls {
		key = "" // the element belongs to a later request
	}
	l.mu.Unlock()
	switch {
	case key == "":
	case a.ResponseCode == http.StatusOK:
		l.warnings.set(key, nil)
	default:
		reason := cmp.Or(a.ResponseBody.ErrorMessage, fmt.Sprintf("status %d", a.ResponseCode))
		l.warnings.set(key, fmt.Errorf("refused by Unreal: %s: %.80s", l.words.get("tell."+key), reason))
	}
}

// setValue sends the value with a key such as state. A function is not called with the value "".
func (l *unrealLink) setValue(key string, value any) error {
	word := l.words.get("tell." + key)
	if word == "" {
		return nil
	}
	t, err := newUnrealTarget(word)
	if err != nil || t.isFunction() && value == "" {
		return err
	}
	r := t.request(value)
	l.mu.Lock()
	l.calls++
	r.RequestID = l.calls
	l.keys[r.RequestID%maxPending] = key
	l.mu.Unlock()
	return l.send(unrealMessage{"http", r.RequestID, r})
}

// parseValue returns a word, as a float64 if it is a number, because a property may be numeric.
func parseValue(word string) any {
	if x, err := strconv.ParseFloat(word, 64); err == nil {
		return x
	}
	return word
}

// values returns the values for a scene. It omits a state, face or feeling whose word is set to "".
func (l *unrealLink) values(s Scene) map[string]any {
	values := map[string]any{"tool": s.Tool, "said": s.Said, "question": s.Question}
	for key, name := range map[string]string{"state": string(s.State), "face": s.Expression(), "feeling": s.Mood.Dominant} {
		if word := l.words.orName(key, name); word != "" || name == "" {
			values[key] = parseValue(word)
		}
	}
	return values
}

func (l *unrealLink) update(_ context.Context, scene, previous Scene) error {
	values, old := l.values(scene), l.values(previous)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if previous != (Scene{}) && values[key] == old[key] {
			continue
		}
		if err := l.setValue(key, values[key]); err != nil {
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
		if l.words.get("tell.notify") == "" {
			return errNotShown
		}
		if b.Question == "" { // update shows questions
			return l.setValue("notify", b.Text)
		}
	}
	return nil
}

// setMouth sends the level. After a refusal it sends only the level 0, because Unreal logs each refusal.
func (l *unrealLink) setMouth(_ context.Context, level float64) error {
	if level > 0 && l.warnings.has("mouth") {
		return nil
	}
	return l.setValue("mouth", hundredths(level))
}

func (l *unrealLink) warning() error { return l.warnings.all() }
