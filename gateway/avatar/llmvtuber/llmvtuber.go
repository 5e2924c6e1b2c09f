// Package llmvtuber is the server for Open-LLM-VTuber's client, the web page or desktop
// program that draws a Live2D model: it takes the place of that project's own server
// (/client-ws). The agent answers what is typed or spoken there; each sentence is sent with
// its sound, the loudness for the mouth and the expression of the face. Running tools and
// notifications are shown as the client shows its own.
//
// The protocol is that of Open-LLM-VTuber 1.2 (commit 19b58b1, its client d176e7d). It has
// no keys; the client passes Perch's key as httpserver.InUpgrade describes.
package llmvtuber

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/gateway/avatar"
	"perch/gateway/avatar/feed"
	"perch/voice"
)

// Options are the dependencies of a Server. Without a Recognizer speech is not understood;
// without a Synthesizer sentences are shown but not spoken.
type Options struct {
	Feed        *feed.Feed
	Chat        avatar.Chat
	Recognizer  voice.Recognizer
	Synthesizer voice.Synthesizer
	Hold        func() (done func()) // keeps both engines open until done is called; nil if they are never closed
	Words       *agent.Words
	Model       *Model // nil is DefaultModel
	Name        string // of the speaker, as it is shown
	Speech      voice.Options
	Loudness    *voice.Loudness // of what the clients play, by session
	Log         *slog.Logger
}

// Limits of all clients together, which leave the engines to the robots.
const (
	mostUtterances = 1 // being recognized
	mostPerSecond  = 100

	recognizeWithin = time.Minute
)

// Server accepts clients. Run disconnects them at the end.
type Server struct {
	*avatar.Server
	mu          sync.Mutex
	o           Options
	recognizers chan struct{} // holds an element for each utterance being recognized
}

// New returns a server.
func New(o Options) *Server {
	s := &Server{recognizers: make(chan struct{}, mostUtterances)}
	s.Apply(o)
	s.Server = avatar.New(avatar.Options{Kind: "llmvtuber", Path: "/client-ws", Feed: o.Feed, Chat: o.Chat, PerSecond: mostPerSecond,
		Log: o.Log, New: func(c *avatar.Conn) avatar.Program {
			return &client{server: s, conn: c, id: newID(), played: make(chan struct{}, 1)}
		}})
	return s
}

// Apply replaces the engines, words, model, name and speech options. A current answer
// continues with the previous ones. After Apply returns the previous Hold is not called.
func (s *Server) Apply(o Options) {
	o.Model = cmp.Or(o.Model, DefaultModel())
	if o.Hold == nil {
		o.Hold = func() func() { return func() {} }
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o = o
}

// acquireOptions returns the options with the engines held until done is called.
func (s *Server) acquireOptions() (o Options, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.o, s.o.Hold()
}

// options returns the options, for uses that need no engine.
func (s *Server) options() Options {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.o
}

func newID() string { return strings.ToLower(rand.Text()) }

// client is a connected client.
type client struct {
	server *Server
	conn   *avatar.Conn
	id     string
	played chan struct{}    // holds an element after the client says that it has played all sound
	heard  *voice.Utterance // the utterance being spoken, or nil

	// interrupted is the time of the client's last interruption. It changes only between
	// two answers.
	interrupted time.Time
}

// Greet sends the messages that Open-LLM-VTuber's own server begins with.
func (c *client) Greet(ctx context.Context) error {
	microphone := "stop-mic"
	if c.server.options().Recognizer != nil {
		microphone = "start-mic"
	}
	return c.send(ctx, subtitle("Connection established"), c.configuration(), emptyGroup(), control(microphone))
}

func (c *client) configuration() configuration {
	o := c.server.options()
	return configuration{"set-model-and-conf", o.Model.info, o.Name, "perch", c.id}
}

func (c *client) send(ctx context.Context, messages ...any) error {
	for _, m := range messages {
		if err := c.conn.Send(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// Handle handles a message. Like Open-LLM-VTuber's own server it answers an invalid one
// with an error.
func (c *client) Handle(ctx context.Context, data []byte) error {
	m, err := parse(data)
	if err != nil {
		return c.send(ctx, newFailed(err.Error()))
	}
	switch m.kind {
	case "text-input":
		c.conn.Answer(ctx, func(ctx context.Context) any {
			if c.startTurn(ctx) == nil {
				c.converse(ctx, m.text)
			}
			return nil
		})
	case "mic-audio-data":
		if c.heard == nil {
			c.heard = voice.NewUtterance()
		}
		c.heard.Write(m.pcm) // drops what exceeds an utterance
	case "mic-audio-end":
		if heard := c.heard; heard != nil {
			c.heard = nil
			heard.Finish()
			c.conn.Answer(ctx, func(ctx context.Context) any {
				c.understand(ctx, heard)
				return nil
			})
		}
	case "interrupt-signal":
		c.conn.Interrupt()
		c.interrupted = time.Now()
	case "frontend-playback-complete":
		select {
		case c.played <- struct{}{}:
		default:
		}
	default:
		if reply := c.reply(m); reply != nil {
			return c.send(ctx, reply)
		}
	}
	return nil
}

// reply returns the answer to a request, or nil for a message that needs none. Perch has no
// histories, backgrounds or configurations to choose from.
func (c *client) reply(m message) any {
	switch m.kind {
	case "heartbeat":
		return bare{"heartbeat-ack"}
	case "request-init-config":
		return c.configuration()
	case "request-group-info":
		return emptyGroup()
	case "fetch-backgrounds":
		return json.RawMessage(`{"type":"background-files","files":[]}`)
	case "fetch-configs":
		return json.RawMessage(`{"type":"config-files","configs":[]}`)
	case "fetch-history-list":
		return json.RawMessage(`{"type":"history-list","histories":[]}`)
	case "fetch-and-set-history":
		return json.RawMessage(`{"type":"history-data","messages":[]}`)
	case "create-new-history":
		return history{"new-history-created", newID(), nil} // the client lists it under this id
	case "delete-history":
		return history{"history-deleted", m.history, new(false)}
	case "switch-config", "add-client-to-group", "remove-client-from-group":
		return newFailed("Perch has no groups and no other configurations to switch to")
	}
	return nil
}

// MessageFor returns a message with a tool or a notification.
func (c *client) MessageFor(f *feed.Frame) any {
	switch b := f.Body.(type) {
	case feed.Tool:
		return newTool(b, c.server.options().Name)
	case feed.Notice:
		return subtitle(b.Text)
	}
	return nil
}

func (c *client) startTurn(ctx context.Context) error {
	return c.send(ctx, control("conversation-chain-start"), subtitle("Thinking..."))
}

// understand answers an utterance.
func (c *client) understand(ctx context.Context, heard *voice.Utterance) {
	if c.startTurn(ctx) != nil {
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
		c.finish(ctx, time.Time{}, subtitle("I did not understand that.")) // replaces "Thinking..."
	default:
		if c.send(ctx, line{"user-input-transcription", text}) == nil {
			c.converse(ctx, text)
		}
	}
}

var errNoRecognizer = errors.New("there is no recognizer")

// recognize returns the text of an utterance, or "" if it was not understood.
func (s *Server) recognize(ctx context.Context, heard *voice.Utterance) (string, error) {
	o, done := s.acquireOptions()
	defer done()
	if o.Recognizer == nil {
		return "", errNoRecognizer
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
