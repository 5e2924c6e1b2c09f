package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
	"unicode"

	"perch/agent"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/limit"
)

// chatdollkit is an application that was made with ChatdollKit and has an enabled SocketServer. It
// reads one JSON object per line over TCP, and sends no responses. Its ModelRequestBroker performs
// tags such as [face:Joy] and [anim:wave] in a text, and speaks the rest in the application's voice.
type chatdollkit struct{ *programConfig }

const (
	chatdollkitEvery = 5 * time.Second // interval of sending a face again: the application drops a face after seven seconds
	// chatdollkitTick is the interval of refresh, and the minimum time between two requests. The
	// application begins to perform a request within two rendered frames; an earlier second request
	// would replace the first.
	chatdollkitTick = 250 * time.Millisecond
)

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

	queued   Scene     // scene whose texts and tags were queued last
	gestures string    // tags of gestures that were not queued yet
	waiting  string    // texts with tags that were not sent yet
	until    time.Time // when the application has probably performed the latest request; until then, another request would stop its speech
	faced    time.Time // when a face was last sent

	state    agent.Shown // latest state of the session that is shown
	finished bool        // whether the latest turn has ended without being interrupted
}

// watch waits until the application has closed the connection, or has sent limit.Body bytes, which ChatdollKit
// never does.
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
	if !speaks(text) {
		text = arrangeSilent(text)
	}
	if strings.Contains(text, "[face:") {
		l.faced = time.Now()
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

// speaks reports whether the application speaks anything of a text with tags.
func speaks(text string) bool { return letters(strings.Join(strings.Fields(text), "")) > 0 }

// arrangeSilent arranges the tags of a text without speech so that the application plays the animations.
// The application splits a text into sentences. At the end of the first sentence it begins to idle,
// which ends an animation in that sentence unless the sentence is spoken. arrangeSilent therefore puts
// animations into a second sentence. The first sentence is not spoken, and must not be empty.
func arrangeSilent(tags string) string {
	var first, animations string
	for tag := range strings.SplitAfterSeq(tags, "]") {
		if tag = strings.TrimSpace(tag); strings.HasPrefix(tag, "[anim:") {
			animations += tag
		} else {
			first += tag
		}
	}
	if animations == "" {
		return tags
	}
	return cmp.Or(first, "[pause:0]") + "\n" + animations
}

// withoutBrackets returns a text to speak, with spaces instead of the brackets that would make a tag.
func withoutBrackets(text string) string {
	return strings.TrimSpace(strings.NewReplacer("[", " ", "]", " ", "\n", " ").Replace(text))
}

// textFor returns the text for a change of scene. A single text has all tags, because a second request
// would interrupt the first.
func (l *chatdollkitLink) textFor(scene, previous Scene) (text string) {
	state, face := tag("anim", l.words.state(scene.State)), tag("face", l.words.face(scene.Expression()))
	if scene.State != previous.State {
		text += state
	}
	speaks := l.words.get("speech") != "" && scene.Said != "" && scene.Said != previous.Said
	if speaks || scene.Expression() != previous.Expression() {
		text += face
	}
	if speaks {
		text += withoutBrackets(scene.Said)
	}
	if scene.Question != previous.Question && l.words.get("notifications") != "" {
		text += withoutBrackets(scene.Question)
	}
	return text
}

// speaksSentences reports whether the application speaks the sentences of a scene.
func (l *chatdollkitLink) speaksSentences(scene Scene) bool {
	return l.words.get("speech") != "" && scene.Session != trialSession
}

// handleState drops the waiting speech when the next turn begins, or when the robot listens after a turn
// that was interrupted.
func (l *chatdollkitLink) handleState(state agent.Shown) {
	if beginsTurn(l.state, state) || state == agent.Listening && !l.finished {
		l.waiting, l.gestures, l.until = "", "", time.Time{}
	}
	if l.state = state; state != agent.Idle && state != agent.Listening {
		l.finished = state == agent.Attention || state == agent.Failed
	}
}

func (l *chatdollkitLink) update(_ context.Context, scene, _ Scene) error {
	if scene.Said == "" {
		l.queued.Said = ""
	}
	if scene.Question == "" {
		l.queued.Question = ""
	}
	return l.queue(scene, time.Now())
}

// queue queues the texts and tags of a scene that were not queued yet, and calls sendWaiting. While the
// application speaks the sentences of a busy agent, tags are queued only together with the next text.
func (l *chatdollkitLink) queue(scene Scene, now time.Time) error {
	hasText := scene.Said != "" && scene.Said != l.queued.Said && l.words.get("speech") != "" ||
		scene.Question != "" && scene.Question != l.queued.Question && l.words.get("notifications") != ""
	isIdle := l.waiting == "" && !now.Before(l.until)
	if hasText || isIdle && !(l.speaksSentences(scene) && scene.isBusy()) {
		l.waiting += l.gestures + l.textFor(scene, l.queued)
		l.gestures, l.queued = "", scene
	}
	return l.sendWaiting(scene, now)
}

// sendWaiting sends the waiting texts if the application has probably performed the previous request.
// In a trial it does not wait for the end of speech, because each step has a fixed duration.
func (l *chatdollkitLink) sendWaiting(scene Scene, now time.Time) error {
	text := l.waiting
	if text == "" || now.Before(l.until) {
		return nil
	}
	l.waiting, l.until = "", now.Add(chatdollkitTick)
	if scene.Session != trialSession && speaks(text) {
		l.until = now.Add(speakingTime(text))
	}
	return l.perform(text)
}

// speakingTime returns how long a slow voice speaks a text with tags: 10 letters per second, and a
// second until it begins.
func speakingTime(text string) time.Duration {
	return time.Second + time.Duration(letters(text))*100*time.Millisecond
}

// letters returns the number of characters of a text that are outside of its tags. Chinese, Japanese
// and Korean characters count twice.
func letters(text string) (n int) {
	isTag := false
	for _, r := range text {
		switch {
		case r == '[' || r == ']':
			isTag = r == '['
		case isTag:
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			n += 2
		default:
			n++
		}
	}
	return n
}

func (l *chatdollkitLink) frame(_ context.Context, f *feed.Frame, scene Scene) error {
	switch b := f.Body.(type) {
	case feed.State:
		if l.speaksSentences(scene) && cmp.Or(string(b.Robot), b.Session) == scene.place() {
			l.handleState(b.State)
		}
	case feed.Gesture:
		l.gestures += tag("anim", l.words.orName("gesture", b.Name)) // many animations have the name of a gesture
		return l.queue(scene, time.Now())
	case feed.Notice:
		if l.words.get("notifications") == "" {
			return errNotShown
		}
		if b.Question == "" { // update shows questions
			l.waiting += l.gestures + tag("face", l.words.face(scene.Expression())) + withoutBrackets(b.Text)
			l.gestures = ""
			return l.sendWaiting(scene, time.Now())
		}
	}
	return nil
}

func (l *chatdollkitLink) refreshEvery() time.Duration { return chatdollkitTick }

// refresh sends the waiting texts, or else the face again. If the words make the application speak, refresh
// does not send the face again, because the request would interrupt the speech.
func (l *chatdollkitLink) refresh(_ context.Context, scene Scene) error {
	now := time.Now()
	if err := l.queue(scene, now); err != nil || now.Before(l.until) || l.words.get("speech")+l.words.get("notifications") != "" {
		return err
	}
	if scene.Expression() != neutral && now.Sub(l.faced) >= chatdollkitEvery-chatdollkitTick/2 {
		l.faced = now
		l.waiting = tag("face", l.words.face(scene.Expression()))
	}
	return l.sendWaiting(scene, now)
}

func (l *chatdollkitLink) disconnected() <-chan error { return l.ended }

// close closes the connection, and waits until watch has returned.
func (l *chatdollkitLink) close() {
	_ = l.conn.Close()
	for range l.ended {
	}
}
