package hass

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	"perch/remote"
	"perch/socket"
)

// CodeToken is the code of a fault, besides those of remote, for a refused token.
const CodeToken = "auth_invalid"

// Fault is why Home Assistant failed a request. Its code is Home Assistant's, such as
// "pipeline-not-found", CodeToken, or one of remote's.
type Fault = remote.Fault

func (c *Client) fault(code, format string, args ...any) *Fault {
	f := c.Server.Fault(fmt.Sprintf(format, args...))
	f.Code = code
	return f
}

// Silent returns the fault for no answer within that time.
func (c *Client) Silent(within time.Duration) error {
	return c.fault(remote.CodeSilent, "did not answer within %s; it may be overloaded, or wait for a slow engine", within)
}

func (c *Client) closed() error {
	return &Fault{Code: remote.CodeClosed, Sentence: "the connection to Home Assistant is closed"}
}

// cure returns the advice for a code of Home Assistant. The text before the semicolon is the
// cause.
func cure(code string) string {
	const noSTT = "has no speech to text in this Assist pipeline that works; choose one under Settings, Voice assistants"
	return cmp.Or(map[string]string{
		"pipeline-not-found":                "has no such Assist pipeline; check pipeline, which is its id, or leave it out for the preferred one",
		"stt-provider-missing":              noSTT,
		"stt-provider-unsupported-metadata": noSTT,
		"tts-not-supported":                 "has no text to speech in this Assist pipeline that works; choose one under Settings, Voice assistants",
		"intent-not-supported":              "does not have the conversation agent; check agent, or choose one under Settings, Voice assistants",
		"intent-failed":                     "has a conversation agent that failed; see the log of Home Assistant",
		"stt-stream-failed":                 "has a speech to text that failed; see the log of Home Assistant",
		"unknown_command":                   "has no Assist; add the integration assist_pipeline, which default_config brings along",
		"unauthorized":                      "does not let this token's user do that; use the token of another user",
		"timeout":                           "gave up on its Assist pipeline; see which of its engines is slow",
		"not_found":                         "does not know what was asked for; check pipeline, agent and engine",
	}[code], "could not do it; see the log of Home Assistant")
}

// refused returns the fault for a code and a message of Home Assistant.
func (c *Client) refused(code, message string) *Fault {
	code = c.Quote(code)
	sentence := cure(code)
	if said := c.Quote(message); said != "" {
		sentence += " (" + strings.TrimRight(said, ". ") + ")"
	}
	return c.fault(code, "%s", sentence)
}

// Status returns the fault for an HTTP error.
func (c *Client) Status(r remote.Refusal) *Fault {
	f, said := c.Refused("", r), c.StatusText(r)
	switch r.Status {
	case http.StatusUnauthorized:
		f.Sentence, f.Code = c.token().Sentence, CodeToken
	case http.StatusForbidden:
		f.Sentence = c.Name() + " does not let this address in (" + said + "); it bans those that came with wrong tokens, see ip_bans.yaml there"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		f.Sentence += ", and that it has the integration for it"
	case http.StatusOK:
		f.Sentence = c.Name() + " does not open a WebSocket (" + said + "); check the url"
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		f.Sentence = c.Name() + " is not ready (" + said + "); it may still be starting"
	}
	return f
}

func (c *Client) token() *Fault {
	return c.fault(CodeToken, "refuses the token; make a new long-lived access token at the end of your profile page there, and set token_file")
}

// unreached returns why there is no connection.
func (c *Client) unreached(err error) error {
	if refusal, ok := errors.AsType[*socket.Refusal](err); ok {
		_, words := remote.Message([]byte(refusal.Text))
		return c.Status(remote.Refusal{Status: refusal.Status, Path: "/api/websocket", Reason: words})
	}
	f := c.Unreachable(err, false)
	if errors.Is(err, syscall.ECONNREFUSED) {
		f.Sentence += " Is the port right (mostly 8123)?"
	}
	return f
}

// lost returns why a connection has ended.
func (c *Client) lost(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return c.fault(remote.CodeLost, "closed the connection before it had answered; is it restarting?")
	case errors.Is(err, socket.ErrTooBig):
		return c.fault(remote.CodeOdd, "sent a message of more than %d bytes; see which integration does that", mostMessage)
	}
	return c.fault(remote.CodeOdd, "broke the protocol of a WebSocket (%s); is there a proxy before it?", c.Quote(err.Error()))
}
