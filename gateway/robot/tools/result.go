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

// result parses the result of a call. The firmware reports failures as errors of the request, and
// packs an image as JSON in a string. Other clients write pictures into the text.
func result(name string, r xiaozhi.Response) (device.Result, error) {
	if r.Error != nil {
		return device.Result{}, Failed(ErrToolFailed, "%s: %s", name, r.Error)
	}
	var body struct {
		Content []struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			Image    string `json:"image"`    // as the firmware sends it
			Data     []byte `json:"data"`     // as MCP has it
			MIMEType string `json:"mimeType"` // "
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
	found.Text, found.Pictures = bounded(analysis(text)), append(found.Pictures, pictures...)
	return found, nil
}

// analysis returns the description of a picture from the answer of a page, which holds more.
func analysis(text string) string {
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

// bounded cuts an answer to limit.Result bytes, and says so in it.
func bounded(text string) string {
	if len(text) <= limit.Result {
		return text
	}
	cut := fmt.Sprintf(" (cut off, of %d bytes)", len(text))
	return plain.Clip(text, limit.Result-len(cut)) + cut
}

// Placeholders in a text for what was removed from it.
const (
	aPicture = "(a picture)"
	someData = "(data)"
)

// leastPicture is how many letters in a row may be base64; no word is that long.
const leastPicture = 200

// withoutPictures removes base64 from a text, and returns the pictures in it.
func withoutPictures(text string) (words string, pictures []device.Picture) {
	var out []byte
	for at := 0; at < len(text); {
		n := encodedRun(text[at:])
		before, announced := cutAnnouncement(out)
		if n == 0 || n < leastPicture && !announced {
			n = max(n, 1)
			out = append(out, text[at:at+n]...)
			at += n
			continue
		}
		picture, ok := decodePicture(text[at : at+n])
		switch {
		case ok:
			out, pictures = append(before, aPicture...), append(pictures, picture)
		case announced:
			out = append(before, someData...)
		default:
			out = append(out, text[at:at+n]...)
		}
		at += n
	}
	words = string(out)
	if strings.TrimSpace(words) == aPicture {
		return "", pictures
	}
	return words, pictures
}

// cutAnnouncement takes off the end of a text what announces base64 in an
// address that holds data, "data:image/jpeg;base64,".
func cutAnnouncement(text []byte) (before []byte, announced bool) {
	const ending, mostType = ";base64,", 100
	if !strings.HasSuffix(string(text[max(0, len(text)-len(ending)):]), ending) {
		return text, false
	}
	from := max(0, len(text)-mostType)
	if i := strings.LastIndex(string(text[from:]), "data:"); i >= 0 {
		return text[:from+i], true
	}
	return text, true
}

// encodedRun returns how many bytes at the start of a text may be base64, in either alphabet, with slashes as JSON may escape them and in lines as mail has it.
func encodedRun(text string) int {
	const leastLine = 60
	line := 0
	for at := 0; at < len(text); {
		switch c := text[at]; {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/', c == '-', c == '_', c == '=' && at > 0:
			at, line = at+1, line+1
		case c == '\\' && strings.HasPrefix(text[at:], `\/`):
			at, line = at+2, line+1
		case (c == '\r' || c == '\n') && line >= leastLine:
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

// decodePicture decodes a picture in base64, even if it is cut off.
func decodePicture(encoded string) (device.Picture, bool) {
	encoded = strings.NewReplacer(`\/`, "/", "\r", "", "\n", "", "-", "+", "_", "/", "=", "").Replace(encoded)
	if len(encoded)%4 == 1 {
		encoded = encoded[:len(encoded)-1]
	}
	data, err := base64.RawStdEncoding.DecodeString(encoded)
	kind := http.DetectContentType(data)
	return device.Picture{Type: kind, Data: data}, err == nil && strings.HasPrefix(kind, "image/")
}
