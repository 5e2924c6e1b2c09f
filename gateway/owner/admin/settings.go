package admin

import (
	"net/http"

	"perch/event"
	"perch/gateway/httpserver"
)

// settings is the configuration for its owner. Its errors have a code and a status.
type settings interface {
	// Read returns the configuration's keys and the text of the owner's file, without secrets.
	Read() (any, error)
	// Check returns the faults of a text in the place of the owner's file.
	Check(text string) (any, error)
	// CheckChange returns the faults of a change without making it.
	CheckChange(values map[string]any) (any, error)
	// Change sets keys, all or none. A nil value returns a key to the owner's file. It
	// returns the keys that need a restart.
	Change(values map[string]any) (any, error)
	// Startable returns the error with which the next start would fail.
	Startable() error
}

// ConfigFaults is the error of a change with faults, at least one of them at a known place.
type ConfigFaults struct {
	Sentence string
	Faults   any // in JSON
}

func (f *ConfigFaults) Error() string { return f.Sentence }

// Code is the machine word.
func (f *ConfigFaults) Code() string { return "faults" }

// Status is the HTTP status.
func (f *ConfigFaults) Status() int { return http.StatusUnprocessableEntity }

// toCheck is a text in the place of the owner's file, or values of keys.
type toCheck struct {
	Text string         `json:"text"`
	Set  map[string]any `json:"set"`
}

func (a *API) checkConfig(c toCheck) (any, error) {
	if c.Set != nil {
		return a.o.Settings.CheckChange(c.Set)
	}
	return a.o.Settings.Check(c.Text)
}

// changeConfig sets keys of the configuration.
func (a *API) changeConfig(values map[string]any) (any, error) {
	if len(values) == 0 {
		return nil, &httpserver.Fault{Word: "bad_change", Sentence: "no key is named", HTTP: http.StatusBadRequest}
	}
	changes, err := a.o.Settings.Change(values)
	if err == nil {
		a.o.Bus.Publish("", "", event.Changed{What: "settings"})
	}
	return changes, err
}

// restart restarts the appliance, unless the configuration would prevent that: it could
// then no longer be corrected here.
func (a *API) restart() error {
	if a.o.Settings != nil {
		if err := a.o.Settings.Startable(); err != nil {
			return err
		}
	}
	a.o.Restart()
	return nil
}
