package simrobot

import (
	"bytes"
	"encoding/json"
	"strings"
)

// object is a JSON object. Like an object of cJSON, the firmware's JSON library, it has its members in
// order and may have duplicate keys.
type object []member

// member is a member of an object.
type member struct {
	key   string
	value json.RawMessage
}

// parseObject parses the JSON object at the beginning of a text, and ignores the text after it.
// It returns nil if the text does not begin with a JSON object.
func parseObject(text []byte) object {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	o := object{}
	for d.More() {
		token, err := d.Token()
		key, isString := token.(string)
		if err != nil || !isString {
			return nil
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil
		}
		o = append(o, member{key, value})
	}
	if _, err := d.Token(); err != nil {
		return nil
	}
	return o
}

// lookup returns the first value of a key, or nil if the object has no such key. Like
// cJSON_GetObjectItem it ignores case.
func (o object) lookup(key string) json.RawMessage {
	for _, m := range o {
		if strings.EqualFold(m.key, key) {
			return m.value
		}
	}
	return nil
}

// text returns the value of a key if it is a string.
func (o object) text(key string) (string, bool) { return asString(o.lookup(key)) }

// asString decodes a JSON value if it is a string.
func asString(raw json.RawMessage) (string, bool) {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// asNumber decodes a JSON value if it is a number. Like cJSON's valueint it drops the fraction,
// and returns the nearest 32-bit integer for a number outside the range of 32 bits.
func asNumber(raw json.RawMessage) (int, bool) {
	var f float64
	if len(raw) == 0 || !(raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') || json.Unmarshal(raw, &f) != nil {
		return 0, false
	}
	return int(max(-1<<31, min(f, 1<<31-1))), true
}
