package llmvtuber

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"perch/agent"
	"perch/agent/feed"
	"perch/agent/notice"
	"perch/event"
	"perch/gateway/door"
	"perch/socket"
	"perch/store/storetest"
	"perch/voice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "key-of-the-skins"

// chats are the skins' talks with an agent that has a script.
type chats struct {
	answer func(ctx context.Context, text string, take func(agent.Reply) error) error

	mu    sync.Mutex
	asked []string // talk, character and text
}

func (c *chats) SessionOf(talk string) (string, error) {
	if talk == "robot:nobody" {
		return "", &door.Fault{Word: "unknown_robot", Sentence: "there is no robot nobody", HTTP: http.StatusNotFound}
	}
	return "vtb_" + talk, nil
}

func (c *chats) Chat(ctx context.Context, talk, character, text string, take func(agent.Reply) error) error {
	c.mu.Lock()
	c.asked = append(c.asked, fmt.Sprintf("%s %q %s", talk, character, text))
	c.mu.Unlock()
	return c.answer(ctx, text, take)
}

func (c *chats) questions() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

// says answers with replies.
func says(replies ...agent.Reply) func(context.Context, string, func(agent.Reply) error) error {
	return func(_ context.Context, _ string, take func(agent.Reply) error) error {
		for _, r := range replies {
			if err := take(r); err != nil {
				return err
			}
		}
		return nil
	}
}

// forever answers with a sentence after the other until it is interrupted.
func forever(ctx context.Context, _ string, take func(agent.Reply) error) error {
	for ctx.Err() == nil {
		if err := take(agent.Say{Text: "And another."}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// recognizer has a script.
type recognizer func(pcm []int16) (voice.Transcript, error)

func (recognizer) Name() string { return "scripted" }

func (e recognizer) Recognize(ctx context.Context, u *voice.Utterance, _ voice.Options) (voice.Transcript, error) {
	if err := u.Wait(ctx); err != nil {
		return voice.Transcript{}, err
	}
	pcm := make([]int16, voice.MicRate*20)
	n, err := u.Read(ctx, pcm, 0)
	if err != nil {
		return voice.Transcript{}, err
	}
	return e(pcm[:n])
}

// program is a synthesizer of this machine: the command takes a text last, and writes a
// WAV.
type program []string

func (p program) Name() string { return p[0] }

func (p program) Synthesize(ctx context.Context, text string, _ voice.Options, out func([]int16) error) error {
	sound, err := exec.CommandContext(ctx, p[0], append(p[1:len(p):len(p)], text)...).Output()
	if err != nil {
		return fmt.Errorf("%v (apt install espeak-ng flite): %w", p, err)
	}
	w, err := voice.NewWAVReader(strings.NewReader(string(sound)))
	if err != nil {
		return err
	}
	to := voice.NewResampler(w.Rate, voice.SpeakerRate)
	pcm := make([]int16, 4096)
	for {
		n, err := w.Read(pcm)
		if err != nil {
			return nil
		}
		if err := out(to.Resample(pcm[:n])); err != nil {
			return err
		}
	}
}

// loud speaks n samples for each sentence.
type loud int

func (loud) Name() string { return "loud" }

func (n loud) Synthesize(_ context.Context, _ string, _ voice.Options, out func([]int16) error) error {
	pcm := make([]int16, n)
	for i := range pcm {
		pcm[i] = int16(i)
	}
	return out(pcm)
}

// harness is the door, served over loopback.
type harness struct {
	bus   *event.Bus
	chats *chats
	url   string
	stop  func() // once
}

func newHarness(t testing.TB, change func(*Options)) *harness {
	t.Helper()
	h := &harness{bus: event.NewBus()}
	h.chats = &chats{answer: says(agent.Say{Text: "Yes."})}
	log := slog.New(slog.DiscardHandler)
	board := agent.NewBoard()
	shown := feed.New(feed.Options{Bus: h.bus, Board: board, Notices: notice.NewStore(&storetest.Table[notice.Notification]{}),
		Words: agent.StockWords(), Log: log})
	o := Options{Feed: shown, Chat: h.chats, Words: agent.StockWords(), Name: "Chan", Speech: voice.Options{Language: "en"},
		Loudness: &voice.Loudness{}, Log: log}
	if change != nil {
		change(&o)
	}
	d := New(o)
	engine, err := door.NewEngine(log)
	if err != nil {
		t.Fatal(err)
	}
	d.Routes(engine.Group("", door.Guard(door.InUpgrade(true, door.NewKey(secret, "skins.key", "").Check))))
	server := httptest.NewServer(engine)
	h.url = "ws" + strings.TrimPrefix(server.URL, "http") + "/client-ws"
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { board.Run(ctx, h.bus.ReadFrom(1)) })
	wg.Go(func() { shown.Run(ctx) })
	wg.Go(func() { d.Run(ctx) })
	h.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		server.Close()
		h.bus.Close()
	})
	t.Cleanup(h.stop)
	return h
}

