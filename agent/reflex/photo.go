package reflex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"perch/agent"
	"perch/agent/thinker"
	"perch/plain"
)

// Bounds of a question to a camera and of its answer, in bytes.
const (
	mostQuestion = 300
	mostSeen     = 600
)

// photo makes the robot take a picture and answers with the result. The robot sends the
// picture to a server, which answers the question.
func photo(ctx context.Context, c *command, t bodyTool) error {
	question := plain.Clip(c.turn.Text, mostQuestion)
	result, err := reportingBody{c.turn.Body, c}.Call(ctx, t.Name, map[string]any{t.argument[0]: question})
	if err != nil {
		return err
	}
	said, failed := answered(result.Text)
	if said == "" && !failed && len(result.Pictures) > 0 {
		c.intent.Answer = c.book.Phrase("blind")
		return nil
	}
	face, words := agent.SplitEmotion(said)
	if c.body = firstSentences(words); c.body == "" {
		return errors.New("nothing came back of the picture")
	}
	if failed || strings.HasPrefix(said, face.Emoji) {
		c.intent.Answer = face.Emoji + " {body}" // the answer has a face, or reports a failure
	}
	return nil
}

// answered returns the text of a camera's answer: our vision server's JSON with a
// response, other JSON with a description, or plain text. If failed, the text is the
// reason.
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

// firstSentences returns the beginning of a text, as long as a person will listen.
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
