package hass

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"time"
	"unicode"

	"perch/socket"
)

// Codes of faults that Home Assistant has no code for.
const (
	CodeUnreachable = "unreachable"
	CodeRefused     = "refused" // an HTTP status; see Fault.Status
	CodeToken       = "auth_invalid"
	CodeSilent      = "silent"
	CodeLost        = "lost" // the connection broke
	CodeOdd         = "odd"  // an answer that no Home Assistant gives
	CodeClosed      = "closed"
)

// Fault is why Home Assistant did not do what it was asked, as one sentence
// that names cause and cure and never holds the token.
type Fault struct {
	Code     string // Home Assistant's own, such as "pipeline-not-found", or one of ours
	Status   int    // of HTTP, where there was one
	Sentence string
}

// Error implements error.
func (f *Fault) Error() string { return f.Sentence }

func (c *Client) fault(code, format string, args ...any) *Fault {
	return &Fault{Code: code, Sentence: c.place + " " + fmt.Sprintf(format, args...)}
}

// Fault is for an answer that came and is of no use: the sentence goes on
// after the server's name. What is quoted must have gone through Quote.
func (c *Client) Fault(sentence string) error { return c.fault(CodeOdd, "%s", sentence) }

// Silent is the fault of one that has not answered for so long.
func (c *Client) Silent(within time.Duration) error {
	return c.fault(CodeSilent, "did not answer within %s; it may be overloaded, or wait for a slow engine", within)
}

func (c *Client) closed() error {
	return &Fault{Code: CodeClosed, Sentence: "the connection to Home Assistant is closed"}
}

// cure says what to do about the codes of Home Assistant. What comes before
// the semicolon is the cause.
func cure(code string) string {
	switch code {
	case "pipeline-not-found":
		return "has no such Assist pipeline; check pipeline, which is its id, or leave it out for the preferred one"
	case "stt-provider-missing", "stt-provider-unsupported-metadata":
		return "has no speech to text in this Assist pipeline that works; choose one under Settings, Voice assistants"
	case "tts-not-supported":
		return "has no text to speech in this Assist pipeline that works; choose one under Settings, Voice assistants"
	case "intent-not-supported":
		return "does not have the conversation agent; check agent, or choose one under Settings, Voice assistants"
	case "intent-failed":
		return "has a conversation agent that failed; see the log of Home Assistant"
	case "stt-stream-failed":
		return "has a speech to text that failed; see the log of Home Assistant"
	case "unknown_command":
		return "has no Assist; add the integration assist_pipeline, which default_config brings along"
	case "unauthorized":
		return "does not let this token's user do that; use the token of another user"
	case "timeout":
		return "gave up on its Assist pipeline; see which of its engines is slow"
	case "not_found":
		return "does not know what was asked for; check pipeline, agent and engine"
	}
	return "could not do it; see the log of Home Assistant"
}

// refused is the fault for a code and a message of Home Assistant's.
func (c *Client) refused(code, message string) *Fault {
	code = c.Quote(code)
	sentence := cure(code)
	if said := c.Quote(message); said != "" {
		sentence += " (" + strings.TrimRight(said, ". ") + ")"
	}
	return c.fault(code, "%s", sentence)
}

// Status says what an HTTP status other than 2xx means, with what came with it
// at that path.
func (c *Client) Status(status int, path, text string) *Fault {
	said := fmt.Sprint(status)
	if text = c.Quote(message(text)); text != "" {
		said += ": " + strings.TrimRight(text, ". ")
	}
	var f *Fault
	switch {
	case status == http.StatusUnauthorized:
		f = c.token()
	case status == http.StatusForbidden:
		f = c.fault(CodeRefused, "does not let this address in (%s); it bans those that came with wrong tokens, see ip_bans.yaml there", said)
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		f = c.fault(CodeRefused, "has no %s (%s); check the url, and that it has the integration for it", path, said)
	case status/100 == 3:
		f = c.fault(CodeRefused, "sends on to elsewhere (%s); give the url that it is really at", said)
	case status/100 == 2:
		f = c.fault(CodeRefused, "does not open a WebSocket (%s); check the url", said)
	case status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		f = c.fault(CodeRefused, "is not ready (%s); it may still be starting", said)
	case status/100 == 5:
		f = c.fault(CodeRefused, "failed (%s); see its log", said)
	default:
		f = c.fault(CodeRefused, "does not take the request (%s); check agent, engine, voice and language", said)
	}
	f.Status = status
	return f
}

