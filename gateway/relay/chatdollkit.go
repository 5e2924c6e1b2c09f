package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/feed"
	"perch/limit"
)

// chatdollkit is an application made with ChatdollKit whose SocketServer is on. It takes
// one JSON object a line by TCP, and answers nothing. Perch speaks to its
// ModelRequestBroker, which performs a text with tags: [face:Joy] and [anim:wave]. Text
// without tags is spoken by the application's own voice.
type chatdollkit struct{ *own }

const (
	// chatdollkitFace is less than the seven seconds that a face lasts there.
	chatdollkitFace = 5 * time.Second
)

func chatdollkitKind() kind {
	return kind{
		Kind: Kind{Name: "chatdollkit", Title: "ChatdollKit",
			Shows: []string{"states", "faces", "gestures", "moods", "speech", "notifications", "questions"}},
		schemes: []string{"tcp"}, port: true,
		mute:  true,
		faces: agent.VocabularyChatdollKit,
		words: map[string]string{"speech": "", "notifications": ""},
		make:  func(o *own) (program, error) { return chatdollkit{o}, nil },
	}
}

func (p chatdollkit) open(ctx context.Context, _ func(error)) (link, error) {
	u, err := url.Parse(p.URL)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return nil, unreachable(p.URL, err)
	}
	l := &chatdollkitLink{conn: conn, words: p.words, over: make(chan error, 1)}
	go l.watch()
	return l, nil
}

type chatdollkitLink struct {
	quiet
	conn  net.Conn
	words words
	over  chan error // closed once nothing is read any more
}

// watch notices that the application has gone.
func (l *chatdollkitLink) watch() {
	defer close(l.over)
	n, err := io.Copy(io.Discard, io.LimitReader(l.conn, limit.Body))
	switch {
	case n == limit.Body:
		l.over <- errors.New("what answers is no ChatdollKit, which has nothing to say; correct url")
	case err != nil:
		l.over <- fmt.Errorf("the program has closed the connection: %w", err)
	default:
		l.over <- errors.New("the program has closed the connection")
	}
}

// chatdollkitRequest is a line, as ChatdollKit's ExternalInboundMessage has it.
type chatdollkitRequest struct {
	Endpoint  string
	Operation string
	Priority  int
	Text      string
	Payloads  map[string]any
}

// perform has tags and text performed, of which there may be none.
func (l *chatdollkitLink) perform(text string) error {
	if text == "" {
		return nil
	}
	line, err := json.Marshal(chatdollkitRequest{Endpoint: "model", Operation: "perform", Text: text, Payloads: map[string]any{}})
	if err != nil {
		return err
	}
	_ = l.conn.SetWriteDeadline(time.Now().Add(tellWithin))
	_, err = l.conn.Write(append(line, '\n'))
	return err
}

// tag is a word as a tag, empty for none. A word that is tags already stays.
func tag(kind, word string) string {
	word = strings.TrimPrefix(word, kind+":")
	if word == "" || strings.HasPrefix(word, "[") {
		return word
	}
	return "[" + kind + ":" + strings.NewReplacer("[", "", "]", "").Replace(word) + "]"
}

// spoken is text for the application's voice, which no tag may be hidden in.
func spoken(text string) string {
	return strings.TrimSpace(strings.NewReplacer("[", " ", "]", " ", "\n", " ").Replace(text))
}

// performed is what a change is performed as: all of it at once, since a request ends
// the one before.
func (l *chatdollkitLink) performed(is, was Scene) (text string) {
	state, face := tag("anim", l.words.state(is.State)), tag("face", l.words.face(is.Expression()))
	if is.State != was.State {
		text += state
	}
	said := l.words.of("speech") != "" && is.Said != "" && is.Said != was.Said
	if said || is.Expression() != was.Expression() {
		text += face
	}
	if said {
		text += spoken(is.Said)
	}
	if is.Question != was.Question && l.words.of("notifications") != "" {
		text += spoken(is.Question)
	}
	return text
}

func (l *chatdollkitLink) show(_ context.Context, is, was Scene) error {
	return l.perform(l.performed(is, was))
}

func (l *chatdollkitLink) frame(_ context.Context, f *feed.Frame, is Scene) error {
	switch b := f.Body.(type) {
	case feed.Gesture:
		return l.perform(tag("anim", l.words.orName("gesture", b.Name))) // as animations are usually called
	case feed.Notice:
		if l.words.of("notifications") == "" {
			return errUntold
		}
		if b.Question == "" { // else show tells it
			return l.perform(tag("face", l.words.face(is.Expression())) + spoken(b.Text))
		}
	}
	return nil
}

func (l *chatdollkitLink) every() time.Duration { return chatdollkitFace }

// keep has the face last. It would end what the application speaks.
func (l *chatdollkitLink) keep(_ context.Context, is Scene) error {
	if is.Expression() == neutral || l.words.of("speech")+l.words.of("notifications") != "" {
		return nil
	}
	return l.perform(tag("face", l.words.face(is.Expression())))
}

func (l *chatdollkitLink) ended() <-chan error { return l.over }

// close closes the connection, and returns when nothing is read any more.
func (l *chatdollkitLink) close() {
	_ = l.conn.Close()
	for range l.over {
	}
}
