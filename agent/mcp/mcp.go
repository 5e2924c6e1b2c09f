// Package mcp makes the tools of external servers of the Model Context Protocol
// available to a thinker. A server is a child process on its standard input and output,
// or an address, over streamable HTTP or the older SSE.
//
// Concurrency: the first use starts one goroutine, keepConnected, which owns the
// connection until Close: it connects, waits for the end of the connection, and
// reconnects after a pause. All others read its latest result. A second goroutine per
// connection lists the tools again when the server reports a change.
//
// The protocol is implemented by github.com/modelcontextprotocol/go-sdk. Processes,
// their output, and HTTP responses are bounded here, because servers are foreign
// programs with unknown behaviour.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/agent/thinker"
	"perch/plain"
	"perch/remote"
)

// Options of a server. Command or URL, Name and Log are required; zero values of the
// others mean the defaults given.
type Options struct {
	// Name is the server's name, a prefix of its tools' names ("files.read_file") so
	// that those of two servers never clash: 1 to 32 letters, digits, hyphens and
	// underscores.
	Name string

	Command []string // the program and its arguments
	Dir     string   // the folder it works in; the current one
	// Env is added to the appliance's own environment, without variables that begin
	// with PERCH_ or come from the service manager.
	Env []string

	URL string // http:// or https://, as the server's manual gives it
	Key string // sent as a bearer token

	// Only lists the available tools, all if it is empty; Except lists the excluded
	// ones. Both contain the server's names, and * matches any characters. Other tools
	// can neither be listed nor called.
	Only, Except []string

	CallWithin    time.Duration // for the answer to a call; 60 s
	ConnectWithin time.Duration // for a connection and the list of tools; 30 s for a command, 10 s for an address

	// Pause waits before the next attempt to connect, and fails if ctx ends. If nil it
	// sleeps; tests set it.
	Pause func(ctx context.Context, d time.Duration) error
	Log   *slog.Logger
}

// Bounds of a server, and retry limits.
const (
	mostTools    = 100
	mostPages    = 20              // of a list of tools
	mostAttempts = 10              // consecutive failed attempts before waiting for the next use
	closeWithin  = time.Second     // for an orderly end of a session
	mostTimeouts = 3               // consecutive calls without a timely answer before reconnecting
	stableAfter  = 2 * time.Minute // a connection that lasted so long resets the failures
)

// errClosed is returned after Close.
var errClosed = awayf("the MCP server has been closed")

// Server is one server, connected or not. It is safe for concurrent use.
type Server struct {
	o      Options
	url    *url.URL
	server remote.Server // formats errors
	ctx    context.Context
	end    context.CancelFunc
	wg     sync.WaitGroup
	asked  chan struct{} // signals that a caller needs the server

	mu      sync.Mutex
	started bool // keepConnected runs
	closed  bool // by Close
	tools   []thinker.Tool
	listed  bool

	// The state of the connection.
	trying       chan struct{} // closed when the present attempt has ended; nil between attempts
	link         *link         // nil if not connected
	why          error         // why not connected
	loggedAway   bool          // last logged as unavailable
	wasConnected bool          // at least once
	failures     int           // consecutive failed attempts
	silent       int           // consecutive calls without a timely answer
}

// New checks the options. It starts nothing: the first use does.
func New(o Options) (*Server, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	s := &Server{asked: make(chan struct{}, 1)}
	standard := 30 * time.Second
	if o.URL != "" {
		s.url, _ = address(o.URL) // already checked
		standard = 10 * time.Second
	}
	o.ConnectWithin = cmp.Or(o.ConnectWithin, standard)
	o.CallWithin = cmp.Or(o.CallWithin, time.Minute)
	if o.Pause == nil {
		o.Pause = remote.Sleep
	}
	s.o = o
	s.server = remote.Server{Address: s.where(), Key: o.Key, Secrets: s.secrets(), Setting: "its key", Check: "what it is asked for"}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s, nil
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// Check returns what New would refuse.
func (o Options) Check() error {
	if o.Name == "" || len(o.Name) > 32 || strings.Trim(o.Name, letters) != "" {
		return fmt.Errorf("%q is no name for an MCP server; give it 1 to 32 letters, digits, hyphens or underscores", o.Name)
	}
	if err := o.check(); err != nil {
		return fmt.Errorf("MCP server %s: %w", o.Name, err)
	}
	return nil
}

// check checks the options except the name.
func (o *Options) check() error {
	switch {
	case o.Log == nil:
		return errors.New("it needs a log")
	case len(o.Command) > 0 && o.URL != "":
		return errors.New("it has both a command and a url; keep one of them")
	case o.URL == "" && (len(o.Command) == 0 || o.Command[0] == ""):
		return errors.New("it needs a command, such as [npx, -y, some-server], or a url")
	case len(o.Command) > 0 && o.Key != "":
		return errors.New("a key is for a url; give a command what it needs as env")
	case o.CallWithin < 0 || o.ConnectWithin < 0:
		return errors.New("its deadlines are times above zero")
	case o.Key != strings.TrimSpace(o.Key) || strings.ContainsFunc(o.Key, func(r rune) bool { return r < ' ' || r > '~' }):
		return errors.New("its key has spaces around it or characters that no header can hold; copy it again")
	}
	for _, pattern := range slices.Concat(o.Only, o.Except) {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return fmt.Errorf("%q is no tool's name, nor a pattern of names", plain.Clip(pattern, 40))
		}
	}
	for _, entry := range o.Env {
		if name, _, ok := strings.Cut(entry, "="); !ok || name == "" {
			return errors.New("an entry of env is not NAME=value")
		}
	}
	if o.URL != "" {
		_, err := address(o.URL)
		return err
	}
	return nil
}

// address parses a server's address. The error does not contain it, because it may
// contain a key.
func address(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("its url is no address; write it as http://host:port/path")
	}
	u.Fragment = ""
	return u, nil
}

// Name returns the server's name in the configuration.
func (s *Server) Name() string { return s.o.Name }

// where describes the server for errors. A program's arguments and an address's query
// may contain keys, so they are never shown; nor are long parts of its path, which may
// be keys of hosted servers.
func (s *Server) where() string {
	if s.url == nil {
		return filepath.Base(s.o.Command[0])
	}
	parts := strings.Split(s.url.Path, "/")
	for i, part := range parts {
		if len(part) > longestWord {
			parts[i] = "[key]"
		}
	}
	return s.url.Scheme + "://" + s.url.Host + strings.Join(parts, "/")
}

// longestWord bounds the parts of a path that are shown, in bytes.
const longestWord = 15
