package admin

import "perch/device"

// Character is one as it is shown.
type Character struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Description  string   `json:"description,omitempty"`
	From         string   `json:"from"`            // household, configuration, import or persona
	Brain        string   `json:"brain,omitempty"` // that is asked first; none never answers
	Language     string   `json:"language,omitempty"`
	Voice        string   `json:"voice,omitempty"`
	Tools        []string `json:"tools"` // null is all
	MemoryTokens int      `json:"memory_tokens,omitempty"`
	Skills       []string `json:"skills"`
	Remarks      []string `json:"remarks"` // what it asks for and does not get
	Robots       []string `json:"robots"`  // that have it
}

// Card is what a character is registered with.
type Card struct {
	File    any      `json:"file"`    // as ERC-8004 has it
	Remarks []string `json:"remarks"` // what is missing in it
}

// casting is what an owner does with characters.
type casting interface {
	List() []Character
	// Import keeps a manifest; an empty id is that of its name.
	Import(id string, manifest []byte) (Character, error)
	Export(id string) ([]byte, error)
	Remove(id string) error
	Card(id string) (Card, error)
	// Who is the id of a robot's.
	Who(robot device.ID, session string) string
}
