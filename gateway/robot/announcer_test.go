package robot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/pion/opus/pkg/oggreader"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/notify"
	"perch/gateway/robot/udp"
	"perch/must"
	"perch/voice"
)

// sleeper is an idle robot with firmware 2.5 that is connected by MQTT, in a synctest bubble.
type sleeper struct {
	t      *testing.T
	server *Server
	events *event.Reader
	bus    *event.Bus
	conn   net.Conn
	quiet  bool

	mu      sync.Mutex
	told    []xiaozhi.Notify
	others  []xiaozhi.ToRobot
	heard   []heard
	busy    bool // the robot ignores notify messages, because it plays a stream
	hangsUp time.Duration
}

// heard describes a stream that a robot has fetched.
type heard struct {
	at, until time.Time
	packets   int
	err       error
}

// sleeping runs a test with a sleeper in a synctest bubble.
func sleeping(t *testing.T, synthesizer *beepSynthesizer, do func(*sleeper)) {
	synctest.Test(t, func(t *testing.T) {
		r := &sleeper{t: t, bus: event.NewBus()}
		r.events = r.bus.Read()
		robots := &registry{admitted: device.Robot{Firmware: "2.5.0", BaseURL: "http://127.0.0.1:8003"}}
		o := testOptions(robots, r.bus, answer("Yes."))
		o.Synthesizer, o.Quiet = synthesizer, func(time.Time) bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.quiet
		}
		r.server = NewServer(o)
		ours, theirs := net.Pipe()
		r.conn = theirs
		sound := newFakeUDP()
		socket := udp.NewSocket(sound)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = socket.Run(ctx) }()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.server.connect(ours, socket)
		}()
		logIn(t, theirs, string(robotID))
		go receive(theirs, r.handle)
		synctest.Wait()
		do(r)
		_ = theirs.Close()
		<-ended
		cancel()
		r.server.Close()
		r.bus.Close()
	})
}

// handle handles a message to the robot.
func (r *sleeper) handle(m xiaozhi.ToRobot, err error) {
	if err != nil {
		r.t.Error(err)
	}
	n, is := m.(xiaozhi.Notify)
	r.mu.Lock()
	if is {
		r.told = append(r.told, n)
	} else {
		r.others = append(r.others, m)
	}
	if is && r.busy { // the previous stream may end at this moment
		r.mu.Unlock()
		time.Sleep(time.Millisecond)
		r.mu.Lock()
	}
	fetches := is && !r.busy
	r.busy = r.busy || fetches
	r.mu.Unlock()
	if fetches {
		go r.fetch(n)
	}
}

// fetch fetches a stream as the firmware does.
func (r *sleeper) fetch(n xiaozhi.Notify) {
	_, name, _ := strings.Cut(n.URL, notify.Path)
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	h := heard{at: time.Now()}
	r.mu.Lock()
	if r.hangsUp > 0 {
		time.AfterFunc(r.hangsUp, cancel)
	}
	r.mu.Unlock()
	w := httptest.NewRecorder()
	h.err = r.server.streams.Serve(w, httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx), strings.TrimSuffix(name, ".ogg"))
	h.until, h.packets = time.Now(), opusPackets(r.t, w.Body.Bytes())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard, r.busy, r.hangsUp = append(r.heard, h), false, 0
}

// opusPackets returns the number of sound packets in an Ogg Opus stream, which must be mono.
func opusPackets(t *testing.T, stream []byte) (n int) {
	t.Helper()
	o, head, err := oggreader.NewWith(bytes.NewReader(stream))
	if err != nil || head.Channels != 1 {
		t.Errorf("no stream: %v", err)
		return 0
	}
	for n = -1; ; n++ { // the first packet holds the tags
		p, _, err := o.ParseNextPacket()
		if errors.Is(err, io.EOF) || err == nil && len(p) == 0 {
			return n
		}
		if err != nil {
			t.Error(err)
			return n
		}
	}
}

func (r *sleeper) pass(d time.Duration) {
	r.sync()
	for alive := 5 * time.Minute; d > 0; d -= alive {
		time.Sleep(min(d, alive))
		if err := packets.NewControlPacket(packets.Pingreq).Write(r.conn); err != nil {
			r.t.Error(err)
		}
	}
	synctest.Wait()
	r.sync()
}

