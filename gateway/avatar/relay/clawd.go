package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
	"perch/remote"
)

// clawd is clawd-on-desk, a desktop pet that shows coding agents. Each robot is a session
// there; the pet indicates when there are several.
type clawd struct{ *programConfig }

const (
	clawdID     = "clawd-on-desk"
	clawdHeader = "X-Clawd-Server"
	clawdURL    = "http://127.0.0.1:23333"
	clawdFirst  = 23333 // the first of its ports
	clawdLast   = 23337
	clawdWithin = time.Second
	clawdEvery  = time.Minute // clawd takes a working agent for idle after five minutes
	mostClawd   = 1000        // bytes of a state: older versions accept 1024
)

func clawdKind() kind {
	return kind{
		Kind: Kind{Name: "clawd", Title: "clawd-on-desk", URL: clawdURL,
			Shows: []string{"states", "notifications", "questions"}},
		schemes: []string{"http"},
		words: map[string]string{"agent": "", "state.idle": "idle", "state.listening": "idle", "state.thinking": "thinking",
			"state.working": "working", "state.juggling": "juggling", "state.speaking": "working", "state.attention": "attention",
			"state.notification": "notification", "state.error": "error", "state.sleeping": "sleeping"},
		make: func(o *programConfig) (program, error) { return clawd{o}, nil },
	}
}

// clawdState is the body of POST /state.
type clawdState struct {
	State   string `json:"state"`
	Session string `json:"session_id"`
	Event   string `json:"event,omitempty"`
	Agent   string `json:"agent_id,omitempty"`
	Tool    string `json:"tool_name,omitempty"`
	Title   string `json:"session_title,omitempty"`
}

// newClawdState returns the body for a session's state after the one before, or false if
// nothing is to be sent.
func newClawdState(w words, session string, is feed.State, was agent.Shown) (clawdState, bool) {
	body := clawdState{State: w.state(is.State), Session: "perch:" + plain.Clip(session, 100), Agent: w.of("agent")}
	if is.Detail != nil {
		body.Tool = plain.Clip(is.Detail.Tool, 100)
	}
	body.Event = map[agent.Shown]string{agent.Thinking: "UserPromptSubmit", agent.Juggling: "SubagentStart", agent.Working: "PreToolUse",
		agent.Speaking: "PreToolUse", agent.Attention: "Stop", agent.Notification: "Notification", agent.Failed: "PostToolUseFailure",
		agent.Sleeping: "SessionEnd"}[is.State]
	if body.Event == "PreToolUse" && was == agent.Juggling {
		body.Event = "SubagentStop" // nothing else ends juggling there
	}
	return body, body.State != ""
}

// addresses returns where the pet may listen: the port in its runtime file, and each of its
// usual ports. A configured address is the only one.
func (p clawd) addresses() []string {
	if p.URL != clawdURL {
		return []string{p.URL}
	}
	var runtime struct {
		App  string `json:"app"`
		Port int    `json:"port"`
	}
	var all []string
	for port := clawdFirst; port <= clawdLast; port++ {
		all = append(all, fmt.Sprintf("http://127.0.0.1:%d", port))
	}
	if p.home != "" && readJSONFile(filepath.Join(p.home, ".clawd", "runtime.json"), limit.Body, &runtime) &&
		runtime.App == clawdID && runtime.Port >= clawdFirst && runtime.Port <= clawdLast {
		first := all[runtime.Port-clawdFirst]
		all = append([]string{first}, slices.DeleteFunc(all, func(address string) bool { return address == first })...)
	}
	return all
}

func (p clawd) open(ctx context.Context, note func(error)) (link, error) {
	for _, address := range p.addresses() {
		base, err := url.Parse(address)
		if err != nil {
			return nil, err
		}
		l := &clawdLink{clawd: p, states: map[string]feed.State{}, httpLink: newHTTPLink(remote.Options{Base: base,
			Server: remote.Server{Service: clawdID, Address: address, Check: "words"}}, clawdWithin, note)}
		if _, err = l.call(ctx, http.MethodGet, nil); err == nil {
			return l, nil
		}
		l.close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	where := p.address()
	if where == clawdURL {
		where = fmt.Sprintf("http://127.0.0.1, ports %d to %d", clawdFirst, clawdLast)
	}
	return nil, fmt.Errorf("clawd-on-desk does not answer at %s; start it on this machine, or set url", where)
}

// clawdLink is a link to a pet that answered.
type clawdLink struct {
	*httpLink
	clawd
	states map[string]feed.State // as sent, by session
}

var errNotClawd = errors.New("what answers is not clawd-on-desk any more")

// call sends a request, and returns the beginning of the answer.
func (l *clawdLink) call(ctx context.Context, method string, body []byte) (text string, err error) {
	begin, header, err := l.httpLink.call(ctx, remote.Request{Method: method, Path: "state", Body: body, Within: clawdWithin}, 1024)
	if err == nil && header.Get(clawdHeader) != clawdID {
		return "", errNotClawd
	}
	return string(begin), err
}

// post sends a state. If the pet ignores this agent, it sets a warning.
func (l *clawdLink) post(ctx context.Context, s clawdState) error {
	s.Title = plain.Clip(strings.TrimSpace(l.appliance+" "+strings.TrimPrefix(s.Session, "perch:")), 100)
	body := httpserver.Encode(s)
	if len(body) > mostClawd {
		s.Tool, s.Title = "", ""
		body = httpserver.Encode(s)
	}
	answer, err := l.call(ctx, http.MethodPost, body)
	if err == nil && answer == "" { // HTTP 204
		l.warnings.set("", errors.New("clawd-on-desk takes nothing of this agent; switch the agent on in its settings, or correct words.agent"))
		return nil
	}
	if err = l.checkRefusal(err); errors.Is(err, errNotShown) {
		return nil
	}
	return err
}

func (l *clawdLink) frame(ctx context.Context, f *feed.Frame, _ Scene) error {
	session := cmp.Or(string(f.Robot), f.Session, "home")
	switch b := f.Body.(type) {
	case feed.State:
		session = cmp.Or(string(b.Robot), b.Session, "home")
		was := l.states[session].State
		if l.states[session] = b; b.State == agent.Sleeping || len(l.states) > mostScenes {
			delete(l.states, session)
		}
		if body, is := newClawdState(l.words, session, b, was); is {
			return l.post(ctx, body)
		}
	case feed.Notice:
		if b.Question != "" {
			return nil // its state shows it
		}
		if body, is := newClawdState(l.words, session, feed.State{State: agent.Notification}, ""); is {
			if err := l.post(ctx, body); err != nil {
				return err
			}
		}
		return errNotShown // the pet shows no text
	}
	return nil
}

// refresh repeats the states of working agents, or else checks that the pet still answers.
func (l *clawdLink) refresh(ctx context.Context, _ Scene) error {
	repeated := false
	for _, session := range slices.Sorted(maps.Keys(l.states)) {
		s := l.states[session]
		body, is := newClawdState(l.words, session, s, s.State)
		if !is || !slices.Contains([]agent.Shown{agent.Thinking, agent.Working, agent.Juggling, agent.Speaking}, s.State) {
			continue
		}
		body.Event = "" // only a repeat
		if err := l.post(ctx, body); err != nil {
			return err
		}
		repeated = true
	}
	if repeated {
		return nil
	}
	_, err := l.call(ctx, http.MethodGet, nil)
	return err
}

func (l *clawdLink) refreshEvery() time.Duration { return clawdEvery }
