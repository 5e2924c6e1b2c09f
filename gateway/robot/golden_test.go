package robot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"perch/agent"
	"perch/agent/notice"
	"perch/agent/reflex"
	"perch/agent/thinker"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/transcript"
	"perch/language"
	"perch/must"
	"perch/voice"
)

// TestTranscripts plays the actions of the robot, the engines and the appliance in each transcript of testdata, in
// virtual time and in each binary framing, and compares the resulting messages, events and states with the transcript.
// make golden rewrites the transcripts instead.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	rewrite := os.Getenv("PERCH_GOLDEN") == "rewrite"
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			must.Succeed(t, err)
			sc := readScenario(t, archive)
			for _, framing := range []xiaozhi.Framing{xiaozhi.Framing1, xiaozhi.Framing2, xiaozhi.Framing3, byMQTT} {
				got := sc.play(t, framing)
				if rewrite && framing == xiaozhi.Framing1 {
					archive.Files[1].Data = []byte(got)
					must.Succeed(t, os.WriteFile(file, txtar.Format(archive), 0o644))
					continue
				}
				if want := string(archive.Files[1].Data); got != want && !rewrite {
					t.Errorf("framing %d: %s", framing, firstDifference(got, want))
				}
			}
		})
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			from := max(0, i-2)
			return fmt.Sprintf("line %d differs; got\n%s\nwant\n%s", i+1,
				strings.Join(g[from:min(len(g), i+6)], "\n"), strings.Join(w[from:min(len(w), i+6)], "\n"))
		}
	}
	return "nothing differs"
}

// scenario holds the actions of a transcript.
type scenario struct {
	setup       map[string][]string
	script      []scripting   // actions of the robot and the appliance
	transcripts []scripting   // results of the recognizer
	replies     []scripting   // replies of the mind
	ends        time.Duration // time of the last action
}

// scripting is an action: a line of a transcript that is played.
type scripting struct {
	at   time.Duration
	mark byte
	word string // first word of the text, or the whole text if it is JSON from the robot
	rest string // the text after word
}

func readScenario(t *testing.T, a *txtar.Archive) *scenario {
	t.Helper()
	if len(a.Files) != 2 || a.Files[0].Name != "setup" || a.Files[1].Name != "transcript" || len(a.Comment) < 20 {
		t.Fatal("a transcript is a sentence of intent, a setup and a transcript")
	}
	sc := &scenario{setup: map[string][]string{}}
	for line := range strings.Lines(string(a.Files[0].Data)) {
		key, value, found := strings.Cut(strings.TrimSpace(line), ": ")
		if !found {
			t.Fatalf("setup: %q is no key and value", line)
		}
		sc.setup[key] = append(sc.setup[key], value)
	}
	for line := range strings.Lines(string(a.Files[1].Data)) {
		s, err := readScripting(strings.TrimSpace(line))
		must.Succeed(t, err)
		if s.mark == '!' || s.mark == '<' {
			sc.ends = max(sc.ends, s.at)
		}
		switch {
		case s.mark == '!' && s.word == "recognizer":
			sc.transcripts = append(sc.transcripts, s)
		case s.mark == '!' && s.word == "mind":
			sc.replies = append(sc.replies, s)
		case s.mark == '!' || s.mark == '<':
			sc.script = append(sc.script, s)
		}
	}
	slices.SortStableFunc(sc.script, func(a, b scripting) int { return int(a.at - b.at) })
	return sc
}

func readScripting(line string) (scripting, error) {
	at, rest, _ := strings.Cut(line, " ")
	seconds, err := strconv.ParseFloat(at, 64)
	mark, text, found := strings.Cut(rest, " ")
	if err != nil || !found || len(mark) != 1 {
		return scripting{}, fmt.Errorf("%q is no line of a transcript", line)
	}
	s := scripting{at: time.Duration(seconds*1000+0.5) * time.Millisecond, mark: mark[0], word: text}
	if s.mark == '!' || !strings.HasPrefix(text, "{") {
		s.word, s.rest, _ = strings.Cut(text, " ")
	}
	return s, nil
}

