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

// CodeToken is the code of the fault for a refused token, in addition to the codes of package
// remote.
const CodeToken = "auth_invalid"

// Fault is the reason why a request failed. Its code is CodeToken, a code of package remote, or a
// code that Home Assistant sent, such as "pipeline-not-found".
type Fault = remote.Fault

// fault returns a fault with a code. The fault's sentence is "Home Assistant at" and its address,
// followed by the formatted text.
func (c *Client) fault(code, format string, args ...any) *Fault {
	f := c.Server.Fault(fmt.Sprintf(format, args...))
	f.Code = code
	return f
}

// TimeoutFault returns the fault for a response that did not arrive within the given time.
func (c *Client) TimeoutFault(within time.Duration) error {
	return c.fault(remote.CodeSilent, "did not answer within %s; it may be overloaded, or wait for a slow engine", within)
}

// closed returns the fault for a connection that this program has closed.
func (c *Client) closed() error {
	return &Fault{Code: remote.CodeClosed, Sentence: "the connection to Home Assistant is closed"}
}

// explain returns the cause and advice for an error code of Home Assistant, with a semicolon
// between them. The text continues a sentence that begins with the name of the server. For an
// unknown code the advice is to read Home Assistant's log.
func explain(code string) string {
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
		"timeout":                           "did not finish its Assist pipeline in time; find out which of its engines is slow",
		"not_found":                         "does not have the requested object; check pipeline, agent and engine",
	}[code], "failed; see the log of Home Assistant")
}

// refused returns the fault for an error with a code and a message from Home Assistant.
func (c *Client) refused(code, message string) *Fault {
	code = c.Quote(code)
	sentence := explain(code)
	if quoted := c.Quote(message); quoted != "" {
		sentence += " (" + strings.TrimRight(quoted, ". ") + ")"
	}
	return c.fault(code, "%s", sentence)
}

// StatusFault returns the fault for an HTTP response with an unexpected status.
func (c *Client) StatusFault(r remote.Refusal) *Fault {
	f, status := c.Refused("", r), c.StatusText(r)
	switch r.Status {
	case http.StatusUnauthorized:
		f.Sentence, f.Code = c.tokenRefused().Sentence, CodeToken
	case http.StatusForbidden:
		f.Sentence = c.Name() + " does not accept requests from this address (" + status + "); it bans addresses after wrong tokens, see its ip_bans.yaml"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		f.Sentence += ", and that it has the integration for it"
	case http.StatusOK:
		f.Sentence = c.Name() + " does not open a WebSocket (" + status + "); check the url"
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		f.Sentence = c.Name() + " is not ready (" + status + "); it may still be starting"
	}
	return f
}

// tokenRefused returns the fault for a refused token.
func (c *Client) tokenRefused() *Fault {
	return c.fault(CodeToken, "refuses the token; make a new long-lived access token at the end of your profile page there, and set token_file")
}

// unreached returns the fault for a connection that could not be opened because of err.
func (c *Client) unreached(err error) error {
	if refusal, ok := errors.AsType[*socket.Refusal](err); ok {
		_, reason := remote.Message([]byte(refusal.Text))
		return c.StatusFault(remote.Refusal{Status: refusal.Status, Path: "/api/websocket", Reason: reason})
	}
	f := c.Unreachable(err, false)
	if errors.Is(err, syscall.ECONNREFUSED) {
		f.Sentence += " Is the port right (usually 8123)?"
	}
	return f
}

// lost returns the fault for a connection that has ended because of err.
func (c *Client) lost(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return c.fault(remote.CodeLost, "closed the connection without a response; is it restarting?")
	case errors.Is(err, socket.ErrTooBig):
		return c.fault(remote.CodeOdd, "sent a message of more than %d bytes; find out which integration does that", maxMessage)
	}
	return c.fault(remote.CodeOdd, "broke the WebSocket protocol (%s); is there a proxy in between?", c.Quote(err.Error()))
}
