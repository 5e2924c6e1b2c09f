package robot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/transport"
	"perch/must"
	"perch/perception"
	"perch/store/storetest"
	"perch/voice"
)

// fakeChannel is a channel to a robot in memory. The test plays the robot. The messages to the robot are recorded with
// their times.
type fakeChannel struct {
	up      chan uplink // from the robot
	framing xiaozhi.Framing
	byMQTT  bool
	mute    bool // the robot has not sent sound yet
	closed  chan struct{}
	once    sync.Once
	text    []byte

	stuck atomic.Bool   // the robot does not read: sending hangs until the end
	takes time.Duration // how long it takes to send a text

	mu     sync.Mutex
	sent   []sent
	reason string
	ended  time.Time
}

// uplink is a message of the robot, as bytes in raw or as a value in frame.
type uplink struct {
	frame
	raw []byte
}

// sent is a message to the robot, with its time.
type sent struct {
	at      time.Time
	message xiaozhi.ToRobot // nil for audio
	audio   xiaozhi.Audio
}

func newFakeChannel() *fakeChannel {
	return &fakeChannel{up: make(chan uplink), framing: xiaozhi.Framing1, closed: make(chan struct{})}
}

func (*fakeChannel) Audible() <-chan struct{} { return nil }

func (l *fakeChannel) Receive() ([]byte, xiaozhi.Audio, bool, error) {
	select {
	case f := <-l.up:
		if f.raw != nil {
			return f.raw, xiaozhi.Audio{}, true, nil
		}
		if f.message == nil {
			audio, err := l.framing.Parse(l.framing.Append(nil, f.audio))
			return nil, audio, false, err
		}
		l.text = xiaozhi.AppendFromRobot(l.text[:0], "s", f.message)
		return l.text, xiaozhi.Audio{}, true, nil
	case <-l.closed:
		return nil, xiaozhi.Audio{}, false, io.EOF
	}
}

func (l *fakeChannel) SendText(text []byte) error {
	m, err := xiaozhi.ParseToRobot(text)
	if err != nil {
		return err
	}
	time.Sleep(l.takes)
	return l.keep(sent{message: m})
}

func (l *fakeChannel) SendAudio(a xiaozhi.Audio) error {
	a, err := l.framing.Parse(l.framing.Append(nil, a))
	if err != nil {
		return err
	}
	return l.keep(sent{audio: a})
}

func (l *fakeChannel) keep(s sent) error {
	if l.stuck.Load() { // like a socket whose other end does not read
		select {
		case <-l.closed:
		case <-time.After(10 * time.Second):
			return errors.New("the deadline passed")
		}
	}
	select {
	case <-l.closed:
		return io.EOF
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.at = time.Now()
	l.sent = append(l.sent, s)
	return nil
}

func (l *fakeChannel) Close(_ int, reason string) {
	l.once.Do(func() {
		l.mu.Lock()
		l.reason, l.ended = reason, time.Now()
		l.mu.Unlock()
		close(l.closed)
	})
}

// packets returns the times at which packets of sound were sent.
func (l *fakeChannel) packets() (all []time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sent {
		if s.message == nil {
			all = append(all, s.at)
		}
	}
	return all
}

// all returns all messages to the robot so far.
func (l *fakeChannel) all() []sent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]sent(nil), l.sent...)
}

// story describes the messages to the robot, such as "tts start, sentence It is late., 12 packets, tts stop".
func (l *fakeChannel) story() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var parts []string
	packets := 0
	flush := func() {
		if packets > 0 {
			parts = append(parts, fmt.Sprintf("%d packets", packets))
		}
		packets = 0
	}
	for _, s := range l.sent {
		if s.message == nil {
			packets++
			continue
		}
		flush()
		parts = append(parts, inWords(s.message))
	}
	flush()
	return strings.Join(parts, ", ")
}

