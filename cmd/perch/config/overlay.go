package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"perch/store"
)

// OverlayFile is the name of the overlay in the data directory.
const OverlayFile = "settings.yaml"

// overlayHead is the comment at the beginning of the overlay.
const overlayHead = `# Settings that were changed on the page, with perch set or by the API. They come before
# those of the configuration file. Perch writes this file; perch unset KEY gives a key back.
`

// mostEntries bounds a list or a mapping that is set as a whole, and the keys that are set at once.
const mostEntries = 200

// Applier makes a configuration take effect in the running appliance.
type Applier interface {
	// Apply makes c take effect as far as possible without a restart. It returns the keys that take
	// effect after a restart only. If it fails, nothing has changed.
	Apply(c *Config) (restart []string, err error)
}

// Overlay shows and changes the configuration. It writes changes into the file Source.Overlay, never
// into the owner's file, after the checks that a start makes. It is safe for concurrent use.
type Overlay struct {
	Source
	Data    string                // the data directory
	Fixed   map[string]string     // flags by the key that they fix
	Flags   func(*Config)         // applies the flags; may be nil
	Judge   func(c *Config) error // checks a configuration without faults further; may be nil
	Applier Applier               // nil if no appliance runs
	Now     func() time.Time

	mu      sync.Mutex
	started *Config         // at the start; nil if no appliance runs
	applied *Config         // the last that Applier was given
	waiting map[string]bool // keys that take effect after a restart, if they differ from started
}

// Shown is the configuration as it is shown to its owner.
type Shown struct {
	File     string         `json:"file"`          // the owner's; may be empty
	Settings string         `json:"settings"`      // the overlay
	Text     string         `json:"text"`          // of the owner's file, without secrets
	Why      string         `json:"why,omitempty"` // why Text is not shown
	Keys     []Key          `json:"keys"`
	Faults   []Fault        `json:"faults"`
	Warnings []ShownWarning `json:"warnings"`
	Restart  []string       `json:"restart"` // the keys that take effect after a restart
}

// ShownWarning is a Warning for JSON.
type ShownWarning struct {
	Part string `json:"part"`
	What string `json:"what"`
}

// Checked is the result of a check.
type Checked struct {
	Faults   []Fault        `json:"faults"`
	Warnings []ShownWarning `json:"warnings"`
}

// Changes is the result of a change.
type Changes struct {
	Restart bool     `json:"restart"`        // Keys is not empty
	Keys    []string `json:"keys,omitempty"` // that take effect after a restart
}

// Start records the configuration of the appliance's start, and removes what a power cut has left of
// the last change. It makes the overlay, which may hold secrets, readable only by its owner.
func (o *Overlay) Start(c *Config) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.started, o.applied, o.waiting = c, c, map[string]bool{}
	if err := os.Chmod(o.Source.Overlay, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return store.RemoveUnfinished(o.Source.Overlay)
}

// judged is the result of the checks of a start.
type judged struct {
	*checker
	config Config
	hidden secretTexts // not shown in keys and faults
	faults Faults      // with secrets
}

// judge checks the texts as a start does.
func (o *Overlay) judge(text, overlay []byte) judged {
	var j judged
	var err error
	j.config, j.checker, err = o.load(text, overlay)
	if err == nil && o.Flags != nil {
		o.Flags(&j.config)
		j.found = nil
		err = check(j.checker, &j.config, isApp(o.Environ))
	}
	if err == nil && o.Judge != nil {
		err = o.Judge(&j.config)
	}
	if err != nil && !errors.As(err, &j.faults) {
		j.faults = Faults{fault(err)}
	}
	j.hidden = secretsOf(&j.config, text, overlay)
	return j
}

// shown returns the faults without secrets.
func (j judged) shown() []Fault { return j.hidden.faults(j.faults.shown()) }

func (o *Overlay) keys(j judged) []Key {
	return listKeys(j.checker, &j.config, o.defaults(), o.Fixed, j.hidden)
}

func (o *Overlay) warnings(j judged) []ShownWarning {
	all := []ShownWarning{}
	for _, w := range j.config.Warnings(o.File, o.Data, o.Now()) {
		w.What = j.hidden.hide(w.What)
		all = append(all, ShownWarning(w))
	}
	return all
}

// Read reads the configuration.
func (o *Overlay) Read() (Shown, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text, overlay, err := o.texts()
	if err != nil {
		return Shown{}, err
	}
	j := o.judge(text, overlay)
	s := Shown{File: o.File, Settings: o.Source.Overlay, Keys: o.keys(j), Faults: j.shown(), Warnings: o.warnings(j),
		Restart: o.restart(&j.config)}
	if len(j.faults) > 0 {
		s.Restart = o.restart(o.applied)
	}
	if s.Text, err = masked(string(text), j.hidden); err != nil {
		s.Why = err.Error()
	}
	return s, nil
}

