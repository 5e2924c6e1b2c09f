package realtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/agent"
	"perch/agent/realtime"
	"perch/agent/realtime/realtimetest"
	"perch/agent/thinker"
	"perch/device"
	"perch/event"
	"perch/must"
	"perch/voice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// body is a robot whose head can be moved.
type body struct{ moves []map[string]any }

func (*body) Tools() []device.Tool {
	return []device.Tool{{Name: "self.robot.set_head_angles", Description: "Turn the head.",
		Schema: device.Schema{Type: "object", Properties: map[string]device.Argument{"yaw": {Type: "integer"}}}}}
}

func (b *body) Call(_ context.Context, _ string, arguments map[string]any) (device.Result, error) {
	b.moves = append(b.moves, arguments)
	return device.Result{Text: "turned"}, nil
}

func (*body) Reboot(context.Context) error { return nil }

// brain returns a brain whose model is a fake server's.
func brain(t testing.TB, s *realtimetest.Server, change ...func(*realtime.Options)) (*thinker.Brain, *realtime.Engine) {
	t.Helper()
	o := realtime.Options{Model: "gpt-realtime", Key: realtimetest.Key, FirstWithin: 5 * time.Second}
	if s != nil {
		o.URL = s.URL + "/v1"
	}
	for _, c := range change {
		c(&o)
	}
	e, err := realtime.New(o)
	must.Succeed(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return thinker.New(thinker.Options{Model: e, Persona: agent.Persona{Text: "You are Ada."}, Publish: func(device.ID, string, event.Event) {}}), e
}

// utterance returns a finished utterance of a second of a tone.
func utterance() *voice.Utterance {
	u := voice.NewUtterance()
	pcm := make([]int16, voice.MicRate)
	for i := range pcm {
		pcm[i] = int16(8000 * math.Sin(float64(i)/10))
	}
	u.Write(pcm)
	u.Finish()
	return u
}

// talk has a brain answer an utterance, and returns its replies in words. Sounds in a row are added up. Each of see is
// called with each reply.
func talk(ctx context.Context, k *thinker.Brain, turn agent.Turn, see ...func(agent.Reply)) (replies []string, err error) {
	samples := 0
	flush := func() {
		if samples > 0 {
			replies = append(replies, fmt.Sprintf("sound %.1f s", float64(samples)/voice.SpeakerRate))
		}
		samples = 0
	}
	turn.Now, turn.Language = cmpNow(turn.Now), "en-GB"
	err = k.Think(ctx, turn, func(r agent.Reply) error {
		for _, f := range see {
			f(r)
		}
		if s, is := r.(agent.Sound); is {
			samples += len(s.PCM)
			return ctx.Err()
		}
		flush()
		switch r := r.(type) {
		case agent.Heard:
			replies = append(replies, "heard "+r.Text)
		case agent.Felt:
			if !r.Assumed {
				replies = append(replies, "felt "+r.Emotion.Name)
			}
		case agent.Say:
			replies = append(replies, map[bool]string{true: "sounding ", false: "say "}[r.Sounds]+r.Text)
		case agent.ToolStatus:
			replies = append(replies, "tool "+r.Status)
		case agent.Used:
			replies = append(replies, fmt.Sprint("used ", r.Tokens))
		case agent.Done:
			replies = append(replies, "done")
		}
		return ctx.Err()
	})
	flush()
	return replies, err
}

func cmpNow(t time.Time) time.Time {
	if t.IsZero() {
		return time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	}
	return t
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestTalkWithATool: the speech goes out with persona, history and tools, a tool is run, and the answer to its result
// is spoken.
func TestTalkWithATool(t *testing.T) {
	s := realtimetest.Serve(t, &realtimetest.Server{Transcript: "Look left.", Answer: func(r *realtimetest.Response) error {
		if r.Number == 0 {
			return r.Call("self_robot_set_head_angles", `{"yaw":-40}`)
		}
		return errors.Join(r.Speak("I look "+r.Outputs[0]+". ", time.Second), r.Speak("Nice view.", time.Second))
	}})
	k, e := brain(t, s, func(o *realtime.Options) { o.Voice, o.MaxTokens = "", 300 })
	b := &body{}
	got, err := talk(t.Context(), k, agent.Turn{Speech: utterance(), Body: b, History: []agent.Exchange{{Heard: "Hello", Said: "Hi.", Emoji: "😊"}}})
	must.Succeed(t, err)
	want(t, got, "heard Look left.", "used 100", "tool running", "tool done", "sounding I look turned.", "sound 1.0 s", "sounding Nice view.", "sound 1.0 s", "used 100", "done")
	if len(b.moves) != 1 || b.moves[0]["yaw"] != -40.0 {
		t.Errorf("the head was moved %v", b.moves)
	}
	want(t, s.Received(), "session.update", "conversation.item.create", "conversation.item.create", "input_audio_buffer.append",
		"input_audio_buffer.commit", "response.create", "conversation.item.create", "response.create")
	want(t, s.Items(), "user: Hello", "assistant: Hi.", "sound", "output: turned")
	text := string(must.Value(json.Marshal(s.Session()))(t))
	for _, part := range []string{"You are Ada.", "self_robot_set_head_angles", `"turn_detection":null`, `"language":"en"`, `"max_output_tokens":300`} {
		if !strings.Contains(text, part) {
			t.Errorf("the session lacks %s: %s", part, text)
		}
	}
	for _, part := range []string{"emoji", "REMEMBER", "speech recognition"} {
		if strings.Contains(text, part) {
			t.Errorf("the session says %s to a model that hears and speaks", part)
		}
	}
	if n := len(s.Sound()); n < 23500 || n > 24000 {
		t.Errorf("a second of speech arrived as %d samples", n)
	}
	if tokens, day := e.Tokens(); tokens != 200 || day != "2026-11-29" {
		t.Errorf("%d tokens on %s", tokens, day)
	}
}

// TestSpeechIsSentWhileItIsSpoken: the connection is open, and sound arrives, before the utterance is finished.
func TestSpeechIsSentWhileItIsSpoken(t *testing.T) {
	s := realtimetest.Serve(t, &realtimetest.Server{Transcript: "Hello.", Answer: func(r *realtimetest.Response) error { return r.Speak("Hi.", time.Second) }})
	k, _ := brain(t, s)
	u := voice.NewUtterance()
	u.Write(make([]int16, voice.MicRate))
	ended := make(chan []string)
	go func() {
		got, _ := talk(t.Context(), k, agent.Turn{Speech: u})
		ended <- got
	}()
	for deadline := time.Now().Add(10 * time.Second); !slices.Contains(s.Received(), "input_audio_buffer.append"); {
		if time.Now().After(deadline) {
			t.Fatal("no sound has arrived")
		}
		time.Sleep(time.Millisecond)
	}
	u.Finish()
	want(t, <-ended, "heard Hello.", "sounding Hi.", "sound 1.0 s", "used 100", "done")
}

// TestInterruption: a cancelled turn cancels the response, and passes none of the sound that comes later.
func TestInterruption(t *testing.T) {
	s := realtimetest.Serve(t, &realtimetest.Server{Transcript: "Hello.", Answer: func(r *realtimetest.Response) error {
		if err := r.Speak("Once upon a time.", time.Second); err != nil {
			return err
		}
		return r.Wait()
	}})
	k, _ := brain(t, s, func(o *realtime.Options) { o.DailyTokens = 40 })
	ctx, cancel := context.WithCancel(t.Context())
	after := 0
	err := k.Think(ctx, agent.Turn{Speech: utterance(), Now: cmpNow(time.Time{})}, func(r agent.Reply) error {
		if ctx.Err() != nil {
			after++
		}
		if _, is := r.(agent.Sound); is {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || after > 0 {
		t.Errorf("%v, and %d replies after the interruption", err, after)
	}
	for deadline := time.Now().Add(10 * time.Second); s.Cancelled() != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the response was not cancelled at the server")
		}
	}
	if _, err := talk(t.Context(), k, agent.Turn{Speech: utterance()}); err == nil || !strings.Contains(err.Error(), "used up daily_tokens (40)") {
		t.Errorf("the tokens of an interrupted answer are not counted: %v", err)
	}
}

// TestLongAnswer: the server can send three minutes of sound, and so its pings are answered, while the robot still plays
// the first of it.
func TestLongAnswer(t *testing.T) {
	sent := make(chan struct{})
	s := realtimetest.Serve(t, &realtimetest.Server{Transcript: "Tell me a story.", Answer: func(r *realtimetest.Response) error {
		defer close(sent)
		return r.Speak("Once upon a time.", 3*time.Minute)
	}})
	k, _ := brain(t, s)
	samples := 0
	err := k.Think(t.Context(), agent.Turn{Speech: utterance(), Now: cmpNow(time.Time{})}, func(r agent.Reply) error {
		if s, is := r.(agent.Sound); is {
			<-sent
			samples += len(s.PCM)
		}
		return nil
	})
	if err != nil || samples != 180*voice.SpeakerRate {
		t.Errorf("%v, and %d s of sound", err, samples/voice.SpeakerRate)
	}
}

// TestRepeatedEnd: a server that ends its answer twice has answered once.
func TestRepeatedEnd(t *testing.T) {
	s := realtimetest.Serve(t, &realtimetest.Server{TranscriptAfter: 4 * time.Second, Answer: func(r *realtimetest.Response) error {
		if err := r.Speak("Hi.", time.Second); err != nil {
			return err
		}
		return r.EndTwice()
	}})
	k, _ := brain(t, s)
	got, err := talk(t.Context(), k, agent.Turn{Speech: utterance()})
	must.Succeed(t, err)
	want(t, got, "sounding Hi.", "sound 1.0 s", "used 100", "heard "+agent.Unwritten, "done")
}

// asked is a model that records the tools that it is offered.
type asked struct{ tools string }

func (*asked) Name() string { return "asked" }

func (m *asked) Continue(_ context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	m.tools = fmt.Sprintf("%+v", p.Tools)
	return thinker.StopEnd, out(thinker.Piece{Text: "Yes."})
}

// TestStrangersAskNoDeepMind: a stranger's turn is not offered think_hard.
func TestStrangersAskNoDeepMind(t *testing.T) {
	_, e := brain(t, realtimetest.Serve(t, &realtimetest.Server{}))
	m := &asked{}
	k := thinker.New(thinker.Options{Model: m, Deep: []thinker.Model{e}})
	for stranger, want := range map[bool]bool{true: false, false: true} {
		_, err := talk(t.Context(), k, agent.Turn{Robot: "a0b1c2d3e4f5", Untrusted: stranger, Text: "why"})
		must.Succeed(t, err)
		if got := strings.Contains(m.tools, "think_hard"); got != want {
			t.Errorf("stranger %t: offered %t", stranger, got)
		}
	}
}

// TestStrangersSpendNothing: a robot that nobody has adopted opens no connection, whatever its text.
func TestStrangersSpendNothing(t *testing.T) {
	s := realtimetest.Serve(t, &realtimetest.Server{})
	k, _ := brain(t, s)
	if _, err := talk(t.Context(), k, agent.Turn{Robot: "a0b1c2d3e4f5", Untrusted: true, Text: "hello"}); !errors.Is(err, agent.ErrStranger) || s.Connected() != 0 {
		t.Errorf("%v, and %d connections", err, s.Connected())
	}
}

// TestAway: whatever keeps the server from answering makes another brain answer, and the error says what it is.
func TestAway(t *testing.T) {
	speak := func(r *realtimetest.Response) error { return r.Speak("Hi.", time.Second) }
	for name, c := range map[string]struct {
		server *realtimetest.Server
		change func(*realtime.Options)
		want   string
	}{
		"wrong key":    {change: func(o *realtime.Options) { o.Key = "wrong" }, want: "refuses the key"},
		"no such path": {change: func(o *realtime.Options) { o.URL += "/elsewhere" }, want: "refuses the key"},
		"over quota":   {server: &realtimetest.Server{Quota: true}, want: "no credit left"},
		"silent":       {server: &realtimetest.Server{Mute: true}, change: func(o *realtime.Options) { o.FirstWithin = 50 * time.Millisecond }, want: "session.updated within 50ms"},
		"cut":          {server: &realtimetest.Server{Answer: func(r *realtimetest.Response) error { return r.Cut() }}, want: "cut the connection"},
		"slow":         {server: &realtimetest.Server{Answer: (*realtimetest.Response).Wait}, change: func(o *realtime.Options) { o.FirstWithin = 200 * time.Millisecond }, want: "not begun to answer within 200ms"},
		"slow with server turns": {server: &realtimetest.Server{Answer: (*realtimetest.Response).Wait},
			change: func(o *realtime.Options) { o.ServerTurns, o.FirstWithin = true, 200*time.Millisecond }, want: "not begun to answer within 200ms"},
		"cancelled by itself": {server: &realtimetest.Server{Answer: func(r *realtimetest.Response) error { return r.End("cancelled", "odd") }}, want: "has cancelled its answer"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.server == nil {
				c.server = &realtimetest.Server{Answer: speak}
			}
			c.server.Transcript = "Hello."
			s := realtimetest.Serve(t, c.server)
			k, _ := brain(t, s, func(o *realtime.Options) {
				if c.change != nil {
					c.change(o)
				}
			})
			got, err := talk(t.Context(), k, agent.Turn{Speech: utterance()})
			if !errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), realtimetest.Key) {
				t.Errorf("%q, %v", got, err)
			}
			if slices.ContainsFunc(got, func(r string) bool { return strings.HasPrefix(r, "sound") }) {
				t.Errorf("it has spoken: %q", got)
			}
		})
	}
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	_, e := brain(t, nil, func(o *realtime.Options) { o.URL = web.URL + "/v1" })
	if err := e.Check(t.Context()); !errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), "check the url") {
		t.Error(err)
	}
}

