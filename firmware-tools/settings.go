package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"perch/limit"
)

// object is a JSON object from the settings of a coding agent. Unlike a map, it keeps the order
// of its members and the exact text of their values.
type object []member

// member is a member of an object.
type member struct {
	name  string
	value json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *object) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return errors.New("it is not an object")
	}
	*o = object{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		m := member{name: name.(string)} // the decoder accepts only strings as names
		if err := d.Decode(&m.value); err != nil {
			return err
		}
		*o = append(*o, m)
	}
	_, err := d.Token()
	return err
}

// text returns the object as JSON. (object does not implement json.Marshaler, because
// package json would reformat the values.)
func (o object) text() json.RawMessage {
	var text bytes.Buffer
	text.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			text.WriteByte(',')
		}
		text.Write(encodeJSON(m.name))
		text.WriteByte(':')
		text.Write(m.value)
	}
	text.WriteByte('}')
	return text.Bytes()
}

// pretty returns the object as indented JSON.
func (o object) pretty() []byte {
	var text bytes.Buffer
	if err := json.Indent(&text, o.text(), "", "  "); err != nil {
		panic(err) // cannot happen: text returns valid JSON
	}
	text.WriteByte('\n')
	return text.Bytes()
}

// index returns the index of the member with the given name, or -1.
func (o object) index(name string) int {
	return slices.IndexFunc(o, func(m member) bool { return m.name == name })
}

// withMember returns a copy of the object whose member with the given name has the given value.
func (o object) withMember(name string, value json.RawMessage) object {
	if i := o.index(name); i >= 0 {
		o = slices.Clone(o)
		o[i].value = value
		return o
	}
	return append(o[:len(o):len(o)], member{name, value})
}

// mergeHooks returns a copy of settings without the hooks that this program installed before, and
// with the hooks in block. block has one group of hooks for each event; it may be empty. All other
// settings stay unchanged.
func mergeHooks(settings, block object) (object, error) {
	hooks := object{}
	if i := settings.index("hooks"); i >= 0 {
		if err := json.Unmarshal(settings[i].value, &hooks); err != nil {
			return nil, errors.New("the member hooks is not an object")
		}
	}
	result := object{}
	for _, event := range hooks {
		groups, err := foreignGroups(event.value)
		if err != nil {
			return nil, fmt.Errorf("the hooks of %s have an unknown format", event.name)
		}
		ours := block.index(event.name)
		if ours >= 0 && result.index(event.name) < 0 {
			groups = append(groups, block[ours].value)
		}
		if len(groups) > 0 || ours >= 0 || string(event.value) == "[]" {
			result = append(result, member{event.name, encodeJSON(groups)})
		}
	}
	for _, ours := range block {
		if result.index(ours.name) < 0 {
			result = append(result, member{ours.name, encodeJSON([]json.RawMessage{ours.value})})
		}
	}
	if len(result) == 0 {
		return slices.DeleteFunc(slices.Clone(settings), func(m member) bool { return m.name == "hooks" }), nil
	}
	return settings.withMember("hooks", result.text()), nil
}

// foreignGroups returns an event's groups of hooks without the hooks that this program
// installed.
func foreignGroups(list json.RawMessage) (groups []json.RawMessage, err error) {
	groups = []json.RawMessage{}
	var members []json.RawMessage
	if err := json.Unmarshal(list, &members); err != nil {
		return nil, err
	}
	for _, text := range members {
		var group object
		if err := json.Unmarshal(text, &group); err != nil {
			return nil, err
		}
		i := group.index("hooks")
		if i < 0 || !bytes.Contains(group[i].value, []byte(hookMark)) {
			groups = append(groups, text)
			continue
		}
		var hooks []json.RawMessage
		if err := json.Unmarshal(group[i].value, &hooks); err != nil {
			return nil, err
		}
		hooks = slices.DeleteFunc(hooks, isOurs)
		if len(hooks) > 0 {
			groups = append(groups, group.withMember("hooks", encodeJSON(hooks)).text())
		}
	}
	return groups, nil
}

// isOurs reports whether this program installed a hook.
func isOurs(hook json.RawMessage) bool {
	var h struct{ Command string }
	return json.Unmarshal(hook, &h) == nil && strings.HasSuffix(h.Command, " # "+hookMark)
}

// mergeIntoFile merges hooks into a settings file, or removes Perch's hooks if block is empty. If the
// JSON changes, it first copies an existing file to the path backup in the same folder, and then
// replaces the file atomically. changed reports whether the file was replaced. notes warn of settings
// that may disable hooks.
func mergeIntoFile(file string, block object) (backup string, changed bool, notes []string, err error) {
	before, mode, err := readSettings(file)
	if err != nil || before == nil && len(block) == 0 {
		return "", false, nil, err
	}
	settings := object{}
	if len(bytes.TrimSpace(before)) > 0 {
		if err := json.Unmarshal(before, &settings); err != nil {
			return "", false, nil, fmt.Errorf("%s is not plain JSON (%w); nothing is written: correct the file, or add the hooks by hand", file, err)
		}
	}
	after, err := mergeHooks(settings, block)
	if err != nil {
		return "", false, nil, fmt.Errorf("%s: %w; nothing is written", file, err)
	}
	for _, name := range []string{"disableAllHooks", "allowManagedHooksOnly"} {
		if i := settings.index(name); i >= 0 && string(settings[i].value) != "false" {
			notes = append(notes, fmt.Sprintf("note: %s is set in %s, and may prevent these hooks from running", name, file))
		}
	}
	text := after.pretty()
	if equalJSON(before, text) {
		return "", false, notes, nil
	}
	if before != nil {
		backup = file + "." + time.Now().Format("20060102-150405.000") + ".bak"
		if err := os.WriteFile(backup, before, mode); err != nil {
			return "", false, notes, fmt.Errorf("write a backup: %w; nothing is changed", err)
		}
	}
	if err := replaceFile(file, text, mode); err != nil {
		return backup, false, notes, fmt.Errorf("write the settings: %w", err)
	}
	return backup, true, notes, nil
}

// readSettings reads a settings file and its permissions. If the file does not exist, text is nil,
// and mode is the mode for a new file.
func readSettings(file string) (text []byte, mode fs.FileMode, err error) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, nil
	}
	if err == nil {
		text, err = readUpTo(file, limit.Message)
	}
	if err == nil && len(text) > limit.Message {
		err = fmt.Errorf("%s has more than %d bytes", file, limit.Message)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the settings: %w", err)
	}
	return text, info.Mode().Perm(), nil
}

// equalJSON reports whether two texts are the same JSON apart from white space.
func equalJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// replaceFile creates a file, or replaces it atomically. It creates the folder if necessary.
func replaceFile(file string, text []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".settings-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // err is the more useful error
	}
	return err
}
