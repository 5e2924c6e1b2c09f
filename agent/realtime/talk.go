package realtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/remote"
	"perch/socket"
	"perch/voice"
)

// talk implements thinker.Speaking: one turn with its connection.
type talk struct {
	engine *Engine
	turn   agent.Turn

	conn    *socket.Conn     // nil before open
	events  chan serverEvent // from relay
	lost    error            // why events was closed; set before that
	over    chan struct{}    // closed by Close
	reading sync.WaitGroup

	dialect       dialect
	toServer      *voice.Resampler // from the robot's microphone
	toRobot       *voice.Resampler
	outputRate    int             // the rate that toRobot converts from, in Hz
	sent          int             // number of the prompt's messages that the server has
	current       string          // ID of the response under way, or ""
	answering     bool            // something of an answer has come
	past          map[string]bool // IDs of responses that have ended
	untranscribed bool            // the transcript of the speech has not come yet
	impatient     bool            // the answer waits no longer for the transcript
}

// maxHeld is how many pieces of an answer are held for a transcript: some seconds of sound.
const maxHeld = 64

// Times of a turn.
const (
	// lateTranscript is how long a turn waits for the transcript after its answer.
	lateTranscript = 2 * time.Second
	// transcriptWithin is how long an answer that has begun waits for the transcript of the speech that it answers.
	// Screens show the words of the person first, and an utterance without words gets no answer.
	transcriptWithin = 700 * time.Millisecond
	// usageWithin is how long a turn waits for the tokens of an answer that was interrupted.
	usageWithin = 500 * time.Millisecond
	// trailing is the silence that is sent after the speech if the server decides when the speech has ended.
	trailing = time.Second
)

// minSpeech is the least sound that is sent, in samples: OpenAI's API refuses less than 100 ms.
const minSpeech = voice.MicRate / 5

// Name implements thinker.Model.
func (t *talk) Name() string { return t.engine.Name() }

// open opens the connection, and waits for the server's greeting.
func (t *talk) open(ctx context.Context) error {
	conn, err := t.engine.dial(ctx)
	if err != nil {
		return err
	}
	t.conn, t.events, t.over, t.past = conn, make(chan serverEvent), make(chan struct{}), map[string]bool{}
	arrived := make(chan received)
	t.reading.Go(func() { t.receive(arrived) })
	t.reading.Go(func() { relay(arrived, t.events, t.over) })
	greeting := t.dialect.greeting()
	if greeting == "" {
		return nil
	}
	e, err := t.await(ctx, greeting)
	if err == nil {
		t.dialect.greeted(e)
	}
	return err
}

// receive passes on the server's events until the connection ends.
func (t *talk) receive(arrived chan<- received) {
	defer close(arrived)
	for {
		_, data, err := t.conn.Receive()
		if err != nil {
			if t.lost = err; t.conn.CloseReason() != "" {
				t.lost = closed(t.conn.CloseReason())
			}
			return
		}
		events := t.dialect.decode(data)
		if events == nil {
			t.lost = errGarbage
			return
		}
		for _, e := range events {
			select {
			case arrived <- received{e, eventSize + len(data)/len(events)}:
			case <-t.over:
				return
			}
		}
	}
}

// Close implements thinker.Speaking.
func (t *talk) Close() error {
	if t.conn != nil {
		close(t.over)
		t.conn.Close(socket.Normal, "")
		t.reading.Wait()
	}
	return nil
}

// errLate is the error of next if no event has come in time.
var errLate = errors.New("no event in time")

// next returns the next event. It returns errLate if no event has come by the time until.
func (t *talk) next(ctx context.Context, until time.Time) (serverEvent, error) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case e, open := <-t.events:
		if !open {
			return e, t.explain(t.lost)
		}
		return e, t.failure(e)
	case <-timer.C:
		return serverEvent{}, errLate
	case <-t.engine.context.Done():
		return serverEvent{}, t.engine.server.Faultf("%s is no longer used: its settings were changed", t.engine.server.Name())
	case <-ctx.Done():
		return serverEvent{}, ctx.Err()
	}
}

// await returns the next event of a type, and drops all before it.
func (t *talk) await(ctx context.Context, kind string) (serverEvent, error) {
	until := time.Now().Add(t.engine.o.FirstWithin)
	for {
		e, err := t.next(ctx, until)
		switch {
		case errors.Is(err, errLate):
			return e, t.engine.server.Faultf("%s has sent no %s within %s; is it a server of the dialect %s?", t.engine.server.Name(), kind, t.engine.o.FirstWithin,
				cmp.Or(t.engine.o.Dialect, DialectOpenAI))
		case err != nil:
			return e, err
		case e.Type != kind:
		case e.Session == nil:
			return e, t.explain(errGarbage)
		default:
			return e, nil
		}
	}
}

// closed is the error of a connection that the server has closed with a reason.
type closed string

// Error returns the reason.
func (c closed) Error() string { return string(c) }

// explain returns the error for a broken connection.
func (t *talk) explain(err error) error {
	if reason, is := errors.AsType[closed](err); is {
		return t.refused(failure{Message: string(reason)})
	}
	if errors.Is(err, errGarbage) || errors.Is(err, socket.ErrTooBig) {
		return t.engine.server.Faultf("%s does not follow the protocol (%s); check url and dialect", t.engine.server.Name(), err)
	}
	return t.engine.server.Unreachable(err, t.answering || t.current != "")
}

// failure returns the error for an event of type error, or nil for any other event, and if the error is only that
// a response had ended before it was cancelled.
func (t *talk) failure(e serverEvent) error {
	if e.Type != "error" || e.Error.Code == "response_cancel_not_active" {
		return nil
	}
	return t.refused(e.Error)
}

