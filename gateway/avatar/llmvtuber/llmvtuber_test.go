package llmvtuber

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/event"
	"perch/gateway/avatar/avatartest"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/must"
	"perch/socket"
	"perch/voice"
)

const (
	begins    = `{"type":"control","text":"conversation-chain-start"}`
	thinks    = `{"type":"full-text","text":"Thinking..."}`
	synth     = `{"type":"backend-synth-complete"}`
	newOne    = `{"type":"force-new-message"}`
	chainEnds = `{"type":"control","text":"conversation-chain-end"}`
)

func subtitled(text string) string { return fmt.Sprintf(`{"type":"full-text","text":%q}`, text) }

func sentence(text, sound, actions string) string {
	volumes := "[]"
	if sound != "null" {
		sound, volumes = `"a WAV"`, "null"
	}
	return fmt.Sprintf(`{"type":"audio","audio":%s,"volumes":%s,"slice_length":20,`+
		`"display_text":{"text":%q,"name":"Chan","avatar":""},"actions":%s,"forwarded":false}`, sound, volumes, text, actions)
}

// TestLoudness checks that Options.Loudness follows the sound that the client plays, and is 0 after an
// interruption.
func TestLoudness(t *testing.T) {
	var loudness voice.Loudness
	loudness.Level("vtb_llmvtuber") // the levels are computed only if somebody reads them
	h := newHarness(t, func(o *Options) { o.Synthesizer, o.Loudness = loud(10*voice.SpeakerRate), &loudness })
	is := func(what string, want func(level float64) bool) {
		t.Helper()
		late := time.After(10 * time.Second)
		for {
			level, changed := loudness.Level("vtb_llmvtuber")
			if want(level) {
				return
			}
			select {
			case <-changed:
			case <-late:
				t.Fatalf("%s: it is %g", what, level)
			}
		}
	}
	p := h.open(t, "")
	p.Send(`{"type":"text-input","text":"hello"}`)
	is("while it plays", func(level float64) bool { return level > 0 })
	if end := time.Until(loudness.End("vtb_llmvtuber")); end <= 0 || end > 10*time.Second {
		t.Errorf("the sound ends in %s", end)
	}
	p.Send(`{"type":"interrupt-signal","text":""}`)
	is("after an interruption", func(level float64) bool { return level == 0 })
	p.Send(`{"type":"text-input","text":"hello"}`)
	is("in the next answer", func(level float64) bool { return level > 0 })
}

func TestGreeting(t *testing.T) {
	h := newHarness(t, func(o *Options) { o.Recognizer = recognizer(nil) })
	p := h.open(t, "")
	want := regexp.MustCompile(`^{"type":"full-text","text":"Connection established"}
{"type":"set-model-and-conf","model_info":{"name":"mao_pro","url":"/live2d-models/.*,"conf_name":"Chan","conf_uid":"perch","client_uid":"~"}
{"type":"group-update","members":\[\],"is_owner":false}
{"type":"control","text":"start-mic"}$`)
	if got := p.Transcript(); !want.MatchString(got) {
		t.Errorf("it is greeted with\n%s", got)
	}
}

// TestSpokenTurn checks a spoken question and a reply of two sentences with faces, which espeak-ng or
// flite synthesizes. The turn ends when the client has played all sound.
func TestSpokenTurn(t *testing.T) {
	for _, voice := range []program{{"espeak-ng", "-v", "en-us", "--stdout"}, {"flite", "-voice", "slt", "-o", "/dev/stdout", "-t"}} {
		t.Run(voice[0], func(t *testing.T) {
			t.Parallel() // the test takes as long as the sound
			spokenTurn(t, voice)
		})
	}
}

func spokenTurn(t *testing.T, by program) {
	var h *harness
	var heard []int16
	h = newHarness(t, func(o *Options) {
		o.Synthesizer = by
		o.Recognizer = recognizer(func(pcm []int16) (voice.Transcript, error) {
			heard = slices.Clone(pcm)
			return voice.Transcript{Text: " what time is it "}, nil
		})
	})
	h.chats.Answer = says(agent.Felt{Emotion: agent.Emotion{Name: "happy", Emoji: "😊"}}, agent.Say{Text: "It is three."},
		agent.Felt{Emotion: agent.Emotion{Name: "sad", Emoji: "😢"}}, agent.Say{Text: "Already."})
	p := h.open(t, "&character=Ann&talk=desk")
	p.Send(`{"type":"mic-audio-data","audio":[0,0.5,-1]}`)
	p.Send(`{"type":"mic-audio-data","audio":[1,2,-2,null]}`)
	p.Send(`{"type":"mic-audio-end","images":[]}`)
	p.Expect(begins, thinks, `{"type":"user-input-transcription","text":"what time is it"}`,
		sentence("It is three.", "a WAV", `{"expressions":[3]}`), sentence(" Already.", "a WAV", `{"expressions":[1]}`), synth)
	// The turn does not end before the client reports that it has played the sound.
	p.Send(`{"type":"heartbeat"}`)
	p.Expect(`{"type":"heartbeat-ack"}`)
	p.Send(`{"type":"frontend-playback-complete"}`)
	p.Expect(newOne, chainEnds)
	if want := []int16{0, math.MaxInt16 / 2, -math.MaxInt16, math.MaxInt16, math.MaxInt16, -math.MaxInt16, 0}; !slices.Equal(heard, want) {
		t.Errorf("heard %v, want %v", heard, want)
	}
	if got := h.chats.Asked(); !slices.Equal(got, []string{`desk "Ann" what time is it`}) {
		t.Errorf("asked %q", got)
	}
}

