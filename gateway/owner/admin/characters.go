package admin

import "perch/device"

// Character is a character in an answer.
type Character struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Description  string   `json:"description,omitempty"`
	From         string   `json:"from"`            // household, configuration, import or persona
	Brain        string   `json:"brain,omitempty"` // the first to be asked; "none" for no answers
	Language     string   `json:"language,omitempty"`
	Voice        string   `json:"voice,omitempty"`
	Tools        []string `json:"tools"` // null for all
	MemoryTokens int      `json:"memory_tokens,omitempty"`
	Skills       []string `json:"skills"`
	Remarks      []string `json:"remarks"` // what it asks for and does not get
	Robots       []string `json:"robots"`  // that use it
}

// Card is the registration file of a character.
type Card struct {
	File    any      `json:"file"`    // in the form of ERC-8004
	Remarks []string `json:"remarks"` // what is missing in it
}

// characters is the catalogue of characters.
type characters interface {
	List() []Character
	// Import stores a manifest; an empty id is derived from its name.
	Import(id string, manifest []byte) (Character, error)
	Export(id string) ([]byte, error)
	Remove(id string) error
	Card(id string) (Card, error)
	// Who returns the id of a robot's character.
	Who(robot device.ID, session string) string
}
