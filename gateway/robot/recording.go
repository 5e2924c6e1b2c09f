package robot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"perch/gateway/robot/dialogue"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"perch/agent"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/door"
	"perch/voice"
)

// A transcript is what happened in a session, a line each, with the seconds
// since its hello:
//
//	0.000 < {"type":"hello","version":1}     the robot's message
//	1.260 < speech 1200 ms                   its sound, as the end-pointer judged it
//	2.900 > {"type":"tts","state":"start"}   ours
//	2.960 > 18 packets until 3.680           our sound
//	2.880 ! recognizer "what time is it"           what an engine or the appliance gave
//	2.880 * heard {"text":"what time is it"} an event
//	2.880 = thinking                         the agent's state
//
// Sound itself is not in it. Session ids are "S", secrets are blanked, and what
// would act on a terminal or look like another line is left out.

// entry is a line of a transcript.
type entry struct {
	at   time.Duration
	mark byte
	text string
	// Of sound: how many packets, when the last one passed, and what it is.
	packets int
	last    time.Duration
	sound   string
}

func (e entry) String() string {
	if e.sound != "" {
		e.text = fmt.Sprintf("%s %d ms", e.sound, e.packets*int(voice.FrameDuration/time.Millisecond))
	} else if e.packets > 0 {
		e.text = fmt.Sprintf("%d packets until %.3f", e.packets, e.last.Seconds())
	}
	return fmt.Sprintf("%9.3f %c %s", e.at.Seconds(), e.mark, visible(e.text, ""))
}

// visible is a text without control characters, but those in but, and without
// those that change the direction of writing. Invalid UTF-8 becomes U+FFFD.
func visible(text, but string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(but, r) && r != utf8.RuneError:
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
			return -1
		}
		return r
	}, text)
}

// tap is where a session can be recorded. Unused, it costs next to nothing.
type tap struct {
	to atomic.Pointer[recorder]

	mu    sync.Mutex
	hello []byte // the robot's latest
}

// fromRobot notes a message of the robot.
func (t *tap) fromRobot(text []byte, m xiaozhi.FromRobot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := m.(xiaozhi.Hello); ok {
		t.hello = bytes.Clone(text)
	}
	if r := t.to.Load(); r != nil {
		r.add('<', r.clean(text))
	}
}

// attach begins a recording, with the hello that came before it: a replay
// needs one. It reports whether nobody else records.
func (t *tap) attach(r *recorder) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.to.CompareAndSwap(nil, r) {
		return false
	}
	if t.hello != nil {
		r.add('<', r.clean(t.hello))
	}
	return true
}

// sound notes a packet. Of the robot's, kind is what the end-pointer takes it for.
func (t *tap) sound(mark byte, kind string) {
	if r := t.to.Load(); r != nil {
		r.packet(mark, kind)
	}
}

func (t *tap) toRobot(text []byte) {
	if r := t.to.Load(); r != nil {
		r.add('>', r.clean(text))
	}
}

// given notes what an engine or the appliance has given.
func (t *tap) given(what string, v any) {
	if r := t.to.Load(); r != nil {
		r.add('!', strings.TrimSpace(what+" "+string(asJSON(v))))
	}
}

func asJSON(v any) []byte {
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return []byte("null") // of a value that came from JSON, so this cannot be
	}
	return b
}

// recorder makes a transcript. Its methods may be called from any goroutine.
type recorder struct {
	session string
	began   time.Time
	out     func(entry)
	live    bool // lines are read as they come: they are to be in the order of time

	mu     sync.Mutex
	runs   map[byte]*entry // sound that goes on
	states *agent.Follower
	shown  agent.Shown
}

func newRecorder(session string, began time.Time, out func(entry)) *recorder {
	return &recorder{session: session, began: began, out: out, runs: map[byte]*entry{}, states: agent.NewBoard().Follow(began), shown: agent.Idle}
}

func (r *recorder) add(mark byte, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(entry{at: time.Since(r.began), mark: mark, text: text})
}

// put ends the sound before a message of the same side, and adds the line.
func (r *recorder) put(e entry) {
	if r.live {
		r.endRuns()
	}
	r.endRun(e.mark)
	r.out(e)
}

