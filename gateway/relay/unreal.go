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

	"perch/agent/feed"
)

// unreal is a project of Unreal Engine whose Remote Control API is on: its routes of
// HTTP, called by a WebSocket. An owner's words say which property or function is told
// what; usually they are those of a preset called Stackchan.
type unreal struct{ *own }

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
		make: func(o *own) (program, error) {
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

// unrealTarget is a property or a function, of a preset or of an object.
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
		return t, errUnrealTarget // they are parts of a path
	}
	return t, nil
}

func (t unrealTarget) preset() bool   { return t.form == "property" || t.form == "function" }
func (t unrealTarget) function() bool { return t.parameter != "" }

// unrealRequest is a call of a route. The answer has its RequestId.
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

// unrealAnswer is an answer, or what Unreal says where it cannot take a call at all.
type unrealAnswer struct {
	RequestID    *int `json:"RequestId"`
	ResponseCode int
	ResponseBody struct {
		ErrorMessage string `json:"errorMessage"`
	}
	ErrorMessage string `json:"errorMessage"`
}

// request is the call that tells a value.
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
	words   words
	remarks remarks // what Unreal refuses

	mu    sync.Mutex
	calls int
	keys  [unrealWaiting]string // what the latest calls told, by their number
}

func (p unreal) open(ctx context.Context, note func(error)) (link, error) {
	l := &unrealLink{words: p.words}
	l.remarks.tell = note
	var err error
	if l.wire, err = dial(ctx, p.URL, l.take); err != nil {
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

// take reads an answer. One to no call is to the first, which alone is waited for.
func (l *unrealLink) take(message []byte) (answers string) {
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

// answered notes what Unreal refuses, and what no more.
func (l *unrealLink) answered(n int, a unrealAnswer) {
	l.mu.Lock()
	key := l.keys[n%unrealWaiting]
	if n <= l.calls-unrealWaiting || n > l.calls {
		key = "" // of another call by now
	}
	l.mu.Unlock()
	switch {
	case key == "":
	case a.ResponseCode == http.StatusOK:
		l.remarks.say(key, nil)
	default:
		why := cmp.Or(a.ResponseBody.ErrorMessage, fmt.Sprintf("status %d", a.ResponseCode))
		l.remarks.say(key, fmt.Errorf("refused by Unreal: %s: %.80s", l.words.of("tell."+key), why))
	}
}

// put tells a value. A function is not called for nothing.
func (l *unrealLink) put(key string, value any) error {
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

// number is a word as a number where it is one: a property may be one.
func number(word string) any {
	if x, err := strconv.ParseFloat(word, 64); err == nil {
		return x
	}
	return word
}

// told are the values of a scene, without those that words leave out.
func (l *unrealLink) told(s Scene) map[string]any {
	all := map[string]any{"tool": s.Tool, "said": s.Said, "question": s.Question}
	for of, name := range map[string]string{"state": string(s.State), "face": s.Expression(), "feeling": s.Mood.Dominant} {
		if word := l.words.orName(of, name); word != "" || name == "" {
			all[of] = number(word)
		}
	}
	return all
}

func (l *unrealLink) show(_ context.Context, is, was Scene) error {
	now, before := l.told(is), l.told(was)
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if was != (Scene{}) && now[key] == before[key] {
			continue
		}
		if err := l.put(key, now[key]); err != nil {
			return err
		}
	}
	return nil
}

func (l *unrealLink) frame(_ context.Context, f *feed.Frame, _ Scene) error {
	switch b := f.Body.(type) {
	case feed.Gesture:
		if word := l.words.orName("gesture", b.Name); word != "" {
			return l.put("gesture", word)
		}
	case feed.Notice:
		if l.words.of("tell.notify") == "" {
			return errUntold
		}
		if b.Question == "" { // else show tells it
			return l.put("notify", b.Text)
		}
	}
	return nil
}

// mouth has a refused property tried again only where the mouth closes: Unreal logs each.
func (l *unrealLink) mouth(_ context.Context, level float64) error {
	if level > 0 && l.remarks.on("mouth") {
		return nil
	}
	return l.put("mouth", hundredths(level))
}

func (l *unrealLink) note() error { return l.remarks.all() }