// TestHellosArePaced checks that the rate of hellos on a connection is limited, because each begins a session.
func TestHellosArePaced(t *testing.T) {
	sleeping(t, &beepSynthesizer{}, func(r *sleeper) {
		began := time.Now()
		const hellos = 20
		for range hellos {
			r.say(xiaozhi.Hello{Version: 3, Transport: "udp"})
		}
		r.pass(0)
		sessions, took := len(happenedTo[event.RobotOnline](r)), time.Since(began)
		if most := maxHellosPerSecond * (int(took/time.Second) + 1); sessions > most || took < (hellos/maxHellosPerSecond-2)*time.Second {
			t.Errorf("%d sessions in %s", sessions, took)
		}
	})
}

// strange is a connection from the given remote address.
type strange struct {
	net.Conn
	remote string
}

func (s strange) RemoteAddr() net.Addr {
	a, _ := net.ResolveTCPAddr("tcp", s.remote)
	return a
}

// TestMQTTConnectionsArePaced checks that a machine that connects too often gets no response, and that other machines
// are not affected.
func TestMQTTConnectionsArePaced(t *testing.T) {
	s := NewServer(Options{Robots: &registry{}, Log: slog.New(slog.DiscardHandler)})
	defer s.Close()
	answered := func(remote string) bool {
		ours, theirs := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.connect(strange{ours, remote}, nil)
		}()
		_, err := logInAs(theirs, "nobody") // a response that refuses the login counts as an answer
		_ = theirs.Close()
		<-ended
		return err == nil
	}
	n := 0
	for range 300 {
		if answered("192.0.2.66:1000") {
			n++
		}
	}
	if n < 200 || n > 250 {
		t.Errorf("%d of 300 are answered", n)
	}
	if !answered("192.0.2.7:1000") {
		t.Error("another machine is not answered")
	}
}

// sync locks and unlocks r.mu once, so that the test may read and change the fields of r without a data race.
func (r *sleeper) sync() {
	r.mu.Lock()
	defer r.mu.Unlock()
}

// happenedTo returns the events of a type since its previous call, and skips all other events.
func happenedTo[E event.Event](r *sleeper) (all []E) {
	for {
		ctx, cancel := context.WithTimeout(r.t.Context(), time.Nanosecond)
		e, err := r.events.Next(ctx)
		cancel()
		if err != nil {
			return all
		}
		if wanted, is := e.Event.(E); is {
			all = append(all, wanted)
		}
	}
}

func (r *sleeper) say(m xiaozhi.FromRobot) {
	r.t.Helper()
	r.sync()
	must.Succeed(r.t, publish(r.conn, xiaozhi.AppendFromRobot(nil, "", m)))
	synctest.Wait()
	r.sync()
}

func (r *sleeper) announce(id, text string, urgent bool) {
	r.t.Helper()
	r.sync()
	must.Succeed(r.t, r.server.Announce(r.t.Context(), robotID, notice.Announcement{ID: id, Text: text, Speak: true, Urgent: urgent}))
}

// states returns the published states of notifications since the previous call of happenedTo.
func (r *sleeper) states() (all []string) {
	for _, changed := range happenedTo[event.NotificationChanged](r) {
		all = append(all, changed.ID+" "+changed.State)
	}
	return all
}

// texts returns the first subtitle of each notify message to the robot.
func (r *sleeper) texts() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.told {
		all = append(all, n.Subtitles[0].Text)
	}
	return all
}

// TestTheStreamKeepsThePace checks that a stream ends when the robot has played all of it, and that the announcement is
// not repeated.
func TestTheStreamKeepsThePace(t *testing.T) {
	sleeping(t, &beepSynthesizer{}, func(r *sleeper) {
		queued, err := r.server.Speak(r.t.Context(), robotID, "Fifty letters are five seconds of sound, or about.")
		if err != nil || queued {
			t.Fatal(queued, err)
		}
		r.pass(20 * time.Second)
		if len(r.heard) != 1 || r.heard[0].err != nil {
			t.Fatalf("heard %+v", r.heard)
		}
		h := r.heard[0]
		if length := time.Duration(h.packets) * 60 * time.Millisecond; h.packets != 84 || h.until.Sub(h.at) != length {
			t.Errorf("%d packets in %s", h.packets, h.until.Sub(h.at))
		}
		if done := happenedTo[event.Command](r); len(done) != 1 || done[0].State != event.CommandDone {
			t.Errorf("%+v", done)
		}
		r.pass(30 * time.Minute)
		if len(r.told) != 1 {
			t.Errorf("told %d times", len(r.told))
		}
	})
}

