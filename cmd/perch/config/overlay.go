package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"perch/remote"
	"perch/store"
)

// OverlayFile is the name of the overlay, the file of changed settings, in the data directory.
const OverlayFile = "settings.yaml"

// overlayHead is the comment at the beginning of the overlay.
const overlayHead = `# Settings that were changed on the page, with perch set or by the API. They override
# the configuration file. Perch writes this file; perch unset KEY removes a setting.
`

// maxChanges is the maximum number of keys that are changed at once.
const maxChanges = 200

// Applier is the running appliance, which can change to another configuration.
type Applier interface {
	// Apply applies the changes in c that need no restart. It returns the keys that take effect only
	// after a restart. If it returns an error, it has changed nothing.
	Apply(c *Config) (restart []string, err error)
}

// Overlay shows and changes the configuration. Changes are checked as at a start and written into the
// file Source.Overlay, never into the owner's file. An Overlay is safe for concurrent use.
type Overlay struct {
	Source
	Data      string                // the data directory
	Fixed     map[string]string     // maps keys to the command-line flags that set them
	Flags     func(*Config)         // applies the flags; may be nil
	SlowCheck func(c *Config) error // makes slower checks if a configuration has no faults; may be nil
	Applier   Applier               // nil if no appliance runs

	mu      sync.Mutex
	started *Config         // the configuration at the start; nil if no appliance runs
	applied *Config         // the configuration that Applier has applied last; before that, started
	waiting map[string]bool // keys that Applier could not apply without a restart
}

// Shown is the configuration as the owner sees it.
type Shown struct {
	File     string    `json:"file"`          // path of the owner's file; may be empty
	Settings string    `json:"settings"`      // path of the overlay
	Text     string    `json:"text"`          // the owner's file without secrets
	Why      string    `json:"why,omitempty"` // why Text is empty
	Keys     []Key     `json:"keys"`
	Groups   []Group   `json:"groups"`
	Faults   []Fault   `json:"faults"`
	Warnings []Warning `json:"warnings"`
	Restart  []string  `json:"restart"` // keys that take effect after a restart
}

// Checked is the result of checking a configuration.
type Checked struct {
	Faults   []Fault   `json:"faults"`
	Warnings []Warning `json:"warnings"`
}

// Changes is the result of changing keys.
type Changes struct {
	Restart bool     `json:"restart"`        // whether Keys is not empty
	Keys    []string `json:"keys,omitempty"` // keys that take effect after a restart
}

// Start records the configuration with which the appliance starts. It removes the unfinished file of a
// change that a power cut has interrupted, and makes the overlay, which may contain secrets, readable
// only by the user of this process.
func (o *Overlay) Start(c *Config) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.started, o.applied, o.waiting = c, c, map[string]bool{}
	if err := os.Chmod(o.Source.Overlay, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return store.RemoveUnfinished(o.Source.Overlay)
}

// checkedConfig is a configuration that was checked as at a start.
type checkedConfig struct {
	*checker
	config Config
	hidden secretMasker // texts that keys and faults must not show
	faults Faults       // may contain secrets
}

// checkTexts checks the texts of the owner's file and of the overlay as a start does.
func (o *Overlay) checkTexts(text, overlay []byte) checkedConfig {
	var c checkedConfig
	var err error
	c.config, c.checker, err = o.load(text, overlay)
	if err == nil && o.Flags != nil {
		o.Flags(&c.config)
		c.found = nil
		err = check(c.checker, &c.config, isApp(o.Environ))
	}
	if err == nil && o.SlowCheck != nil {
		err = o.SlowCheck(&c.config)
	}
	if err != nil && !errors.As(err, &c.faults) {
		c.faults = Faults{fault(err)}
	}
	c.hidden = secretsOf(&c.config, text, overlay)
	return c
}

// shown returns the faults for the API, without secrets.
func (c checkedConfig) shown() []Fault { return c.hidden.maskFaults(c.faults.forAPI()) }

// keys returns all keys of a configuration.
func (o *Overlay) keys(c checkedConfig) []Key {
	return listKeys(c.checker, &c.config, o.defaults(), o.Fixed, c.hidden)
}