// TestPlayed checks that repeated and late reports of the client do not end the next reply before the
// end of its sound.
func TestPlayed(t *testing.T) {
	const length = 300 * time.Millisecond
	for samples, ends := range map[loud]func(took time.Duration) bool{
		loud(length * voice.SpeakerRate / time.Second): func(took time.Duration) bool { return took >= length },
		2: func(took time.Duration) bool { return took < playedTimeout },
	} {
		h := newHarness(t, func(o *Options) { o.Synthesizer = samples })
		p := h.open(t, "")
		p.Send(`{"type":"frontend-playback-complete"}`)
		asked := time.Now()
		p.Send(`{"type":"text-input","text":"x"}`)
		p.Send(`{"type":"frontend-playback-complete"}`)
		p.Expect(begins, thinks, sentence("Yes.", "a WAV", "null"), synth)
		p.Send(`{"type":"frontend-playback-complete"}`)
		p.Expect(newOne, chainEnds)
		if took := time.Since(asked); !ends(took) {
			t.Errorf("an answer of %d samples ends after %s", samples, took)
		}
	}
}

// TestTools checks that tool calls of the client's conversation are shown, and that notifications are
// shown as subtitles.
func TestTools(t *testing.T) {
	h := newHarness(t, nil)
	p := h.open(t, "")
	tool := event.ToolStatus{ID: "c1", Name: "web", Status: event.ToolRunning, Detail: "the weather"}
	h.Bus.Publish("", "vtb_another", tool)
	h.Bus.Publish("", "vtb_llmvtuber", tool)
	p.Expect(`{"type":"tool_call_status","tool_id":"c1","tool_name":"web","name":"Chan","status":"running","content":"the weather","timestamp":"~"}`)
	h.Bus.Publish("", "", event.Notification{ID: "n1", Text: "The tea is ready.", Urgency: "normal"})
	p.Expect(`{"type":"full-text","text":"The tea is ready."}`)
}

// TestTypedTurn checks that without a synthesizer the sentences of a reply are shown as subtitles.
func TestTypedTurn(t *testing.T) {
	h := newHarness(t, nil)
	p := h.open(t, "")
	p.Send(`{"type":"text-input","text":"hello","images":[{"source":"camera","data":"AAAA","mime_type":"image/jpeg"}]}`)
	p.Expect(begins, thinks, sentence("Yes.", "null", "null"), subtitled("Yes."), newOne, chainEnds)
	if got := h.chats.Asked(); !slices.Equal(got, []string{`llmvtuber "" hello`}) {
		t.Errorf("asked %q", got)
	}
}

// TestInterrupt checks that interrupt-signal and another question end a reply at once.
func TestInterrupt(t *testing.T) {
	h := newHarness(t, nil)
	h.chats.Answer = forever
	p := h.open(t, "")
	another := sentence("And another.", "null", "null")
	more := []string{another, sentence(" And another.", "null", "null"), subtitled("And another.")}
	until := func(want string) {
		t.Helper()
		for {
			got := p.Next()
			if got == want {
				return
			}
			if !slices.Contains(more, got) {
				t.Fatalf("%s came", got)
			}
		}
	}
	p.Send(`{"type":"text-input","text":"one"}`)
	p.Expect(begins, thinks, another)
	interrupted := time.Now()
	p.Send(`{"type":"interrupt-signal","text":"And"}`)
	p.Send(`{"type":"heartbeat"}`)
	until(`{"type":"heartbeat-ack"}`)
	p.Send(`{"type":"heartbeat"}`)
	p.Expect(`{"type":"heartbeat-ack"}`) // no message of the interrupted reply precedes it
	ended := make(chan struct{})
	h.chats.Answer = func(ctx context.Context, text string, out func(agent.Reply) error) error {
		if text == "two" {
			defer close(ended)
			return forever(ctx, text, out)
		}
		select {
		case <-ended:
		default:
			t.Error("an answer begins before the one before it has ended")
		}
		return out(agent.Say{Text: "Three."})
	}
	p.Send(`{"type":"text-input","text":"two"}`)
	p.Expect(begins, thinks, another)
	if took := time.Since(interrupted); took < dropsSoundFor {
		t.Errorf("the next answer comes %s after the interruption, when the client drops it", took)
	}
	p.Send(`{"type":"text-input","text":"three"}`)
	until(begins)
	p.Expect(thinks, sentence("Three.", "null", "null"), subtitled("Three."), newOne, chainEnds)
}