// TestSubtitlesAreKept checks the times of subtitles. If the synthesizer is slow, they are estimated, and no sentence
// begins before its estimated time.
func TestSubtitlesAreKept(t *testing.T) {
	sleeping(t, &beepSynthesizer{delay: 300 * time.Millisecond}, func(r *sleeper) {
		r.announce("n", "One sentence of speech. Two. And a third one comes.", false)
		r.pass(30 * time.Second)
		if len(r.told) != 1 || len(r.told[0].Subtitles) != 3 || len(r.heard) != 1 {
			t.Fatalf("told %+v", r.told)
		}
		s := r.told[0].Subtitles
		// The sentences take 2.3 s, 0.4 s and 2.2 s.
		if s[0].Start != 0 || s[1].Start < 2300 || s[2].Start < s[1].Start+400 || s[2].Start > 6000 {
			t.Errorf("subtitles at %d, %d, %d ms", s[0].Start, s[1].Start, s[2].Start)
		}
		if least := (s[2].Start + 2200) / 60; r.heard[0].packets < least {
			t.Errorf("%d packets, of at least %d", r.heard[0].packets, least)
		}
	})
	sleeping(t, &beepSynthesizer{}, func(r *sleeper) {
		r.announce("n", "One sentence of speech. Two. And a third one comes.", false)
		r.pass(30 * time.Second)
		if s := r.told[0].Subtitles; s[1].Start != 2340 || s[2].Start != 2760 { // each sentence takes a whole number of packets
			t.Errorf("subtitles at %d and %d ms", s[1].Start, s[2].Start)
		}
	})
}

// TestCutAnnouncementIsRepeated checks that an announcement that was cut off, or not fetched at once, is repeated, and
// one that was played to its end is not.
func TestCutAnnouncementIsRepeated(t *testing.T) {
	sleeping(t, &beepSynthesizer{}, func(r *sleeper) {
		r.hangsUp = 500 * time.Millisecond
		r.announce("cut", "This is cut off by something.", false)
		r.pass(2 * time.Second)
		if got := r.states(); !slices.Equal(got, []string{"cut shown", "cut shown"}) || len(r.heard) != 1 || !errors.Is(r.heard[0].err, notify.ErrCut) {
			t.Fatalf("cut: %q, %+v", got, r.heard)
		}
		r.pass(20 * time.Second)
		if got := r.states(); !slices.Equal(got, []string{"cut spoken"}) || len(r.heard) != 2 {
			t.Errorf("told again: %q, %d streams", got, len(r.heard))
		}
		r.busy = true
		r.announce("busy", "The robot is busy.", false)
		r.pass(40 * time.Second)
		if got := r.states(); len(got) > 0 || len(r.told) < 5 {
			t.Errorf("while it is busy: %q, told %d times", got, len(r.told))
		}
		r.busy = false
		r.pass(20 * time.Second)
		if got := r.states(); !slices.Equal(got, []string{"busy shown", "busy spoken"}) {
			t.Errorf("once it is not: %q", got)
		}
	})
}

