package relay

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
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

// lineServer receives lines by TCP, as ChatdollKit's SocketServer does.
type lineServer struct {
	t                 testing.TB
	greeting, address string
	l                 net.Listener
	serving           sync.WaitGroup
	transcript

	mu    sync.Mutex
	conns []net.Conn
}

// newLineServer sends greeting on each connection, which ChatdollKit does not.
func newLineServer(t testing.TB, greeting string) *lineServer {
	t.Helper()
	s := &lineServer{t: t, greeting: greeting, address: anywhere}
	s.again()
	t.Cleanup(s.stop)
	return s
}

// again starts it at its address, without messages.
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
		if got := (&chatdollkitLink{words: w}).performed(c.is, c.was); got != c.want {
			t.Errorf("%s: %q and not %q", c.what, got, c.want)
		}
	}
}

// TestChatdollKit performs no gesture with an empty word, and speaks a notification.
func TestChatdollKit(t *testing.T) {
	s := newLineServer(t, "")
	h := newConnected(t, Target{Kind: "chatdollkit", URL: "tcp://" + s.address,
		Words: map[string]string{"gesture.nod": "", "notifications": "on"}})
	h.happens(robotA, "s", turn()...)
	h.eventually("the face", func() bool { return strings.Contains(s.texts(t), "[face:Joy]") })
	h.happens(robotA, "s", event.Gesture{Name: "wave", By: event.ByModel}, event.Notification{ID: "n", Text: "Bread is done.", Urgency: "normal"})
	h.eventually("the gesture", func() bool { return strings.HasSuffix(s.texts(t), "[anim:wave]|[face:Joy]Bread is done.") })
	if strings.Contains(s.texts(t), "nod") || strings.Contains(s.texts(t), "warm") {
		t.Errorf("it is told %s", s.texts(t))
	}
}

// lineConn records the texts that the application is told.
type lineConn struct {
	net.Conn
	texts []string
}

func (c *lineConn) Write(line []byte) (int, error) {
	var r chatdollkitRequest
	err := json.Unmarshal(line, &r)
	c.texts = append(c.texts, r.Text)
	return len(line), err
}

func (*lineConn) SetWriteDeadline(time.Time) error { return nil }

// TestChatdollKitSpeaks: no sentence stops the one before, and animations come with sentences.
func TestChatdollKitSpeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &lineConn{}
		l := &chatdollkitLink{conn: c, words: wordsOf(t, chatdollkitKind(), map[string]string{"speech": "on", "notifications": "on", "state.idle": "rest"})}
		wave := feed.NewFrame(feed.KindGesture, feed.Gesture{Name: "wave"})
		var scene Scene
		show := func(next Scene) {
			t.Helper()
			must.Succeed(t, l.update(t.Context(), next, scene))
			scene = next
		}
		expect := func(after time.Duration, want ...string) {
			t.Helper()
			for range after / chatdollkitSpeaks {
				time.Sleep(chatdollkitSpeaks)
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
		expect(2 * time.Second) // the first may still be spoken
		expect(time.Second, "[face:Sorrow]Two.[face:Sorrow]Three.")
		show(Scene{State: agent.Attention, Face: "sad"})
		show(Scene{State: agent.Idle})
		expect(time.Second)
		expect(3*time.Second, "[anim:rest][face:Neutral]")
		show(Scene{State: agent.Speaking, Said: "A long sentence that takes its time."})
		show(Scene{State: agent.Speaking, Said: "And another."})
		expect(0, "[face:Neutral]A long sentence that takes its time.")
		show(Scene{State: agent.Listening})
		show(Scene{State: agent.Speaking, Said: "Yes."})
		expect(time.Minute, "[face:Neutral]Yes.")
	})
}

// TestOtherThanChatdollKit sends text without end, or is absent.
func TestOtherThanChatdollKit(t *testing.T) {
	s := newLineServer(t, strings.Repeat("hello\n", limit.Body))
	h := newHarness(t, Target{Kind: "chatdollkit", URL: "tcp://" + s.address})
	h.eventually("it is found out", func() bool { return strings.Contains(h.note(), "is not ChatdollKit") })
	s.stop()
	h.eventually("it is gone", func() bool { return strings.Contains(h.note(), "nothing listens") })
}
