package relay

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/event"
	"perch/gateway/avatar/feed"
	"perch/limit"
	"perch/must"
)

// lineServer receives lines over TCP, as ChatdollKit's SocketServer does.
type lineServer struct {
	t                 testing.TB
	greeting, address string
	l                 net.Listener
	serving           sync.WaitGroup
	transcript

	mu    sync.Mutex
	conns []net.Conn
}

// newLineServer returns a running server that sends greeting on each connection. ChatdollKit sends nothing.
func newLineServer(t testing.TB, greeting string) *lineServer {
	t.Helper()
	s := &lineServer{t: t, greeting: greeting, address: anywhere}
	s.again()
	t.Cleanup(s.stop)
	return s
}

// again starts the server at its address, and clears the transcript.
func (s *lineServer) again() {
	s.t.Helper()
	s.clear()
	l := listen(s.t, s.address)
	s.l, s.address = l, l.Addr().String()
	s.serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			s.serving.Go(func() {
				defer c.Close()
				if _, err := io.WriteString(c, s.greeting); err != nil {
					return
				}
				for lines := bufio.NewScanner(c); lines.Scan(); {
					s.add(lines.Text())
				}
			})
		}
	})
}

func (s *lineServer) stop() {
	_ = s.l.Close()
	s.mu.Lock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
}

func (s *lineServer) texts(t testing.TB) string {
	t.Helper()
	var all []string
	for line := range strings.Lines(s.all()) {
		var r struct{ Endpoint, Operation, Text string }
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Endpoint != "model" || !strings.Contains(line, `"Payloads":{}`) {
			t.Errorf("%s: %v", line, err)
		}
		all = append(all, r.Text)
	}
	return strings.Join(all, "|")
}

func TestChatdollKitTexts(t *testing.T) {
	rest := Scene{State: agent.Idle}
	talk := Scene{State: agent.Speaking, Face: "happy", Said: "It is [face:Angry] warm."}
	asks := Scene{State: agent.Notification, Question: "May I?"}
	for _, c := range []struct {
		what    string
		words   map[string]string
		is, was Scene
		want    string
	}{
		{"a face, and no second voice", nil, talk, rest, "[face:Joy]"},
		{"its own voice, whose text has no tags", map[string]string{"speech": "on"}, talk, rest, "[face:Joy]It is  face:Angry  warm."},
		{"the next sentence", map[string]string{"speech": "on"}, Scene{State: agent.Speaking, Face: "happy", Said: "Yes."}, talk, "[face:Joy]Yes."},
		{"nothing new", nil, talk, talk, ""},
		{"a state that has a word", map[string]string{"state.speaking": "talk", "face.happy": "Smile"}, talk, rest, "[anim:talk][face:Smile]"},
		{"tags of an owner", map[string]string{"state.speaking": "[anim:talk][pause:1]"}, talk, rest, "[anim:talk][pause:1][face:Joy]"},
		{"no tag is made of a word", map[string]string{"face.happy": "a]b"}, talk, rest, "[face:ab]"},
		{"the first", nil, rest, Scene{}, ""},
		{"a question", map[string]string{"notifications": "on"}, asks, rest, "May I?"},
	} {
		w := wordsOf(t, chatdollkitKind(), c.words)
		if got := (&chatdollkitLink{words: w}).textFor(c.is, c.was); got != c.want {
			t.Errorf("%s: %q and not %q", c.what, got, c.want)
		}
	}
}

// TestChatdollKit tests that a gesture with an empty word is not performed, and that a notification is spoken.
func TestChatdollKit(t *testing.T) {
	s := newLineServer(t, "")
	h := newConnected(t, Target{Kind: "chatdollkit", URL: "tcp://" + s.address,
		Words: map[string]string{"gesture.nod": "", "notifications": "on"}})
	h.happens(robotA, "s", turn()...)
	h.eventually("the face", func() bool { return strings.Contains(s.texts(t), "[face:Joy]") })
	h.happens(robotA, "s", event.Gesture{Name: "wave", By: event.ByModel})
	h.eventually("the gesture", func() bool { return strings.HasSuffix(s.texts(t), "\n[anim:wave]") })
	h.happens(robotA, "s", event.Notification{ID: "n", Text: "Bread is done.", Urgency: "normal"})
	h.eventually("the notification", func() bool { return strings.HasSuffix(s.texts(t), "\n[anim:wave]|[face:Joy]Bread is done.") })
	if strings.Contains(s.texts(t), "nod") || strings.Contains(s.texts(t), "warm") {
		t.Errorf("it is told %s", s.texts(t))
	}
}