// page is a client.
type page struct {
	t    testing.TB
	conn *socket.Conn
}

func (h *harness) dial(query string) (*socket.Conn, error) {
	return socket.Dial(context.Background(), h.url+query, socket.Options{MaxMessage: 16 << 20})
}

// open is a client that was greeted.
func (h *harness) open(t testing.TB, query string) *page {
	t.Helper()
	conn, err := h.dial("?token=" + secret + query)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Drop)
	p := &page{t, conn}
	for !strings.Contains(p.next(), `"control"`) {
	}
	return p
}

func (p *page) send(text string) {
	p.t.Helper()
	if err := p.conn.SendText([]byte(text)); err != nil {
		p.t.Fatal(err)
	}
}

// next is the next message; its sound is described.
func (p *page) next() string {
	p.t.Helper()
	isText, data, err := p.conn.Receive()
	if err != nil || !isText {
		p.t.Fatalf("no message came: text %t (%v)", isText, err)
	}
	return described(p.t, data)
}

// described is a message with its sound and volumes checked and told in a few words.
func described(t testing.TB, data []byte) string {
	t.Helper()
	var a audio
	if err := json.Unmarshal(data, &a); err != nil {
		t.Fatalf("%.200s: %v", data, err)
	}
	if a.Type != "audio" || a.Sound == nil {
		return string(data)
	}
	wav, err := base64.StdEncoding.DecodeString(*a.Sound)
	if err != nil {
		t.Fatal(err)
	}
	r, err := voice.NewWAVReader(strings.NewReader(string(wav)))
	if err != nil {
		t.Fatal(err)
	}
	samples, pcm := 0, make([]int16, 4096)
	for {
		n, err := r.Read(pcm)
		if err != nil {
			break
		}
		samples += n
	}
	of := voice.SpeakerRate / 50
	if want := (samples + of - 1) / of; r.Rate != voice.SpeakerRate || len(a.Volumes) != want {
		t.Errorf("%d volumes of %d samples at %d Hz, want %d", len(a.Volumes), samples, r.Rate, want)
	}
	most := 0.0
	for _, v := range a.Volumes {
		most = max(most, v)
		if v < 0 || v > 1 {
			t.Errorf("a volume is %g", v)
		}
	}
	if most != 1 {
		t.Errorf("the loudest volume is %g", most)
	}
	sound := "a WAV"
	a.Sound, a.Volumes = &sound, nil
	short, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(short)
}

// expect compares the messages that come next.
func (p *page) expect(want ...string) {
	p.t.Helper()
	for i, w := range want {
		if got := p.next(); got != w {
			p.t.Fatalf("message %d is\n%s, want\n%s", i, got, w)
		}
	}
}

// ended waits until the connection is over.
func (p *page) ended() {
	p.t.Helper()
	for {
		if _, _, err := p.conn.Receive(); err != nil {
			return
		}
	}
}

var errBroken = errors.New("broken")