// TestErrors checks that errors of the recognizer and of the agent are shown, and end the turn.
func TestErrors(t *testing.T) {
	h := newHarness(t, func(o *Options) {
		o.Recognizer = recognizer(func(pcm []int16) (voice.Transcript, error) {
			if len(pcm) > 1 {
				return voice.Transcript{}, errBroken
			}
			return voice.Transcript{Refused: true}, nil
		})
	})
	p := h.open(t, "")
	p.Send(`{"type":"mic-audio-data","audio":[0]}`)
	p.Send(`{"type":"mic-audio-end"}`)
	p.Expect(begins, thinks, subtitled("I did not understand that."), newOne, chainEnds)
	p.Send(`{"type":"mic-audio-data","audio":[0,0]}`)
	p.Send(`{"type":"mic-audio-end"}`)
	fails := func(sentence string) {
		t.Helper()
		p.Expect(begins, thinks, fmt.Sprintf(`{"type":"error","message":%q}`, sentence), subtitled(sentence), newOne, chainEnds)
	}
	fails("the recognizer did not answer; the log of the appliance says why")
	p.Send(`{"type":"mic-audio-end"}`) // ignored, because no sound was sent before
	h.chats.Answer = func(context.Context, string, func(agent.Reply) error) error {
		return &httpserver.Fault{Word: "agent_busy", Sentence: "agent is busy"}
	}
	p.Send(`{"type":"text-input","text":"x"}`)
	fails("agent is busy")
	h.chats.Answer = func(context.Context, string, func(agent.Reply) error) error { return errBroken }
	p.Send(`{"type":"text-input","text":"x"}`)
	fails("the agent could not answer; the log of the appliance says why")
}

// TestRequests checks the responses to requests for things that Perch does not have.
func TestRequests(t *testing.T) {
	p := newHarness(t, nil).open(t, "")
	for _, one := range [][2]string{
		{`{"type":"fetch-backgrounds"}`, `{"type":"background-files","files":[]}`},
		{`{"type":"fetch-configs"}`, `{"type":"config-files","configs":[]}`},
		{`{"type":"fetch-history-list"}`, `{"type":"history-list","histories":[]}`},
		{`{"type":"fetch-and-set-history","history_uid":"x"}`, `{"type":"history-data","messages":[]}`},
		{`{"type":"delete-history","history_uid":"x"}`, `{"type":"history-deleted","history_uid":"x","success":false}`},
		{`{"type":"request-group-info"}`, `{"type":"group-update","members":[],"is_owner":false}`},
		{`{"type":"switch-config","file":"x"}`, `{"type":"error","message":"Perch has no groups and no other configurations to switch to"}`},
	} {
		p.Send(one[0])
		p.Expect(one[1])
	}
	created := map[string]bool{}
	for range 2 {
		p.Send(`{"type":"create-new-history"}`)
		got := p.Next()
		if created[got] || !strings.HasPrefix(got, `{"type":"new-history-created","history_uid":"`) {
			t.Errorf("a new history is %s", got)
		}
		created[got] = true
	}
}

// TestGarbage checks that invalid messages are answered with an error, that unknown and binary messages
// are ignored, and that a too large message ends the connection.
func TestGarbage(t *testing.T) {
	p := newHarness(t, nil).open(t, "")
	for _, text := range []string{"", "x", "[]", `{"type":1}`, `{"type":"mic-audio-data","audio":"x"}`, `{"type":"mic-audio-data","audio":[1e99]}`,
		`{"type":"delete-history","history_uid":"` + strings.Repeat("x", 300) + `"}`} {
		p.Send(text)
		if got := p.Next(); !strings.HasPrefix(got, `{"type":"error",`) {
			t.Errorf("%.40q is answered with %s", text, got)
		}
	}
	p.Send(`{"type":"audio-play-start"}`)
	p.Send(`{}`)
	must.Succeed(t, p.Conn.SendBinary([]byte{1}))
	p.Send(`{"type":"heartbeat"}`)
	p.Expect(`{"type":"heartbeat-ack"}`)
	if err := p.Conn.SendText(make([]byte, limit.Message+1)); err == nil {
		_ = p.WaitClosed()
	}
}

