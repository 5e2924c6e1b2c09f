package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"sync"
)

// answerer answers turns; Mind implements it.
type answerer interface {
	Answer(ctx context.Context, t Turn, out func(Reply) error) error
}

// Spoken is the text of an answer.
type Spoken struct {
	Text string  // the sentences, separated by spaces
	Face Emotion // the first face; zero if the answer has none
}

// AnswerText has m answer a turn for a program, such as a chat, an assistant's pipeline or
// another agent. Programs cannot answer questions, so every question in the answer is
// closed, which means no. AnswerText passes all replies to out until ctx ends; out may be
// nil. On an error, Spoken holds the text before the error.
func AnswerText(ctx context.Context, m answerer, t Turn, out func(Reply) error) (Spoken, error) {
	var sentences []string
	var face Emotion
	err := m.Answer(ctx, t, func(r Reply) error {
		if question, ok := r.(Ask); ok {
			question.Answer(Answer{Outcome: AnswerClosed})
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		switch r := r.(type) {
		case Felt:
			if face.Name == "" {
				face = r.Emotion
			}
		case Say:
			sentences = append(sentences, r.Text)
		}
		if out == nil {
			return nil
		}
		return out(r)
	})
	return Spoken{strings.Join(sentences, " "), face}, err
}

// plainName matches the names that ConversationOf does not hash.
var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`) })

// ConversationOf returns the conversation ID for a program and the program's name of the
// conversation. A hash replaces a name that is longer than 64 bytes or has characters other
// than letters, digits and .:_-.
func ConversationOf(program, name string) string {
	if name != "" && !plainName().MatchString(name) {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:16])
	}
	return program + ":" + name
}
