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
	CodeUnreachable = "unreachable" // the server cannot be connected to, or does not respond
	CodeRefused     = "refused"     // the response has another status than 2xx; see Fault.Status
	CodeSilent      = "silent"      // the response, or the next piece of the response, came too late
	CodeLost        = "lost"        // the connection broke
	CodeOdd         = "odd"         // the request cannot be sent, or the response cannot be used
	CodeClosed      = "closed"      // the client was closed
)

// Fault is the error of a failed request.
type Fault struct {
	Sentence string // cause and remedy in one sentence, without keys
	Code     string // code from the server, or one of the constants such as CodeLost
	Kind     error  // error that the fault wraps; may be nil
	Refusal         // Status is 0 unless the server has refused the request
}

// Refusal is a response with another HTTP status than 2xx.
type Refusal struct {
	Status int    // HTTP status
	Path   string // path that was requested
	Reason string // the server's text, which may contain keys; must pass Quote before it is shown
	After  string // value of the header Retry-After; may be empty
	To     string // value of the header Location; may be empty
}

// Error implements error.
func (f *Fault) Error() string {
	if f.Kind == nil {
		return f.Sentence
	}
	return f.Kind.Error() + ": " + f.Sentence
}

// Unwrap returns the kind of the fault.
func (f *Fault) Unwrap() error { return f.Kind }

// Server describes a server for error sentences.
type Server struct {
	Service string   // name of the service, such as "the speech server"; may be empty
	Address string   // URL without secrets; see the function Address
	Key     string   // key sent with requests; may be empty
	Secrets []string // other texts that must not be shown, the longest first
	Setting string   // name of the setting of the key, such as "key_file"
	Check   string   // the settings to check after a refused request, such as "model and url"
	Kind    error    // error that the server's faults wrap; may be nil
	// ConnectWithin is the transport's deadline for connecting; 0 if the deadline of a
	// request includes connecting.
	ConnectWithin time.Duration
}

// ParseBase parses the base address of a server, such as example, and removes its trailing slashes.
func ParseBase(text, example string) (*url.URL, error) {
	base, err := url.Parse(strings.TrimSpace(text))
	switch {
	case text == "":
		return nil, errors.New("url is missing; it is the server's base address, as in " + example)
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return nil, errors.New("url is not the address of a server, such as " + example)
	case base.User != nil:
		return nil, errors.New("url holds a password; put the key into key or key_file")
	}
	base.Path, base.RawPath, base.Fragment = strings.TrimRight(base.Path, "/"), "", ""
	return base, nil
}

// Address returns a URL without the user and the query, which may be secret.
func Address(u *url.URL) string { return u.Scheme + "://" + u.Host + u.Path }

// Name returns the server's name and address, with which error sentences begin.
func (s *Server) Name() string {
	if s.Service == "" {
		return s.Quote(s.Address)
	}
	return s.Quote(s.Service + " at " + s.Address)
}

// Quote returns text from the server without secrets, and shortened; see the function Quote.
func (s *Server) Quote(text string) string {
	return Quote(text, append([]string{s.Key}, s.Secrets...)...)
}

// Fault returns the error for a response that cannot be used. The field Sentence of the error is the
// server's name followed by sentence. Text from the server in sentence must have passed Quote.
func (s *Server) Fault(sentence string) *Fault { return s.fault(CodeOdd, sentence) }

// fault is Fault with a code.
func (s *Server) fault(code, sentence string) *Fault {
	return &Fault{Code: code, Sentence: s.Name() + " " + sentence, Kind: s.Kind}
}

// Faultf is Fault for a whole sentence: the server's name is not put before it.
func (s *Server) Faultf(format string, args ...any) *Fault {
	return &Fault{Code: CodeOdd, Sentence: fmt.Sprintf(format, args...), Kind: s.Kind}
}

// Unreachable returns the fault for a connection that failed or broke. answering is whether the
// response had begun.
func (s *Server) Unreachable(err error, answering bool) *Fault {
	if wrapped, ok := errors.AsType[*url.Error](err); ok && wrapped.Err != nil {
		err = wrapped.Err // the outer error repeats the address with its query
	}
	dns, unknown := errors.AsType[*net.DNSError](err)
	operation, _ := errors.AsType[*net.OpError](err)
	timeout, _ := errors.AsType[net.Error](err)
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
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

// isType reports whether err is or wraps an error of type E.
func isType[E error](err error) bool {
	_, found := errors.AsType[E](err)
	return found
}

// StatusText returns the status and the reason without secrets: "HTTP 404: gone".
func (s *Server) StatusText(r Refusal) string {
	status := fmt.Sprintf("HTTP %d", r.Status)
	if reason := s.Quote(strings.TrimRight(r.Reason, ". ")); reason != "" {
		return status + ": " + reason
	}
	return status
}

// Refused returns the fault for a refusal. code is the server's code, or "" for CodeRefused. For a
// status with a special meaning at its server, a driver makes a sentence itself.
func (s *Server) Refused(code string, r Refusal) *Fault {
	details := " (" + s.StatusText(r) + ")"
	var sentence string
	switch {
	case r.Status/100 == 3:
		sentence = fmt.Sprintf("sends elsewhere (HTTP %d to %s); put the right address into url", r.Status, s.location(r.To))
	case (r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden) && s.Key == "":
		sentence = "wants a key and none is set" + details + "; set " + s.Setting
	case r.Status == http.StatusPaymentRequired, strings.Contains(strings.ToLower(code+r.Reason), "quota") && r.After == "":
		sentence = "says that the account has no credit left" + details + "; top it up, or wait"
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden:
		sentence = "refuses the key" + details + "; check " + s.Setting + ", and what the key may do"
	case r.Status == http.StatusTooManyRequests && r.After != "":
		sentence = "has had too many requests" + details + "; it asks to wait until " + s.retryAfter(r.After) + " (Retry-After)"
	case r.Status == http.StatusTooManyRequests:
		sentence = "has had too many requests" + details + "; wait, or raise the account's limit"
	case r.Status == http.StatusNotFound, r.Status == http.StatusMethodNotAllowed:
		sentence = "has no " + s.Quote(r.Path) + details + "; check the url"
	case r.Status == http.StatusServiceUnavailable:
		sentence = "is not ready" + details + "; it may still be starting, or loading its model"
	case r.Status >= 500, r.Status == http.StatusRequestTimeout, r.Status == http.StatusTooEarly:
		sentence = "has failed" + details + "; see its log"
	default:
		sentence = "refuses the request" + details + "; check " + s.Check
	}
	f := s.fault(code, sentence)
	if f.Refusal = r; code == "" {
		f.Code = CodeRefused
	}
	return f
}

// Unanswerable reports whether the server has refused the request because of the request's content.
// Other servers would probably refuse the request too.
func (f *Fault) Unanswerable() bool {
	switch f.Status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound,
		http.StatusMethodNotAllowed, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return f.Status >= 400 && f.Status < 500
}

// location returns the target of a redirect without secrets, or "another path" if the target
// names no host.
func (s *Server) location(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Host == "" {
		return "another path"
	}
	return s.Quote(Address(u))
}

// retryAfter returns the value of a header Retry-After in words. The value is a number of seconds or a
// date.
func (s *Server) retryAfter(text string) string {
	if strings.Trim(text, "0123456789.") == "" {
		return text + " s from now"
	}
	return s.Quote(text)
}
