package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"perch/agent"
	"perch/gateway/httpserver"
	"perch/limit"
)

// veadotube is veadotube or veadotube mini. A state there is a whole look of the avatar, and
// the one pushed last is visible. A message is a channel name, a colon and JSON. Each running
// instance writes its address to a file in the user's home directory.
type veadotube struct{ *programConfig }

const (
	instanceLasts = 10 * time.Second
	statesEvery   = 10 * time.Second // how often the list of states is read again
)

func veadotubeKind() kind {
	return kind{
		Kind: Kind{Name: "veadotube", Title: "veadotube", Finds: true,
			Shows: []string{"states", "faces", "moods"}},
		schemes: []string{"ws", "wss"},
		make:    func(o *programConfig) (program, error) { return veadotube{o}, nil },
	}
}

func (p veadotube) open(ctx context.Context, note func(error)) (link, error) {
	address, err := p.address(time.Now())
	if err != nil {
		return nil, err
	}
	named, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	query := named.Query()
	query.Set("n", pluginName(p.appliance)) // veadotube refuses a connection without a name
	named.RawQuery = query.Encode()
	w, err := dial(ctx, named.String(), veadoAnswers)
	if err != nil {
		return nil, err
	}
	l := &veadoLink{wire: w, words: p.words, report: note}
	if err := l.loadStates(ctx); err != nil {
		w.close()
		return nil, err
	}
	return l, nil
}

// address returns the configured address, or else the address in the newest file of an instance.
func (p veadotube) address(now time.Time) (string, error) {
	if p.URL != "" {
		return p.URL, nil
	}
	if p.home == "" {
		return "", errors.New("this user has no home directory, in which veadotube says where it is; set url")
	}
	folder := filepath.Join(p.home, ".veadotube", "instances")
	files, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	var newest veadoInstance
	for _, file := range files {
		var one veadoInstance
		is := readJSONFile(filepath.Join(folder, file.Name()), limit.Data, &one)
		if is && now.Sub(time.Unix(one.Time, 0)).Abs() <= instanceLasts && one.Time > newest.Time {
			newest = one
		}
	}
	switch host, port, err := net.SplitHostPort(newest.Server); {
	case newest.Time == 0:
		return "", fmt.Errorf("no veadotube runs on this machine, says %s; start it, or set url", folder)
	case err != nil || host == "" || port == "" || port == "0":
		return "", errors.New("veadotube runs, but its WebSocket server is switched off; switch it on in its program settings")
	}
	return "ws://" + newest.Server, nil
}

// veadoInstance is the file of a running instance.
type veadoInstance struct {
	Time   int64  `json:"time"`   // the last sign of life, in Unix seconds
	Server string `json:"server"` // "127.0.0.1:2424"
}

// veadoMessage is a message of the channel "nodes".
type veadoMessage struct {
	Event   string        `json:"event"`
	Type    string        `json:"type,omitempty"`
	ID      string        `json:"id,omitempty"`
	Entries []veadoNode   `json:"entries,omitempty"`
	Payload *veadoPayload `json:"payload,omitempty"`
}

type veadoNode struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

type veadoPayload struct {
	Event  string       `json:"event"`
	State  string       `json:"state,omitempty"`
	States []veadoState `json:"states,omitempty"`
}

type veadoState struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Keys of the answers that are awaited; messages have no ids.
const (
	veadoNodes  = "nodes"
	veadoStates = "states"
	stateEvents = "stateEvents"
)

// veadoRead decodes a message of the channel "nodes".
func veadoRead(message []byte) (m veadoMessage, is bool) {
	channel, text, _ := strings.Cut(string(message), ":")
	return m, strings.TrimSpace(channel) == "nodes" && json.Unmarshal([]byte(text), &m) == nil
}

// veadoAnswers returns the key of the answer that a message is, or "".
func veadoAnswers(message []byte) string {
	m, is := veadoRead(message)
	switch {
	case is && m.Event == "list":
		return veadoNodes
	case is && m.Event == "payload" && m.Type == stateEvents && m.Payload != nil && m.Payload.Event == "list":
		return veadoStates
	}
	return ""
}