// warnings returns the warnings of a configuration, without secrets.
func (o *Overlay) warnings(c checkedConfig) []Warning {
	warnings := []Warning{}
	for _, w := range c.config.Warnings(o.File, o.Data, time.Now()) {
		w.What = c.hidden.hide(w.What)
		warnings = append(warnings, w)
	}
	return warnings
}

// Read returns the configuration with its secrets masked. If the files have faults, the result contains the faults.
func (o *Overlay) Read() (Shown, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text, overlay, err := o.readFiles()
	if err != nil {
		return Shown{}, err
	}
	c := o.checkTexts(text, overlay)
	s := Shown{File: o.File, Settings: o.Source.Overlay, Keys: o.keys(c), Groups: Groups(), Faults: c.shown(), Warnings: o.warnings(c),
		Restart: o.restartKeys(&c.config)}
	if len(c.faults) > 0 {
		s.Restart = o.restartKeys(o.applied)
	}
	if s.Text, err = maskSecrets(string(text), c.hidden); err != nil {
		s.Why = err.Error()
	}
	return s, nil
}

// restartKeys returns the keys of a configuration that take effect only after a restart: the keys that
// Apply has returned, and keys that were changed in the owner's file.
func (o *Overlay) restartKeys(c *Config) []string {
	keys := []string{}
	if o.started == nil || c == nil {
		return keys
	}
	changedInFile := Changed(o.applied, c)
	for _, key := range Changed(o.started, c) {
		if o.waiting[key] || slices.Contains(changedInFile, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Check returns the faults and warnings that the configuration would have if text replaced the owner's
// file. It leaves out faults of lines that contain Mask.
func (o *Overlay) Check(text string) (Checked, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(text) > maxFileSize {
		return Checked{Faults: []Fault{fault(fmt.Errorf("the text is larger than %d bytes", maxFileSize))}, Warnings: []Warning{}}, nil
	}
	_, overlay, err := o.readFiles()
	if err != nil {
		return Checked{}, err
	}
	c := o.checkTexts([]byte(text), overlay)
	lines := strings.Split(text, "\n")
	return Checked{Warnings: o.warnings(c), Faults: slices.DeleteFunc(c.shown(), func(f Fault) bool {
		return f.Line > 0 && f.Line <= len(lines) && strings.Contains(lines[f.Line-1], Mask)
	})}, nil
}

// CheckChange returns the faults that would make Change refuse values before it calls Applier, and the warnings
// of the changed configuration. It changes nothing.
func (o *Overlay) CheckChange(values map[string]any) (Checked, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	after, _, faults, err := o.prepareChange(values)
	if err != nil {
		return Checked{}, err
	}
	return Checked{Faults: append([]Fault{}, faults...), Warnings: o.warnings(after)}, nil
}

// Faults returns the faults of the current configuration, which would make a start fail.
func (o *Overlay) Faults() ([]Fault, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text, overlay, err := o.readFiles()
	if err != nil {
		return nil, err
	}
	return o.checkTexts(text, overlay).shown(), nil
}

// Change sets the keys of values. A nil value removes a key from the overlay, so that the owner's file
// sets the key again, or removes an entry of a list. If Change returns faults or an error, it has changed
// nothing, unless the error is that undoing the change has failed. Otherwise the change is on disk. If an
// appliance runs and the configuration has no faults, what needs no restart is also in effect.
func (o *Overlay) Change(values map[string]any) (Changes, []Fault, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	after, next, faults, err := o.prepareChange(values)
	if err != nil || len(faults) > 0 {
		return Changes{}, faults, err
	}
	if o.Applier == nil || len(after.faults) > 0 {
		return Changes{}, nil, o.write(next)
	}
	restart, err := o.Applier.Apply(&after.config)
	if err != nil {
		f := fault(err)
		for key := range values { // the error names no key, but the fault needs one, so it gets any of the changed keys
			f.Key = key
		}
		return Changes{}, after.hidden.maskFaults([]Fault{f}), nil
	}
	if err := o.write(next); err != nil {
		_, undoErr := o.Applier.Apply(o.applied)
		return Changes{}, nil, errors.Join(err, undoErr)
	}
	o.record(&after.config, restart)
	keys := o.restartKeys(o.applied)
	return Changes{Restart: len(keys) > 0, Keys: keys}, nil, nil
}

// FollowSpeech applies the configuration again whenever perch-speech on this machine offers something else than before, until ctx
// ends: the default lists of engines depend on that.
func (o *Overlay) FollowSpeech(ctx context.Context, log *slog.Logger) {
	waits := false // a change has not been applied
	for remote.Sleep(ctx, o.Speech.Every) == nil {
		changed := o.Speech.Look(ctx)
		if !changed && !waits {
			continue
		}
		err := o.reload()
		if waits = err != nil; changed && waits {
			log.Warn("perch-speech has changed, and robots cannot use that yet", "err", err)
		}
	}
}

// reload applies the configuration of the files again. It returns an error if the configuration has faults.
func (o *Overlay) reload() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	text, overlay, err := o.readFiles()
	if err != nil {
		return err
	}
	c := o.checkTexts(text, overlay)
	if len(c.faults) > 0 {
		return errors.New("the configuration has faults: perch check-config shows them")
	}
	restart, err := o.Applier.Apply(&c.config)
	if err == nil {
		o.record(&c.config, restart)
	}
	return err
}

// record records a configuration that Applier has applied, and the keys that Applier has returned.
func (o *Overlay) record(c *Config, restart []string) {
	o.applied = c
	for _, key := range restart {
		o.waiting[key] = true
	}
}

// prepareChange returns the configuration after a change and the new text of the overlay, or the faults
// for which the change must be refused.
func (o *Overlay) prepareChange(values map[string]any) (after checkedConfig, next []byte, faults []Fault, err error) {
	text, overlay, err := o.readFiles()
	if err != nil {
		return after, nil, nil, err
	}
	before := o.checkTexts(text, overlay)
	if next, faults = o.editOverlay(before, text, overlay, values); len(faults) > 0 {
		return before, nil, before.hidden.maskFaults(faults), nil
	}
	after = o.checkTexts(text, next)
	after.hidden = secretsOf(&after.config, text, overlay, next)
	accepted := map[string]bool{}
	if !slices.ContainsFunc(slices.Collect(maps.Values(values)), func(v any) bool { return v != nil }) {
		for _, f := range before.faults { // a removal need not correct all faults: earlier faults may remain
			accepted[f.Key+f.Message] = true
		}
	}
	if slices.ContainsFunc(after.faults, func(f Fault) bool { return !accepted[f.Key+f.Message] }) {
		return after, nil, after.shown(), nil
	}
	return after, next, nil, nil
}

func (o *Overlay) write(text []byte) error {
	if err := store.WriteFile(o.Source.Overlay, text); err != nil {
		return fmt.Errorf("write the settings: %w", explainDenied(err, currentAccount()))
	}
	return nil
}

// editOverlay returns the text of the overlay after values have been set, or the faults of the values.
// current is the configuration of text and overlay.
func (o *Overlay) editOverlay(current checkedConfig, text, overlay []byte, values map[string]any) ([]byte, []Fault) {
	if len(values) > maxChanges {
		return nil, []Fault{fault(fmt.Errorf("more than %d keys are changed at once", maxChanges))}
	}
	tree, err := decodeTree(overlay)
	if err != nil {
		f := current.atLine(fault(err), line{file: o.Source.Overlay})
		return nil, []Fault{fault(errors.New(f.String()))}
	}
	file, _ := decodeTree(text) // checkTexts reports the error
	keys := map[string]Key{}
	for _, k := range o.keys(current) {
		keys[k.Key] = k
	}
	var faults []Fault
	for _, key := range editOrder(values) {
		if tree, err = (overlayEditor{keys, file, tree}).set(key, values[key]); err != nil {
			faults = append(faults, Fault{Key: key, Message: err.Error()})
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	edited := []byte(overlayHead)
	if len(tree) > 0 {
		body, err := yaml.Marshal(tree)
		if err != nil {
			return nil, []Fault{fault(err)}
		}
		edited = append(edited, body...)
	}
	if len(edited) > maxFileSize {
		return nil, []Fault{fault(fmt.Errorf("the settings are larger than %d bytes", maxFileSize))}
	}
	return edited, nil
}
