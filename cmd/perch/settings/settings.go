// Package settings shows and changes the configuration for the owner's API, and decides which keys
// take effect without a restart.
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

// Settings implements the part of the owner's API that shows and changes the configuration. Its methods
// convert errors of the embedded Overlay for that API.
type Settings struct {
	*config.Overlay
	log *slog.Logger
}

// New returns the Settings of an overlay. running is the configuration of the running appliance. a
// applies changes to the appliance, unless the overlay has an Applier already.
func New(o *config.Overlay, running *config.Config, a config.Applier, log *slog.Logger) *Settings {
	if o.Applier == nil {
		o.Applier = a
	}
	if err := o.Start(running); err != nil {
		log.Warn("settings.yaml could not be made private, or a leftover of an earlier change could not be removed", "err", err)
	}
	return &Settings{o, log}
}

// Read returns the configuration as a config.Shown, without secrets.
func (s *Settings) Read() (any, error) {
	shown, err := s.Overlay.Read()
	for i, key := range shown.Keys {
		shown.Keys[i].Restart = needsRestart(key.Key)
	}
	return shown, fault(err)
}

// Check returns the faults and warnings that the configuration would have if text replaced the owner's file.
func (s *Settings) Check(text string) (any, error) {
	checked, err := s.Overlay.Check(text)
	return checked, fault(err)
}

// CheckChange returns the faults and warnings that a change would cause. It changes nothing.
func (s *Settings) CheckChange(values map[string]any) (any, error) {
	checked, err := s.Overlay.CheckChange(values)
	return checked, fault(err)
}

// Change sets the values of keys: all of them or, after an error, none. It returns a config.Changes with all
// keys that take effect after a restart, including those of earlier changes.
func (s *Settings) Change(values map[string]any) (any, error) {
	changes, faults, err := s.Overlay.Change(values)
	if err == nil && len(faults) > 0 {
		return nil, &admin.ConfigFaults{Sentence: "nothing was changed: " + summarize(faults), Faults: faults}
	}
	if err == nil {
		s.log.Info("settings were changed", "keys", slices.Sorted(maps.Keys(values)), "after_restart", changes.Keys)
	}
	return changes, fault(err)
}

// Startable returns an error if the next start would fail because of the configuration.
func (s *Settings) Startable() error {
	faults, err := s.Faults()
	if err == nil && len(faults) > 0 {
		return &admin.ConfigFaults{Sentence: "Perch would not start again, because its configuration has faults: " + summarize(faults), Faults: faults}
	}
	return fault(err)
}

// summarize returns the text of the first fault and the number of the others.
func summarize(faults []config.Fault) string {
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

// fault converts an error of the configuration for the owner's API. The client is shown the text of file
// system errors: only the owner uses this API, and may see the paths.
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

// appliesLive reports whether changes of a key and of all keys below it take effect without a restart.
func appliesLive(key string) bool {
	switch key {
	case "language", "speech", "brains", "brain_deep", "persona", "characters", "memory", "diary.keep", "mood", "behaviours", "rules", "music", "relays",
		"bridge", "skins.key", "skins.key_file", "robots.each", "robots.idle", "robots.greeting", "robots.user_tools", "robots.keep_turns":
		return true
	}
	return false
}

// needsRestart reports whether a change of a key takes effect only after a restart.
func needsRestart(key string) bool {
	for ; key != ""; key = key[:max(0, strings.LastIndexByte(key, '.'))] {
		if appliesLive(key) {
			return false
		}
	}
	return true
}

// Merge returns the running configuration with the values of next in all keys that take effect without a
// restart. changed lists the keys that differ and take effect at once; restart lists the other keys that
// differ.
func Merge(running, next *config.Config) (merged *config.Config, changed, restart []string) {
	c := *running
	changed, restart = merge(reflect.ValueOf(&c).Elem(), reflect.ValueOf(next).Elem(), "")
	return &c, changed, restart
}

// merge merges the fields of a struct for Merge. prefix is the key of the struct, with a dot.
func merge(running, next reflect.Value, prefix string) (changed, restart []string) {
	for i := range running.NumField() {
		name, _, _ := strings.Cut(running.Type().Field(i).Tag.Get("yaml"), ",")
		key, oldValue, newValue := prefix+name, running.Field(i), next.Field(i)
		switch {
		case reflect.DeepEqual(oldValue.Interface(), newValue.Interface()):
		case appliesLive(key):
			oldValue.Set(newValue)
			changed = append(changed, key)
		case oldValue.Kind() == reflect.Struct:
			c, r := merge(oldValue, newValue, key+".")
			changed, restart = append(changed, c...), append(restart, r...)
		default:
			restart = append(restart, key)
		}
	}
	return changed, restart
}
