package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
	"perch/remote"
)

// clawd is clawd-on-desk, a desktop pet that shows coding agents. Each robot and chat is a session
// of the pet.
type clawd struct{ *programConfig }

const (
	clawdID       = "clawd-on-desk"  // value of clawdHeader
	clawdHeader   = "X-Clawd-Server" // response header that identifies the program
	clawdURL      = "http://127.0.0.1:23333"
	clawdMinPort  = 23333 // the program listens on the first free port of this range
	clawdMaxPort  = 23337
	clawdTimeout  = time.Second // timeout of a request
	clawdEvery    = time.Minute // interval of refresh: the pet shows an agent as idle after five minutes without a message
	clawdMaxBytes = 1000        // maximum size of a state; older versions accept at most 1024 bytes

	permissionTimeout = 10 * time.Minute // how long the pet may take to answer a question
)

func clawdKind() kind {
	return kind{
		Kind: Kind{Name: "clawd", Title: "clawd-on-desk", URL: clawdURL,
			Shows: []string{"states", "notifications", "questions"}},
		schemes: []string{"http"},
		words: map[string]string{"agent": "", "permission": "", "state.idle": "idle", "state.listening": "idle", "state.thinking": "thinking",
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

// newClawdState returns the body for the state of a session. The session's previous state decides
// whether the pet must be told that juggling has ended. It returns false if the word for the state is
// "".
func newClawdState(w words, session string, state feed.State, previous agent.Shown) (clawdState, bool) {
	body := clawdState{State: w.state(state.State), Session: "perch:" + plain.Clip(session, 100), Agent: w.get("agent")}
	if state.Detail != nil {
		body.Tool = plain.Clip(state.Detail.Tool, 100)
	}
	body.Event = map[agent.Shown]string{agent.Thinking: "UserPromptSubmit", agent.Juggling: "SubagentStart", agent.Working: "PreToolUse",
		agent.Speaking: "PreToolUse", agent.Attention: "Stop", agent.Notification: "Notification", agent.Failed: "PostToolUseFailure",
		agent.Sleeping: "SessionEnd"}[state.State]
	if body.Event == "PreToolUse" && previous == agent.Juggling {
		body.Event = "SubagentStop" // no other event ends the pet's juggling
	}
	return body, body.State != ""
}

// addresses returns the addresses at which the pet may listen, likeliest first. If an address other
// than clawdURL is configured, that is the only address. Otherwise the address in the pet's runtime
// file comes first, followed by all others in the range of ports.
func (p clawd) addresses() []string {
	if p.URL != clawdURL {
		return []string{p.URL}
	}
	var runtime struct {
		App  string `json:"app"`
		Port int    `json:"port"`
	}
	var addresses []string
	for port := clawdMinPort; port <= clawdMaxPort; port++ {
		addresses = append(addresses, fmt.Sprintf("http://127.0.0.1:%d", port))
	}
	if p.home != "" && readJSONFile(filepath.Join(p.home, ".clawd", "runtime.json"), limit.Body, &runtime) &&
		runtime.App == clawdID && runtime.Port >= clawdMinPort && runtime.Port <= clawdMaxPort {
		first := addresses[runtime.Port-clawdMinPort]
		addresses = append([]string{first}, slices.DeleteFunc(addresses, func(address string) bool { return address == first })...)
	}
	return addresses
}

func (p clawd) open(ctx context.Context, note func(error)) (link, error) {
	for _, address := range p.addresses() {
		base, err := url.Parse(address)
		if err != nil {
			return nil, err
		}
		l := &clawdLink{clawd: p, states: map[string]feed.State{}, asking: map[string]*clawdAsking{}, httpLink: newHTTPLink(remote.Options{Base: base,
			Server: remote.Server{Service: clawdID, Address: address, Check: "words"}}, clawdTimeout, note)}
		if _, err = l.call(ctx, remote.Request{Method: http.MethodGet, Path: "state", Within: clawdTimeout}); err == nil {
			return l, nil
		}
		l.close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	address := p.address()
	if address == clawdURL {
		address = fmt.Sprintf("http://127.0.0.1, ports %d to %d", clawdMinPort, clawdMaxPort)
	}
	return nil, fmt.Errorf("clawd-on-desk does not answer at %s; start it on this machine, or set url", address)
}

// clawdLink is a link to a running pet.
type clawdLink struct {
	*httpLink
	clawd
	states    map[string]feed.State   // latest states, except sleeping; key: robot ID, session ID or "home"
	asking    map[string]*clawdAsking // sessions with questions that the pet shows; key as in states
	answering sync.WaitGroup          // counts the goroutines of ask
}

// clawdAsking is the context of a session's open questions. It is cancelled when the questions no longer wait, or
// when the link closes.
type clawdAsking struct {
	ctx    context.Context
	cancel context.CancelFunc
}

var errNotClawd = errors.New("the program at this address is no longer clawd-on-desk")

// call sends a request, and returns up to 1024 bytes of the body of the response. It returns
// errNotClawd if another program responds.
func (l *clawdLink) call(ctx context.Context, r remote.Request) (text string, err error) {
	prefix, header, err := l.httpLink.call(ctx, r, 1024)
	if err == nil && header.Get(clawdHeader) != clawdID {
		return "", errNotClawd
	}
	return string(prefix), err
}

// post sends a state. It sets a warning if the pet ignores this agent or refuses the state.
func (l *clawdLink) post(ctx context.Context, s clawdState) error {
	s.Title = plain.Clip(strings.TrimSpace(l.appliance+" "+strings.TrimPrefix(s.Session, "perch:")), 100)
	body := httpserver.Encode(s)
	if len(body) > clawdMaxBytes {
		s.Tool, s.Title = "", ""
		body = httpserver.Encode(s)
	}
	response, err := l.call(ctx, remote.Request{Method: http.MethodPost, Path: "state", Body: body, Within: clawdTimeout})
	if err == nil && response == "" { // HTTP 204
		l.warnings.set("", errors.New("clawd-on-desk ignores this agent; switch the agent on in its settings, or correct words.agent"))
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
		if asking := l.asking[session]; asking != nil && b.State != agent.Notification { // the questions no longer wait
			asking.cancel()
			delete(l.asking, session)
		}
		previous := l.states[session].State
		if l.states[session] = b; b.State == agent.Sleeping || len(l.states) > maxScenes {
			delete(l.states, session)
		}
		if body, ok := newClawdState(l.words, session, b, previous); ok {
			return l.post(ctx, body)
		}
	case feed.Notice:
		if b.Question != "" { // the pet also gets the state Notification, so nothing else is needed
			if l.words.get("permission") != "" {
				l.ask(session, b)
			}
			return nil
		}
		if body, ok := newClawdState(l.words, session, feed.State{State: agent.Notification}, ""); ok {
			if err := l.post(ctx, body); err != nil {
				return err
			}
		}
		return errNotShown // the pet shows no text
	}
	return nil
}

// clawdPermission is the body of POST /permission, which shows a question with buttons.
type clawdPermission struct {
	Tool    string            `json:"tool_name"`
	Input   map[string]string `json:"tool_input"`
	Session string            `json:"session_id"`
}

// ask makes the pet show a question. It returns at once; a goroutine passes the user's answer to l.answer.
func (l *clawdLink) ask(session string, n feed.Notice) {
	asking := l.asking[session]
	if asking == nil {
		asking = &clawdAsking{}
		asking.ctx, asking.cancel = context.WithCancel(context.Background())
		l.asking[session] = asking
	}
	body := httpserver.Encode(clawdPermission{l.appliance, map[string]string{"question": n.Text}, "perch:" + plain.Clip(session, 100)})
	l.answering.Go(func() {
		text, err := l.call(asking.ctx, remote.Request{Method: http.MethodPost, Path: "permission", Body: body, Within: permissionTimeout})
		var response struct {
			Output struct {
				Decision struct{ Behavior, Message string }
			} `json:"hookSpecificOutput"`
		}
		if err != nil || json.Unmarshal([]byte(text), &response) != nil {
			return // the question no longer waits, or the pet does not answer questions
		}
		d := response.Output.Decision
		if allow := d.Behavior == "allow"; allow || d.Behavior == "deny" && d.Message == "" { // a denial with a message comes from the pet itself, not from the user
			if err := l.answer(n.Question, allow); err != nil && !errors.Is(err, agent.ErrNoQuestion) {
				l.warnings.set("permission", err)
			}
		}
	})
}

// close cancels the open questions, and closes the link.
func (l *clawdLink) close() {
	for _, asking := range l.asking {
		asking.cancel()
	}
	l.answering.Wait()
	l.httpLink.close()
}

// refresh sends the states of working agents again. If no agent is working, it checks that the pet
// still responds.
func (l *clawdLink) refresh(ctx context.Context, _ Scene) error {
	repeated := false
	for _, session := range slices.Sorted(maps.Keys(l.states)) {
		s := l.states[session]
		body, ok := newClawdState(l.words, session, s, s.State)
		if !ok || !slices.Contains([]agent.Shown{agent.Thinking, agent.Working, agent.Juggling, agent.Speaking}, s.State) {
			continue
		}
		body.Event = "" // nothing has happened since the state was first sent
		if err := l.post(ctx, body); err != nil {
			return err
		}
		repeated = true
	}
	if repeated {
		return nil
	}
	_, err := l.call(ctx, remote.Request{Method: http.MethodGet, Path: "state", Within: clawdTimeout})
	return err
}

func (l *clawdLink) refreshEvery() time.Duration { return clawdEvery }