func (s scripting) entry() transcript.Entry {
	return transcript.Entry{At: s.at, Mark: s.mark, Text: strings.TrimSpace(s.word + " " + s.rest)}
}

func (sc *scenario) one(key string) string {
	if values := sc.setup[key]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// play runs the scenario in a synctest bubble and returns the resulting transcript.
func (sc *scenario) play(t *testing.T, framing xiaozhi.Framing) string {
	var transcript string
	synctest.Test(t, func(t *testing.T) {
		p := &player{scenario: sc, t: t, began: time.Now(), transcripts: slices.Clone(sc.transcripts), replies: slices.Clone(sc.replies),
			withdrawals: map[string]context.CancelFunc{}}
		mind := &scriptedMind{answer: p.answer}
		if sc.one("brain") == "realtime" {
			mind.hear = p.hear
		}
		if spoken := sc.languages(); spoken != nil {
			books, err := reflex.LoadEach(spoken, "")
			must.Succeed(t, err)
			mind.answer = reflex.New(books, "Chan", nil, nil, nil).Think
			if ends := sc.setup["model"]; ends != nil {
				mind.answer = thinker.New(thinker.Options{Model: &endingModel{ends}, Phrases: spokenPhrases()}).Think
			}
		}
		k := newTalkOn(t, mind, framing, func(k *talk) {
			k.robot = device.Robot{ID: robotID, Board: sc.one("board"), BaseURL: sc.one("base_url"), Firmware: "test"}
			for _, text := range sc.setup["waiting"] {
				must.Value(NewCommandQueue(k.waiting).add(robotID, p.began, Command{Thing: dialogue.CommandSay, Text: text}))(t)
			}
		}, sc.options, func(o *Options) { o.Recognizer = p })
		p.talk = k
		synctest.Wait()
		transcript = p.run()
		k.close()
	})
	return transcript
}

func (sc *scenario) options(o *Options) {
	o.Version = "test"
	o.Greet = sc.one("greet") == "true"
	o.UserTools = sc.one("user_tools") == "true"
	if idle, err := time.ParseDuration(sc.one("idle")); err == nil {
		o.Idle = idle
	}
	phrases := map[string]string{"misheard": "🤔 Pardon?", "failed": "😢 That failed.", "away": "😢 Nobody here.", "deaf": "😢 I am deaf.",
		"awake": "😊 Yes?"}
	o.Phrases = func(_, name string) string { return phrases[name] }
	if spoken := sc.languages(); spoken != nil {
		o.Phrases = spokenPhrases()
		o.Languages, o.Speech = spoken, voice.Options{Language: spoken[0], DetectLanguage: len(spoken) > 1}
		speech := o.Speech
		o.Character = func(device.ID) Character { return Character{Speech: speech} }
	}
}

// languages returns the languages in which the reflex brain answers. If there are none, the replies of the mind are
// scripted too.
func (sc *scenario) languages() []string {
	if sc.one("language") == "" {
		return nil
	}
	return strings.Split(sc.one("language"), ", ")
}

// spokenPhrases returns the phrases of the language catalogue.
func spokenPhrases() agent.Phrases {
	var words language.Catalogue
	return func(tag, name string) string { return words.In(tag).Message("phrases." + name) }
}

// endingModel is a language model that ends each answer as the next element of ends says: "length", "refused" or
// "away".
type endingModel struct{ ends []string }

func (*endingModel) Name() string { return "ending" }

func (m *endingModel) Continue(context.Context, thinker.Prompt, func(thinker.Piece) error) (thinker.Stop, error) {
	next := m.ends[0]
	m.ends = m.ends[1:]
	if next == "away" {
		return "", agent.ErrAway
	}
	return thinker.Stop(next), nil
}

// afterwards is how long a scenario continues after its last action.
const afterwards = 8 * time.Second

// player is the robot, the recognizer and the agent of a scenario.
type player struct {
	*scenario
	*talk
	t     *testing.T
	began time.Time

	mu          sync.Mutex
	transcripts []scripting
	replies     []scripting
	entries     []transcript.Entry

	withdrawals map[string]context.CancelFunc // withdraw the questions that the appliance asks
}

func (p *player) run() string {
	var session *session
	for _, r := range p.server.sessions.open {
		session = r
	}
	r := transcript.NewRecorder(session.id, p.began, func(e transcript.Entry) {
		if e.Mark == '!' || e.Mark == '<' && e.Sound != "" {
			return // step adds these entries as they are in the script
		}
		p.mu.Lock()
		p.entries = append(p.entries, e)
		p.mu.Unlock()
	})
	session.tap.Attach(r)
	for _, s := range slices.Concat(p.scenario.transcripts, p.scenario.replies) {
		p.add(s.entry())
	}
	for _, s := range p.script {
		p.until(s.at)
		p.step(s)
		synctest.Wait()
	}
	p.until(p.ends + afterwards)
	for _, e := range p.envelopes() {
		r.AddEvent(e)
	}
	r.Finish(p.began.Add(p.ends + afterwards))
	p.checkStamps()
	if left := len(p.transcripts) + len(p.replies); left > 0 {
		p.t.Errorf("%d lines of the recognizer and the agent were not used", left)
	}
	if isClosed(p.channel) {
		p.add(transcript.Entry{At: p.closedAt().Sub(p.began), Mark: '>', Text: "close " + strconv.Quote(p.channel.reason)})
	}
	framing := fmt.Sprintf(`"framing":%d`, p.channel.framing)
	if p.channel.byMQTT {
		framing = `"framing":0`
		for i, e := range p.entries {
			p.entries[i].Text = likeWebSocket(e.Text)
		}
	}
	return strings.ReplaceAll(strings.Join(sorted(p.entries), "\n")+"\n", framing, `"framing":1`)
}

func (p *player) add(e transcript.Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.entries = append(p.entries, e)
}

func (p *player) closedAt() time.Time {
	p.channel.mu.Lock()
	defer p.channel.mu.Unlock()
	return p.channel.ended
}

func (p *player) until(at time.Duration) {
	if wait := at - time.Since(p.began); wait > 0 {
		time.Sleep(wait)
	}
	synctest.Wait()
}

// checkStamps checks that each packet in framing 2 or over UDP has a new timestamp.
func (p *player) checkStamps() {
	last := uint32(0)
	for _, s := range p.channel.all() {
		if s.message == nil && (p.channel.framing == xiaozhi.Framing2 || p.channel.byMQTT) {
			if s.audio.Timestamp != last+60 {
				p.t.Errorf("timestamp %d after %d", s.audio.Timestamp, last)
			}
			last = s.audio.Timestamp
		}
	}
}

// step plays an action of the robot or the appliance.
func (p *player) step(s scripting) {
	if s.mark == '!' {
		p.add(s.entry())
		p.command(s)
		return
	}
	switch s.word {
	case "speech", "quiet":
		number, _, _ := strings.Cut(s.rest, " ")
		ms, err := strconv.Atoi(number)
		if err != nil {
			p.t.Fatalf("%q is no length of sound", s.rest)
		}
		p.add(transcript.Entry{At: s.at, Mark: '<', Sound: s.word, Packets: ms / 60})
		p.sound(s.word == "speech", ms/60)
	case "close":
		p.add(transcript.Entry{At: s.at, Mark: '<', Text: "close"})
		p.channel.Close(0, "")
	default:
		p.send(uplink{raw: []byte(s.word + strings.TrimSuffix(" "+s.rest, " "))})
	}
}

// sound makes the robot send packets at their pace. The script continues when they are sent.
func (p *player) sound(speech bool, packets int) {
	kind := p.silence
	if speech {
		kind = p.packets
	}
	for i := range packets {
		p.put(frame{audio: xiaozhi.Audio{Opus: kind[i%len(kind)]}})
		if i < packets-1 {
			time.Sleep(voice.FrameDuration)
		}
	}
}

func (p *player) command(s scripting) {
	ctx := p.t.Context()
	var err error
	switch s.word {
	case "say":
		var a struct {
			Text, Notice string
			Urgent       bool
		}
		err = json.Unmarshal([]byte(s.rest), &a)
		if a.Notice != "" {
			err = errors.Join(err, p.server.Announce(ctx, robotID, notice.Announcement{ID: a.Notice, Text: a.Text, Speak: true, Urgent: a.Urgent}))
		} else {
			_, e := p.server.Speak(ctx, robotID, a.Text)
			err = errors.Join(err, e)
		}
	case "show":
		var a xiaozhi.Alert
		err = json.Unmarshal([]byte(s.rest), &a)
		_, e := p.server.Alert(ctx, robotID, a.Status, a.Message, a.Emotion)
		err = errors.Join(err, e)
	case "feel":
		var e agent.Emotion
		err = errors.Join(json.Unmarshal([]byte(s.rest), &e), p.server.ShowEmotion(ctx, robotID, e))
	case "hear":
		err = p.server.InjectText(ctx, robotID, p.quoted(s.rest))
	case "play":
		err = p.server.Play(ctx, robotID, p.quoted(s.rest))
	case "ask":
		p.ask(s.rest)
	case "withdraw":
		p.withdrawals[p.quoted(s.rest)]()
	case "abort":
		err = p.server.Abort(ctx, robotID)
	case "reboot":
		err = p.server.Reboot(ctx, robotID)
	case "hold":
		seconds, e := strconv.Atoi(s.rest)
		p.server.KeepOpen(robotID, p.began.Add(time.Duration(seconds)*time.Second))
		err = e
	case "hang_up":
		err = p.server.Hangup(ctx, robotID, p.quoted(s.rest))
	default:
		p.t.Fatalf("the appliance cannot %q", s.word)
	}
	if err != nil {
		p.t.Errorf("%s %s: %v", s.word, s.rest, err)
	}
}

// ask makes the appliance ask a question, until the session ends or the question is withdrawn.
func (p *player) ask(asked string) {
	var q struct{ ID, Text, Within string }
	err := json.Unmarshal([]byte(asked), &q)
	within, e := time.ParseDuration(q.Within)
	if err = errors.Join(err, e); err != nil {
		p.t.Fatalf("%q: %v", asked, err)
	}
	ctx, cancel := context.WithCancel(p.t.Context())
	p.withdrawals[q.ID] = cancel
	go func() {
		defer cancel()
		// The events show the result.
		_, _ = p.server.Ask(ctx, robotID, agent.Question{ID: q.ID, Text: q.Text, Until: time.Now().Add(within)})
	}()
}

func (p *player) quoted(text string) string {
	var s string
	if text != "" {
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			p.t.Fatalf("%q: %v", text, err)
		}
	}
	return s
}

