package tools

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"perch/device"
	"perch/device/xiaozhi"
	"perch/limit"
	"perch/plain"
)

// parseResult parses the response to a call. The firmware reports failures as JSON-RPC errors, and encodes
// an image as a JSON object inside a string. Programs that act as a robot may write pictures into the text.
func parseResult(name string, r xiaozhi.Response) (device.Result, error) {
	if r.Error != nil {
		return device.Result{}, Failed(ErrToolFailed, "%s: %s", name, r.Error)
	}
	var body struct {
		Content []struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			Image    string `json:"image"`    // firmware only: JSON with mimeType and data
			Data     []byte `json:"data"`     // MCP standard
			MIMEType string `json:"mimeType"` // MCP standard
		} `json:"content"`
	}
	if err := json.Unmarshal(r.Result, &body); err != nil {
		return device.Result{}, Failed(ErrToolFailed, "%s: its result cannot be read: %s", name, err)
	}
	var found device.Result
	var texts []string
	for _, c := range body.Content {
		picture := device.Picture{Type: c.MIMEType, Data: c.Data}
		switch {
		case c.Type == "text":
			texts = append(texts, c.Text)
			continue
		case c.Type != "image":
			continue
		case c.Image != "":
			var inner struct {
				MIMEType string `json:"mimeType"`
				Data     []byte `json:"data"`
			}
			if err := json.Unmarshal([]byte(c.Image), &inner); err != nil {
				return device.Result{}, Failed(ErrToolFailed, "%s: its image cannot be read: %s", name, err)
			}
			picture = device.Picture{Type: inner.MIMEType, Data: inner.Data}
		}
		found.Pictures = append(found.Pictures, picture)
	}
	text, pictures := withoutPictures(strings.Join(texts, "\n"))
	found.Text, found.Pictures = clipResult(extractDescription(text)), append(found.Pictures, pictures...)
	return found, nil
}

// extractDescription returns the field vision_analysis of a JSON object, with which a web page that acts as a
// robot reports the description of a picture. The field is a string or an object. Any other text is returned
// unchanged.
func extractDescription(text string) string {
	var object struct {
		Analysis json.RawMessage `json:"vision_analysis"`
	}
	if !strings.HasPrefix(strings.TrimSpace(text), "{") || json.Unmarshal([]byte(text), &object) != nil {
		return text
	}
	var words string
	switch {
	case json.Unmarshal(object.Analysis, &words) == nil && words != "":
		return words
	case strings.HasPrefix(string(object.Analysis), "{"):
		return string(object.Analysis)
	}
	return text
}

// clipResult cuts a text to limit.Result bytes, and ends a text that was cut with a note.
func clipResult(text string) string {
	if len(text) <= limit.Result {
		return text
	}
	cut := fmt.Sprintf(" (cut off, of %d bytes)", len(text))
	return plain.Clip(text, limit.Result-len(cut)) + cut
}

// Placeholders for base64 that was removed from a text.
const (
	picturePlaceholder = "(a picture)"
	dataPlaceholder    = "(data)"
)

// minEncoded is the minimum length of a run of letters that may be base64, unless the beginning of a data URL
// precedes the run. No word is that long.
const minEncoded = 200

// withoutPictures replaces the pictures and the data URLs that a text holds in base64 by placeholders, and
// returns the text and the pictures. The text is empty if it was only a picture.
func withoutPictures(text string) (words string, pictures []device.Picture) {
	var out []byte
	for at := 0; at < len(text); {
		n := encodedRun(text[at:])
		before, announced := cutAnnouncement(out)
		if n == 0 || n < minEncoded && !announced {
			n = max(n, 1)
			out = append(out, text[at:at+n]...)
			at += n
			continue
		}
		picture, ok := decodePicture(text[at : at+n])
		switch {
		case ok:
			out, pictures = append(before, picturePlaceholder...), append(pictures, picture)
		case announced:
			out = append(before, dataPlaceholder...)
		default:
			out = append(out, text[at:at+n]...)
		}
		at += n
	}
	words = string(out)
	if strings.TrimSpace(words) == picturePlaceholder {
		return "", pictures
	}
	return words, pictures
}

// cutAnnouncement removes the beginning of a data URL from the end of a text, such as
// "data:image/jpeg;base64,". It reports whether the text ended with ";base64,". It removes nothing if the 100
// bytes before the end hold no "data:".
func cutAnnouncement(text []byte) (before []byte, announced bool) {
	const ending, maxTypeLength = ";base64,", 100
	if !strings.HasSuffix(string(text[max(0, len(text)-len(ending)):]), ending) {
		return text, false
	}
	from := max(0, len(text)-maxTypeLength)
	if i := strings.LastIndex(string(text[from:]), "data:"); i >= 0 {
		return text[:from+i], true
	}
	return text, true
}

// encodedRun returns how many bytes at the start of a text may be base64: in the standard or the URL
// alphabet, possibly with slashes escaped as in JSON, or broken into lines as in mail.
func encodedRun(text string) int {
	const minLine = 60
	line := 0
	for at := 0; at < len(text); {
		switch c := text[at]; {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/', c == '-', c == '_', c == '=' && at > 0:
			at, line = at+1, line+1
		case c == '\\' && strings.HasPrefix(text[at:], `\/`):
			at, line = at+2, line+1
		case (c == '\r' || c == '\n') && line >= minLine:
			at++
			if !strings.HasPrefix(text[at:], "\n") {
				line = 0
			}
		default:
			return at
		}
	}
	return len(text)
}

// decodePicture decodes a picture in base64, even if its end is missing. It returns false for other data.
func decodePicture(encoded string) (device.Picture, bool) {
	encoded = strings.NewReplacer(`\/`, "/", "\r", "", "\n", "", "-", "+", "_", "/", "=", "").Replace(encoded)
	if len(encoded)%4 == 1 {
		encoded = encoded[:len(encoded)-1]
	}
	data, err := base64.RawStdEncoding.DecodeString(encoded)
	kind := http.DetectContentType(data)
	return device.Picture{Type: kind, Data: data}, err == nil && strings.HasPrefix(kind, "image/")
}
