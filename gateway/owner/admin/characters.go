package admin

import "perch/device"

// Character is a character in a response.
type Character struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Description  string   `json:"description,omitempty"`
	From         string   `json:"from"`            // "household", "configuration", "import" or "persona"
	Brain        string   `json:"brain,omitempty"` // the brain that is tried first; "none" if the character does not reply
	Language     string   `json:"language,omitempty"`
	Voice        string   `json:"voice,omitempty"`
	Tools        []string `json:"tools"` // null for all tools
	MemoryTokens int      `json:"memory_tokens,omitempty"`
	Skills       []string `json:"skills"`
	Remarks      []string `json:"remarks"` // sentences for the owner, such as what the manifest asks for and the appliance does not provide
	Robots       []string `json:"robots"`  // IDs of the robots that use the character
}

// Card contains the registration file of a character: the description of an agent that ERC-8004 defines.
type Card struct {
	File    any      `json:"file"`    // the registration file
	Remarks []string `json:"remarks"` // what the file lacks
}

// characters stores the characters.
type characters interface {
	List() []Character
	// Import stores the character of a manifest. An empty ID is derived from the name of the character.
	Import(id string, manifest []byte) (Character, error)
	Export(id string) ([]byte, error)
	Remove(id string) error
	Card(id string) (Card, error)
	// Who returns the ID of the character that a robot uses, or, if robot is "", the character that a session uses.
	Who(robot device.ID, session string) string
}
