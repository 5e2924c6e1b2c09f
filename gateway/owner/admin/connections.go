package admin

import (
	"time"

	"perch/agent"
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
	Title string    `json:"title"` // as its users call the program
	OK    bool      `json:"ok"`    // it is connected
	Note  string    `json:"note"`  // what is wrong, or waited for; else its address
	Since time.Time `json:"since,omitzero"`
}

// Skin is a program that shows the agent.
type Skin struct {
	Kind    string    `json:"kind"`    // skin, or character by VCCP
	Address string    `json:"address"` // that it came from
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