// TestClientThatDoesNotRead checks that a client that does not read blocks only its own reply, and does
// not delay the end of the server.
func TestClientThatDoesNotRead(t *testing.T) {
	h := newHarness(t, func(o *Options) { o.Synthesizer = loud(voice.SpeakerRate * 10) })
	said := make(chan struct{}, 1000)
	h.chats.Answer = func(ctx context.Context, text string, out func(agent.Reply) error) error {
		return forever(ctx, text, func(r agent.Reply) error {
			said <- struct{}{}
			return out(r)
		})
	}
	p := h.open(t, "")
	p.Send(`{"type":"text-input","text":"x"}`)
	<-said
	other := h.open(t, "")
	other.Send(`{"type":"heartbeat"}`)
	other.Expect(`{"type":"heartbeat-ack"}`)
	h.Stop()
	if n := len(said); n > 100 {
		t.Errorf("%d sentences were made for a client that reads none", n)
	}
	_ = other.WaitClosed()
}

// TestRefusedClients checks that clients without the key, with an unknown conversation, or beyond the
// limit of connections are refused.
func TestRefusedClients(t *testing.T) {
	h := newHarness(t, nil)
	for query, want := range map[string]int{"": 401, "?token=wrong": 401, "?token=" + avatartest.Key + "&talk=robot:nobody": 404} {
		conn, err := h.dial(query)
		var refused *socket.Refusal
		if !errors.As(err, &refused) || refused.Status != want {
			t.Errorf("%q: %v, want %d", query, err, want)
		}
		if err == nil {
			conn.Drop()
		}
	}
	for n := range 9 {
		conn, err := h.dial("?token=" + avatartest.Key)
		var refused *socket.Refusal
		if full := errors.As(err, &refused) && refused.Status == http.StatusServiceUnavailable; full != (n == 8) {
			t.Errorf("connection %d: %v", n+1, err)
		}
		if err == nil {
			defer conn.Drop()
		}
	}
}

func TestReadModel(t *testing.T) {
	words := agent.StockWords()
	m, err := ReadModel([]byte(`[{"name":"x","url":"https://x.example/m.json","emotionMap":{"Joy":"smile","sad":4,"pride":7}}, {}]`))
	must.Succeed(t, err)
	for _, one := range []struct {
		felt agent.Felt
		want any
	}{{agent.Felt{Emotion: agent.Emotion{Name: "happy"}}, "smile"}, {agent.Felt{Emotion: agent.Emotion{Name: "crying"}}, 4.0},
		{agent.Felt{Emotion: agent.Emotion{Name: "cool"}, Tag: "Pride"}, 7.0}} {
		if got := m.expression(words, one.felt); got == nil || got.Expressions[0] != one.want {
			t.Errorf("%v: %v, want %v", one.felt, got, one.want)
		}
	}
	if got := m.expression(words, agent.Felt{Emotion: agent.Emotion{Name: "angry"}}); got != nil {
		t.Errorf("a face that the model has no expression for is %v", got)
	}
	for _, text := range []string{"", "x", "[]", "{}", `{"url":"x","emotionMap":{"joy":[]}}`, `{"url":1}`} {
		if _, err := ReadModel([]byte(text)); !errors.Is(err, ErrModel) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"type":"text-input","text":"hello"}`, `{"type":"mic-audio-data","audio":[0,0.5,-1e3,null]}`,
		`{"type":"delete-history","history_uid":"x"}`, `{"type":"frontend-playback-complete"}`, `[]`, `{"type":"x"}`,
		`{"type":"mic-audio-end"}`,
		`{"type":"interrupt-signal"}`, `{"type":"mic-audio-data","audio":[` + strings.Repeat("0,", maxSamples) + `0]}`,
		`{"type":"create-new-history","history_uid":"` + strings.Repeat("x", limit.Name+1) + `"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parse(data)
		if len(m.pcm) > maxSamples || len(m.history) > limit.Name || err != nil && (m.kind != "" || m.pcm != nil) {
			t.Errorf("%q is %v, %v", data, m, err)
		}
	})
}

func FuzzReadModel(f *testing.F) {
	for _, seed := range []string{`[{"url":"x","emotionMap":{"joy":1}}]`,
		`{"url":"x","emotionMap":{"Neutral":"calm"},"tapMotions":{}}`, `[]`, `{}`, `7`,
		`{"url":"x","emotionMap":{"joy":[]}}`, `{"url":"x","emotionMap":{` + strings.Repeat(`"":1,`, 2) + `"a":null}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := ReadModel(data); err == nil {
			m.expression(agent.StockWords(), agent.Felt{Emotion: agent.Neutral})
		}
	})
}
