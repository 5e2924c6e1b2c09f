package admin

import (
	"context"
	"net/http"
	"time"

	"perch/agent"
	"perch/gateway/httpserver"
)

// Connections are the programs that are connected, besides robots.
type Connections struct {
	Skins         []Skin        `json:"skins"`
	Agents        []CodingAgent `json:"agents"`
	HomeAssistant HomeAssistant `json:"homeassistant"`
	Relays        []Relay       `json:"relays"`
}

// Relay is an avatar program that the appliance connects to.
type Relay struct {
	Name  string    `json:"name"`
	Title string    `json:"title"` // the program's usual name
	OK    bool      `json:"ok"`    // it is connected
	Note  string    `json:"note"`  // its address, or what is wrong
	Since time.Time `json:"since,omitzero"`
}

// Skin is a program that shows the agent.
type Skin struct {
	Kind    string    `json:"kind"`    // skin, or character by VCCP
	Address string    `json:"address"` // its own
	Since   time.Time `json:"since"`
}

// CodingAgent is a session of a coding agent, whose hooks report it.
type CodingAgent struct {
	Name    string      `json:"name"`    // the program: "claude-code"
	ID      string      `json:"id"`      // its own id of the session
	Session string      `json:"session"` // its name in events
	State   agent.Shown `json:"state"`
	Since   time.Time   `json:"since"`
	Seen    time.Time   `json:"seen"` // its latest report
}

// HomeAssistant is the connection to its broker.
type HomeAssistant struct {
	OK    bool      `json:"ok"`
	Note  string    `json:"note"`
	Since time.Time `json:"since,omitzero"`
}

// Found lists servers on the network that the appliance could use. Names and models are the servers' own claims.
type Found struct {
	Wyoming       []FoundServer `json:"wyoming"` // tcp://host:port
	Ollama        []FoundModels `json:"ollama"`
	HomeAssistant []FoundServer `json:"homeassistant"`
}

// FoundServer is a server that announces itself.
type FoundServer struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// FoundModels is a server of models.
type FoundModels struct {
	URL    string   `json:"url"`
	Models []string `json:"models"`
}

// searchWithin bounds a search of the network.
const searchWithin = 4 * time.Second

// scanNetwork searches the network, once at a time, since it asks all machines there.
func (a *API) scanNetwork(ctx context.Context) (Found, error) {
	if !a.searching.TryLock() {
		return Found{}, &httpserver.Fault{Word: "busy", HTTP: http.StatusConflict,
			Sentence: "a search is under way already; ask again in some seconds"}
	}
	defer a.searching.Unlock()
	ctx, cancel := context.WithTimeout(ctx, searchWithin)
	defer cancel()
	return a.o.Find(ctx), nil
}
