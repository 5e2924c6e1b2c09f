package reflex

import (
	"perch/agent"
	"perch/driver"
)

// Setup holds what a brain needs besides its settings in the configuration.
type Setup struct {
	Books  func(sentences string) ([]*Book, error) // returns the books for the configured languages, with the owner's file of this name; "" means no file
	Other  func(tag string) (*Book, error)         // returns the book for another language
	Name   string                                  // name of the robot in answers
	Memory *agent.Memory
	Timers timers
	Skills skills // may be nil
}

// Keys are the settings of a reflex brain in the configuration.
type Keys struct {
	Sentences string `yaml:"sentences" doc:"A file of your own with more sentences; docs/reflex.md shows one."`
}

// Driver declares the brain reflex.
func Driver() driver.Driver[Setup, agent.Brain] {
	return driver.Driver[Setup, agent.Brain]{Kind: "reflex", Runs: []string{"nothing"},
		Summary: "Answers simple questions at once, such as the time and timers, and cannot chat. It runs on this machine.",
		Sample:  `{kind: reflex, sentences: ""}`,
		Options: func() any { return new(Keys) },
		Check: func(keys any, s Setup) error {
			_, err := s.Books(keys.(*Keys).Sentences)
			return err
		},
		New: func(keys any, s Setup) (agent.Brain, error) {
			books, err := s.Books(keys.(*Keys).Sentences)
			if err != nil {
				return nil, err
			}
			b := New(books, s.Name, s.Memory, s.Timers, s.Skills)
			b.LoadOthers(s.Other)
			return b, nil
		}}
}
