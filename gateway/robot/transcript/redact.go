package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible returns a text without control characters, line separators and characters that change the
// direction of writing. It keeps the characters in allowed. Invalid UTF-8 becomes U+FFFD.
func Visible(text, allowed string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(allowed, r) && r != utf8.RuneError:
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
			return -1
		}
		return r
	}, text)
}

// isSecret reports whether the value of the JSON field with this name must be replaced. MAC address and
// Client-Id (the field uuid) are secret because together they suffice to get a robot's token. The stages of a
// turn are not secret, but their measured times would make every transcript different.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"token", "passw", "secret", "authorization", "key", "ssid", "uuid", "mac_address", "stages"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// redact returns a message without secrets, and with "S" in place of the session ID. Some error messages of
// the firmware are not JSON: such a text is replaced as a whole if it may hold a secret.
func redact(session string, text []byte) string {
	var out bytes.Buffer
	switch err := redactValue(&out, newDecoder(string(text)), ""); {
	case err == nil:
		return strings.ReplaceAll(out.String(), session, "S")
	case isSecret(string(text)):
		return fmt.Sprintf("%d bytes that are not JSON", len(text))
	}
	return strings.ReplaceAll(string(text), session, "S")
}

// newDecoder returns a JSON decoder that does not change the notation of numbers.
func newDecoder(text string) *json.Decoder {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d
}

// redactValue copies the next JSON value without secrets. name is the field that holds the value, or empty.
// redactValue also redacts strings that are JSON, such as the results of tools.
func redactValue(out *bytes.Buffer, d *json.Decoder, name string) error {
	if isSecret(name) {
		out.WriteString(`"…"`)
		return d.Decode(new(json.RawMessage))
	}
	t, err := d.Token()
	if err != nil {
		return err
	}
	switch v := t.(type) {
	case json.Delim:
		return redactElements(out, d, v)
	case string:
		out.Write(encodeToken(Visible(redactText(v), "\n\t")))
	default:
		out.Write(encodeToken(t))
	}
	return nil
}

// redactElements copies an array or object whose opening delimiter was read, without secrets. It keeps the
// order of fields.
func redactElements(out *bytes.Buffer, d *json.Decoder, open json.Delim) error {
	out.WriteRune(rune(open))
	for n := 0; d.More(); n++ {
		if n > 0 {
			out.WriteByte(',')
		}
		name := ""
		if open == '{' {
			t, err := d.Token()
			if err != nil {
				return err
			}
			name, _ = t.(string)
			out.Write(encodeToken(Visible(name, "\n\t")))
			out.WriteByte(':')
		}
		if err := redactValue(out, d, name); err != nil {
			return err
		}
	}
	end, err := d.Token()
	if err == nil {
		out.WriteString(fmt.Sprint(end))
	}
	return err
}

// redactText returns a string without secrets. It redacts a JSON object or array, and removes the queries of URLs.
func redactText(text string) string {
	if start := strings.TrimSpace(text); strings.HasPrefix(start, "{") || strings.HasPrefix(start, "[") {
		var out bytes.Buffer
		if d := newDecoder(text); redactValue(&out, d, "") == nil && !d.More() {
			return out.String()
		}
	}
	return query.ReplaceAllString(text, "$1?…")
}

// query matches a URL with a query.
var query = regexp.MustCompile(`(\w://[^\s?]*)\?\S*`)

// encodeToken encodes a JSON token without escaping < and >.
func encodeToken(v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte(`""`) // cannot happen for a JSON token
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// encode returns a value as JSON, or nil for nil.
func encode(v any) []byte {
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return []byte("null") // cannot happen for the values that are recorded
	}
	return b
}