// endRuns ends the sound of both sides, in the order in which it began.
func (r *recorder) endRuns() {
	up, down := r.runs['<'], r.runs['>']
	if up != nil && down != nil && down.at < up.at {
		r.endRun('>')
	}
	r.endRun('<')
	r.endRun('>')
}

func (r *recorder) endRun(mark byte) {
	if run := r.runs[mark]; run != nil {
		delete(r.runs, mark)
		r.out(*run)
	}
}

func (r *recorder) packet(mark byte, sound string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Since(r.began)
	run := r.runs[mark]
	if run != nil && run.sound != sound {
		if r.live {
			r.endRuns()
		}
		r.endRun(mark)
		run = nil
	}
	if run == nil {
		run = &entry{at: now, mark: mark, sound: sound}
		r.runs[mark] = run
	}
	run.packets++
	run.last = now
}

// event adds an event of the bus, and the state where that has changed.
func (r *recorder) event(e event.Envelope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.show(r.states.Pass(e.At))
	r.put(entry{at: e.At.Sub(r.began), mark: '*', text: event.Kind(e.Event) + " " + r.clean(asJSON(e.Event))})
	r.show(r.states.Take(e))
}

// show adds the states that are news.
func (r *recorder) show(changes []agent.Change) {
	for _, c := range changes {
		if shown := c.State.At(c.At); shown != r.shown {
			r.shown = shown
			r.put(entry{at: c.At.Sub(r.began), mark: '=', text: string(shown)})
		}
	}
}

// finish adds what is not in the transcript yet.
func (r *recorder) finish(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.show(r.states.Pass(now))
	for _, mark := range []byte("<>") {
		r.endRun(mark)
	}
}

// isSecret reports whether a field holds a secret. MAC and Client-Id together get a
// robot its token. Stages are no secret, but differ in each run.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"token", "passw", "secret", "authorization", "key", "ssid", "uuid", "mac_address", "stages"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// clean takes the secrets and the session's id out of a message. What is no
// JSON, as some errors of the firmware are, is left as it is or left out whole.
func (r *recorder) clean(text []byte) string {
	var out bytes.Buffer
	switch err := blank(&out, decoderOf(string(text)), ""); {
	case err == nil:
		return strings.ReplaceAll(out.String(), r.session, "S")
	case isSecret(string(text)):
		return fmt.Sprintf("%d bytes that are no JSON", len(text))
	}
	return strings.ReplaceAll(string(text), r.session, "S")
}

func decoderOf(text string) *json.Decoder {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d
}

// blank copies the next JSON value, in its order, without secrets. It also looks
// into texts that hold JSON, such as tools' results.
func blank(out *bytes.Buffer, d *json.Decoder, name string) error {
	if isSecret(name) {
		out.WriteString(`"…"`)
		return d.Decode(new(json.RawMessage))
	}
	t, err := d.Token()
	if err != nil {
		return err
	}
	switch v := t.(type) {
	case json.Delim:
		return blankAll(out, d, v)
	case string:
		out.Write(asText(visible(blankText(v), "\n\t")))
	default:
		out.Write(asText(t))
	}
	return nil
}

// blankAll copies what is in an array or an object.
func blankAll(out *bytes.Buffer, d *json.Decoder, open json.Delim) error {
	out.WriteRune(rune(open))
	for n := 0; d.More(); n++ {
		if n > 0 {
			out.WriteByte(',')
		}
		name := ""
		if open == '{' {
			t, err := d.Token()
			if err != nil {
				return err
			}
			name, _ = t.(string)
			out.Write(asText(visible(name, "\n\t")))
			out.WriteByte(':')
		}
		if err := blank(out, d, name); err != nil {
			return err
		}
	}
	end, err := d.Token()
	if err == nil {
		out.WriteString(fmt.Sprint(end))
	}
	return err
}

// blankText is a text without the secrets in its JSON or in an address's query.
func blankText(text string) string {
	if strings.HasPrefix(text, "{") {
		var out bytes.Buffer
		if blank(&out, decoderOf(text), "") == nil {
			return out.String()
		}
	}
	if address, _, found := strings.Cut(text, "?"); found && strings.Contains(address, "://") {
		return address + "?…"
	}
	return text
}

