package reflex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"perch/agent"
	"perch/agent/thinker"
	"perch/device"
	"perch/plain"
)

// Limits of a question about a picture and of the spoken answer, in bytes.
const (
	maxQuestion    = 300
	maxPhotoAnswer = 600
)

// takePhoto makes the robot take a picture with the person's question about the picture. The robot
// sends both to a server and returns the server's answer, which takePhoto stores in c.body. If the
// result is only a picture, takePhoto sets the intent's answer to the phrase "blind".
func takePhoto(ctx context.Context, c *command, t device.Control) error {
	question := plain.Clip(c.turn.Text, maxQuestion)
	result, err := reportingBody{c.turn.Body, c}.Call(ctx, t.Name, map[string]any{t.Arguments[0]: question})
	if err != nil {
		return err
	}
	answer, failed := parsePhotoResult(result.Text)
	if answer == "" && !failed && len(result.Pictures) > 0 {
		c.intent.Answer = c.book.Phrase("blind")
		return nil
	}
	face, text := agent.SplitEmotion(answer)
	if c.body = firstSentences(text); c.body == "" {
		return errors.New("there is no answer about the picture")
	}
	if failed || strings.HasPrefix(answer, face.Emoji) {
		c.intent.Answer = face.Emoji + " {body}" // instead of the face in the intent's answer
	}
	return nil
}

// parsePhotoResult returns the answer in the result of a photo tool. The result is JSON
// with a response (of Perch) or a description (of other servers), or plain text. If failed
// is true, the answer is the reason, or empty.
func parsePhotoResult(text string) (answer string, failed bool) {
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

// firstSentences returns the first sentences of a text, up to maxPhotoAnswer bytes, but at
// least one.
func firstSentences(text string) string {
	var first string
	for _, s := range thinker.Sentences(text) {
		if first != "" && len(first)+1+len(s) > maxPhotoAnswer {
			break
		}
		first = strings.TrimSpace(first + " " + s)
	}
	return first
}
