package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"perch/packaging"
)

// Editor changes the configuration file for its owner. What it writes has passed
// the check that the next start makes.
type Editor struct {
	Source
	Data   string                // the data directory
	Fixed  map[string]string     // flags by the key that they fix
	Flags  func(*Config)         // does what they do
	Judge  func(c *Config) error // what can be found out of a configuration without faults
	Now    func() time.Time
	mu     sync.Mutex
	loaded string // the digest of what this process runs with; empty until it is known
}

// Shown is the configuration as its owner sees it.
type Shown struct {
	File     string         `json:"file"`
	Text     string         `json:"text"`
	Digest   string         `json:"digest"`
	Writable bool           `json:"writable"`
	Why      string         `json:"why,omitempty"` // it cannot be written, or what there is to know of it
	Keys     []Key          `json:"keys"`
	Faults   []Fault        `json:"faults"`
	Warnings []ShownWarning `json:"warnings"`
	Before   bool           `json:"before"`  // there is FILE.before
	Restart  bool           `json:"restart"` // it has changed since the start
}

// ShownWarning is a Warning.
type ShownWarning struct {
	Part string `json:"part"`
	What string `json:"what"`
}

// Change is what an owner sends: the whole text, or values by their keys, of
// which nil removes a key.
type Change struct {
	Text   *string        `json:"text"`
	Set    map[string]any `json:"set"`
	Digest string         `json:"digest"` // of the file that was changed
}

// Checked is what would come of a change.
type Checked struct {
	Text     string         `json:"text"`
	Faults   []Fault        `json:"faults"`
	Warnings []ShownWarning `json:"warnings"`
	real     string         // with its secrets
}

// ErrChanged is the error of a change to a file that was changed since it was read.
var ErrChanged = errors.New("the configuration was changed since; read it again, then change it")

// ErrReadOnly is wrapped where the file cannot be changed.
var ErrReadOnly = errors.New("the configuration cannot be changed here")

// ErrChange is wrapped where a change is none.
var ErrChange = errors.New("this is no change of a configuration")

// Start notes with what this process was started.
func (e *Editor) Start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if text, err := e.text(); err == nil {
		e.loaded = digest(text)
	}
}

// path is the file, or where one would be read by the next start.
func (e *Editor) path() string {
	path := e.File
	if path == "" {
		path = "perch.yaml"
		if Writable(filepath.Dir(systemConfig)) {
			path = systemConfig
		}
		if app := appConfig(); app != "" && Writable(filepath.Dir(app)) {
			path = app
		}
	}
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	return path
}