// TestUnreadableTextIsToldOnce checks that a sentence that no voice can read is shown once, for as long as reading it
// takes, and does not delay other announcements. A text of which nothing could be spoken is rejected with the reason.
func TestUnreadableTextIsToldOnce(t *testing.T) {
	unread := fmt.Errorf("%w: no voice has kana", voice.ErrText)
	sleeping(t, &beepSynthesizer{errs: map[string]error{"オーブンが熱いです。": unread}}, func(r *sleeper) {
		r.announce("n", "The oven is hot! オーブンが熱いです。", false)
		r.announce("m", "Something else.", false)
		r.pass(30 * time.Minute)
		if got := r.texts(); !slices.Equal(got, []string{"The oven is hot!", "Something else."}) || r.heard[0].err != nil {
			t.Errorf("told %q, heard %+v", got, r.heard)
		}
		if got := r.states(); !slices.Equal(got, []string{"n shown", "n spoken", "m shown", "m spoken"}) {
			t.Errorf("%q", got)
		}
		r.told = nil
		if _, err := r.server.Speak(r.t.Context(), robotID, "🔥!"); !errors.Is(err, dialogue.ErrNothingToSay) {
			t.Errorf("a text without words: %v", err)
		}
		r.announce("fire", "🔥!", false)
		for _, text := range []string{"オーブンが熱いです。", "Really."} {
			must.Value(r.server.Speak(r.t.Context(), robotID, text))(t)
		}
		r.pass(30 * time.Minute)
		if got := r.texts(); !slices.Equal(got, []string{"オーブンが熱いです。", "Really."}) {
			t.Errorf("told %q", got)
		}
		var ends []string
		for _, s := range happenedTo[event.Speech](r) {
			ends = append(ends, s.Text+" "+s.State)
			if s.State == event.SpeechFailed && s.Reason == "" {
				t.Error("nothing says why")
			}
		}
		if want := []string{"オーブンが熱いです。 speaking", "オーブンが熱いです。 failed", "Really. speaking", "Really. spoken"}; !slices.Equal(ends, want) {
			t.Errorf("%q", ends)
		}
	})
}

// TestAFailingTextHoldsUpNothing checks that an announcement for which the synthesizer fails is repeated after the
// others, and that one for which it fails in the middle is not repeated.
func TestAFailingTextHoldsUpNothing(t *testing.T) {
	broken := fmt.Errorf("%w: 500", voice.ErrUnavailable)
	engine := &beepSynthesizer{errs: map[string]error{"Bad.": broken, "Worse.": broken}}
	sleeping(t, engine, func(r *sleeper) {
		r.announce("bad", "Bad.", true)
		r.announce("worse", "Worse.", false)
		r.announce("good", "Good.", false)
		r.announce("half", "Fine. Bad.", false)
		r.pass(30 * time.Minute)
		if got := r.texts(); !slices.Equal(got, []string{"Good.", "Fine."}) {
			t.Errorf("told %q", got)
		}
		if got := r.states(); !slices.Equal(got, []string{"good shown", "good spoken", "half shown", "half spoken"}) {
			t.Errorf("%q", got)
		}
		engine.repair()
		r.sync()
		r.pass(11 * time.Minute)
		if got := r.texts()[2:]; !slices.Equal(got, []string{"Bad.", "Worse."}) {
			t.Errorf("once it works: %q", got)
		}
	})
}

// TestStopWhileItSpeaks checks that an announcement that was ended by Abort is not repeated.
func TestStopWhileItSpeaks(t *testing.T) {
	sleeping(t, &beepSynthesizer{}, func(r *sleeper) {
		r.announce("n", "This is long, and nobody wants to hear it to its end.", false)
		r.pass(2 * time.Second)
		if err := r.server.Abort(r.t.Context(), robotID); err != nil {
			t.Error(err)
		}
		r.pass(time.Second)
		if len(r.heard) != 1 || !errors.Is(r.heard[0].err, notify.ErrCut) {
			t.Errorf("heard %+v", r.heard)
		}
		r.pass(10 * time.Minute)
		if got := r.states(); !slices.Equal(got, []string{"n shown", "n spoken"}) || len(r.told) != 1 {
			t.Errorf("%q, told %d times", got, len(r.told))
		}
		if err := r.server.Abort(r.t.Context(), robotID); err != nil {
			t.Errorf("while it is quiet: %v", err)
		}
	})
}

// TestAbortBeforeTheFirstSoundSkipsTheAnnouncement checks that an announcement that is aborted while its sound is being
// synthesized is not spoken later.
func TestAbortBeforeTheFirstSoundSkipsTheAnnouncement(t *testing.T) {
	sleeping(t, &beepSynthesizer{delay: 300 * time.Millisecond}, func(r *sleeper) {
		r.announce("n", "Hello.", false)
		r.pass(100 * time.Millisecond)
		must.Succeed(t, r.server.Abort(r.t.Context(), robotID))
		r.pass(10 * time.Minute)
		if got := r.states(); !slices.Equal(got, []string{"n spoken"}) || len(r.told) != 0 {
			t.Errorf("%q, told %d times", got, len(r.told))
		}
	})
}

