package admin

import (
	"context"
	"time"

	"perch/agent"
)

// Connections lists the programs that are connected to the appliance, except robots.
type Connections struct {
	Skins         []Skin        `json:"skins"`
	Agents        []CodingAgent `json:"agents"`
	HomeAssistant HomeAssistant `json:"homeassistant"`
	Relays        []Relay       `json:"relays"`
}

// Relay is an avatar program that the appliance connects to.
type Relay struct {
	Name  string    `json:"name"`
	Title string    `json:"title"` // name of the program
	OK    bool      `json:"ok"`    // the appliance is connected to the program
	Note  string    `json:"note"`  // address of the program, or what is wrong
	Since time.Time `json:"since,omitzero"`
}

// Skin is a program that displays the agent.
type Skin struct {
	Kind    string    `json:"kind"`    // "skin", or "character" for a program that connects by the VCCP protocol
	Address string    `json:"address"` // address of the program
	Since   time.Time `json:"since"`
}

// CodingAgent is a session of a coding agent, which reports to Perch by hooks that the agent runs.
type CodingAgent struct {
	Name    string      `json:"name"`    // name of the program, such as "claude-code"
	ID      string      `json:"id"`      // ID of the session within the program
	Session string      `json:"session"` // name of the session in events
	State   agent.Shown `json:"state"`
	Since   time.Time   `json:"since"`
	Seen    time.Time   `json:"seen"` // time of the latest report
}

// HomeAssistant is the connection to Home Assistant's MQTT broker.
type HomeAssistant struct {
	OK    bool      `json:"ok"` // the appliance is connected to the broker, or is the broker itself
	Note  string    `json:"note"`
	Since time.Time `json:"since,omitzero"`
}

// Found lists servers on the network that the appliance could use. The servers choose their names and the names of
// their models, so these cannot be trusted.
type Found struct {
	Wyoming       []FoundServer `json:"wyoming"` // with URLs such as tcp://host:port
	Ollama        []FoundModels `json:"ollama"`
	HomeAssistant []FoundServer `json:"homeassistant"`
}

// FoundServer is a server that announces itself on the network.
type FoundServer struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	// Hears and Speaks report what a Wyoming server can do. Both are false if the server did not say so in time.
	Hears  bool `json:"hears,omitempty"`
	Speaks bool `json:"speaks,omitempty"`
}

// FoundModels is a server and its language models.
type FoundModels struct {
	URL    string   `json:"url"`
	Models []string `json:"models"`
}

// searchTimeout bounds a search of the network.
const searchTimeout = 4 * time.Second

// scanNetwork searches the network. Only one search runs at a time, because a search contacts all machines of the
// network: requests that come while one is running get its result.
func (a *API) scanNetwork(ctx context.Context) (Found, error) {
	found, err, _ := a.searches.Do("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), searchTimeout)
		defer cancel()
		return a.o.Find(ctx), nil
	})
	return found.(Found), err
}