// asText is a value as JSON, with its < and > as they are.
func asText(v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte(`""`) // of a token of JSON, so this cannot be
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// header begins a recorded transcript with what a replay needs to know.
func (s *session) header() []string {
	return []string{
		visible(fmt.Sprintf("Recorded from %s, firmware %s.", s.robot.Board, s.robot.Firmware), ""),
		"-- setup --", fmt.Sprintf("framing: %d", s.framing), "-- transcript --",
	}
}

// mostRecording bounds the waiting lines; more end the recording, not the session.
const mostRecording = 1000

// Errors of a recording.
var (
	// ErrRecording is returned by Record for one who does not read.
	ErrRecording = errors.New("the recording was not read and has been given up")
	// ErrRecorded is returned by Record where somebody else records already.
	ErrRecorded = &door.Fault{Word: "being_recorded", Sentence: "somebody else records this robot", HTTP: http.StatusConflict}
)

// Record gives out the transcript of the robot's session, line by line, until
// that ends: the one that is open, from now on, or else the next.
func (s *Server) Record(ctx context.Context, id device.ID, out func(line string) error) error {
	recorded, err := s.nextSession(ctx, id)
	if err != nil {
		return err
	}
	lines := make(chan entry, mostRecording)
	var lost atomic.Bool
	r := newRecorder(recorded.id, time.Now(), func(e entry) {
		select {
		case lines <- e:
		default:
			lost.Store(true)
		}
	})
	r.live = true
	if !recorded.tap.attach(r) {
		return ErrRecorded
	}
	defer recorded.tap.to.CompareAndSwap(r, nil)
	for _, line := range recorded.header() {
		if err := out(line); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		s.options.Bus.Read().Each(ctx, func(e event.Envelope) {
			if e.Robot == id {
				r.event(e)
			}
		})
	})
	for {
		select {
		case e := <-lines:
			if err := out(e.String()); err != nil {
				return err
			}
			if lost.Load() {
				return ErrRecording
			}
		case <-recorded.done:
			recorded.tap.to.CompareAndSwap(r, nil)
			r.finish(time.Now())
			return drain(lines, out)
		case <-ctx.Done():
			r.finish(time.Now())
			return errors.Join(drain(lines, out), ctx.Err())
		}
	}
}

func drain(lines <-chan entry, out func(string) error) error {
	for {
		select {
		case e := <-lines:
			if err := out(e.String()); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// nextSession is the robot's session, as soon as it has one.
func (s *Server) nextSession(ctx context.Context, id device.ID) (*running, error) {
	for {
		s.mu.Lock()
		r, open := s.sessions[id]
		news := s.entered
		s.mu.Unlock()
		if open {
			return r, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.ctx.Done():
			return nil, ErrStopping
		}
	}
}

// words are a command of the appliance, for a transcript.
func words(in dialogue.Input) (what string, v any) {
	switch in := in.(type) {
	case dialogue.Announce:
		return "say", map[string]any{"text": in.Text, "notice": in.Notice, "urgent": in.Urgent}
	case dialogue.ShowAlert:
		return "show", in.Alert
	case dialogue.ShowEmotion:
		return "feel", in.Emotion
	case dialogue.InjectText:
		return "hear", in.Text
	case dialogue.Abort:
		return "abort", nil
	case dialogue.PlaySound:
		return "play", in.Sound.Name
	case dialogue.Ask:
		q := in.About
		return "ask", map[string]any{"id": q.ID, "text": q.Text, "within": q.Until.Sub(q.Asked).String()}
	case dialogue.Withdraw:
		return "withdraw", in.About.ID
	case dialogue.DecideQuestion:
		return "decide", in.Allow
	case dialogue.Reboot:
		return "reboot", nil
	case dialogue.HoldChannel:
		return "hold", nil
	case dialogue.HangUp:
		return "hang_up", in.Why
	}
	return fmt.Sprintf("%T", in), nil
}

// replyWords are a brain's replies, for a transcript.
func replyWords(r agent.Reply) (what string, v any) {
	switch r := r.(type) {
	case agent.Felt:
		return "mind felt", r.Emotion.Name
	case agent.Say:
		return "mind say", r.Text
	case agent.Cue:
		return "mind " + r.Kind, r.Value
	case agent.Ask:
		return "mind ask", r.Text
	case agent.Done:
		return "mind done", r.End
	}
	return "mind", nil // a tool's status, which is an event as well
}
