package admin

import (
	"net/http"

	"perch/event"
	"perch/gateway/httpserver"
)

// settings are the configuration, as its owner sees and changes it. Their errors say
// themselves how they are shown.
type settings interface {
	// Read is the configuration: its keys, and the text of the owner's file, without secrets.
	Read() (any, error)
	// Check is what is wrong with a text in the place of the owner's file.
	Check(text string) (any, error)
	// CheckChange is what is wrong with a change, which it does not make.
	CheckChange(values map[string]any) (any, error)
	// Change gives keys their values, all or none. A nil value gives a key back to the owner's
	// file. It returns which of them need a restart.
	Change(values map[string]any) (any, error)
	// Startable is why the next start would fail; nil where it would not.
	Startable() error
}

// ConfigFaults is the error of a change with faults, one of which at least is at
// a place that is known.
type ConfigFaults struct {
	Sentence string
	Faults   any // as they are shown
}

func (f *ConfigFaults) Error() string { return f.Sentence }

// Code is the machine word.
func (f *ConfigFaults) Code() string { return "faults" }

// Status is the HTTP status.
func (f *ConfigFaults) Status() int { return http.StatusUnprocessableEntity }

// shownFaults is the body of such an error.
type shownFaults struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Faults any `json:"faults"`
}

func (f *ConfigFaults) shown() (s shownFaults) {
	s.Error.Code, s.Error.Message, s.Faults = f.Code(), f.Sentence, f.Faults
	return s
}

// errNot is the error where this appliance was started without a part.
func errNot(what string) error {
	return &httpserver.Fault{Word: "not_here", Sentence: "this appliance was started without " + what, HTTP: http.StatusNotFound}
}

func (d *API) showConfig() (any, error) {
	if d.o.Settings == nil {
		return nil, errNot("its configuration")
	}
	return d.o.Settings.Read()
}

// toCheck is a text in the place of the owner's file, or values of keys.
type toCheck struct {
	Text string         `json:"text"`
	Set  map[string]any `json:"set"`
}

func (d *API) checkConfig(c toCheck) (any, error) {
	switch {
	case d.o.Settings == nil:
		return nil, errNot("its configuration")
	case c.Set != nil:
		return d.o.Settings.CheckChange(c.Set)
	}
	return d.o.Settings.Check(c.Text)
}

// changeConfig gives keys of the configuration their values.
func (d *API) changeConfig(values map[string]any) (any, error) {
	if d.o.Settings == nil {
		return nil, errNot("its configuration")
	}
	if len(values) == 0 {
		return nil, &httpserver.Fault{Word: "bad_change", Sentence: "no key is named", HTTP: http.StatusBadRequest}
	}
	changes, err := d.o.Settings.Change(values)
	if err == nil {
		d.o.Bus.Publish("", "", event.Changed{What: "settings"})
	}
	return changes, err
}

// restart has the appliance start anew, unless that would fail for the
// configuration: then nobody could mend it here.
func (d *API) restart() error {
	if d.o.Restart == nil {
		return errNot("what restarts it")
	}
	if d.o.Settings != nil {
		if err := d.o.Settings.Startable(); err != nil {
			return err
		}
	}
	d.o.Restart()
	return nil
}