// TestDailyTokens: the tokens of a day are counted, and when they are used up no connection is opened until the next day.
func TestDailyTokens(t *testing.T) {
	s := realtimetest.Serve(t, &realtimetest.Server{Transcript: "Hello.", Answer: func(r *realtimetest.Response) error { return r.Speak("Hi.", time.Second) }})
	k, _ := brain(t, s, func(o *realtime.Options) { o.DailyTokens = 150 })
	for i, c := range []struct {
		day  int
		away bool
	}{{1, false}, {1, false}, {1, true}, {2, false}} {
		_, err := talk(t.Context(), k, agent.Turn{Speech: utterance(), Now: time.Date(2026, 12, c.day, 23, 0, 0, 0, time.UTC)})
		if (err != nil) != c.away || c.away && (!errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), "daily_tokens (150)")) {
			t.Errorf("turn %d: %v", i, err)
		}
	}
	if n := s.Connected(); n != 3 {
		t.Errorf("%d connections", n)
	}
}

// TestServersDiffer: a server may speak at another rate, have the names of the beta, find the end of the speech itself,
// write the transcript late or never, and be asked by text.
func TestServersDiffer(t *testing.T) {
	speak := func(r *realtimetest.Response) error { return r.Speak("Hi.", time.Second) }
	for name, c := range map[string]struct {
		server *realtimetest.Server
		change func(*realtime.Options)
		turn   agent.Turn
		want   []string
	}{
		"another rate": {server: &realtimetest.Server{Transcript: "Hello.", Rate: 16000, Answer: speak}, turn: agent.Turn{Speech: utterance()},
			want: []string{"heard Hello.", "sounding Hi.", "sound 1.0 s", "used 100", "done"}},
		"the beta": {server: &realtimetest.Server{Transcript: "Hello.", Beta: true, Answer: speak}, turn: agent.Turn{Speech: utterance()},
			want: []string{"heard Hello.", "sounding Hi.", "sound 1.0 s", "used 100", "done"}},
		"server turns": {server: &realtimetest.Server{Transcript: "Hello.", Answer: speak}, turn: agent.Turn{Speech: utterance()},
			change: func(o *realtime.Options) { o.ServerTurns = true }, want: []string{"heard Hello.", "sounding Hi.", "sound 1.0 s", "used 100", "done"}},
		"server turns without speech": {server: &realtimetest.Server{Deaf: true}, turn: agent.Turn{Speech: utterance()},
			change: func(o *realtime.Options) { o.ServerTurns, o.FirstWithin = true, 200*time.Millisecond }, want: []string{"heard ", "done"}},
		"a transcript that holds back the answer": {server: &realtimetest.Server{Transcript: "Hello.", TranscriptAfter: 200 * time.Millisecond, Answer: speak},
			turn: agent.Turn{Speech: utterance()}, want: []string{"heard Hello.", "sounding Hi.", "sound 1.0 s", "used 100", "done"}},
		"a late transcript": {server: &realtimetest.Server{Transcript: "Hello.", TranscriptAfter: 1200 * time.Millisecond, Answer: speak},
			turn: agent.Turn{Speech: utterance()}, want: []string{"sounding Hi.", "sound 1.0 s", "used 100", "heard Hello.", "done"}},
		"no transcript": {server: &realtimetest.Server{Answer: speak}, turn: agent.Turn{Speech: utterance()},
			want: []string{"heard …", "sounding Hi.", "sound 1.0 s", "used 100", "done"}},
		"a face in the transcript of the answer": {server: &realtimetest.Server{Transcript: "Hello.", Answer: func(r *realtimetest.Response) error {
			return errors.Join(r.Speak("😊 Hi. ", time.Second), r.Speak("[sad] Bye.", time.Second))
		}}, turn: agent.Turn{Speech: utterance()}, want: []string{"heard Hello.", "felt happy", "sounding Hi.", "sound 1.0 s", "felt sad", "sounding Bye.", "sound 1.0 s", "used 100", "done"}},
		"a face by a tool": {server: &realtimetest.Server{Transcript: "Hello.", Answer: func(r *realtimetest.Response) error {
			if r.Number == 0 {
				return r.Call("setExpression", `{"preset":"happy"}`)
			}
			return r.Speak("Hi.", time.Second)
		}}, turn: agent.Turn{Speech: utterance()}, want: []string{"heard Hello.", "used 100", "tool running", "felt happy", "tool done", "sounding Hi.", "sound 1.0 s", "used 100", "done"}},
		"text": {server: &realtimetest.Server{Answer: func(r *realtimetest.Response) error { return r.Write("Hi.") }}, turn: agent.Turn{Text: "Hello"},
			want: []string{"used 100", "say Hi.", "done"}},
		"too long": {server: &realtimetest.Server{Transcript: "Hello.", Answer: func(r *realtimetest.Response) error {
			return errors.Join(r.Speak("It is", time.Second), r.End("incomplete", "max_output_tokens"))
		}}, turn: agent.Turn{Speech: utterance()}, want: []string{"heard Hello.", "sound 1.0 s", "sounding It is", "say I was cut off.", "done"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := realtimetest.Serve(t, c.server)
			k, _ := brain(t, s, func(o *realtime.Options) {
				if c.change != nil {
					c.change(o)
				}
			})
			got, err := talk(t.Context(), k, c.turn)
			must.Succeed(t, err)
			want(t, got, c.want...)
		})
	}
}