// lineConn records the texts that are sent to the application.
type lineConn struct {
	net.Conn
	texts []string
	gaps  []time.Duration // time between each text and the previous text
	last  time.Time
}

func (c *lineConn) Write(line []byte) (int, error) {
	var r chatdollkitRequest
	err := json.Unmarshal(line, &r)
	c.texts, c.gaps, c.last = append(c.texts, r.Text), append(c.gaps, time.Since(c.last)), time.Now()
	return len(line), err
}

func (*lineConn) SetWriteDeadline(time.Time) error { return nil }

// broker records what ChatdollKit 0.8.16 (ModelRequestBroker and ModelController) performs of requests that
// nothing interrupts.
type broker struct{ played, spoken []string }

// perform splits a request into sentences. At the end of the first sentence the avatar begins to idle, so an
// animation of that sentence is not visible unless the sentence is spoken.
func (b *broker) perform(text string) {
	isFirst := true
	for _, sentence := range regexp.MustCompile(`[^。！？!?\n]*[。！？!?\n]*`).FindAllString(text, -1) {
		if strings.TrimSpace(sentence) == "" {
			continue
		}
		var animations, voices []string
		for _, part := range regexp.MustCompile(`\[.*?\]|[^[]+`).FindAllString(sentence, -1) {
			switch part = strings.TrimSpace(part); {
			case strings.HasPrefix(part, "[anim:"):
				animations = append(animations, part)
			case part != "" && part[0] != '[': // ChatdollKit's synthesizers do not speak an empty text
				voices = append(voices, part)
			}
		}
		if len(voices) > 0 || !isFirst {
			b.played = append(b.played, animations...)
		}
		b.spoken = append(b.spoken, voices...)
		isFirst = false
	}
}

// TestChatdollKitAnimations tests that animations are played without speech too.
func TestChatdollKitAnimations(t *testing.T) {
	for text, want := range map[string]string{
		"[anim:wave]":                         "[anim:wave] ",
		"[anim:wave][face:Joy][anim:nod]":     "[anim:wave][anim:nod] ",
		"[anim:wave] [pause:1]":               "[anim:wave] ",
		"[face:Joy]":                          " ",
		"[anim:wave][face:Joy]One. And more!": "[anim:wave] One. And more!",
	} {
		c, b := &lineConn{}, &broker{}
		must.Succeed(t, (&chatdollkitLink{conn: c}).perform(text))
		b.perform(c.texts[0])
		if got := strings.Join(b.played, "") + " " + strings.Join(b.spoken, ""); got != want {
			t.Errorf("%q is told as %q, which plays and says %q, want %q", text, c.texts[0], got, want)
		}
	}
	plain := &broker{}
	if plain.perform("[anim:wave]"); plain.played != nil {
		t.Error("an animation alone is seen, too; perform need not change it")
	}
}

// TestChatdollKitRequestsApart tests that there is a pause between two requests. Without a pause, ChatdollKit
// would discard the first request.
func TestChatdollKitRequestsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &lineConn{}
		l := &chatdollkitLink{conn: c, words: wordsOf(t, chatdollkitKind(), map[string]string{"state.thinking": "think"})}
		rest, thinks, happy := Scene{State: agent.Idle}, Scene{State: agent.Thinking}, Scene{State: agent.Speaking, Face: "happy"}
		must.Succeed(t, l.update(t.Context(), rest, Scene{}))
		must.Succeed(t, l.update(t.Context(), thinks, rest))
		must.Succeed(t, l.frame(t.Context(), feed.NewFrame(feed.KindGesture, feed.Gesture{Name: "wave"}), thinks))
		must.Succeed(t, l.update(t.Context(), happy, thinks))
		for range 50 {
			time.Sleep(chatdollkitTick)
			must.Succeed(t, l.refresh(t.Context(), happy))
		}
		want := []string{"[pause:0]\n[anim:think]", "[face:Joy]\n[anim:wave]", "[face:Joy]", "[face:Joy]"}
		if !slices.Equal(c.texts, want) {
			t.Errorf("it is told %q, want %q", c.texts, want)
		}
		for i, gap := range c.gaps[1:] {
			if gap < chatdollkitTick {
				t.Errorf("%q comes %s after the one before", c.texts[i+1], gap)
			}
		}
	})
}