func (*player) Name() string { return "scripted" }

// Recognize implements voice.Recognizer. It returns the next transcript, at its time or later.
func (p *player) Recognize(ctx context.Context, u *voice.Utterance, _ voice.Options) (voice.Transcript, error) {
	if err := u.Wait(ctx); err != nil {
		return voice.Transcript{}, err
	}
	p.mu.Lock()
	if len(p.transcripts) == 0 {
		p.mu.Unlock()
		return voice.Transcript{}, fmt.Errorf("%w: nothing is left to hear", voice.ErrUnavailable)
	}
	next := p.transcripts[0]
	p.transcripts = p.transcripts[1:]
	p.mu.Unlock()
	if err := p.wait(ctx, next.at); err != nil {
		return voice.Transcript{}, err
	}
	heard := voice.Transcript{}
	if strings.HasPrefix(next.rest, "{") { // a voice.Transcript in JSON, with a language
		return heard, json.Unmarshal([]byte(next.rest), &heard)
	}
	heard.Text = p.quoted(next.rest)
	heard.Refused = heard.Text == ""
	return heard, nil
}

func (p *player) wait(ctx context.Context, at time.Duration) error {
	timer := time.NewTimer(max(0, at-time.Since(p.began)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hear makes the next replies of a mind that understands speech.
func (p *player) hear(ctx context.Context, turn agent.Turn, out func(agent.Reply) error) error {
	if err := turn.Speech.Wait(ctx); err != nil {
		return err
	}
	return p.answer(ctx, turn, out)
}

// answer makes the next replies of the mind, up to one that ends the answer.
func (p *player) answer(ctx context.Context, turn agent.Turn, out func(agent.Reply) error) error {
	for {
		p.mu.Lock()
		if len(p.replies) == 0 {
			p.mu.Unlock()
			return agent.ErrAway
		}
		next := p.replies[0]
		p.replies = p.replies[1:]
		p.mu.Unlock()
		if err := p.wait(ctx, next.at); err != nil {
			return err
		}
		what, value, _ := strings.Cut(next.rest, " ")
		var reply agent.Reply
		switch what {
		case "felt":
			reply = agent.Felt{Emotion: feeling(p.quoted(value))}
		case "say":
			reply = agent.Say{Text: p.quoted(value)}
		case "heard":
			reply = agent.Heard{Text: p.quoted(value)}
		case "sounding":
			reply = agent.Say{Text: p.quoted(value), Sounds: true}
		case "sound":
			length, err := time.ParseDuration(value)
			if err != nil {
				return err
			}
			reply = sound(length)
		case "unheard": // the line is cut before the answer
			return agent.ErrUnheard
		case "cut": // the line is cut in the answer
			return agent.ErrNoBrain
		case "anim":
			reply = agent.Cue{Kind: "anim", Value: p.quoted(value)}
		case "ask":
			reply = agent.Ask{ID: "q", Text: p.quoted(value), Within: 10 * time.Second, Answer: func(agent.Answer) {}}
		case "call", "use":
			var c struct {
				Name      string
				Arguments map[string]any
			}
			if err := json.Unmarshal([]byte(value), &c); err != nil {
				return err
			}
			r, err := turn.Body.Call(ctx, c.Name, c.Arguments)
			reply = agent.Say{Text: r.Text}
			var shown interface{ Code() string }
			switch {
			case errors.As(err, &shown):
				reply = agent.Say{Text: shown.Code()}
			case errors.Is(err, device.ErrArguments):
				reply = agent.Say{Text: "bad_arguments"}
			case err != nil:
				return err
			}
			if what == "use" { // the result is not spoken
				continue
			}
		case "away":
			return agent.ErrAway
		case "think": // thinks until the turn is interrupted
			<-ctx.Done()
			return ctx.Err()
		case "done":
			return out(agent.Done{End: agent.End(p.quoted(value))})
		default:
			return fmt.Errorf("the mind cannot %q", what)
		}
		if err := out(reply); err != nil {
			return err
		}
	}
}

// feeling returns the emotion with a name.
func feeling(name string) agent.Emotion {
	all := agent.OfferedEmotions()
	return all[slices.IndexFunc(all, func(e agent.Emotion) bool { return e.Name == name })]
}

// sorted returns the lines of a transcript in their final order.
func sorted(entries []transcript.Entry) []string {
	slices.SortStableFunc(entries, byTime)
	lines := make([]string, len(entries))
	for i, e := range entries {
		lines[i] = e.String()
	}
	return lines
}

// byTime compares entries by time. Entries of the same time are in the order of cause and effect: messages of the robot,
// actions of the engines and the appliance, events, states, and messages to the robot.
func byTime(a, b transcript.Entry) int {
	const order = "<!*=>"
	return cmp.Or(cmp.Compare(a.At, b.At),
		cmp.Compare(strings.IndexByte(order, a.Mark), strings.IndexByte(order, b.Mark)))
}