func inWords(m xiaozhi.ToRobot) string {
	switch m := m.(type) {
	case xiaozhi.Welcome:
		return "hello"
	case xiaozhi.TTSStart:
		return "tts start"
	case xiaozhi.SentenceStart:
		return "sentence " + m.Text
	case xiaozhi.TTSStop:
		return "tts stop"
	case xiaozhi.STT:
		return "stt " + m.Text
	case xiaozhi.LLM:
		return "face " + m.Emotion
	case xiaozhi.Reboot:
		return "reboot"
	}
	return fmt.Sprintf("%T", m)
}

// forget drops the messages recorded so far.
func (l *fakeChannel) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = nil
}

// scriptedRecognizer returns the given transcripts, each once its utterance is over.
type scriptedRecognizer struct {
	mu          sync.Mutex
	transcripts []voice.Transcript
	always      voice.Transcript // returned when no transcripts remain
	err         error
	atOnce      bool // returns err without reading the utterance
	delay       time.Duration
	durations   []time.Duration                  // durations of the recognized utterances
	supposes    func(heard time.Duration) string // returns the partial text; nil for no partial texts
}

func (*scriptedRecognizer) Name() string { return "scripted" }

func (s *scriptedRecognizer) Recognize(ctx context.Context, u *voice.Utterance, _ voice.Options) (voice.Transcript, error) {
	if s.atOnce {
		return voice.Transcript{}, s.err
	}
	buf := make([]int16, 960)
	for n := 0; ; {
		read, err := u.Read(ctx, buf, n)
		if err != nil {
			return voice.Transcript{}, err
		}
		if read == 0 {
			break
		}
		n += read
		if s.supposes != nil {
			u.SetPartial(s.supposes(time.Duration(n)*time.Second/voice.MicRate), n)
		}
	}
	time.Sleep(s.delay)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.durations = append(s.durations, u.Duration())
	if s.err != nil || len(s.transcripts) == 0 {
		return s.always, s.err
	}
	t := s.transcripts[0]
	s.transcripts = s.transcripts[1:]
	return t, nil
}

// beepSynthesizer makes 100 ms of sound for each letter, in pieces of a second.
type beepSynthesizer struct {
	delay time.Duration // wait before each piece
	hurry int           // factor by which it speaks faster; 0 means 1
	err   error

	mu   sync.Mutex
	errs map[string]error // errors of texts that cannot be spoken; key: text
}

// repair removes the errors of all texts.
func (b *beepSynthesizer) repair() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errs = nil
}

func (*beepSynthesizer) Name() string { return "beeper" }

func (b *beepSynthesizer) Synthesize(ctx context.Context, text string, _ voice.Options, out func([]int16) error) error {
	b.mu.Lock()
	err := cmp.Or(b.err, b.errs[text])
	b.mu.Unlock()
	if err != nil {
		return err
	}
	left := len(text) * voice.SpeakerRate / 10 / max(1, b.hurry)
	for left > 0 {
		time.Sleep(b.delay)
		n := min(left, voice.SpeakerRate)
		pcm := make([]int16, n)
		for i := range pcm {
			pcm[i] = int16(i % 100 * 50)
		}
		if err := out(pcm); err != nil {
			return err
		}
		left -= n
	}
	return ctx.Err()
}

// soundFiles holds the lengths of sounds in seconds, by name.
type soundFiles map[string]float64

func (s soundFiles) Load(_ context.Context, name string) ([]int16, error) {
	seconds, there := s[name]
	if !there {
		return nil, fmt.Errorf("no sound %q: %w", name, fs.ErrNotExist)
	}
	pcm := make([]int16, int(seconds*voice.SpeakerRate))
	for i := range pcm {
		pcm[i] = int16(i % 100 * 50)
	}
	return pcm, nil
}