// TestChatdollKitSpeaks tests that a sentence does not interrupt the previous sentence, and that animations
// are sent together with sentences.
func TestChatdollKitSpeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &lineConn{}
		l := &chatdollkitLink{conn: c, words: wordsOf(t, chatdollkitKind(), map[string]string{"speech": "on", "notifications": "on", "state.idle": "rest"})}
		wave := feed.NewFrame(feed.KindGesture, feed.Gesture{Name: "wave"})
		var scene Scene
		show := func(next Scene) {
			t.Helper()
			must.Succeed(t, l.frame(t.Context(), feed.NewFrame(feed.KindState, feed.State{State: next.State}), next))
			must.Succeed(t, l.update(t.Context(), next, scene))
			scene = next
		}
		expect := func(after time.Duration, want ...string) {
			t.Helper()
			for range after / chatdollkitTick {
				time.Sleep(chatdollkitTick)
				must.Succeed(t, l.refresh(t.Context(), scene))
			}
			if !slices.Equal(c.texts, want) {
				t.Errorf("it is told %q, want %q", c.texts, want)
			}
			c.texts = nil
		}
		show(Scene{State: agent.Thinking})
		must.Succeed(t, l.frame(t.Context(), wave, scene))
		show(Scene{State: agent.Speaking, Face: "happy", Said: "One is said."})
		expect(0, "[anim:wave][face:Joy]One is said.")
		show(Scene{State: agent.Speaking, Face: "sad", Said: "Two."})
		show(Scene{State: agent.Working, Face: "sad"})
		show(Scene{State: agent.Speaking, Face: "sad", Said: "Three."})
		expect(2 * time.Second) // the first sentence may still be spoken
		expect(time.Second, "[face:Sorrow]Two.[face:Sorrow]Three.")
		show(Scene{State: agent.Attention, Face: "sad"})
		show(Scene{State: agent.Idle})
		expect(time.Second)
		expect(3*time.Second, "[face:Neutral]\n[anim:rest]")
		must.Succeed(t, l.frame(t.Context(), wave, scene))
		expect(time.Second, "[pause:0]\n[anim:wave]")
		show(Scene{State: agent.Speaking, Said: "A long sentence that takes its time."})
		show(Scene{State: agent.Speaking, Said: "And another."})
		expect(0, "[face:Neutral]A long sentence that takes its time.")
		show(Scene{State: agent.Idle}) // the turn is cancelled
		show(Scene{State: agent.Listening})
		show(Scene{State: agent.Speaking, Said: "Yes."})
		expect(time.Minute, "[face:Neutral]Yes.")
		show(Scene{State: agent.Thinking})
		show(Scene{State: agent.Speaking, Face: "happy", Said: "One more."})
		show(Scene{State: agent.Speaking, Face: "happy", Said: "And the last."})
		show(Scene{State: agent.Attention, Face: "happy"})
		show(Scene{State: agent.Listening, Face: "happy"}) // the turn has ended, and the robot listens
		show(Scene{State: agent.Idle, Face: "happy"})      // the robot closes its channel
		expect(10*time.Second, "[face:Joy]One more.", "[face:Joy]And the last.", "[face:Neutral]\n[anim:rest]")
	})
}

// TestOtherThanChatdollKit tests the note about a program that sends text, and about a missing program.
func TestOtherThanChatdollKit(t *testing.T) {
	s := newLineServer(t, strings.Repeat("hello\n", limit.Body))
	h := newHarness(t, Target{Kind: "chatdollkit", URL: "tcp://" + s.address})
	h.eventually("it is found out", func() bool { return strings.Contains(h.note(), "is not ChatdollKit") })
	s.stop()
	h.eventually("it is gone", func() bool { return strings.Contains(h.note(), "nothing listens") })
}