// TestCheck: the check sets up a session, and no response is asked for.
func TestCheck(t *testing.T) {
	s := realtimetest.Serve(t, &realtimetest.Server{})
	_, e := brain(t, s)
	must.Succeed(t, e.Check(t.Context()))
	if got := s.Received(); !slices.Equal(got, []string{"session.update"}) || s.Connected() != 1 {
		t.Errorf("%d connections, %q", s.Connected(), got)
	}
}

// TestOptions: wrong options are refused in words.
func TestOptions(t *testing.T) {
	good := realtime.Options{URL: "wss://api.openai.com/v1", Model: "m"}
	must.Succeed(t, good.Check())
	for want, change := range map[string]func(*realtime.Options){
		"url is missing":         func(o *realtime.Options) { o.URL = "" },
		"not the address":        func(o *realtime.Options) { o.URL = "ftp://x" },
		"holds a password":       func(o *realtime.Options) { o.URL = "https://a:b@x/v1" },
		"model is missing":       func(o *realtime.Options) { o.Model = " " },
		"max_tokens is 0":        func(o *realtime.Options) { o.MaxTokens = 5000 },
		"daily_tokens is not":    func(o *realtime.Options) { o.DailyTokens = -1 },
		"within is not negative": func(o *realtime.Options) { o.FirstWithin = -1 },
	} {
		o := good
		change(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
