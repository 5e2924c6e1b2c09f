// Package llmvtuber is a server for the client of Open-LLM-VTuber, a web page or desktop
// program that draws a Live2D model. Perch replaces that project's own server (path /client-ws). The
// agent answers the text or speech that the client sends. The client gets each sentence of the
// reply with its sound, the loudness for the mouth and the expression for the face. The client
// also shows tool calls and notifications.
//
// The protocol is the one of Open-LLM-VTuber 1.2 (commit 19b58b1, client commit d176e7d). The
// protocol has no keys; the client passes Perch's key as httpserver.InUpgrade describes.
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

// Options are the dependencies of a Server.
type Options struct {
	Feed        *feed.Feed
	Chat        avatar.Chat
	Recognizer  voice.Recognizer     // nil if speech cannot be recognized
	Synthesizer voice.Synthesizer    // nil if sentences are shown but not spoken
	Hold        func() (done func()) // keeps Recognizer and Synthesizer open until done is called; nil if they are never closed
	Words       *agent.Words
	Model       *Model // nil for DefaultModel
	Name        string // name of the character, which the client shows
	Speech      voice.Options
	Loudness    *voice.Loudness // receives the loudness of the clients' sound; key: session ID
	Log         *slog.Logger
}

const (
	maxUtterances = 1   // utterances of all clients that are recognized at a time: the robots need the recognizer too
	maxPerSecond  = 100 // messages from one client

	recognizeTimeout = time.Minute // includes the wait for the recognizer
)

// Server accepts clients.
type Server struct {
	*avatar.Server
	mu          sync.Mutex
	o           Options
	recognizers chan struct{} // semaphore of maxUtterances
}

// New returns a server.
func New(o Options) *Server {
	s := &Server{recognizers: make(chan struct{}, maxUtterances)}
	s.Apply(o)
	s.Server = avatar.New(avatar.Options{Kind: "llmvtuber", Path: "/client-ws", Feed: o.Feed, Chat: o.Chat, PerSecond: maxPerSecond,
		Log: o.Log, New: func(c *avatar.Conn) avatar.Program {
			return &client{server: s, conn: c, id: newID(), played: make(chan struct{}, 1)}
		}})
	return s
}

// Apply replaces the options, except for Feed, Chat and Log. A reply in progress continues with the
// previous options. The previous Hold is not called after Apply has returned.
func (s *Server) Apply(o Options) {
	o.Model = cmp.Or(o.Model, DefaultModel())
	if o.Hold == nil {
		o.Hold = func() func() { return func() {} }
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o = o
}

// acquireOptions returns the options, and keeps Recognizer and Synthesizer open until release is called.
func (s *Server) acquireOptions() (o Options, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.o, s.o.Hold()
}

// options returns the options. The caller must not use Recognizer and Synthesizer, because they may be
// closed.
func (s *Server) options() Options {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.o
}

// newID returns a random ID.
func newID() string { return strings.ToLower(rand.Text()) }

// client is a connected client.
type client struct {
	server    *Server
	conn      *avatar.Conn
	id        string
	played    chan struct{}    // receives an element when the client reports that it has played all sound
	utterance *voice.Utterance // speech that is being received, or nil

	// interrupted is when the client last interrupted a reply. It is not written while a reply
	// is in progress.
	interrupted time.Time
}

// Greet sends the messages with which Open-LLM-VTuber's own server begins.
func (c *client) Greet(ctx context.Context) error {
	microphone := "stop-mic"
	if c.server.options().Recognizer != nil {
		microphone = "start-mic"
	}
	return c.send(ctx, newSubtitle("Connection established"), c.configuration(), emptyGroup(), newControl(microphone))
}

// configuration returns the message with the model and the character's name.
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

// Handle handles a message. Like Open-LLM-VTuber's own server, it answers an invalid message with an
// error message.
func (c *client) Handle(ctx context.Context, data []byte) error {
	m, err := parse(data)
	if err != nil {
		return c.send(ctx, newErrorMessage(err.Error()))
	}
	switch m.kind {
	case "text-input":
		c.conn.StartReply(ctx, func(ctx context.Context) any {
			if c.startTurn(ctx) == nil {
				c.converse(ctx, m.text)
			}
			return nil
		})
	case "mic-audio-data":
		if c.utterance == nil {
			c.utterance = voice.NewUtterance()
		}
		c.utterance.Write(m.pcm) // drops sound beyond the maximum length
	case "mic-audio-end":
		if utterance := c.utterance; utterance != nil {
			c.utterance = nil
			utterance.Finish()
			c.conn.StartReply(ctx, func(ctx context.Context) any {
				c.answerSpeech(ctx, utterance)
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
		if response := c.responseTo(m); response != nil {
			return c.send(ctx, response)
		}
	}
	return nil
}

// responseTo returns the response to a request, or nil for a message that needs none. All lists
// are empty, because Perch has no histories, backgrounds or configurations to choose from.
func (c *client) responseTo(m message) any {
	switch m.kind {
	case "heartbeat":
		return bareMessage{"heartbeat-ack"}
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
		return history{"new-history-created", newID(), nil} // the client shows this ID in its list
	case "delete-history":
		return history{"history-deleted", m.history, new(false)}
	case "switch-config", "add-client-to-group", "remove-client-from-group":
		return newErrorMessage("Perch has no groups and no other configurations to switch to")
	}
	return nil
}

// MessageFor returns a message that shows a tool call or a notification.
func (c *client) MessageFor(f *feed.Frame) any {
	switch b := f.Body.(type) {
	case feed.Tool:
		return newTool(b, c.server.options().Name)
	case feed.Notice:
		return newSubtitle(b.Text)
	}
	return nil
}

// startTurn tells the client that a reply will follow.
func (c *client) startTurn(ctx context.Context) error {
	return c.send(ctx, newControl("conversation-chain-start"), newSubtitle("Thinking..."))
}

// answerSpeech recognizes an utterance, and has the agent answer its text.
func (c *client) answerSpeech(ctx context.Context, utterance *voice.Utterance) {
	if c.startTurn(ctx) != nil {
		return
	}
	text, err := c.server.recognize(ctx, utterance)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		c.conn.Log().Warn("could not recognize speech", "err", err)
		c.fail(ctx, time.Time{}, "the recognizer did not answer; the log of the appliance says why")
	case text == "":
		c.finish(ctx, time.Time{}, newSubtitle("I did not understand that.")) // replaces "Thinking..."
	default:
		if c.send(ctx, textMessage{"user-input-transcription", text}) == nil {
			c.converse(ctx, text)
		}
	}
}

// errNoRecognizer is the error of recognize without Options.Recognizer.
var errNoRecognizer = errors.New("there is no recognizer")

// recognize returns the text of an utterance, or "" if no words were recognized.
func (s *Server) recognize(ctx context.Context, utterance *voice.Utterance) (string, error) {
	o, release := s.acquireOptions()
	defer release()
	if o.Recognizer == nil {
		return "", errNoRecognizer
	}
	ctx, cancel := context.WithTimeout(ctx, recognizeTimeout)
	defer cancel()
	select {
	case s.recognizers <- struct{}{}:
		defer func() { <-s.recognizers }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	t, err := voice.RecognizePatiently(ctx, o.Recognizer, utterance, voice.Options{Language: o.Speech.Language}, func() {})
	if err != nil || t.Refused {
		return "", err
	}
	return strings.TrimSpace(t.Text), nil
}
