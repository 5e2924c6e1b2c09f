package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"sync"
)

// answerer answers turns, as Mind does.
type answerer interface {
	Answer(ctx context.Context, t Turn, out func(Reply) error) error
}

// Spoken is the spoken answer to a turn.
type Spoken struct {
	Text string  // the sentences, with a space between them
	Face Emotion // the first; zero if the answer has none
}

// AnswerText has a turn answered for a program: a chat, an assistant's pipeline,
// another agent. Such a program cannot answer questions, so each question of the
// brain is closed at once, which means no. All replies are passed to out, in order,
// until ctx ends; out may be nil. On an error, Spoken holds what was said before it.
func AnswerText(ctx context.Context, m answerer, t Turn, out func(Reply) error) (Spoken, error) {
	var said []string
	var face Emotion
	err := m.Answer(ctx, t, func(r Reply) error {
		if question, is := r.(Ask); is {
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
			said = append(said, r.Text)
		}
		if out == nil {
			return nil
		}
		return out(r)
	})
	return Spoken{strings.Join(said, " "), face}, err
}

// plainName matches conversation names that are used unchanged.
var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`) })

// ConversationOf returns a program's conversation by name. A name over 64 bytes, or
// with characters other than letters, digits and .:_- is replaced by a hash.
func ConversationOf(program, name string) string {
	if name != "" && !plainName().MatchString(name) {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:16])
	}
	return program + ":" + name
}
