// Package llmvtuber is the door of Open-LLM-VTuber's client, the web page or the desktop
// program that draws a Live2D model: it takes Perch for the program's own server
// (/client-ws). What is typed or spoken there is answered by the agent, and each sentence
// comes with its sound, the loudness of its mouth and the expression of its face. Tools
// at work and notifications show as the client shows its own.
//
// The protocol is that of Open-LLM-VTuber 1.2 (commit 19b58b1, its client d176e7d). It
// knows no keys; how the client brings ours is the locks' (httpserver.InUpgrade).
package llmvtuber

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/gateway/avatar"
	"perch/gateway/avatar/feed"
	"perch/limit"
	"perch/voice"
)

// Options are what the door is made of. Without a Recognizer nothing is understood that
// is spoken, and without a Synthesizer what is said is shown only.
type Options struct {
	Feed        *feed.Feed
	Chat        avatar.Chat
	Recognizer  voice.Recognizer
	Synthesizer voice.Synthesizer
	Hold        func() (done func()) // keeps these open until done is called; nil is for those that nobody closes
	Words       *agent.Words
	Model       *Model // nil is DefaultModel
	Name        string // of who speaks, as it is shown
	Speech      voice.Options
	Loudness    *voice.Loudness // of what its programs play, by their sessions
	Log         *slog.Logger
}

// Limits of all clients together. The robots come first.
const (
	mostUtterances = 1 // being recognized
	mostPerSecond  = 100

	recognizeWithin = time.Minute
)

// Server lets clients in.
type Server struct {
	mu          sync.Mutex
	o           Options
	programs    *avatar.Server
	recognizers chan struct{} // a place for each utterance that is being recognized
}

// New returns a door. Run disconnects its clients at the end.
func New(o Options) *Server {
	s := &Server{recognizers: make(chan struct{}, mostUtterances)}
	s.Apply(o)
	s.programs = avatar.New(avatar.Options{Kind: "llmvtuber", Feed: o.Feed, Chat: o.Chat, Log: o.Log,
		Shown: []string{feed.KindTool, feed.KindNotice}, MostMessage: limit.Message, PerSecond: mostPerSecond,
		New: func(c *avatar.Conn) avatar.Program {
			return &client{server: s, conn: c, id: newID(), played: make(chan struct{}, 1)}
		}})
	return s
}