// refused returns the error for an error object of the server.
func (t *talk) refused(f failure) error {
	code := cmp.Or(f.Code, f.Type)
	reason := strings.TrimSpace(code + " " + f.Message)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(reason), w) })
	}
	status := http.StatusBadRequest
	switch {
	case has("api_key", "api key"):
		status = http.StatusUnauthorized
	case has("quota", "rate_limit", "rate limit", "session_limit"):
		status = http.StatusTooManyRequests
	case has("server_error", "internal error"):
		status = http.StatusBadGateway
	}
	return t.engine.server.Refused(code, remote.Refusal{Status: status, Reason: reason})
}

// send sends events.
func (t *talk) send(events ...object) error {
	for _, event := range events {
		text, err := json.Marshal(event)
		if err != nil {
			return fmt.Errorf("encode an event: %w", err)
		}
		if t.conn.SendText(text) == nil {
			continue
		}
		t.conn.Drop()
		for e := range t.events { // the server may have said why
			if err := t.failure(e); err != nil {
				return err
			}
		}
		return t.explain(t.lost)
	}
	return nil
}

// Continue implements thinker.Model. The first call opens the connection, and sends the speech while it is spoken.
func (t *talk) Continue(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	if err := t.ask(ctx, p); err != nil {
		return "", cmp.Or(ctx.Err(), err)
	}
	a := answer{talk: t, out: func(p thinker.Piece) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return out(p)
	}}
	stop, err := a.read(ctx)
	if err != nil && !a.done { // also if out has failed, as it does when the person interrupts
		t.cancel(context.WithoutCancel(ctx))
	}
	return stop, cmp.Or(ctx.Err(), err)
}

// cancel ends the response under way, and counts the tokens that it has used if the server tells them soon.
func (t *talk) cancel(ctx context.Context) {
	events := t.dialect.cancel()
	if len(events) == 0 {
		return
	}
	late := time.AfterFunc(usageWithin, t.conn.Drop) // also if the server reads nothing
	defer late.Stop()
	if t.send(events...) != nil {
		return
	}
	for until := time.Now().Add(usageWithin); ; {
		e, err := t.next(ctx, until)
		if err != nil {
			return
		}
		if e.Type == "response.done" {
			t.engine.spend(t.turn.Now, e.Response.Usage.Total)
			return
		}
	}
}

// ask sends the new messages of a prompt, and asks for an answer.
func (t *talk) ask(ctx context.Context, p thinker.Prompt) error {
	if t.conn == nil {
		return t.sendFirst(ctx, p)
	}
	added := slices.DeleteFunc(slices.Clone(p.Messages[t.sent:]), func(m thinker.Message) bool {
		return m.Role == thinker.RoleAssistant // the server has the messages that it has written itself
	})
	t.sent = len(p.Messages)
	return t.send(append(t.dialect.add(added, true), t.dialect.respond()...)...)
}

// sendFirst opens the connection, sets up the session, and sends the prompt with the speech.
func (t *talk) sendFirst(ctx context.Context, p thinker.Prompt) error {
	if err := t.engine.affords(t.turn.Now); err != nil {
		return err
	}
	if err := t.setUp(ctx, p); err != nil {
		return err
	}
	t.sent = len(p.Messages)
	if t.turn.Speech == nil {
		return t.send(append(t.dialect.add(p.Messages, true), t.dialect.respond()...)...)
	}
	if err := t.send(t.dialect.add(p.Messages[:t.sent-1], false)...); err != nil { // the speech takes the place of the last one
		return err
	}
	if err := t.sendSpeech(ctx); err != nil || t.engine.o.ServerTurns {
		return err
	}
	return t.send(t.dialect.respond()...)
}

// setUp opens the connection and sets up the session.
func (t *talk) setUp(ctx context.Context, p thinker.Prompt) error {
	if err := t.open(ctx); err != nil {
		return err
	}
	if err := t.send(t.dialect.setUp(t.engine.o, t.turn, p)); err != nil {
		return err
	}
	updated, err := t.await(ctx, "session.updated")
	if err != nil {
		return err
	}
	input, output := updated.Session.rates()
	t.toServer = voice.NewResampler(voice.MicRate, input)
	t.setOutputRate(output)
	return nil
}

// setOutputRate sets the rate of the server's sound, in Hz.
func (t *talk) setOutputRate(rate int) {
	if rate != t.outputRate {
		t.outputRate, t.toRobot = rate, voice.NewResampler(rate, voice.SpeakerRate)
	}
}

// sendSpeech sends the speech while it is spoken.
func (t *talk) sendSpeech(ctx context.Context) error {
	if err := t.send(t.dialect.startSpeech()...); err != nil {
		return err
	}
	pcm := make([]int16, 2*voice.MicFrame)
	at := 0
	for {
		n, err := t.turn.Speech.Read(ctx, pcm, at)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		at += n
		if err := t.send(t.dialect.sound(t.toServer.Resample(pcm[:n]))); err != nil {
			return err
		}
	}
	t.untranscribed = true
	if left := minSpeech - at; left > 0 {
		if err := t.send(t.dialect.sound(t.toServer.Resample(make([]int16, left)))); err != nil {
			return err
		}
	}
	if t.engine.o.ServerTurns {
		silence := make([]int16, voice.MicRate*int(trailing/time.Second))
		return t.send(t.dialect.sound(t.toServer.Resample(silence)))
	}
	return t.send(t.dialect.endSpeech()...)
}
