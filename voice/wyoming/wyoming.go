package wyoming

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"perch/remote"
	"perch/voice"
)

// connectWithin bounds finding and reaching the server, and again its description.
const connectWithin = 5 * time.Second

// Options of an Engine.
type Options struct {
	Address string // tcp://host:port; empty to search the network
	Voice   string // as the server lists it; empty for the server's choice
	Model   string // of speech to text, as the server lists it; empty for the server's choice
	// AnswerWithin is how long the server may be silent once it has its whole input:
	// until its text or first sound, and between two pieces of sound. 0 is
	// remote.Patience; a large whisper on a small computer takes longer.
	AnswerWithin time.Duration
	// Find lists the servers on the network as host:port, the best first. It is used if
	// Address is empty, and returns when ctx ends, with what it has found.
	Find func(ctx context.Context) ([]string, error)
	Log  *slog.Logger
}

// Engine is a voice.Recognizer and a voice.Synthesizer that uses a Wyoming server: the one
// at an address, or the first found that serves a call. It is safe for concurrent use. It
// opens a connection per call, since many servers close theirs after an answer.
type Engine struct {
	o     Options
	fixed *server // nil if the network is searched
	found *finder // nil if fixed is set
	// rate is the latest sound's, so that a resampler for the next is ready before the
	// sound arrives: making one takes longer than the network does.
	rate atomic.Int64
	// Options of the latest calls; nil if there was none.
	recognizeWith, synthesizeWith atomic.Pointer[voice.Options]
}

// New returns an engine for the server at o.Address, or for the servers that o.Find finds.
// It opens no connection.
func New(o Options) (*Engine, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o.AnswerWithin = cmp.Or(o.AnswerWithin, remote.Patience)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	e := &Engine{o: o}
	e.rate.Store(22050) // piper's usual rate
	if o.Address == "" && o.Find != nil {
		e.found = newFinder(o)
		return e, nil
	}
	host, port, err := parseAddress(o.Address)
	if err != nil {
		return nil, err
	}
	e.fixed = newServer(host, port, o)
	return e, nil
}

// Check validates the options.
func (o Options) Check() error {
	if o.AnswerWithin < 0 {
		return errors.New("a Wyoming server cannot have a negative time limit")
	}
	if o.Address == "" && o.Find != nil {
		return nil
	}
	_, _, err := parseAddress(o.Address)
	return err
}

// parseAddress omits the address from its error if it contains a password.
func parseAddress(address string) (host, port string, err error) {
	if strings.Contains(address, "@") {
		return "", "", errors.New("a Wyoming address cannot have a user or a password; it is tcp://host:port")
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "tcp" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", "", fmt.Errorf("%q is no Wyoming address; it is tcp://host:port", printable(address))
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || n == 0 {
		return "", "", fmt.Errorf("the Wyoming address %q needs a port; faster-whisper has 10300 and piper 10200", printable(address))
	}
	return u.Hostname(), u.Port(), nil
}

// Name returns "wyoming".
func (*Engine) Name() string { return "wyoming" }

// Warm finds the server and asks what it serves, for the needs of the latest calls, or for
// any if there were none, so that the next call need not. It takes at most connectWithin to
// find a server, and does nothing while the answer is cached.
func (e *Engine) Warm(ctx context.Context) error {
	recognizeWith, synthesizeWith := e.recognizeWith.Load(), e.synthesizeWith.Load()
	var needs []need
	if recognizeWith != nil {
		needs = append(needs, toRecognize(*recognizeWith))
	}
	if synthesizeWith != nil {
		needs = append(needs, toSynthesize(*synthesizeWith))
	}
	if len(needs) == 0 {
		needs = append(needs, toServe())
	}
	for _, n := range needs {
		if _, _, _, err := e.pick(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// Check asks the server again what it serves. The error says in a sentence why this engine
// can neither recognize nor synthesize, or that the server lacks the configured model or
// voice.
func (e *Engine) Check(ctx context.Context) error { return e.check(ctx, toServe()) }

// CheckRecognize is Check for an engine used to recognize.
func (e *Engine) CheckRecognize(ctx context.Context, o voice.Options) error {
	e.recognizeWith.Store(&o)
	return e.check(ctx, toRecognize(o))
}

// CheckSynthesize is Check for an engine used to speak.
func (e *Engine) CheckSynthesize(ctx context.Context, o voice.Options) error {
	e.synthesizeWith.Store(&o)
	return e.check(ctx, toSynthesize(o))
}
