package admin

import (
	"net/http"

	"perch/event"
	"perch/gateway/door"
)

// settings is the configuration file, as its owner changes it. Its errors say
// themselves how they are shown.
type settings interface {
	// Show is the configuration: its text without secrets, and its keys.
	Show() (any, error)
	// Check is what would come of a change.
	Check(ConfigChange) (any, error)
	// Write makes a change that has no faults. It returns the digest of the new file.
	Write(ConfigChange) (digest string, err error)
	// Startable is why the next start would fail; nil where it would not.
	Startable() error
}

// ConfigChange is a change of the configuration: the whole text, or values by
// their keys, of which null removes a key.
type ConfigChange struct {
	Text   *string        `json:"text"`
	Set    map[string]any `json:"set"`
	Digest string         `json:"digest"` // of the file as it was read
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
	return &door.Fault{Word: "not_here", Sentence: "this appliance was started without " + what, HTTP: http.StatusNotFound}
}

func (d *Door) showConfig() (any, error) {
	if d.o.Settings == nil {
		return nil, errNot("its configuration file")
	}
	return d.o.Settings.Show()
}

func (d *Door) checkConfig(c ConfigChange) (any, error) {
	if d.o.Settings == nil {
		return nil, errNot("its configuration file")
	}
	return d.o.Settings.Check(c)
}

// written is the answer to a change.
type written struct {
	Digest  string `json:"digest"`
	Restart bool   `json:"restart"` // it is applied by a restart
}

func (d *Door) writeConfig(c ConfigChange) (written, error) {
	if d.o.Settings == nil {
		return written{}, errNot("its configuration file")
	}
	digest, err := d.o.Settings.Write(c)
	if err != nil {
		return written{}, err
	}
	d.o.Bus.Publish("", "", event.Changed{What: "settings"})
	return written{Digest: digest, Restart: true}, nil
}

// restart has the appliance start anew, unless that would fail for the
// configuration: then nobody could mend it here.
func (d *Door) restart() error {
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
