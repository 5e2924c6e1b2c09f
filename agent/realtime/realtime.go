// Package realtime implements thinker.Speaker over a WebSocket, with OpenAI's Realtime API or Google's Gemini Live API:
// one model that hears, thinks and speaks. Local servers have the former as well, such as Hugging Face's
// speech-to-speech.
//
// Each turn opens its own connection, while the person speaks. The conversation of earlier turns is
// sent as text, so that the model knows what was really spoken, and not what was generated. The end-pointer of
// package voice decides when the person has finished, unless Options.ServerTurns is set.
//
// The names of events are those of openai-python's types/realtime. The names of the API's beta, which some local
// servers still send, are accepted too. The dialect gemini turns the messages of the other API into these events.
package realtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/driver"
	"perch/limit"
	"perch/remote"
	"perch/secret"
	"perch/socket"
)

// The dialects.
const (
	DialectOpenAI = "openai" // OpenAI's Realtime API
	DialectGemini = "gemini" // Google's Gemini Live API
)

// Options are the options of an Engine. URL and Model are required.
type Options struct {
	URL         string `yaml:"url" doc:"The server's base address: https://api.openai.com/v1, https://generativelanguage.googleapis.com, or that of a local server with its /v1."`
	Model       string `yaml:"model" doc:"The name of the model. Local servers take any."`
	Key         string `yaml:"key" doc:"The server's API key, if it wants one."`
	KeyFile     string `yaml:"key_file" doc:"A file that holds the key."`
	Voice       string `yaml:"voice" doc:"The server's name of a voice. If left out, the server's choice."`
	Transcriber string `yaml:"transcriber" doc:"The model that writes down what you say, for the history and the page. Not with Gemini. If left out, gpt-4o-mini-transcribe."`
	ServerTurns bool   `yaml:"server_turns" doc:"The server finds the end of your sentence, as Hugging Face's speech-to-speech must."`
	MaxTokens   int    `yaml:"max_tokens" doc:"The longest answer. If 0, the server's choice."`
	Dialect     string `yaml:"dialect" doc:"openai or gemini, if the address does not show which it is." oneof:"openai gemini"`
	DailyTokens int    `yaml:"daily_tokens" doc:"After this many tokens in a day the next brain answers until midnight. If 0, no limit."`

	FirstWithin time.Duration `yaml:"within" doc:"The longest time from the end of your sentence until the answer begins. If 0s, 10s."`
}

// Driver declares the model realtime.
func Driver() thinker.ModelDriver {
	return driver.Of(thinker.ModelDriver{Kind: "realtime",
		Runs:    []string{"OpenAI's Realtime API, or a server of it: Hugging Face's speech-to-speech", "Gemini Live"},
		Summary: "A model that hears, thinks and speaks: OpenAI's Realtime API or Gemini Live in the cloud, or a server in your home.",
		Sample: `{kind: realtime, url: "https://api.openai.com/v1", model: gpt-realtime, key: "", key_file: /etc/perch/secrets/realtime, voice: marin, daily_tokens: 200000}    # first in the list
{kind: realtime, url: "https://generativelanguage.googleapis.com", model: gemini-live-2.5-flash-preview, key_file: /etc/perch/secrets/gemini, voice: Puck, dialect: gemini}
{kind: realtime, url: "http://192.168.1.9:8765/v1", model: any, server_turns: true}    # Hugging Face's speech-to-speech`},
		Options.withSetup, func(o Options) (thinker.Model, error) { return New(o) })
}

// withSetup returns the options with the defaults of a model's setup, and with the key.
func (o Options) withSetup(s thinker.ModelSetup) (_ Options, err error) {
	o.MaxTokens, o.FirstWithin = cmp.Or(o.MaxTokens, min(s.Brain.MaxTokens, maxOutput)), cmp.Or(o.FirstWithin, s.Within)
	o.Key, err = secret.Read("key", o.Key, o.KeyFile)
	return o, err
}

// maxOutput is the highest limit of an answer in tokens that the API accepts.
const maxOutput = 4096

// Check returns an error if an option is missing or invalid.
func (o Options) Check() error {
	_, err := parseBase(o.URL)
	switch {
	case err != nil:
		return err
	case strings.TrimSpace(o.Model) == "":
		return errors.New("model is missing, such as gpt-realtime (local servers take any name)")
	case o.MaxTokens < 0 || o.MaxTokens > maxOutput:
		return fmt.Errorf("max_tokens is 0 to %d, not %d", maxOutput, o.MaxTokens)
	case o.Dialect != "" && o.Dialect != DialectOpenAI && o.Dialect != DialectGemini:
		return fmt.Errorf("dialect is openai or gemini, not %q", o.Dialect)
	case o.DailyTokens < 0:
		return errors.New("daily_tokens is not negative")
	case o.FirstWithin < 0:
		return errors.New("within is not negative")
	}
	return nil
}

// parseBase parses the base address of a server, whose scheme may also be ws or wss.
func parseBase(text string) (*url.URL, error) {
	if text = strings.TrimSpace(text); len(text) > 2 && strings.EqualFold(text[:2], "ws") {
		text = "http" + text[2:]
	}
	return remote.ParseBase(text, "https://api.openai.com/v1")
}

