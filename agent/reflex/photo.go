package reflex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"perch/agent"
	"perch/agent/thinker"
)

// What goes to a camera and what comes back, in bytes.
const (
	mostQuestion = 300
	mostSeen     = 600
)

// photo has the robot take a picture, and says what comes back. Somebody else
// has looked at it by then: the robot takes the picture to whoever can.
func photo(ctx context.Context, d *deed, t bodyTool) error {
	question := d.turn.Text
	if len(question) > mostQuestion {
		question = strings.ToValidUTF8(question[:mostQuestion], "")
	}
	result, err := showing{d.turn.Body, d}.Call(ctx, t.Name, map[string]any{t.argument[0]: question})
	if err != nil {
		return err
	}
	said, failed := answered(result.Text)
	if said == "" && !failed && len(result.Pictures) > 0 {
		d.intent.answer = d.brain.book.Phrase("blind")
		return nil
	}
	face, words := agent.SplitEmotion(said)
	if d.body = firstSentences(words); d.body == "" {
		return errors.New("nothing came back of the picture")
	}
	if failed || strings.HasPrefix(said, face.Emoji) {
		d.intent.answer = face.Emoji + " {body}" // it brings a face of its own, or is nothing to be happy about
	}
	return nil
}

// answered is what a camera's answer says, in words: the vision door's JSON of
// response, others' of description, or plain text. It has failed where it says
// so itself: then the words tell why.
func answered(text string) (words string, failed bool) {
	var object struct {
		Success               *bool
		Response, Description string
	}
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") {
		return text, false
	}
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return "", true
	}
	return strings.TrimSpace(cmp.Or(object.Response, object.Description)), object.Success != nil && !*object.Success
}

// firstSentences is as much of a text as anybody wants to listen to.
func firstSentences(text string) string {
	var said string
	for _, s := range thinker.Sentences(text) {
		if said != "" && len(said)+1+len(s) > mostSeen {
			break
		}
		said = strings.TrimSpace(said + " " + s)
	}
	return said
}
