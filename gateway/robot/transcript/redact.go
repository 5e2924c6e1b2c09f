package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible returns a text without control characters and without characters that change the
// direction of writing, but with those in except. Invalid UTF-8 becomes U+FFFD.
func Visible(text, except string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(except, r) && r != utf8.RuneError:
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
			return -1
		}
		return r
	}, text)
}

// isSecret reports whether a field holds a secret. MAC and Client-Id together get a robot its
// token. Stages are no secret, but differ in each run.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"token", "passw", "secret", "authorization", "key", "ssid", "uuid", "mac_address", "stages"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// redact returns a message without secrets and a session's id. A text that is not JSON, as some
// errors of the firmware are, is returned as it is or left out whole.
func redact(session string, text []byte) string {
	var out bytes.Buffer
	switch err := redactValue(&out, newDecoder(string(text)), ""); {
	case err == nil:
		return strings.ReplaceAll(out.String(), session, "S")
	case isSecret(string(text)):
		return fmt.Sprintf("%d bytes that are no JSON", len(text))
	}
	return strings.ReplaceAll(string(text), session, "S")
}

func newDecoder(text string) *json.Decoder {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d
}

// redactValue copies the next JSON value, in its order, without secrets. It also looks into texts
// that hold JSON, such as the results of tools.
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
		return redactAll(out, d, v)
	case string:
		out.Write(encodeText(Visible(redactText(v), "\n\t")))
	default:
		out.Write(encodeText(t))
	}
	return nil
}

// redactAll copies the rest of an array or an object.
func redactAll(out *bytes.Buffer, d *json.Decoder, open json.Delim) error {
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
			out.Write(encodeText(Visible(name, "\n\t")))
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

// redactText returns a text without the secrets in its JSON or in the query of an address.
func redactText(text string) string {
	if strings.HasPrefix(text, "{") {
		var out bytes.Buffer
		if redactValue(&out, newDecoder(text), "") == nil {
			return out.String()
		}
	}
	if address, _, found := strings.Cut(text, "?"); found && strings.Contains(address, "://") {
		return address + "?…"
	}
	return text
}

// encodeText returns a JSON token with its < and > as they are.
func encodeText(v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte(`""`) // cannot happen for a token of JSON
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// encode returns a value as JSON, or nothing for nil.
func encode(v any) []byte {
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return []byte("null") // cannot happen for a value that came from JSON
	}
	return b
}