func (c *Client) token() *Fault {
	return c.fault(CodeToken, "refuses the token; make a new long-lived access token at the end of your profile page there, and set token_file")
}

// unreached says why there is no connection.
func (c *Client) unreached(err error) error {
	var refusal *socket.Refusal
	if errors.As(err, &refusal) {
		return c.Status(refusal.Status, "/api/websocket", refusal.Text)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the outer one quotes the URL
	}
	var (
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		notTLS      tls.RecordHeaderError
		slow        net.Error
	)
	switch {
	case errors.As(err, &slow) && slow.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return c.fault(CodeUnreachable, "cannot be connected to within %s; is it switched on, and is the url right?", c.o.ConnectWithin)
	case errors.As(err, &dns):
		return c.fault(CodeUnreachable, "is not found, for no such host is known; check the url, or give its address in numbers")
	case errors.Is(err, syscall.ECONNREFUSED):
		return c.fault(CodeUnreachable, "does not listen there; is it running, and is the port right (mostly 8123)?")
	case errors.As(err, &certificate):
		return c.fault(CodeUnreachable, "shows a certificate that is not trusted here; install its authority, or use http:// at home")
	case errors.As(err, &notTLS), errors.Is(err, http.ErrSchemeMismatch):
		return c.fault(CodeUnreachable, "does not speak TLS; the url should begin with http://")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return c.fault(CodeUnreachable, "cannot be reached from here; check the url and the network")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, net.ErrClosed):
		return c.fault(CodeLost, "cut the connection without an answer; see its log")
	}
	return c.fault(CodeOdd, "does not answer as Home Assistant does; check host and port in the url (%s)", c.Quote(err.Error()))
}

// lost is why a connection that stood is over.
func (c *Client) lost(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return c.fault(CodeLost, "closed the connection before it had answered; is it restarting?")
	case errors.Is(err, socket.ErrTooBig):
		return c.fault(CodeOdd, "sent a message of more than %d bytes; see which integration does that", mostMessage)
	}
	return c.fault(CodeOdd, "broke the protocol of a WebSocket (%s); is there a proxy before it?", c.Quote(err.Error()))
}

// likeToken matches what looks like a token, whoever's it is: a JWT or its
// beginning, a bearer's, and long runs of letters with a digit among them.
var likeToken = regexp.MustCompile(`(?i)\beyJ[\w.-]+|\bbearer\s+\S+|\b[A-Za-z_]*\d\w{30,}`)

const (
	longestQuote = 200     // bytes that are quoted of a server
	mostQuoted   = 4 << 10 // bytes that are looked at for it
)

// Quote is a text of the server as it may be shown: one short line, and no
// token.
func (c *Client) Quote(text string) string {
	text = strings.ReplaceAll(text, c.o.Token, "(token)")
	for n := len(c.o.Token) - 1; n >= 4; n-- { // a limit may have cut it in two
		text = strings.TrimSuffix(text, c.o.Token[:n])
	}
	text = text[:min(len(text), mostQuoted)]
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))), " ")
	text = strings.ReplaceAll(text, c.o.Token, "(token)")
	text = likeToken.ReplaceAllString(text, "(token)")
	if len(text) > longestQuote {
		text = strings.ToValidUTF8(text[:longestQuote], "") + "…"
	}
	return text
}
