package wyoming

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"perch/voice"
)

// Options are what an Engine is made of.
type Options struct {
	Address  string // tcp://host:port
	Voice    string // as the server lists it; its own choice where empty
	Model    string // of speech to text, as the server lists it; likewise
	Language string // BCP 47, for calls that name none

	ConnectWithin time.Duration // finding and reaching the server; 0 is 5 s
	// AnswerWithin is how long the server may be silent once it has all it
	// needs: until its text, its first sound, and between two pieces of sound.
	// 0 is 15 s, for a large whisper on a small computer.
	AnswerWithin time.Duration
	Log          *slog.Logger
}

// Engine is a voice.Recognizer and a voice.Synthesizer that has the work done
// by one Wyoming server. It is safe for concurrent use and keeps nothing open
// between calls: each takes a connection of its own, for many servers close
// theirs after an answer.
type Engine struct {
	o      Options
	log    *slog.Logger
	place  *place
	served *catalogue
	// rate is that of the latest sound, so that a resampler for the next is
	// ready before it comes: making one takes longer than the network does.
	rate atomic.Int64
}

// New returns an engine for the server at o.Address, and dials nothing yet.
func New(o Options) (*Engine, error) {
	host, port, err := parseAddress(o.Address)
	if err != nil {
		return nil, err
	}
	if o.ConnectWithin < 0 || o.AnswerWithin < 0 {
		return nil, errors.New("a Wyoming server cannot answer within less than no time")
	}
	if o.ConnectWithin == 0 {
		o.ConnectWithin = 5 * time.Second
	}
	if o.AnswerWithin == 0 {
		o.AnswerWithin = 15 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Address = "tcp://" + net.JoinHostPort(host, port)
	e := &Engine{o: o, log: o.Log, place: newPlace(host, port), served: newCatalogue()}
	e.rate.Store(22050) // piper's, as a rule
	return e, nil
}

// parseAddress does not repeat a faulty address where it holds a password.
func parseAddress(address string) (host, port string, err error) {
	if strings.Contains(address, "@") {
		return "", "", errors.New("a Wyoming address has no user and no password, for the protocol knows none; it is tcp://host:port")
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

// Name is "wyoming".
func (*Engine) Name() string { return "wyoming" }

// Check asks the server anew what it serves. The error says in a sentence why
// this engine can neither recognize nor synthesize, or that it has not the
// model or the voice that was configured.
func (e *Engine) Check(ctx context.Context) error {
	e.served.forget()
	info, err := e.info(ctx)
	if err != nil {
		return err
	}
	_, deaf := e.chooseEar(info, voice.Options{})
	_, mute := e.chooseMouth(info, voice.Options{})
	switch {
	case deaf != nil && e.o.Model != "":
		return deaf
	case mute != nil && e.o.Voice != "", len(info.ASR) == 0:
		return mute
	case mute != nil:
		return deaf
	}
	return nil
}

// CheckRecognize is Check for an engine that is asked to recognize.
func (e *Engine) CheckRecognize(ctx context.Context, o voice.Options) error {
	e.served.forget()
	info, err := e.info(ctx)
	if err != nil {
		return err
	}
	_, err = e.chooseEar(info, o)
	return err
}

// CheckSynthesize is Check for an engine that is asked to speak.
func (e *Engine) CheckSynthesize(ctx context.Context, o voice.Options) error {
	e.served.forget()
	info, err := e.info(ctx)
	if err != nil {
		return err
	}
	_, err = e.chooseMouth(info, o)
	return err
}
