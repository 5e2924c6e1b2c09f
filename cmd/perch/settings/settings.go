// Package settings is the configuration as the owner's API shows and changes it, and which of
// its keys take effect while the appliance runs.
package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"perch/cmd/perch/config"
	"perch/gateway/httpserver"
	"perch/gateway/owner/admin"
)

// Settings are the configuration for the owner's API.
type Settings struct {
	*config.Overlay
	log *slog.Logger
}

// New returns the settings of an overlay. Changes are applied to an appliance that runs with a
// configuration, unless the overlay has another applier.
func New(o *config.Overlay, running *config.Config, a config.Applier, log *slog.Logger) *Settings {
	if o.Applier == nil {
		o.Applier = a
	}
	if err := o.Start(running); err != nil {
		log.Warn("what is left of the last change of the settings cannot be removed", "err", err)
	}
	return &Settings{o, log}
}

// Read returns the configuration: its keys, and the text of the owner's file, without secrets.
func (s *Settings) Read() (any, error) {
	shown, err := s.Overlay.Read()
	return shown, fault(err)
}

// Check returns the faults of a text in the place of the owner's file.
func (s *Settings) Check(text string) (any, error) {
	checked, err := s.Overlay.Check(text)
	return checked, fault(err)
}

// CheckChange returns the faults of a change, and does not make it.
func (s *Settings) CheckChange(values map[string]any) (any, error) {
	checked, err := s.Overlay.CheckChange(values)
	return checked, fault(err)
}

// Change gives keys their values, all or none. It returns which of them need a restart.
func (s *Settings) Change(values map[string]any) (any, error) {
	changes, faults, err := s.Overlay.Change(values)
	if err == nil && len(faults) > 0 {
		return nil, &admin.ConfigFaults{Sentence: "nothing was changed: " + firstOf(faults), Faults: faults}
	}
	if err == nil {
		s.log.Info("settings were changed", "keys", slices.Sorted(maps.Keys(values)), "after a restart", changes.Keys)
	}
	return changes, fault(err)
}

// Startable returns why the next start would fail; nil where it would not.
func (s *Settings) Startable() error {
	faults, err := s.Faults()
	if err == nil && len(faults) > 0 {
		return &admin.ConfigFaults{Sentence: "it would not start again, for its configuration has faults: " + firstOf(faults), Faults: faults}
	}
	return fault(err)
}

// firstOf returns the first fault in words, and how many more there are.
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

// fault returns an error of the configuration as an owner sees it. What the file system says
// is shown, too: it is the owner's file.
func fault(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return &httpserver.Fault{Word: "read_only", Sentence: err.Error(), HTTP: http.StatusConflict, Err: err}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &httpserver.Fault{Word: "disk_full", Sentence: err.Error(), HTTP: http.StatusInsufficientStorage, Err: err}
	case errors.Is(err, fs.ErrNotExist):
		return &httpserver.Fault{Word: "no_file", Sentence: err.Error(), HTTP: http.StatusConflict, Err: err}
	}
	return err
}

// appliesLive reports whether a change of a key, and of all below it, takes effect while the appliance
// runs.
func appliesLive(key string) bool {
	switch key {
	case "language", "speech", "brains", "brain_deep", "persona", "characters", "memory", "diary.keep", "mood", "behaviours", "rules", "relays",
		"bridge", "skins.key", "skins.key_file", "robots.each", "robots.idle", "robots.greeting", "robots.user_tools", "robots.keep_turns":
		return true
	}
	return false
}

// Merge returns the running configuration with the live keys of next. changed are the
// live keys that differ, and restart the others that differ.
func Merge(running, next *config.Config) (merged *config.Config, changed, restart []string) {
	c := *running
	changed, restart = merge(reflect.ValueOf(&c).Elem(), reflect.ValueOf(next).Elem(), "")
	return &c, changed, restart
}

func merge(running, next reflect.Value, path string) (changed, restart []string) {
	for i := range running.NumField() {
		name, _, _ := strings.Cut(running.Type().Field(i).Tag.Get("yaml"), ",")
		key, now, then := path+name, running.Field(i), next.Field(i)
		switch {
		case reflect.DeepEqual(now.Interface(), then.Interface()):
		case appliesLive(key):
			now.Set(then)
			changed = append(changed, key)
		case now.Kind() == reflect.Struct:
			more, later := merge(now, then, key+".")
			changed, restart = append(changed, more...), append(restart, later...)
		default:
			restart = append(restart, key)
		}
	}
	return changed, restart
}
