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

// veadotube is veadotube or veadotube mini. A state of veadotube is a complete look of the avatar.
// veadotube has a stack of states, and shows the topmost. A message consists of the name of a channel,
// a colon and JSON. Each running instance writes its address to a file in the user's home directory.
type veadotube struct{ *programConfig }

const (
	maxInstanceAge = 10 * time.Second // an instance whose file is older is not running
	statesEvery    = 10 * time.Second // interval at which the list of states is read
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
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	query := u.Query()
	query.Set("n", pluginName(p.appliance)) // veadotube refuses a connection without a name
	u.RawQuery = query.Encode()
	w, err := dial(ctx, u.String(), veadoCallID)
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

// address returns the configured address. If no address is configured, it returns the address in the
// newest file of a running instance.
func (p veadotube) address(now time.Time) (string, error) {
	if p.URL != "" {
		return p.URL, nil
	}
	if p.home == "" {
		return "", errors.New("this user has no home directory, in which veadotube writes its address; set url")
	}
	folder := filepath.Join(p.home, ".veadotube", "instances")
	files, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	var newest veadoInstance
	for _, file := range files {
		var one veadoInstance
		ok := readJSONFile(filepath.Join(folder, file.Name()), limit.Data, &one)
		if ok && now.Sub(time.Unix(one.Time, 0)).Abs() <= maxInstanceAge && one.Time > newest.Time {
			newest = one
		}
	}
	switch host, port, err := net.SplitHostPort(newest.Server); {
	case newest.Time == 0:
		return "", fmt.Errorf("no veadotube is running on this machine, according to %s; start it, or set url", folder)
	case err != nil || host == "" || port == "" || port == "0":
		return "", errors.New("veadotube is running, but its WebSocket server is switched off; switch it on in its program settings")
	}
	return "ws://" + newest.Server, nil
}

// veadoInstance is the content of the file of a running instance.
type veadoInstance struct {
	Time   int64  `json:"time"`   // when the file was written, in Unix seconds
	Server string `json:"server"` // address, such as "127.0.0.1:2424"
}

// veadoMessage is a message of the channel "nodes".
type veadoMessage struct {
	Event   string        `json:"event"`
	Type    string        `json:"type,omitempty"`
	ID      string        `json:"id,omitempty"`
	Entries []veadoNode   `json:"entries,omitempty"`
	Payload *veadoPayload `json:"payload,omitempty"`
}

// veadoNode is an entry of veadotube's list of nodes. A node of the type stateEvents holds states.
type veadoNode struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// veadoPayload is a message to or from a node with states.
type veadoPayload struct {
	Event  string       `json:"event"`
	State  string       `json:"state,omitempty"`
	States []veadoState `json:"states,omitempty"`
}

// veadoState is a state of the avatar.
type veadoState struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// IDs of calls. Messages contain no IDs: a response is recognized by its content.
const (
	veadoNodes  = "nodes"
	veadoStates = "states"
)

// stateEvents is the type of a node with states.
const stateEvents = "stateEvents"

// parseVeado decodes a message of the channel "nodes". Some builds of veadotube append zero bytes.
func parseVeado(message []byte) (m veadoMessage, ok bool) {
	channel, text, _ := strings.Cut(strings.TrimRight(string(message), "\x00"), ":")
	return m, strings.TrimSpace(channel) == "nodes" && json.Unmarshal([]byte(text), &m) == nil
}

// veadoCallID returns the ID of the call that a message responds to, or "".
func veadoCallID(message []byte) string {
	m, ok := parseVeado(message)
	switch {
	case ok && m.Event == "list":
		return veadoNodes
	case ok && m.Event == "payload" && m.Type == stateEvents && m.Payload != nil && m.Payload.Event == "list":
		return veadoStates
	}
	return ""
}

// veadoLink is a connection to veadotube.
type veadoLink struct {
	*wire
	words  words
	report func(note error) // as in program.open
	node   string           // ID of the node with the avatar's states
	states []veadoState
	pushed string // ID of the state that Perch has pushed, or ""
}

// sendNode sends a message of the channel "nodes".
func (l *veadoLink) sendNode(m veadoMessage) error {
	return l.conn.SendText(append([]byte("nodes:"), httpserver.Encode(m)...))
}

// ask sends a message, and returns the response to the call with an ID.
func (l *veadoLink) ask(ctx context.Context, callID string, m veadoMessage) (veadoMessage, error) {
	message, err := l.exchange(ctx, callID, func() error { return l.sendNode(m) })
	if err != nil {
		return m, err
	}
	m, _ = parseVeado(message)
	return m, nil
}

// loadStates sets l.node and l.states.
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
	list, err := l.ask(ctx, veadoStates, l.payload("list", ""))
	if err != nil {
		return err
	}
	l.states = list.Payload.States
	return nil
}

// payload returns a message to the node. state is the ID of a state, or "".
func (l *veadoLink) payload(event, state string) veadoMessage {
	return veadoMessage{Event: "payload", Type: stateEvents, ID: l.node, Payload: &veadoPayload{Event: event, State: state}}
}

// stateFor returns the ID of veadotube's state for a scene, or "" if there is no such state; the state
// that the user has chosen then remains visible. While the agent speaks or is idle, its face and its
// feeling have priority over the state of the agent. Otherwise the state of the agent has priority.
func (l *veadoLink) stateFor(s Scene) (id string) {
	state, face := [2]string{"state", string(s.State)}, [2]string{"face", s.Expression()}
	order := [][2]string{state, face, {"feeling", s.Mood.Dominant}}
	if s.State == agent.Speaking || s.State == agent.Idle {
		order = [][2]string{face, {"feeling", s.Mood.Dominant}, state}
	}
	names := namesOf(l.states, func(s veadoState) string { return s.Name })
	for _, key := range order {
		category, name := key[0], key[1]
		if name == "" || name == neutral {
			continue
		}
		if i := findName(names, l.words.candidates(category, name)); i >= 0 {
			return l.states[i].ID
		}
	}
	if i := findName(names, l.words.candidates("face", neutral)); i >= 0 {
		return l.states[i].ID
	}
	return ""
}

// changes returns the messages that replace the pushed state. They push the new state before they
// pop the old one, because otherwise the state below would be visible for a moment.
func (l *veadoLink) changes(state string) (messages []veadoMessage) {
	if state == l.pushed {
		return nil
	}
	if state != "" {
		messages = append(messages, l.payload("push", state))
	}
	if l.pushed != "" {
		messages = append(messages, l.payload("pop", l.pushed))
	}
	return messages
}

func (l *veadoLink) update(_ context.Context, scene, _ Scene) error {
	state := l.stateFor(scene)
	for _, m := range l.changes(state) {
		if err := l.sendNode(m); err != nil {
			return err
		}
	}
	l.pushed = state
	return nil
}

// refresh reads the list of states, which the user may have changed.
func (l *veadoLink) refresh(ctx context.Context, scene Scene) error {
	if err := l.loadStates(ctx); err != nil {
		return err
	}
	l.report(l.warning())
	return l.update(ctx, scene, scene)
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
	return fmt.Errorf("veadotube has %d states, and none has the name of a face or a state of the agent, such as happy or thinking; "+
		"rename some, or set words to their names", len(l.states))
}

// close pops the pushed state, and closes the connection.
func (l *veadoLink) close() {
	if l.pushed != "" {
		_ = l.sendNode(l.payload("pop", l.pushed))
	}
	l.wire.close()
}
