package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"perch/voice"
)

// Fault is why a server did not do what it was asked, as one sentence that
// names cause and cure and holds no key. It wraps voice.ErrUnavailable.
type Fault struct {
	Status   int    // of HTTP; 0 where there was no answer, or the answer was at fault
	Code     string // the server's own word for it, where it gave one
	Sentence string
}

// Error implements error.
func (f *Fault) Error() string { return voice.ErrUnavailable.Error() + ": " + f.Sentence }

// Unwrap returns voice.ErrUnavailable.
func (f *Fault) Unwrap() error { return voice.ErrUnavailable }

func (c *Client) fault(status int, sentence string) *Fault {
	return &Fault{Status: status, Sentence: sentence}
}

// Fault is for an answer that came and is of no use: the sentence goes on
// after the server's name. What is quoted must have gone through Quote.
func (c *Client) Fault(sentence string) error { return c.fault(0, c.place+" "+sentence) }

// Quote is a text of the server as it may be shown: one short line, no keys.
func (c *Client) Quote(text string) string { return c.scrub(text) }

// broken says why there is no answer, or no more of it.
func (a *Answer) broken(err error) error {
	c := a.client
	if ended := a.ctx.Err(); ended != nil {
		return ended
	}
	switch cause := context.Cause(a.within); {
	case errors.Is(cause, errSlow) && a.begun && a.trickles:
		return c.fault(0, c.place+" sends its sound far slower than it is played; is it overloaded, or too slow for this voice?")
	case errors.Is(cause, errSlow) && a.begun:
		return c.fault(0, fmt.Sprintf("%s went silent for %s in the middle of its answer; see the server's log", c.place, c.o.Idle))
	case errors.Is(cause, errSlow):
		return c.fault(0, fmt.Sprintf("%s did not answer within %s; it may be too slow for this model, or stuck", c.place, c.o.FirstByte))
	case errors.Is(cause, errClosed):
		return c.fault(0, "the engine is closed")
	}
	return c.fault(0, c.unreached(err, a.response != nil))
}

// unreached is the sentence for an error of the network.
func (c *Client) unreached(err error, answering bool) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the outer one quotes the URL
	}
	var (
		dns         *net.DNSError
		operation   *net.OpError
		certificate *tls.CertificateVerificationError
		notTLS      tls.RecordHeaderError
		timeout     net.Error
	)
	switch {
	case errors.As(err, &dns):
		return fmt.Sprintf("no host %s is known; check the url, or give the server's address in numbers", c.base.Hostname())
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens where " + c.place + " should be; is it running, and is the url right?"
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &notTLS):
		return c.place + " does not speak TLS; the url should begin with http://"
	case errors.As(err, &certificate):
		return c.place + " shows a certificate that is not trusted here; install its authority, or use http:// at home"
	case errors.As(err, &operation) && operation.Op == "dial" && !operation.Timeout(),
		errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return c.place + " cannot be reached from here; check the url and the network"
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("%s cannot be connected to within %s; is it switched on, and is the url right?", c.place, connectTimeout)
	case answering:
		return c.place + " broke off in the middle of its answer; see the server's log"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return c.place + " cut the connection without an answer; see the server's log"
	case strings.Contains(err.Error(), "malformed"):
		return c.place + " does not answer in HTTP; check the port in the url"
	}
	return c.place + " cannot be talked to (" + c.scrub(err.Error()) + "); check the url"
}

// mostComplaint is how much of an error's body is read, in bytes.
const mostComplaint = 4096

// refused says what a status other than 2xx means.
func (a *Answer) refused() error {
	status := a.response.StatusCode
	body, err := a.beginning(mostComplaint)
	if ended := a.ctx.Err(); err != nil && ended != nil {
		return ended
	}
	kind, _ := a.Kind()
	code, detail := a.client.complaint(kind, body)
	f := a.client.fault(status, a.client.place+" "+a.client.reason(status, code, detail, a))
	f.Code = code
	return f
}

func (c *Client) reason(status int, code, detail string, a *Answer) string {
	said := fmt.Sprint(status)
	if detail != "" {
		said += ": " + strings.TrimRight(detail, ". ")
	}
	about := strings.ToLower(code + " " + detail)
	switch {
	case status/100 == 3:
		to := "elsewhere"
		if at, err := a.response.Location(); err == nil {
			to = c.scrub((&url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path}).String())
		}
		return fmt.Sprintf("sends on to %s (%d); give the url that it is really at", to, status)
	case strings.Contains(about, "quota"), status == http.StatusPaymentRequired:
		return "says that the account's quota is used up (" + said + "); top it up, or wait"
	case (status == http.StatusUnauthorized || status == http.StatusForbidden) && c.o.Key == "":
		return "wants a key (" + said + "); set key_file"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return "refuses the key (" + said + "); check that it is the right one, and what it may do"
	case status == http.StatusTooManyRequests:
		return "wants fewer requests (" + said + "); wait, or raise the account's limit"
	case status < 500 && strings.Contains(about, "voice"):
		return "does not take the voice (" + said + "); check voice"
	case status < 500 && strings.Contains(about, "model"):
		return "does not take the model (" + said + "); check model"
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return "has no " + c.scrub(a.path) + " there (" + said + "); check the url, which mostly ends in /v1"
	case status < 500:
		return "does not take the request (" + said + "); check model, voice and url"
	case status == http.StatusServiceUnavailable:
		return "is not ready (" + said + "); it may still be loading its model"
	}
	return "failed (" + said + "); see the server's log"
}