// Apply changes with what is heard and spoken, and as who. An answer under way goes on with
// what it began with; Hold of the options before is not called any more once it returns.
func (s *Server) Apply(o Options) {
	o.Model = cmp.Or(o.Model, DefaultModel())
	if o.Hold == nil {
		o.Hold = func() func() { return func() {} }
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o = o
}

// acquireOptions returns the options, and a function to call when they are not used any more.
func (s *Server) acquireOptions() (o Options, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.o, s.o.Hold()
}

// options are those for what needs no engine.
func (s *Server) options() Options {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.o
}

func newID() string { return strings.ToLower(rand.Text()) }

// Run lets clients in until ctx ends, and returns when all are gone.
func (s *Server) Run(ctx context.Context) { s.programs.Run(ctx) }

// client is a connected one.
type client struct {
	server *Server
	conn   *avatar.Conn
	id     string
	played chan struct{}    // has an element once the client says that all sound was played
	heard  *voice.Utterance // what is being spoken; nil is nothing

	// interrupted is when the client last did so. It changes only between two answers.
	interrupted time.Time
}

// Greet begins as the program's own server does.
func (c *client) Greet(ctx context.Context) error {
	microphone := "stop-mic"
	if c.server.options().Recognizer != nil {
		microphone = "start-mic"
	}
	return c.send(ctx, subtitle("Connection established"), c.configuration(), nobody(), control(microphone))
}

func (c *client) configuration() configuration {
	o := c.server.options()
	return configuration{"set-model-and-conf", o.Model.info, o.Name, "perch", c.id}
}

func nobody() group { return group{Type: "group-update", Members: []string{}} }

func (c *client) send(ctx context.Context, messages ...any) error {
	for _, m := range messages {
		if err := c.conn.Send(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// Handle deals with a message. One that is none is answered with an error, as by the
// program's own server.
func (c *client) Handle(ctx context.Context, data []byte) error {
	m, err := parse(data)
	if err != nil {
		return c.send(ctx, newFailed(err.Error()))
	}
	switch m := m.(type) {
	case textInput:
		c.conn.Answer(ctx, func(ctx context.Context) any {
			c.answer(ctx, m.text)
			return nil
		})
	case micData:
		if c.heard == nil {
			c.heard = voice.NewUtterance()
		}
		c.heard.Write(m.pcm) // what is more than an utterance holds is dropped
	case micEnd:
		if heard := c.heard; heard != nil {
			c.heard = nil
			heard.Finish()
			c.conn.Answer(ctx, func(ctx context.Context) any {
				c.understand(ctx, heard)
				return nil
			})
		}
	case interrupt:
		c.conn.Interrupt()
		c.interrupted = time.Now()
	case played:
		select {
		case c.played <- struct{}{}:
		default:
		}
	case request:
		return c.send(ctx, c.reply(m))
	}
	return nil
}

// reply answers a request. Histories, backgrounds and configurations are the program's
// own server's: here are none, and a talk goes on.
func (c *client) reply(r request) any {
	type named struct {
		Type    string `json:"type"`
		History string `json:"history_uid"`
	}
	type gone struct {
		named
		Success bool `json:"success"`
	}
	switch r.kind {
	case "heartbeat":
		return bare{"heartbeat-ack"}
	case "request-init-config":
		return c.configuration()
	case "request-group-info":
		return nobody()
	case "fetch-backgrounds":
		return struct {
			bare
			Files []string `json:"files"`
		}{bare{"background-files"}, []string{}}
	case "fetch-configs":
		return struct {
			bare
			Configs []string `json:"configs"`
		}{bare{"config-files"}, []string{}}
	case "fetch-history-list":
		return struct {
			bare
			Histories []string `json:"histories"`
		}{bare{"history-list"}, []string{}}
	case "fetch-and-set-history":
		return struct {
			bare
			Messages []string `json:"messages"`
		}{bare{"history-data"}, []string{}}
	case "create-new-history":
		return named{"new-history-created", newID()} // the client lists it by that
	case "delete-history":
		return gone{named{"history-deleted", r.history}, false}
	}
	return newFailed("Perch has no groups and no other configurations to switch to")
}

// MessageFor tells of tools and notifications.
func (c *client) MessageFor(f *feed.Frame) any {
	switch b := f.Body.(type) {
	case feed.Tool:
		return newTool(b, c.server.options().Name)
	case feed.Notice:
		return subtitle(b.Text)
	}
	return nil
}

// understand answers an utterance.
func (c *client) understand(ctx context.Context, heard *voice.Utterance) {
	if c.send(ctx, control("conversation-chain-start"), subtitle("Thinking...")) != nil {
		return
	}
	text, err := c.server.recognize(ctx, heard)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		c.conn.Log().Warn("speech was not recognized", "err", err)
		c.fail(ctx, time.Time{}, "the recognizer did not answer; the log of the appliance says why")
	case text == "":
		c.finish(ctx, time.Time{}, subtitle("I did not understand that.")) // an empty one would leave what it shows
	default:
		if c.send(ctx, line{"user-input-transcription", text}) == nil {
			c.converse(ctx, text)
		}
	}
}

// errDeaf is the error where nothing recognizes speech.
var errDeaf = errors.New("there is no recognizer")

// recognize is the text of an utterance; empty where it is not understood.
func (s *Server) recognize(ctx context.Context, heard *voice.Utterance) (string, error) {
	o, done := s.acquireOptions()
	defer done()
	if o.Recognizer == nil {
		return "", errDeaf
	}
	within, cancel := context.WithTimeout(ctx, recognizeWithin)
	defer cancel()
	select {
	case s.recognizers <- struct{}{}:
		defer func() { <-s.recognizers }()
	case <-within.Done():
		return "", within.Err()
	}
	t, err := o.Recognizer.Recognize(within, heard, voice.Options{Language: o.Speech.Language})
	if err != nil || t.Refused {
		return "", err
	}
	return strings.TrimSpace(t.Text), nil
}

// answer answers what was typed.
func (c *client) answer(ctx context.Context, text string) {
	if c.send(ctx, control("conversation-chain-start"), subtitle("Thinking...")) == nil {
		c.converse(ctx, text)
	}
}