// TestTicketsAreGoodOnce checks that a ticket is valid once, and for two minutes.
func TestTicketsAreGoodOnce(t *testing.T) {
	sleeping(t, &beepSynthesizer{}, func(r *sleeper) {
		r.busy = true
		r.announce("n", "Hello.", false)
		r.pass(time.Second)
		name := func(n xiaozhi.Notify) string {
			_, name, _ := strings.Cut(n.URL, notify.Path)
			return strings.TrimSuffix(name, ".ogg")
		}
		first := name(r.told[0])
		r.pass(2*time.Minute + time.Minute)
		shown := slices.ContainsFunc(r.others, func(m xiaozhi.ToRobot) bool { a, is := m.(xiaozhi.Alert); return is && a.Message == "Hello." })
		if changed := happenedTo[event.NotificationChanged](r); !shown || len(changed) != 1 || changed[0].State != notice.Shown {
			t.Errorf("what it does not fetch is shown: %v, %+v", shown, changed)
		}
		fetch := func(name string) error {
			return r.server.streams.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), name)
		}
		if err := fetch(first); err != notify.ErrNoTicket {
			t.Errorf("after two minutes: %v", err)
		}
		r.say(xiaozhi.Hello{Version: 3, Transport: "udp"}) // after a session, announcements are sent to the robot again
		r.pass(2 * time.Minute)
		r.announce("m", "Hello again.", false)
		r.pass(time.Second)
		last := name(r.told[len(r.told)-1])
		if err := fetch(last); err != nil {
			t.Errorf("the newest: %v", err)
		}
		for name, try := range map[string]string{"again": last, "none": "", "another": "AAAAAAAAAAAAAAAAAAAAAAAAAA"} {
			if err := fetch(try); err != notify.ErrNoTicket {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestUrgentFirstAndQuietHours checks that urgent announcements come first, and that others wait for the end of the
// quiet hours.
func TestUrgentFirstAndQuietHours(t *testing.T) {
	sleeping(t, &beepSynthesizer{hurry: 4}, func(r *sleeper) {
		r.announce("One.", "One.", false)
		r.pass(100 * time.Millisecond)
		r.announce("Two.", "Two.", false)
		r.announce("Three.", "Three.", false)
		r.announce("fire", "Fire!", true)
		r.pass(time.Minute)
		if got, want := r.texts(), []string{"One.", "Fire!", "Two.", "Three."}; !slices.Equal(slices.Compact(got), want) {
			t.Errorf("told %q", got)
		}
		r.told, r.quiet = nil, true
		r.sync()
		if queued, err := r.server.Speak(r.t.Context(), robotID, "Whispered."); err != nil || !queued {
			t.Errorf("in the quiet hours a sentence waits: %v, %v", queued, err)
		}
		r.announce("later", "Later.", false)
		r.pass(30 * time.Minute)
		r.announce("smoke", "Smoke!", true)
		r.pass(time.Minute)
		if got := r.texts(); !slices.Equal(slices.Compact(got), []string{"Smoke!"}) {
			t.Errorf("in the quiet hours: %q", got)
		}
		r.quiet = false
		r.pass(2 * time.Minute)
		if got := r.texts(); !slices.Equal(slices.Compact(got), []string{"Smoke!", "Whispered.", "Later."}) {
			t.Errorf("after them: %q", got)
		}
	})
}

// TestIdleRobotIsAskedForStatus checks that an idle robot is asked for its status every ten minutes and gets a new token
// for its camera, and that the status of a stranger is not stored.
func TestIdleRobotIsAskedForStatus(t *testing.T) {
	sleeping(t, &beepSynthesizer{}, func(r *sleeper) {
		requests := func(of string) (n int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, m := range r.others {
				if m, is := m.(xiaozhi.ToMCP); is && bytes.Contains(m.Payload, []byte(of)) {
					n++
				}
			}
			return n
		}
		r.say(xiaozhi.FromMCP{Payload: []byte(`{"jsonrpc":"2.0","id":2,"result":{"tools":[` +
			`{"name":"self.get_device_status","description":"how it is","inputSchema":{"type":"object","properties":{}}}]}}`)})
		ctx, cancel := context.WithCancel(r.t.Context())
		var tending sync.WaitGroup
		tending.Go(func() { r.server.refreshIdle(ctx) })
		if r.pass(refreshEvery - time.Second); requests("get_device_status") != 0 || requests(`"initialize"`) != 1 {
			t.Errorf("before: %d and %d requests", requests("get_device_status"), requests(`"initialize"`))
		}
		if r.pass(2 * time.Second); requests("get_device_status") != 1 || requests(`"initialize"`) != 2 {
			t.Errorf("after ten minutes: %d and %d requests", requests("get_device_status"), requests(`"initialize"`))
		}
		r.say(xiaozhi.FromMCP{Payload: []byte(`{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text",` +
			`"text":"{\"battery\":{\"level\":42}}"}],"isError":false}}`)})
		if told := happenedTo[event.RobotStatus](r); len(told) != 1 || told[0].Battery == nil || *told[0].Battery != 42 {
			t.Errorf("told %+v", told)
		}
		if status, known := r.server.Status(robotID); !known || status.Battery == nil || *status.Battery != 42 {
			t.Errorf("kept is %+v, %v", status, known)
		}
		const stranger = device.ID("020000000099")
		r.server.options.Robots.(*registry).stranger.Store(true)
		r.server.statuses.set(stranger, event.RobotStatus{})
		if _, known := r.server.Status(stranger); known {
			t.Error("what a stranger reports of itself is kept")
		}
		cancel()
		tending.Wait()
	})
}

// TestAQuestionToASleepingRobot checks that an idle robot speaks a question, shows how to wake it, and asks the question
// again in the session that follows.
func TestAQuestionToASleepingRobot(t *testing.T) {
	sleeping(t, &beepSynthesizer{hurry: 4}, func(r *sleeper) {
		answers := make(chan agent.Answer, 1)
		go func() {
			a, err := r.server.Ask(r.t.Context(), robotID, agent.Question{Text: "May I run that?", Until: time.Now().Add(5 * time.Minute)})
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
		r.pass(30 * time.Second)
		if len(r.told) == 0 || len(r.told[0].Subtitles) != 2 || r.told[0].Subtitles[1].Text != wakeHint {
			t.Fatalf("told %+v", r.told)
		}
		r.say(xiaozhi.Hello{Version: 3, Transport: "udp"})
		r.say(xiaozhi.ListenStart{Mode: xiaozhi.Auto})
		r.pass(10 * time.Second)
		asked := slices.ContainsFunc(r.others, func(m xiaozhi.ToRobot) bool {
			s, is := m.(xiaozhi.SentenceStart)
			return is && s.Text == "May I run that?"
		})
		if !asked {
			t.Errorf("the talk begins with %+v", r.others)
		}
		r.say(xiaozhi.Event{Name: "head_pet_started", Data: []byte("{}")})
		r.pass(time.Second)
		select {
		case a := <-answers:
			if a.Outcome != agent.AnswerTouch {
				t.Errorf("answered %+v", a)
			}
		default:
			t.Error("it is not answered")
		}
	})
}

// TestAConnectionTakesTheOthersPlace checks that a second connection of a robot replaces the first without an
// event.RobotDisconnected.
func TestAConnectionTakesTheOthersPlace(t *testing.T) {
	s, events, address := mqttServer(t, answer("Yes."), &scriptedRecognizer{})
	first := dial(t, address)
	awaitEvent[event.RobotConnected](t, events)
	dial(t, address)
	awaitEvent[event.RobotConnected](t, events)
	if _, err := io.Copy(io.Discard, first.conn); err != nil {
		t.Errorf("the earlier connection does not end well: %v", err)
	}
	if s.Connected() != 1 {
		t.Errorf("%d robots are connected", s.Connected())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for {
		e, err := events.Next(ctx)
		if err != nil {
			return
		}
		if _, gone := e.Event.(event.RobotDisconnected); gone {
			t.Error("the robot is told as gone")
		}
	}
}
