package appliance

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"perch/cmd/perch/config"
	"perch/gateway/admin"
	"perch/gateway/door"
)

// settings are the configuration file, for the owner's door.
type settings struct {
	*config.Editor
	log func(msg string, args ...any)
}

// newSettings has the file judged as perch check-config does.
func (a *Appliance) newSettings() *settings {
	a.Editor.Judge = CheckRecognizers
	a.Editor.Start()
	return &settings{a.Editor, a.Log.Info}
}

func (s *settings) Show() (any, error) {
	shown, err := s.Editor.Show()
	return shown, settingsFault(err)
}

func (s *settings) Check(c admin.ConfigChange) (any, error) {
	checked, err := s.Editor.Check(config.Change(c))
	return checked, settingsFault(err)
}

func (s *settings) Write(c admin.ConfigChange) (string, error) {
	digest, faults, err := s.Editor.Write(config.Change(c))
	if err == nil && len(faults) > 0 {
		return "", &admin.ConfigFaults{Sentence: "the configuration has faults, and nothing was changed: " + firstOf(faults), Faults: faults}
	}
	if err == nil {
		s.log("the configuration was changed; a restart applies it")
	}
	return digest, settingsFault(err)
}

func (s *settings) Startable() error {
	faults, err := s.Faults()
	if err == nil && len(faults) > 0 {
		return &admin.ConfigFaults{Sentence: "it would not start again, for its configuration has faults: " + firstOf(faults), Faults: faults}
	}
	return settingsFault(err)
}

// firstOf is the first fault in words, and how many more there are.
func firstOf(faults []config.Fault) string {
	text := faults[0].Message
	if faults[0].Key != "" {
		text = faults[0].Key + ": " + text
	}
	if faults[0].Line > 0 {
		text = fmt.Sprintf("line %d: %s", faults[0].Line, text)
	}
	if more := len(faults) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// settingsFault is an error of the configuration as an owner sees it. What the file
// system says of it is for people too: it is their file.
func settingsFault(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) && errors.Is(err, fs.ErrPermission) {
		return &door.Fault{Word: "read_only", Sentence: err.Error(), HTTP: http.StatusConflict}
	}
	return door.AsFault(err, []door.Known{
		{Err: config.ErrChanged, Word: "changed_since", HTTP: http.StatusConflict},
		{Err: config.ErrReadOnly, Word: "read_only", HTTP: http.StatusConflict},
		{Err: config.ErrChange, Word: "bad_change", HTTP: http.StatusBadRequest},
		{Err: fs.ErrNotExist, Word: "no_file", HTTP: http.StatusConflict},
	})
}