type veadoLink struct {
	*wire
	words  words
	report func(note error)
	node   string // the node with the avatar's states
	states []veadoState
	top    string // the state that Perch has pushed, or ""
}

func (l *veadoLink) sendNode(m veadoMessage) error {
	return l.conn.SendText(append([]byte("nodes:"), httpserver.Encode(m)...))
}

func (l *veadoLink) ask(ctx context.Context, answer string, m veadoMessage) (veadoMessage, error) {
	message, err := l.exchange(ctx, answer, func() error { return l.sendNode(m) })
	if err != nil {
		return m, err
	}
	m, _ = veadoRead(message)
	return m, nil
}

// loadStates asks for the avatar's states.
func (l *veadoLink) loadStates(ctx context.Context) error {
	if l.node == "" {
		nodes, err := l.ask(ctx, veadoNodes, veadoMessage{Event: "list"})
		if err != nil {
			return err
		}
		for _, node := range nodes.Entries {
			if node.Type == stateEvents && (l.node == "" || node.ID == "mini") {
				l.node = node.ID
			}
		}
		if l.node == "" {
			return errors.New("veadotube has no node of the type state events; add one to the avatar")
		}
	}
	is, err := l.ask(ctx, veadoStates, l.payload("list", ""))
	if err != nil {
		return err
	}
	l.states = is.Payload.States
	return nil
}

func (l *veadoLink) payload(event, state string) veadoMessage {
	return veadoMessage{Event: "payload", Type: stateEvents, ID: l.node, Payload: &veadoPayload{Event: event, State: state}}
}

// stateFor returns the state for a scene, or "" for the state chosen by the user. While the
// agent speaks or rests the face counts first, otherwise the agent's state.
func (l *veadoLink) stateFor(s Scene) (id string) {
	state, face := [2]string{"state", string(s.State)}, [2]string{"face", s.Expression()}
	order := [][2]string{state, face, {"feeling", s.Mood.Dominant}}
	if s.State == agent.Speaking || s.State == agent.Idle {
		order = [][2]string{face, {"feeling", s.Mood.Dominant}, state}
	}
	names := namesOf(l.states, func(s veadoState) string { return s.Name })
	for _, shown := range order {
		if shown[1] == "" || shown[1] == neutral {
			continue
		}
		if i := named(names, l.words.candidates(shown[0], shown[1])); i >= 0 {
			return l.states[i].ID
		}
	}
	if i := named(names, l.words.candidates("face", neutral)); i >= 0 {
		return l.states[i].ID
	}
	return ""
}

// changes pushes the new state before it pops the old one: otherwise the state below would
// flash.
func (l *veadoLink) changes(to string) (all []veadoMessage) {
	if to == l.top {
		return nil
	}
	if to != "" {
		all = append(all, l.payload("push", to))
	}
	if l.top != "" {
		all = append(all, l.payload("pop", l.top))
	}
	return all
}

func (l *veadoLink) update(_ context.Context, is, _ Scene) error {
	to := l.stateFor(is)
	for _, m := range l.changes(to) {
		if err := l.sendNode(m); err != nil {
			return err
		}
	}
	l.top = to
	return nil
}

// refresh loads states that were added.
func (l *veadoLink) refresh(ctx context.Context, is Scene) error {
	if err := l.loadStates(ctx); err != nil {
		return err
	}
	l.report(l.warning())
	return l.update(ctx, is, is)
}

func (l *veadoLink) refreshEvery() time.Duration { return statesEvery }

func (l *veadoLink) warning() error {
	for _, s := range states() {
		for _, e := range agent.Emotions() {
			if l.stateFor(Scene{State: s, Face: e.Name}) != "" {
				return nil
			}
		}
	}
	return fmt.Errorf("veadotube has %d states, and none is called as a face or a state of the agent is, such as happy or thinking; "+
		"rename some, or name them in words", len(l.states))
}

// close undoes what is shown, if the program is still there.
func (l *veadoLink) close() {
	if l.top != "" {
		_ = l.sendNode(l.payload("pop", l.top))
	}
	l.wire.close()
}
