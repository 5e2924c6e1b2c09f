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

// connectTimeout is the timeout of finding and connecting to a server, and also of requesting a
// server's info.
const connectTimeout = 5 * time.Second

// Options are the options of an Engine. Either Address or Find is required.
type Options struct {
	Address string // tcp://host:port; "" means a server found on the network
	Voice   string // name of a voice of the server; "" means any voice for the language of the call
	Model   string // name of a model of the server for speech to text; "" means the server's default
	// Language is a BCP 47 tag. Voice is used for this language, even if the server does not list it for Voice, and for
	// another language only if the server lists that language for Voice. "" means that Voice is used
	// for every language.
	Language string
	// AnswerWithin is the maximum time from the end of the input to the response of the server,
	// and the maximum pause between two pieces of sound. Default: remote.Patience.
	// A large whisper model on a small computer needs longer.
	AnswerWithin time.Duration
	// Find returns the addresses (host:port) of servers on the network, the best first. It is
	// called if Address is "". If ctx ends, Find returns the addresses found so far.
	Find func(ctx context.Context) ([]string, error)
	Log  *slog.Logger // default: discards
}

// Engine is a voice.Recognizer and a voice.Synthesizer. It uses the Wyoming server at the
// configured address, or the first server on the network that can serve a call. It is safe for
// concurrent use. Each call uses its own connection, because many servers close the connection
// after their response.
type Engine struct {
	o      Options
	fixed  *server // the configured server; nil if servers are searched on the network
	finder *finder // nil if fixed is set
	// rate is the sample rate of the latest sound. A resampler for this rate is created before
	// the next sound arrives, because creating it takes long.
	rate atomic.Int64
	// The options of the latest calls of Recognize and Synthesize; nil before the first.
	latestRecognize, latestSynthesize atomic.Pointer[voice.Options]
}

// New returns an engine for the server at o.Address or, if that is empty, for the servers that
// o.Find returns. It opens no connection.
func New(o Options) (*Engine, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o.AnswerWithin = cmp.Or(o.AnswerWithin, remote.Patience)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	e := &Engine{o: o}
	e.rate.Store(22050) // the usual rate of piper
	if o.Address == "" && o.Find != nil {
		e.finder = newFinder(o)
		return e, nil
	}
	host, port, err := parseAddress(o.Address)
	if err != nil {
		return nil, err
	}
	e.fixed = newServer(host, port, o)
	return e, nil
}

// Check returns an error if the options are invalid.
func (o Options) Check() error {
	if o.AnswerWithin < 0 {
		return errors.New("within cannot be negative")
	}
	if o.Address == "" && o.Find != nil {
		return nil
	}
	_, _, err := parseAddress(o.Address)
	return err
}

// parseAddress parses tcp://host:port. The error does not contain an address with a password.
func parseAddress(address string) (host, port string, err error) {
	if strings.Contains(address, "@") {
		return "", "", errors.New("a Wyoming address cannot have a user or a password; it is tcp://host:port")
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "tcp" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", "", fmt.Errorf("%q is not a Wyoming address; it is tcp://host:port", printable(address))
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || n == 0 {
		return "", "", fmt.Errorf("the Wyoming address %q needs a port; faster-whisper has 10300 and piper 10200", printable(address))
	}
	return u.Hostname(), u.Port(), nil
}

// Name returns "wyoming".
func (*Engine) Name() string { return "wyoming" }

// Warm finds a server and requests the server's info, unless the info is cached, so that the next
// call need not wait for this. It assumes that the next calls of Recognize and Synthesize have the
// same options as the latest ones.
func (e *Engine) Warm(ctx context.Context) error {
	recognize, synthesize := e.latestRecognize.Load(), e.latestSynthesize.Load()
	var needs []need
	if recognize != nil {
		needs = append(needs, recognizeNeed(*recognize))
	}
	if synthesize != nil {
		needs = append(needs, synthesizeNeed(*synthesize))
	}
	if len(needs) == 0 {
		needs = append(needs, anyNeed())
	}
	for _, n := range needs {
		if _, _, _, err := e.pick(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// Check requests the info of the server. It returns an error of one sentence if the engine can
// neither recognize nor synthesize, or if the server lacks the configured model or voice.
func (e *Engine) Check(ctx context.Context) error { return e.check(ctx, anyNeed()) }

// CheckRecognize requests the info of the server, and returns an error if the server cannot
// recognize speech with these options.
func (e *Engine) CheckRecognize(ctx context.Context, o voice.Options) error {
	e.latestRecognize.Store(&o)
	return e.check(ctx, recognizeNeed(o))
}

// CheckSynthesize requests the info of the server, and returns an error if the server cannot
// synthesize speech with these options.
func (e *Engine) CheckSynthesize(ctx context.Context, o voice.Options) error {
	e.latestSynthesize.Store(&o)
	return e.check(ctx, synthesizeNeed(o))
}
