package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Codes of faults without a code of the server.
const (
	CodeUnreachable = "unreachable"
	CodeRefused     = "refused" // an HTTP status; see Fault.Status
	CodeSilent      = "silent"
	CodeLost        = "lost" // the connection broke
	CodeOdd         = "odd"  // the answer does not follow the protocol
	CodeClosed      = "closed"
)

// Fault is why a server failed a request: one sentence with cause and cure, without keys.
type Fault struct {
	Sentence string
	Code     string // the server's, or one of the above
	Kind     error  // wrapped error; may be nil
	Refusal         // Status is 0 if there was no answer, or the answer was at fault
}

// Refusal is a server's answer other than success.
type Refusal struct {
	Status int    // HTTP status
	Path   string // that was requested
	Reason string // the server's text, unescaped: Quote it
	After  string // Retry-After
	To     string // Location
}

// Error implements error.
func (f *Fault) Error() string {
	if f.Kind == nil {
		return f.Sentence
	}
	return f.Kind.Error() + ": " + f.Sentence
}

// Unwrap returns the fault's kind.
func (f *Fault) Unwrap() error { return f.Kind }

// Server describes a server for error sentences.
type Server struct {
	Service string   // its name, such as "the speech server"; may be empty
	Address string   // without secrets; see Address
	Key     string   // that is sent; may be empty
	Secrets []string // other text that is never shown, the longest first
	Setting string   // where its key is configured, such as "key_file"
	Check   string   // what to check if it refuses a request, such as "model and url"
	Kind    error    // wrapped by its faults
	// ConnectWithin is a separate deadline for connecting; 0 disables it.
	ConnectWithin time.Duration
}

// Address returns a URL without parts that may be secret: user and query.
func Address(u *url.URL) string { return u.Scheme + "://" + u.Host + u.Path }

// Name returns the beginning of the server's sentences.
func (s *Server) Name() string {
	if s.Service == "" {
		return s.Quote(s.Address)
	}
	return s.Quote(s.Service + " at " + s.Address)
}

// Quote returns text of the server without secrets.
func (s *Server) Quote(text string) string {
	return Quote(text, append([]string{s.Key}, s.Secrets...)...)
}

// Fault returns the fault for a useless answer; sentence follows the server's name. What it
// quotes must have passed Quote.
func (s *Server) Fault(sentence string) *Fault { return s.fault(CodeOdd, sentence) }

func (s *Server) fault(code, sentence string) *Fault {
	return &Fault{Code: code, Sentence: s.Name() + " " + sentence, Kind: s.Kind}
}

// Faultf returns a fault with a whole sentence.
func (s *Server) Faultf(format string, args ...any) *Fault {
	return &Fault{Code: CodeOdd, Sentence: fmt.Sprintf(format, args...), Kind: s.Kind}
}