// Engine implements thinker.Speaker. It is safe for concurrent use.
type Engine struct {
	o       Options
	base    *url.URL // without a trailing slash
	server  remote.Server
	context context.Context // ends with Close
	close   context.CancelFunc

	mu     sync.Mutex
	day    string // the day of tokens, as a date
	tokens int    // tokens used on day
}

// New returns an engine without opening a connection.
func New(o Options) (*Engine, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	base, _ := parseBase(o.URL) // valid, since Check has parsed it
	o.FirstWithin = cmp.Or(o.FirstWithin, remote.Patience)
	o.Transcriber = cmp.Or(o.Transcriber, "gpt-4o-mini-transcribe")
	e := &Engine{o: o, base: base, server: remote.Server{Address: remote.Address(base), Key: o.Key, Setting: "brains[..].key",
		Check: "the brain's settings", Kind: agent.ErrAway}}
	e.context, e.close = context.WithCancel(context.Background())
	return e, nil
}

// Name implements thinker.Model.
func (*Engine) Name() string { return "realtime" }

// Where returns the name of the model and the address of the server.
func (e *Engine) Where() string { return e.o.Model + " at " + remote.Address(e.base) }

// Close ends all turns.
func (e *Engine) Close() error {
	e.close()
	return nil
}

// Check opens a connection and sets up a session, and returns why a turn could not. No tokens are used.
func (e *Engine) Check(ctx context.Context) error {
	t := e.newTalk(agent.Turn{})
	defer func() { _ = t.Close() }()
	return t.setUp(ctx, thinker.Prompt{})
}

// Begin implements thinker.Speaker.
func (e *Engine) Begin(turn agent.Turn) thinker.Speaking { return e.newTalk(turn) }

// newTalk returns the talk of a turn. It does not connect yet.
func (e *Engine) newTalk(turn agent.Turn) *talk {
	t := &talk{engine: e, turn: turn, dialect: &openai{serverTurns: e.o.ServerTurns}}
	if e.gemini() {
		t.dialect = &gemini{serverTurns: e.o.ServerTurns}
	}
	return t
}

// Continue implements thinker.Model, as a turn of text alone.
func (e *Engine) Continue(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	t := e.Begin(agent.Turn{Now: time.Now()})
	defer func() { _ = t.Close() }()
	return t.Continue(ctx, p, out)
}

// address returns the address of the WebSocket.
func (e *Engine) address() string {
	u := *e.base
	u.Scheme = "ws" + strings.TrimPrefix(u.Scheme, "http")
	if e.gemini() {
		u.Path += geminiPath
		return u.String()
	}
	u.Path += "/realtime"
	query := u.Query()
	query.Set("model", e.o.Model)
	u.RawQuery = query.Encode()
	return u.String()
}

// gemini reports whether the server has Gemini's API.
func (e *Engine) gemini() bool {
	return e.o.Dialect == DialectGemini || e.o.Dialect == "" && strings.HasSuffix(e.base.Hostname(), ".googleapis.com")
}

// sendWithin is the maximum time until the network has taken an event.
const sendWithin = 5 * time.Second

// dial opens a connection, within Options.FirstWithin.
func (e *Engine) dial(ctx context.Context) (*socket.Conn, error) {
	within, cancel := context.WithTimeout(ctx, e.o.FirstWithin)
	defer cancel()
	header := http.Header{"User-Agent": {"perch"}}
	switch {
	case e.o.Key == "":
	case e.gemini():
		header.Set("X-Goog-Api-Key", e.o.Key)
	default:
		header.Set("Authorization", "Bearer "+e.o.Key)
	}
	conn, err := socket.Dial(within, e.address(), socket.Options{MaxMessage: limit.File, SendWithin: sendWithin, Header: header})
	if err == nil {
		return conn, nil
	}
	if refusal, is := errors.AsType[*socket.Refusal](err); is {
		code, reason := remote.Message([]byte(refusal.Text))
		return nil, e.server.Refused(code, remote.Refusal{Status: refusal.Status, Path: e.base.Path + "/realtime", Reason: cmp.Or(reason, refusal.Text)})
	}
	return nil, e.server.Unreachable(err, false)
}

// spend counts tokens that were used on the day of a turn.
func (e *Engine) spend(now time.Time, tokens int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch day := now.Format(time.DateOnly); {
	case day < e.day: // a turn that began before midnight
		return
	case day > e.day:
		e.day, e.tokens = day, 0
	}
	e.tokens += max(0, tokens)
}

// affords returns an error if Options.DailyTokens are used up on the day of a turn.
func (e *Engine) affords(now time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.o.DailyTokens > 0 && e.day == now.Format(time.DateOnly) && e.tokens >= e.o.DailyTokens {
		return e.server.Faultf("%s has used up daily_tokens (%d); it answers again after midnight, or with a higher daily_tokens", e.o.Model, e.o.DailyTokens)
	}
	return nil
}
