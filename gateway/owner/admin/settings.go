package admin

import (
	"net/http"

	"perch/event"
	"perch/gateway/httpserver"
)

// settings reads and changes the configuration. Errors that are shown to clients have the methods Code and Status;
// the text of other errors is hidden.
type settings interface {
	// Read returns the keys of the configuration and the text of the owner's file, without secrets.
	Read() (any, error)
	// Check returns the faults and warnings of the configuration with this text as the owner's file. It leaves out
	// faults in lines whose secrets Read has masked.
	Check(text string) (any, error)
	// CheckChange returns the faults that would make Change refuse the values, and warnings.
	CheckChange(values map[string]any) (any, error)
	// Change sets all of the given keys, or none of them if it returns an error. A nil value resets a key to its value
	// in the owner's file, or removes an entry of a list. The result lists all keys that now wait for a restart.
	Change(values map[string]any) (any, error)
	// Startable returns an error if the appliance could not start with the present configuration.
	Startable() error
}

// ConfigFaults is the error for faults of the present configuration, or of the configuration after a change.
type ConfigFaults struct {
	Sentence string
	Faults   any // the faults with their places in the file, to be encoded as JSON
}

// Error implements error.
func (f *ConfigFaults) Error() string { return f.Sentence }

// Code returns the error code of the API.
func (f *ConfigFaults) Code() string { return "faults" }

// Status returns the HTTP status.
func (f *ConfigFaults) Status() int { return http.StatusUnprocessableEntity }

// toCheck is the body of a request to check a configuration. If Set is not nil, that change is checked, and otherwise
// Text as the owner's file.
type toCheck struct {
	Text string         `json:"text"` // text of the owner's file
	Set  map[string]any `json:"set"`  // values of keys to change
}

// checkConfig returns the result of Check or CheckChange.
func (a *API) checkConfig(c toCheck) (any, error) {
	if c.Set != nil {
		return a.o.Settings.CheckChange(c.Set)
	}
	return a.o.Settings.Check(c.Text)
}

// changeConfig sets keys of the configuration, and publishes event.Changed.
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

// restart restarts the appliance. It refuses to do so with a configuration that prevents a start, because the
// configuration could then not be corrected by this API.
func (a *API) restart() error {
	if err := a.Startable(); err != nil {
		return err
	}
	a.o.Restart()
	return nil
}

// Startable returns an error if the appliance could not start again with the present configuration.
func (a *API) Startable() error {
	if a.o.Settings == nil {
		return nil
	}
	return a.o.Settings.Startable()
}