// Unreachable returns the fault of a connection that failed or broke; answering says that
// the answer had begun.
func (s *Server) Unreachable(err error, answering bool) *Fault {
	if wrapped, ok := errors.AsType[*url.Error](err); ok && wrapped.Err != nil {
		err = wrapped.Err // the outer error repeats the address with its query
	}
	dns, unknown := errors.AsType[*net.DNSError](err)
	operation, _ := errors.AsType[*net.OpError](err)
	timeout, _ := errors.AsType[net.Error](err)
	is := func(all ...error) bool {
		return slices.ContainsFunc(all, func(one error) bool { return errors.Is(err, one) })
	}
	text := err.Error() // some libraries do not wrap
	f := s.fault(CodeUnreachable, "")
	switch {
	case is(syscall.ECONNREFUSED), strings.Contains(text, syscall.ECONNREFUSED.Error()):
		f.Sentence = "nothing listens at " + s.Quote(s.Address) + "; is the server running?"
	case unknown:
		f.Sentence = "there is no host " + s.Quote(dns.Name) + "; check the url and the network, or give the server's address in numbers"
	case is(http.ErrSchemeMismatch), isType[tls.RecordHeaderError](err):
		f.Sentence += "does not speak TLS; the url should begin with http://"
	case isType[x509.UnknownAuthorityError](err), isType[x509.HostnameError](err), isType[x509.CertificateInvalidError](err),
		isType[*tls.CertificateVerificationError](err):
		f.Sentence = "the certificate of " + s.Name() + " is not one this machine trusts; is its clock right? " +
			"Else install its authority, or use http:// at home"
	case operation != nil && operation.Op == "dial" && !operation.Timeout(), is(syscall.EHOSTUNREACH, syscall.ENETUNREACH):
		f.Sentence = "there is no way to " + s.Name() + "; is it switched on, and this machine online?"
	case timeout != nil && timeout.Timeout(), is(context.DeadlineExceeded):
		f.Sentence += "does not answer; is it switched on, and this machine online?"
		if s.ConnectWithin > 0 {
			f.Sentence = s.Name() + " cannot be connected to within " + s.ConnectWithin.String() + "; is it switched on, and is the url right?"
		}
	case answering:
		f.Code, f.Sentence = CodeLost, f.Sentence+"cut the connection in the middle of its answer; see its log"
	case is(io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE):
		f.Code, f.Sentence = CodeLost, f.Sentence+"cut the connection without an answer; see its log"
	case strings.Contains(text, "malformed HTTP"), strings.Contains(text, "malformed MIME"):
		f.Code, f.Sentence = CodeOdd, f.Sentence+"does not answer in HTTP; check the port in the url"
	default:
		f.Code, f.Sentence = CodeOdd, f.Sentence+"cannot be used: "+s.Quote(text)+"; check the url"
	}
	return f
}

func isType[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// StatusText returns a status with its text without secrets: "HTTP 404: gone".
func (s *Server) StatusText(r Refusal) string {
	status := fmt.Sprintf("HTTP %d", r.Status)
	if reason := s.Quote(strings.TrimRight(r.Reason, ". ")); reason != "" {
		return status + ": " + reason
	}
	return status
}

// Refused returns the fault for an HTTP status other than success. A driver first handles
// the statuses with a special meaning at its server.
func (s *Server) Refused(code string, r Refusal) *Fault {
	with := " (" + s.StatusText(r) + ")"
	var what string
	switch {
	case r.Status/100 == 3:
		what = fmt.Sprintf("sends elsewhere (HTTP %d to %s); put the right address into url", r.Status, s.location(r.To))
	case (r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden) && s.Key == "":
		what = "wants a key and none is set" + with + "; set " + s.Setting
	case r.Status == http.StatusPaymentRequired, strings.Contains(strings.ToLower(code+r.Reason), "quota") && r.After == "":
		what = "says that the account has no credit left" + with + "; top it up, or wait"
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden:
		what = "refuses the key" + with + "; check " + s.Setting + ", and what the key may do"
	case r.Status == http.StatusTooManyRequests && r.After != "":
		what = "has had too many requests" + with + "; it asks to wait until " + s.retryAfter(r.After) + " (Retry-After)"
	case r.Status == http.StatusTooManyRequests:
		what = "has had too many requests" + with + "; wait, or raise the account's limit"
	case r.Status == http.StatusNotFound, r.Status == http.StatusMethodNotAllowed:
		what = "has no " + s.Quote(r.Path) + with + "; check the url"
	case r.Status == http.StatusServiceUnavailable:
		what = "is not ready" + with + "; it may still be starting, or loading its model"
	case r.Status >= 500, r.Status == http.StatusRequestTimeout, r.Status == http.StatusTooEarly:
		what = "has failed" + with + "; see its log"
	default:
		what = "refuses the request" + with + "; check " + s.Check
	}
	f := s.fault(code, what)
	if f.Refusal = r; code == "" {
		f.Code = CodeRefused
	}
	return f
}

// Unanswerable reports whether the request is refused because of itself, so that the next
// server would refuse it as well.
func (f *Fault) Unanswerable() bool {
	switch f.Status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound,
		http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return f.Status >= 400 && f.Status < 500
}

// location returns the target of a redirect, without secrets.
func (s *Server) location(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Host == "" {
		return "another path"
	}
	return s.Quote(Address(u))
}

// retryAfter returns a Retry-After header in words.
func (s *Server) retryAfter(text string) string {
	if strings.Trim(text, "0123456789.") == "" {
		return text + " s from now"
	}
	return s.Quote(text)
}
