package simrobot

import (
	"bytes"
	"encoding/json"
	"strings"
)

// object is a JSON object as cJSON parses it: in order, with duplicate keys.
type object []member

type member struct {
	key   string
	value json.RawMessage
}

// parseObject returns nil if the text is not an object.
func parseObject(text []byte) object {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	o := object{}
	for d.More() {
		key, err := d.Token()
		name, isString := key.(string)
		if err != nil || !isString {
			return nil
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil
		}
		o = append(o, member{name, value})
	}
	if _, err := d.Token(); err != nil {
		return nil
	}
	return o
}

// lookup returns the first value of a key, ignoring case, as cJSON_GetObjectItem does.
func (o object) lookup(key string) json.RawMessage {
	for _, m := range o {
		if strings.EqualFold(m.key, key) {
			return m.value
		}
	}
	return nil
}

// text returns a member that is a string.
func (o object) text(key string) (string, bool) { return asString(o.lookup(key)) }

func asString(raw json.RawMessage) (string, bool) {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// asNumber reads a number and drops its fraction, as cJSON's valueint does.
func asNumber(raw json.RawMessage) (int, bool) {
	var f float64
	if len(raw) == 0 || !(raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') || json.Unmarshal(raw, &f) != nil {
		return 0, false
	}
	return int(max(-1<<31, min(f, 1<<31-1))), true
}
