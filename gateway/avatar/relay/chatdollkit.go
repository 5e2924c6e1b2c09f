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

// chatdollkit is an application that was made with ChatdollKit and has an enabled SocketServer. It
// reads one JSON object per line over TCP, and sends no responses. Its ModelRequestBroker performs
// tags such as [face:Joy] and [anim:wave] in a text, and speaks the rest in the application's voice.
type chatdollkit struct{ *programConfig }

// chatdollkitEvery is the interval at which a face is sent again. The application drops a face after
// seven seconds.
const chatdollkitEvery = 5 * time.Second

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
	l := &chatdollkitLink{conn: conn, words: p.words, ended: make(chan error, 1)}
	go l.watch()
	return l, nil
}

// chatdollkitLink is a connection to an application.
type chatdollkitLink struct {
	nopLink
	conn  net.Conn
	words words
	ended chan error // receives the reason when the connection has ended; closed once watch has returned
}

// watch waits until the application has closed the connection.
func (l *chatdollkitLink) watch() {
	defer close(l.ended)
	n, err := io.Copy(io.Discard, io.LimitReader(l.conn, limit.Body))
	switch {
	case n == limit.Body:
		l.ended <- errors.New("the program at this address is not ChatdollKit, which sends nothing; correct url")
	case err != nil:
		l.ended <- fmt.Errorf("the program has closed the connection: %w", err)
	default:
		l.ended <- errors.New("the program has closed the connection")
	}
}

// chatdollkitRequest is the JSON of a line. ChatdollKit calls it ExternalInboundMessage.
type chatdollkitRequest struct {
	Endpoint  string
	Operation string
	Priority  int
	Text      string
	Payloads  map[string]any
}

// perform sends text with tags. It does nothing if text is empty.
func (l *chatdollkitLink) perform(text string) error {
	if text == "" {
		return nil
	}
	line := httpserver.Encode(chatdollkitRequest{Endpoint: "model", Operation: "perform", Text: text, Payloads: map[string]any{}})
	_ = l.conn.SetWriteDeadline(time.Now().Add(callTimeout))
	_, err := l.conn.Write(append(line, '\n'))
	return err
}

// tag returns a tag of a kind, such as [face:Joy]; kind is face or anim. It returns "" if word is
// empty, and word itself if that is already a tag.
func tag(kind, word string) string {
	word = strings.TrimPrefix(word, kind+":")
	if word == "" || strings.HasPrefix(word, "[") {
		return word
	}
	return "[" + kind + ":" + strings.NewReplacer("[", "", "]", "").Replace(word) + "]"
}

// spoken returns a text to speak, without the brackets that would make a tag.
func spoken(text string) string {
	return strings.TrimSpace(strings.NewReplacer("[", " ", "]", " ", "\n", " ").Replace(text))
}

// performed returns the text for a change of scene. It is a single text with all tags, because a
// second request would interrupt the first.
func (l *chatdollkitLink) performed(scene, previous Scene) (text string) {
	state, face := tag("anim", l.words.state(scene.State)), tag("face", l.words.face(scene.Expression()))
	if scene.State != previous.State {
		text += state
	}
	speaks := l.words.get("speech") != "" && scene.Said != "" && scene.Said != previous.Said
	if speaks || scene.Expression() != previous.Expression() {
		text += face
	}
	if speaks {
		text += spoken(scene.Said)
	}
	if scene.Question != previous.Question && l.words.get("notifications") != "" {
		text += spoken(scene.Question)
	}
	return text
}

func (l *chatdollkitLink) update(_ context.Context, scene, previous Scene) error {
	return l.perform(l.performed(scene, previous))
}

func (l *chatdollkitLink) frame(_ context.Context, f *feed.Frame, scene Scene) error {
	switch b := f.Body.(type) {
	case feed.Gesture:
		return l.perform(tag("anim", l.words.orName("gesture", b.Name))) // many animations have the name of a gesture
	case feed.Notice:
		if l.words.get("notifications") == "" {
			return errNotShown
		}
		if b.Question == "" { // update shows questions
			return l.perform(tag("face", l.words.face(scene.Expression())) + spoken(b.Text))
		}
	}
	return nil
}

func (l *chatdollkitLink) refreshEvery() time.Duration { return chatdollkitEvery }

// refresh sends the face again, unless the words have the application speak: the request would
// interrupt the speech.
func (l *chatdollkitLink) refresh(_ context.Context, scene Scene) error {
	if scene.Expression() == neutral || l.words.get("speech")+l.words.get("notifications") != "" {
		return nil
	}
	return l.perform(tag("face", l.words.face(scene.Expression())))
}

func (l *chatdollkitLink) disconnected() <-chan error { return l.ended }

// close closes the connection, and waits until watch has returned.
func (l *chatdollkitLink) close() {
	_ = l.conn.Close()
	for range l.ended {
	}
}