// text is what the file holds; nothing, where there is none.
func (e *Editor) text() (string, error) {
	text, err := readConfig(e.path())
	if e.File == "" && errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Show reads the configuration.
func (e *Editor) Show() (Shown, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	text, err := e.text()
	if err != nil {
		return Shown{}, err
	}
	s := Shown{File: e.path(), Digest: digest(text), Writable: true, Restart: e.loaded != "" && e.loaded != digest(text)}
	k, c, faults := e.judge(text)
	s.Faults, s.Warnings, s.Keys = faults, e.warnings(&c, k.hidden), k.keys(&c, e.Fixed)
	at, err := e.place()
	if err == nil {
		err = at.writable()
	}
	_, missing := os.Stat(at.beside(".before"))
	s.Before = missing == nil
	var why error
	if err != nil {
		s.Writable, why = false, err
	} else if e.File == "" {
		why = fmt.Errorf("there is no configuration file, so that Perch runs by its defaults; the first change makes %s", s.File)
	}
	if s.Text, err = masked(text); err != nil && why != nil {
		why = fmt.Errorf("%w; %w", why, err)
	} else if err != nil {
		why = err
	}
	if why != nil {
		s.Why = why.Error()
	}
	return s, nil
}

// judge checks a text as the next start would.
func (e *Editor) judge(text string) (*checker, Config, []Fault) {
	k := &checker{Source: e.Source}
	k.File = e.path()
	c, err := k.load([]byte(text))
	if err == nil && e.Flags != nil {
		e.Flags(&c)
		k.found = nil
		err = k.check(&c)
	}
	if err == nil && e.Judge != nil {
		err = e.Judge(&c)
	}
	var wrong Faults
	if err != nil && !errors.As(err, &wrong) {
		wrong = Faults{fault(err)}
	}
	k.hidden = textsIn(text, len(k.lines) > 0, &c)
	return k, c, k.hidden.faults(wrong.shown())
}

func (e *Editor) warnings(c *Config, hidden secretTexts) []ShownWarning {
	all := []ShownWarning{}
	for _, w := range c.Warnings(e.path(), e.Data, e.Now()) {
		w.What = hidden.hide(w.What)
		all = append(all, ShownWarning(w))
	}
	return all
}

// Check says what would come of a change, which it does not make.
func (e *Editor) Check(change Change) (Checked, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	text, err := e.text()
	if err != nil {
		return Checked{}, err
	}
	if change.Digest != "" && change.Digest != digest(text) {
		return Checked{}, ErrChanged
	}
	return e.check(text, change)
}

func (e *Editor) check(before string, change Change) (Checked, error) {
	if (change.Text == nil) == (change.Set == nil) {
		return Checked{}, fmt.Errorf("%w: either text or set is needed", ErrChange)
	}
	if change.Text != nil && len(*change.Text) > mostConfig {
		return Checked{}, fmt.Errorf("%w: the text is larger than %d bytes", ErrChange, mostConfig)
	}
	after, faults := "", []Fault{}
	if change.Text != nil {
		if after = *change.Text; hidden(before) != nil { // it was not sent what it would replace
			return Checked{}, fmt.Errorf("%w: %w", ErrReadOnly, ErrHidden)
		}
	} else {
		after, faults = e.set(before, change.Set)
	}
	after, lost := restored(after, before)
	if faults = append(faults, lost...); len(after) > mostConfig {
		faults = append(faults, fault(fmt.Errorf("the text is larger than %d bytes", mostConfig)))
	}
	k, c, wrong := e.judge(after)
	checked := Checked{Faults: append(k.hidden.faults(faults), wrong...), Warnings: e.warnings(&c, k.hidden), real: after}
	// What cannot be shown is said where the configuration is read.
	checked.Text, _ = masked(after)
	return checked, nil
}

// set changes keys of a text. What cannot be changed is a fault.
func (e *Editor) set(text string, values map[string]any) (string, []Fault) {
	faults := []Fault{}
	if len(values) > mostEntries {
		return text, []Fault{fault(fmt.Errorf("more than %d keys are changed at once; edit the text", mostEntries))}
	}
	k, c, _ := e.judge(text)
	now := map[string]Key{}
	for _, one := range k.keys(&c, e.Fixed) {
		now[one.Key] = one
	}
	if e.File == "" && text == "" {
		text = packaging.Installed()
	}
	for _, key := range inOrder(values) {
		was, known := now[key]
		path, value := strings.Split(key, "."), fitting(was.Type, values[key])
		switch {
		case was.Type == "secret" && value == "": // as it is shown
			continue
		case value == nil && was.Given == givenDefault, known && was.Type != "secret" && inline(value, nil) == inline(was.Value, nil):
			continue // it is so already
		case was.By != "":
			faults = append(faults, Fault{Key: key}.says(fmt.Errorf("%s sets it, and comes before this file; change it there", was.By)))
			continue
		}
		if list, is := strings.CutSuffix(key, ".kind"); is && value != nil && isEngine(path) { // another engine has nothing of this one's
			path, value = strings.Split(list, "."), map[string]any{"kind": value}
		}
		changed, err := edit(e.begun(text, key, now), path, value)
		if err != nil {
			faults = append(faults, Fault{Key: key, Line: was.Line}.says(err))
			continue
		}
		text = changed
	}
	return text, faults
}

// begun has a list in the text, of which one entry is to be changed and all are
// the defaults so far.
func (e *Editor) begun(text, key string, now map[string]Key) string {
	for at := strings.LastIndexByte(key, '.'); at > 0; at = strings.LastIndexByte(key[:at], '.') {
		list, is := now[key[:at]]
		if !is || list.Given != givenDefault {
			continue
		}
		if with, err := edit(text, strings.Split(key[:at], "."), list.Value); err == nil {
			return with
		}
	}
	return text
}

// isEngine reports whether a path is that of a key of an engine.
func isEngine(path []string) bool {
	return len(path) > 2 && kinds(strings.Join(path[:len(path)-2], ".")) != nil
}

// inOrder are the keys of a change: first what an engine is, then all that is set, the
// places of lists by their numbers, then what is removed, from the end, so that no
// place is another's by then.
func inOrder(values map[string]any) []string {
	turn := func(key string) int {
		switch {
		case values[key] == nil:
			return 2
		case strings.HasSuffix(key, ".kind"):
			return 0
		}
		return 1
	}
	return slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		if turn(a) != turn(b) {
			return turn(a) - turn(b)
		}
		places := slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
			n, err := strconv.Atoi(x)
			m, err2 := strconv.Atoi(y)
			if err == nil && err2 == nil {
				return n - m
			}
			return strings.Compare(x, y)
		})
		if turn(a) == 2 {
			return -places
		}
		return places
	})
}

// fitting is a value of JSON as the file has it: a form may send a number as a
// text, and JSON has no whole numbers.
func fitting(kind string, value any) any {
	switch v := value.(type) {
	case float64:
		if kind == "text" || kind == "choice" || kind == "secret" {
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
		if v == float64(int64(v)) {
			return int64(v)
		}
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && kind == "number" {
			return n
		}
		if n, err := strconv.ParseFloat(v, 64); err == nil && kind == "number" {
			return n
		}
		if b, err := strconv.ParseBool(v); err == nil && kind == "bool" {
			return b
		}
	case []any:
		for i, one := range v {
			v[i] = fitting("", one)
		}
	case map[string]any:
		for key, one := range v {
			v[key] = fitting("", one)
		}
	}
	return value
}

// Write makes a change, and returns the digest of the new file. It fails with the
// faults where there are any, and changes nothing then.
func (e *Editor) Write(change Change) (string, []Fault, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	text, err := e.text()
	if err != nil {
		return "", nil, err
	}
	if change.Digest != digest(text) {
		return "", nil, ErrChanged
	}
	at, err := e.place()
	if err == nil {
		err = at.writable()
	}
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	checked, err := e.check(text, change)
	if err != nil || len(checked.Faults) > 0 {
		return "", checked.Faults, err
	}
	if checked.real == text {
		return digest(text), nil, nil
	}
	if err := at.replace(text, checked.real); err != nil {
		return "", nil, fmt.Errorf("write the configuration: %w", err)
	}
	if e.File == "" { // it is read from now on
		e.File = e.path()
	}
	return digest(checked.real), nil, nil
}

// Faults are those of the file as it is, with which no start would succeed.
func (e *Editor) Faults() ([]Fault, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	text, err := e.text()
	if err != nil {
		return nil, err
	}
	_, _, faults := e.judge(text)
	return faults, nil
}
