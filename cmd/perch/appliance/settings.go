package appliance

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"syscall"

	"perch/cmd/perch/config"
	"perch/gateway/admin"
	"perch/gateway/door"
)

// settings are the configuration, for the owner's door.
type settings struct {
	*config.Overlay
	log *slog.Logger
}

// newSettings has changes applied to this appliance.
func (a *Appliance) newSettings() *settings {
	if a.Overlay.Applier == nil {
		a.Overlay.Applier = a
	}
	if err := a.Overlay.Start(a.Config()); err != nil {
		a.Log.Warn("what is left of the last change of the settings cannot be removed", "err", err)
	}
	return &settings{a.Overlay, a.Log}
}

func (s *settings) Show() (any, error) {
	shown, err := s.Overlay.Show()
	return shown, settingsFault(err)
}

func (s *settings) Check(text string) (any, error) {
	checked, err := s.Overlay.Check(text)
	return checked, settingsFault(err)
}

func (s *settings) CheckChange(values map[string]any) (any, error) {
	checked, err := s.Overlay.CheckChange(values)
	return checked, settingsFault(err)
}

func (s *settings) Change(values map[string]any) (any, error) {
	changes, faults, err := s.Overlay.Change(values)
	if err == nil && len(faults) > 0 {
		return nil, &admin.ConfigFaults{Sentence: "nothing was changed: " + firstOf(faults), Faults: faults}
	}
	if err == nil {
		s.log.Info("settings were changed", "keys", slices.Sorted(maps.Keys(values)), "after a restart", changes.Keys)
	}
	return changes, settingsFault(err)
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
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return &door.Fault{Word: "read_only", Sentence: err.Error(), HTTP: http.StatusConflict, Err: err}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &door.Fault{Word: "disk_full", Sentence: err.Error(), HTTP: http.StatusInsufficientStorage, Err: err}
	case errors.Is(err, fs.ErrNotExist):
		return &door.Fault{Word: "no_file", Sentence: err.Error(), HTTP: http.StatusConflict, Err: err}
	}
	return err
}
