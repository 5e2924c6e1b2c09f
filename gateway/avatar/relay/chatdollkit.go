package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"perch/agent"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/limit"
)

// chatdollkit is an application made with ChatdollKit whose SocketServer is on. It reads one
// JSON object per line over TCP and answers nothing. Requests go to its ModelRequestBroker,
// which performs text with tags such as [face:Joy] and [anim:wave], and speaks text without
// tags in the application's voice.
type chatdollkit struct{ *programConfig }

// chatdollkitFace is less than seven seconds, after which the application drops a face.
const chatdollkitFace = 5 * time.Second

func chatdollkitKind() kind {
	return kind{
		Kind: Kind{Name: "chatdollkit", Title: "ChatdollKit",
			Shows: []string{"states", "faces", "gestures", "moods", "speech", "notifications", "questions"}},
		schemes: []string{"tcp"}, port: true,
		mute:  true,
		faces: agent.VocabularyChatdollKit,
		words: map[string]string{"speech": "", "notifications": ""},
		make:  func(o *programConfig) (program, error) { return chatdollkit{o}, nil },
	}
}

func (p chatdollkit) open(ctx context.Context, _ func(error)) (link, error) {
	conn, err := dialHost(ctx, "tcp", p.URL)
	if err != nil {
		return nil, err
	}
	l := &chatdollkitLink{conn: conn, words: p.words, over: make(chan error, 1)}
	go l.watch()
	return l, nil
}

type chatdollkitLink struct {
	nopLink
	conn  net.Conn
	words words
	over  chan error // closed when the reader has returned
}

// watch detects that the application has closed the connection.
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

// chatdollkitRequest is one line, ChatdollKit's ExternalInboundMessage.
type chatdollkitRequest struct {
	Endpoint  string
	Operation string
	Priority  int
	Text      string
	Payloads  map[string]any
}

// perform sends text with tags; it does nothing for "".
func (l *chatdollkitLink) perform(text string) error {
	if text == "" {
		return nil
	}
	line := httpserver.Encode(chatdollkitRequest{Endpoint: "model", Operation: "perform", Text: text, Payloads: map[string]any{}})
	_ = l.conn.SetWriteDeadline(time.Now().Add(callWithin))
	_, err := l.conn.Write(append(line, '\n'))
	return err
}

// tag returns word as a tag, or "" for "". A word that is in tags already stays.
func tag(kind, word string) string {
	word = strings.TrimPrefix(word, kind+":")
	if word == "" || strings.HasPrefix(word, "[") {
		return word
	}
	return "[" + kind + ":" + strings.NewReplacer("[", "", "]", "").Replace(word) + "]"
}

// spoken returns text for the application's voice, without anything that could be a tag.
func spoken(text string) string {
	return strings.TrimSpace(strings.NewReplacer("[", " ", "]", " ", "\n", " ").Replace(text))
}

// performed returns the text for a change of scene. It is one request, since each request
// interrupts the one before.
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

func (l *chatdollkitLink) update(_ context.Context, is, was Scene) error {
	return l.perform(l.performed(is, was))
}

func (l *chatdollkitLink) frame(_ context.Context, f *feed.Frame, is Scene) error {
	switch b := f.Body.(type) {
	case feed.Gesture:
		return l.perform(tag("anim", l.words.orName("gesture", b.Name))) // animations are usually named so
	case feed.Notice:
		if l.words.of("notifications") == "" {
			return errNotShown
		}
		if b.Question == "" { // update shows questions
			return l.perform(tag("face", l.words.face(is.Expression())) + spoken(b.Text))
		}
	}
	return nil
}

func (l *chatdollkitLink) refreshEvery() time.Duration { return chatdollkitFace }

// refresh renews the face. It skips this while the application speaks, which it would
// interrupt.
func (l *chatdollkitLink) refresh(_ context.Context, is Scene) error {
	if is.Expression() == neutral || l.words.of("speech")+l.words.of("notifications") != "" {
		return nil
	}
	return l.perform(tag("face", l.words.face(is.Expression())))
}

func (l *chatdollkitLink) disconnected() <-chan error { return l.over }

// close closes the connection and waits for the reader.
func (l *chatdollkitLink) close() {
	_ = l.conn.Close()
	for range l.over {
	}
}