// restart returns the keys of a configuration that take effect after a restart: keys that Apply has
// returned, and keys that were changed in the owner's file.
func (o *Overlay) restart(c *Config) []string {
	keys := []string{}
	if o.started == nil || c == nil {
		return keys
	}
	byHand := Changed(o.applied, c)
	for _, key := range Changed(o.started, c) {
		if o.waiting[key] || slices.Contains(byHand, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Check finds the faults of a text in the place of the owner's file, except in lines with the mask of
// a secret.
func (o *Overlay) Check(text string) (Checked, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(text) > mostConfig {
		return Checked{Faults: []Fault{fault(fmt.Errorf("the text is larger than %d bytes", mostConfig))}, Warnings: []ShownWarning{}}, nil
	}
	_, overlay, err := o.texts()
	if err != nil {
		return Checked{}, err
	}
	j := o.judge([]byte(text), overlay)
	lines := strings.Split(text, "\n")
	checked := Checked{Warnings: o.warnings(j), Faults: slices.DeleteFunc(j.shown(), func(f Fault) bool {
		return f.Line > 0 && f.Line <= len(lines) && strings.Contains(lines[f.Line-1], Mask)
	})}
	return checked, nil
}

// CheckChange finds the faults with which Change would refuse values, and changes nothing.
func (o *Overlay) CheckChange(values map[string]any) (Checked, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	after, _, faults, err := o.prepare(values)
	if err != nil {
		return Checked{}, err
	}
	return Checked{Faults: append([]Fault{}, faults...), Warnings: o.warnings(after)}, nil
}

// Faults returns the faults of the present configuration, with which a start would fail.
func (o *Overlay) Faults() ([]Fault, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text, overlay, err := o.texts()
	if err != nil {
		return nil, err
	}
	return o.judge(text, overlay).shown(), nil
}

// Change sets keys, all of them or, with faults or an error, none. A nil value gives a key back to
// the owner's file, or removes an entry of a list. When Change returns, the change is on the disk,
// and as far as possible in effect.
func (o *Overlay) Change(values map[string]any) (Changes, []Fault, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	after, next, faults, err := o.prepare(values)
	if err != nil || len(faults) > 0 {
		return Changes{}, faults, err
	}
	if o.Applier == nil || len(after.faults) > 0 {
		return Changes{}, nil, o.write(next)
	}
	restart, err := o.Applier.Apply(&after.config)
	if err != nil {
		why := fault(err)
		for key := range values { // the error names no key; the fault gets any of them
			why.Key = key
		}
		return Changes{}, after.hidden.faults([]Fault{why}), nil
	}
	if err := o.write(next); err != nil {
		_, undone := o.Applier.Apply(o.applied)
		return Changes{}, nil, errors.Join(err, undone)
	}
	o.applied = &after.config
	for _, key := range restart {
		o.waiting[key] = true
	}
	keys := o.restart(o.applied)
	return Changes{Restart: len(keys) > 0, Keys: keys}, nil, nil
}

// prepare returns the configuration after a change and the text of the overlay, or the faults with
// which the change is refused.
func (o *Overlay) prepare(values map[string]any) (after judged, next []byte, faults []Fault, err error) {
	text, overlay, err := o.texts()
	if err != nil {
		return after, nil, nil, err
	}
	before := o.judge(text, overlay)
	if next, faults = o.next(before, text, overlay, values); len(faults) > 0 {
		return before, nil, before.hidden.faults(faults), nil
	}
	after = o.judge(text, next)
	after.hidden = secretsOf(&after.config, text, overlay, next)
	known := map[string]bool{}
	if !slices.ContainsFunc(slices.Collect(maps.Values(values)), func(v any) bool { return v != nil }) {
		for _, f := range before.faults { // giving keys back may correct only some of them
			known[f.Key+f.Message] = true
		}
	}
	if slices.ContainsFunc(after.faults, func(f Fault) bool { return !known[f.Key+f.Message] }) {
		return after, nil, after.shown(), nil
	}
	return after, next, nil, nil
}

func (o *Overlay) write(text []byte) error {
	if err := store.WriteFile(o.Source.Overlay, text); err != nil {
		return fmt.Errorf("write the settings: %w", explainDenied(err, ourselves()))
	}
	return nil
}

// next returns the text of the overlay with other values.
func (o *Overlay) next(now judged, text, overlay []byte, values map[string]any) ([]byte, []Fault) {
	if len(values) > mostEntries {
		return nil, []Fault{fault(fmt.Errorf("more than %d keys are changed at once", mostEntries))}
	}
	tree, err := decoded(overlay)
	if err != nil {
		unreadable := now.placed(fault(err), line{file: o.Source.Overlay})
		return nil, []Fault{fault(errors.New(unreadable.String()))}
	}
	file, _ := decoded(text) // judge reports a file that cannot be read
	keys := map[string]Key{}
	for _, k := range o.keys(now) {
		keys[k.Key] = k
	}
	var faults []Fault
	for _, key := range inOrder(values) {
		if tree, err = (edited{keys, file, tree}).with(key, values[key]); err != nil {
			faults = append(faults, Fault{Key: key}.says(err))
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	written := []byte(overlayHead)
	if len(tree) > 0 {
		body, err := yaml.Marshal(tree)
		if err != nil {
			return nil, []Fault{fault(err)}
		}
		written = append(written, body...)
	}
	if len(written) > mostConfig {
		return nil, []Fault{fault(fmt.Errorf("the settings are larger than %d bytes", mostConfig))}
	}
	return written, nil
}