// scriptedMind is a mind that answers with a function and records the exchanges.
type scriptedMind struct {
	answer func(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error
	hear   func(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error // nil if no brain understands speech
	drafts *agent.Mind                                                                // answers in place of answer, and writes drafts; nil if no answer is drafted

	mu         sync.Mutex
	remembered []agent.Exchange
}

func (m *scriptedMind) Answer(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	return m.AnswerDrafted(ctx, nil, t, out)
}

func (m *scriptedMind) Write(d *agent.Draft) {
	if m.drafts != nil {
		m.drafts.Write(d)
	}
}

func (m *scriptedMind) AnswerDrafted(ctx context.Context, d *agent.Draft, t agent.Turn, out func(agent.Reply) error) error {
	if m.drafts != nil {
		return m.drafts.AnswerDrafted(ctx, d, t, out)
	}
	return m.answer(ctx, t, out)
}

func (m *scriptedMind) Hears(string) bool { return m.hear != nil }

func (m *scriptedMind) Hear(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	return m.hear(ctx, t, out)
}

func (m *scriptedMind) AddExchange(_ string, e agent.Exchange, _ time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remembered = append(m.remembered, e)
}

func (m *scriptedMind) DescribeImage(context.Context, agent.Look) (string, error) {
	return "", agent.ErrBlind
}

// mindSaying returns a mind that always makes the same replies.
func mindSaying(replies ...agent.Reply) *scriptedMind {
	return &scriptedMind{answer: func(_ context.Context, _ agent.Turn, out func(agent.Reply) error) error {
		for _, r := range replies {
			if err := out(r); err != nil {
				return err
			}
		}
		return nil
	}}
}

// registry is a fake that admits every robot unless refuses is set.
type registry struct {
	mu       sync.Mutex
	kept     []device.Tool
	echo     []bool      // values passed to StoreEcho
	stranger atomic.Bool // every robot except adopted is a stranger
	adopted  device.ID
	admitted device.Robot // returned by Admit, with another ID
	refuses  error        // returned by Admit
}

func (r *registry) Trusts(id device.ID) bool { return !r.stranger.Load() || id == r.adopted }

func (r *registry) Admit(id device.ID, _ device.Client, _ string) (device.Robot, error) {
	robot := r.admitted
	robot.ID = id
	return robot, r.refuses
}

func (*registry) AdmitByHand(string) (device.Robot, bool) { return device.Robot{}, false }

func (r *registry) StoreTools(_ device.ID, tools []device.Tool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = tools
}
func (r *registry) StoreEcho(_ device.ID, ours bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.echo = append(r.echo, ours)
}
func (r *registry) RecordSeen(device.ID, time.Time) {}
func (r *registry) Get(id device.ID) (device.Robot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return device.Robot{ID: id, Tools: r.kept, Bound: true, Named: r.Trusts(id)}, nil
}

// talk is a robot and a server in the synctest bubble of a test.
type talk struct {
	t           *testing.T
	channel     *fakeChannel
	server      *Server
	recognizer  *scriptedRecognizer
	synthesizer *beepSynthesizer
	mind        *scriptedMind
	robots      *registry
	bus         *event.Bus
	events      *event.Reader
	states      *agent.Board
	tables
	robot   device.Robot
	ended   chan struct{}
	phrases map[string]phrase // phrases that are synthesized before the first session; nil means that the server makes them
	micPackets
}

// tables holds the tables in which the server stores its data.
type tables struct {
	turns    *storetest.Table[TurnRecord]
	sessions *storetest.Table[SessionRecord]
	waiting  *storetest.Table[[]Command]
}

// micPackets holds Opus packets of a robot's microphone: packets of speech, and packets of silence.
type micPackets struct{ packets, silence [][]byte }

const robotID = device.ID("a0b1c2d3e4f5")

// Times and a limit of package dialogue that tests use.
const (
	settleAfter    = 2 * time.Second
	resumeWithin   = 2 * time.Second
	unsolicitedFor = 2 * time.Second
	yieldFor       = 3 * time.Second
	maxQueued      = 2 * dialogue.MaxStored
)

// testOptions returns options of a server that stores its data in memory, with a recognizer without transcripts, a
// beepSynthesizer and no log.
func testOptions(r robots, bus *event.Bus, m mind) Options {
	return Options{
		Robots: r, RecordRefusal: func(*http.Request, error) {}, Bus: bus, Senses: perception.NewIntake(bus, r, slog.New(slog.DiscardHandler)), Mind: m,
		Records:  NewRecords(&storetest.Table[SessionRecord]{}, &storetest.Table[TurnRecord]{}, 10),
		Commands: NewCommandQueue(&storetest.Table[[]Command]{}), Recognizer: &scriptedRecognizer{}, Synthesizer: &beepSynthesizer{},
		Phrases: func(_, _ string) string { return "" }, Zone: time.UTC, Idle: time.Minute, Log: slog.New(slog.DiscardHandler),
		Sounds: soundFiles{"purr": 1.5, "song": 20}, Loudness: &voice.Loudness{}, Hold: func() func() { return func() {} },
		Character: func(device.ID) Character { return Character{} }, Quiet: func(time.Time) bool { return false },
		Waits: func(string) bool { return true }, Patience: 3 * time.Minute, Ending: func(string, string, bool) voice.Ending { return voice.UnknownEnding },
	}
}

// talking runs a test in a synctest bubble, with a session whose hello was answered.
func talking(t *testing.T, mind *scriptedMind, do func(*talk), change ...func(*Options)) {
	synctest.Test(t, func(t *testing.T) {
		k := newTalk(t, mind, change...)
		k.say(xiaozhi.Hello{Version: 1, Transport: "websocket"})
		synctest.Wait()
		do(k)
		k.close()
	})
}

// close closes the server, waits for the end of the talk's session, and closes the bus.
func (k *talk) close() {
	k.server.Close()
	<-k.ended
	k.bus.Close()
}

func newTalk(t *testing.T, mind *scriptedMind, change ...func(*Options)) *talk {
	return newTalkOn(t, mind, xiaozhi.Framing1, func(*talk) {}, change...)
}

// newTalkOn is like newTalk with a framing, and calls before to change the talk before the session begins.
func newTalkOn(t *testing.T, mind *scriptedMind, f xiaozhi.Framing, before func(*talk), change ...func(*Options)) *talk {
	k := &talk{t: t, channel: newFakeChannel(), recognizer: &scriptedRecognizer{}, synthesizer: &beepSynthesizer{}, mind: mind,
		robots: &registry{}, bus: event.NewBus(), states: agent.NewBoard(),
		tables: tables{turns: &storetest.Table[TurnRecord]{}, sessions: &storetest.Table[SessionRecord]{}, waiting: &storetest.Table[[]Command]{}},
		robot:  device.Robot{ID: robotID}}
	k.channel.framing = f
	k.events = k.bus.Read()
	before(k)
	o := testOptions(k.robots, k.bus, k.mind)
	o.Records, o.Commands = NewRecords(k.sessions, k.turns, 10), NewCommandQueue(k.waiting)
	o.Recognizer, o.Synthesizer = k.recognizer, k.synthesizer
	o.stepped = func(in dialogue.Input, after dialogue.State) {
		if err := after.Check(); err != nil {
			t.Errorf("after %T: %v", in, err)
		}
	}
	for _, c := range change {
		c(&o)
	}
	k.server = NewServer(o)
	if k.phrases != nil {
		k.server.phrases.defaultVoice.phrases, k.server.phrases.defaultVoice.complete = k.phrases, true
	}
	k.packets, k.silence = spokenPackets(t)
	k.ended = k.connect(k.channel, k.robot.ID)
	return k
}

// connect runs a session of a robot on a channel in a goroutine, and closes ended after the session.
func (k *talk) connect(c transport.Transport, id device.ID) (ended chan struct{}) {
	robot, framing, ended := k.robot, k.channel.framing, make(chan struct{})
	robot.ID = id
	on := channel{Transport: c, id: newSessionID(), framing: framing}
	if framing == byMQTT {
		on = k.overMQTT(k.channel, robot)
	}
	go func() {
		defer close(ended)
		if err := k.server.serve(on, robot, device.Client{}); err != nil {
			k.t.Error(err)
		}
	}()
	return ended
}

// leave closes the channel as the robot, and waits for the end of the session.
func (k *talk) leave() {
	k.channel.Close(0, "")
	<-k.ended
}

// reconnect opens another channel as the robot.
func (k *talk) reconnect() {
	k.channel = newFakeChannel()
	k.ended = k.connect(k.channel, k.robot.ID)
}

// say sends a message as the robot.
func (k *talk) say(m xiaozhi.FromRobot) { k.put(frame{message: m}) }

func (k *talk) put(f frame) { k.send(uplink{frame: f}) }

func (k *talk) send(u uplink) {
	select {
	case k.channel.up <- u:
	case <-k.channel.closed:
	}
	synctest.Wait()
}

// speak sends speech of 1.2 s, and then enough silence for the end-pointer to find the end of the speech.
func (k *talk) speak() {
	k.someWords()
	k.quiet(900 * time.Millisecond)
}

// someWords sends speech without the silence that would end it.
func (k *talk) someWords() {
	for _, p := range k.packets {
		k.put(frame{audio: xiaozhi.Audio{Opus: p}})
		time.Sleep(voice.FrameDuration)
	}
}

// hears opens the robot's microphone and sends speech. The texts are the next transcripts of the recognizer.
func (k *talk) hears(mode xiaozhi.Mode, texts ...string) {
	k.recognizer.transcripts = understood(texts...)
	k.listen(mode)
	k.speak()
}

// touch sends the event that somebody touches the robot's head.
func (k *talk) touch() { k.say(xiaozhi.Event{Name: "head_pet_started", Data: []byte("{}")}) }

// queueText makes the robot speak a text.
func (k *talk) queueText(text string) {
	k.t.Helper()
	must.Value(k.server.Speak(k.t.Context(), robotID, text))(k.t)
}

// replies answers a question as the owner, and checks the error.
func (k *talk) replies(id string, allow bool, want error) {
	k.t.Helper()
	if err := k.server.Reply(id, allow); !errors.Is(err, want) {
		k.t.Errorf("the owner's reply to %s: %v, want %v", id, err, want)
	}
}

// notify makes the robot speak a notification.
func (k *talk) notify(id, text string, urgent bool) {
	k.t.Helper()
	must.Succeed(k.t, k.server.Announce(k.t.Context(), robotID, notice.Announcement{ID: id, Text: text, Speak: true, Urgent: urgent}))
}

// pass lets time pass, and waits until all goroutines of the bubble are blocked.
func (k *talk) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (k *talk) quiet(d time.Duration) {
	for i := range int(d / (60 * time.Millisecond)) {
		k.put(frame{audio: xiaozhi.Audio{Opus: k.silence[i%len(k.silence)]}})
		time.Sleep(60 * time.Millisecond)
	}
}

// listen sends listen start as the robot.
func (k *talk) listen(mode xiaozhi.Mode) {
	k.say(xiaozhi.ListenStart{Mode: mode})
}

// happened returns the kinds of the events since the previous call of happened or envelopes.
func (k *talk) happened() (kinds []string) {
	for _, e := range k.envelopes() {
		kinds = append(kinds, event.Kind(e.Event))
	}
	return kinds
}

func (k *talk) envelopes() (all []event.Envelope) {
	for k.bus.Seq() > 0 {
		ctx, cancel := context.WithTimeout(k.t.Context(), time.Nanosecond)
		e, err := k.events.Next(ctx)
		cancel()
		if err != nil {
			break
		}
		k.states.HandleEvent(e)
		all = append(all, e)
	}
	return all
}

func (k *talk) shows() agent.Shown {
	k.happened()
	return k.states.Robot(robotID).At(time.Now())
}

func (k *talk) wantStory(want string) {
	k.t.Helper()
	synctest.Wait()
	if got := k.channel.story(); got != want {
		k.t.Errorf("sent\n  %s\nwant\n  %s", got, want)
	}
}
