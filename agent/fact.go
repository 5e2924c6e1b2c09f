package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"perch/limit"
)

// Fact is a fact to remember, in the form that the HTTP APIs and the tool remember accept.
type Fact struct {
	Text    string `json:"text"` // the fact in one line
	Fact    string `json:"fact"` // Fact, Content and Body are other names of Text; the first that is not empty is used
	Content string `json:"content"`
	Body    string `json:"body"`

	Key         string          `json:"key"`         // see Entry.Key
	Name        string          `json:"name"`        // title; "" means the text of the fact
	Description string          `json:"description"` // one line
	Type        string          `json:"type"`        // one of MemoryTypes; "" means MemoryUser
	Tags        []string        `json:"tags"`
	Important   bool            `json:"important"`
	Expires     time.Time       `json:"expires"`
	Context     json.RawMessage `json:"context"` // see Entry.Context
}

// Entry returns the entry for the fact. An error wraps ErrEntry, or ErrText if the text is empty or too long.
func (f Fact) Entry() (Entry, error) {
	body := Speakable(cmp.Or(f.Text, f.Fact, f.Content, f.Body))
	context := bytes.TrimSpace(f.Context)
	if string(context) == "null" {
		context = nil
	}
	switch {
	case body == "":
		return Entry{}, fmt.Errorf("%w: the text is empty", ErrText)
	case len(body) > limit.Line:
		return Entry{}, fmt.Errorf("%w: the text has %d bytes, and at most %d are allowed", ErrText, len(body), limit.Line)
	case len(f.Key) > limit.Name || len(f.Name) > limit.Name || len(f.Description) > limit.Line:
		return Entry{}, fmt.Errorf("%w: key and name have at most %d bytes, and description at most %d", ErrEntry, limit.Name, limit.Line)
	case len(context) > limit.Line || len(context) > 0 && context[0] != '{':
		return Entry{}, fmt.Errorf("%w: context is an object of at most %d bytes", ErrEntry, limit.Line)
	}
	return Entry{Key: strings.TrimSpace(f.Key), Name: cmp.Or(Speakable(f.Name), body), Description: Speakable(f.Description), Type: f.Type, Body: body,
		Tags: f.Tags, Important: f.Important, Expires: f.Expires, Context: context}, CheckMemoryType(f.Type)
}
