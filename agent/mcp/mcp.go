// Package mcp makes the tools of external servers of the Model Context Protocol available
// to a brain (see package thinker). A server is either a child process, addressed over its
// standard input and output, or a URL, addressed over streamable HTTP or the older SSE.
//
// Concurrency: the first use starts one goroutine, keepConnected, which owns the
// connection until Close: it connects, waits for the end of the connection, and
// reconnects after a pause. Other goroutines read the result of the latest attempt. Each
// connection has further goroutines; one of them lists the tools again when the server
// reports a change.
//
// The protocol is implemented by github.com/modelcontextprotocol/go-sdk. This package
// limits processes, their output, and HTTP responses, because servers are foreign
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

// Options are the options of a server. Name, Log, and one of Command and URL are
// required.
type Options struct {
	// Name identifies the server: 1 to 32 letters, digits, hyphens and underscores. It
	// prefixes the names of the server's tools ("files.read_file"), so that the tools of
	// two servers never have the same name.
	Name string

	Command []string // program and its arguments
	Dir     string   // working directory of Command; "" means the current directory
	// Env holds additional variables for Command, as NAME=value. The command also gets the
	// variables of this process, except Perch's secrets and similar variables (see
	// child.Environ).
	Env []string

	URL string // http:// or https:// URL of the MCP endpoint
	Key string // bearer token to send to URL; "" means none

	// Only lists the tools that may be used (if empty, all of them), and Except lists tools
	// that may not be used. Both contain the server's names of tools, or patterns of names as
	// in path.Match. A tool that may not be used is neither listed nor called.
	Only, Except []string

	CallWithin    time.Duration // timeout of a tool call; default: 60 s
	ConnectWithin time.Duration // timeout of connecting and listing the tools; default: 30 s for a command, 10 s for a URL

	// Pause waits for d before the next attempt to connect, and returns an error if ctx
	// ends earlier. If nil, remote.Sleep is used; only tests set it.
	Pause func(ctx context.Context, d time.Duration) error
	Log   *slog.Logger
}

// Limits of one server.
const (
	maxTools     = 100             // tools that are offered to a model
	maxPages     = 20              // pages that are read from a list of tools
	maxAttempts  = 10              // failed attempts and ended connections, since the last reset, after which an attempt waits for the next use
	maxTimeouts  = 3               // consecutive calls that time out before reconnecting
	closeTimeout = time.Second     // timeout of the orderly end of a session
	stableAfter  = 2 * time.Minute // a connection of more than this duration resets the count of failures
)

// errClosed is returned after Close.
var errClosed = awayf("the MCP server has been closed")

// Server is an MCP server, connected or not. It is safe for concurrent use.
type Server struct {
	o      Options
	url    *url.URL      // nil for a command
	server remote.Server // formats errors
	ctx    context.Context
	cancel context.CancelFunc // cancels ctx
	wg     sync.WaitGroup
	needed chan struct{} // receives a value when a caller needs the server

	mu      sync.Mutex
	started bool           // whether keepConnected runs
	closed  bool           // whether Close was called
	tools   []thinker.Tool // the latest list of tools
	listed  bool           // whether tools has been set

	// The state of the connection.
	trying       chan struct{} // closed when the current attempt has ended; nil between attempts
	link         *link         // nil if not connected
	linkErr      error         // why there is no connection
	loggedAway   bool          // whether the last log entry says that the server cannot be used
	wasConnected bool          // whether any attempt has succeeded
	failures     int           // failed attempts and ended connections since the last reset
	timeouts     int           // consecutive calls that timed out
}

// New returns a server with the options o, or an error if they are invalid. The first call of
// Tools, Warm, Check or Call connects.
func New(o Options) (*Server, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	s := &Server{needed: make(chan struct{}, 1)}
	connectTimeout := 30 * time.Second
	if o.URL != "" {
		s.url, _ = parseAddress(o.URL) // already checked
		connectTimeout = 10 * time.Second
	}
	o.ConnectWithin = cmp.Or(o.ConnectWithin, connectTimeout)
	o.CallWithin = cmp.Or(o.CallWithin, time.Minute)
	if o.Pause == nil {
		o.Pause = remote.Sleep
	}
	s.o = o
	s.server = remote.Server{Address: s.displayName(), Key: o.Key, Secrets: s.secrets(), Setting: "its key", Check: "what it is asked for"}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// nameChars are the characters allowed in the name of a server.
const nameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// Check returns an error if the options are invalid.
func (o Options) Check() error {
	if o.Name == "" || len(o.Name) > 32 || strings.Trim(o.Name, nameChars) != "" {
		return fmt.Errorf("%q cannot be the name of an MCP server; give it 1 to 32 letters, digits, hyphens or underscores", o.Name)
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
		return errors.New("a key is only for a url; give a command its keys in env")
	case o.CallWithin < 0 || o.ConnectWithin < 0:
		return errors.New("its timeouts must be above zero")
	case o.Key != strings.TrimSpace(o.Key) || strings.ContainsFunc(o.Key, func(r rune) bool { return r < ' ' || r > '~' }):
		return errors.New("its key has spaces around it, or characters that a header cannot contain; copy it again")
	}
	for _, pattern := range slices.Concat(o.Only, o.Except) {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return fmt.Errorf("%q is neither the name of a tool nor a pattern of names", plain.Clip(pattern, 40))
		}
	}
	for _, entry := range o.Env {
		if name, _, ok := strings.Cut(entry, "="); !ok || name == "" {
			return errors.New("an entry of env is not NAME=value")
		}
	}
	if o.URL != "" {
		_, err := parseAddress(o.URL)
		return err
	}
	return nil
}

// parseAddress parses the URL of a server, without its fragment. The error does not quote
// the URL, because that may contain a key.
func parseAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("its url is not a valid address; write it as http://host:port/path")
	}
	u.Fragment = ""
	return u, nil
}

// Name returns the server's name in the configuration.
func (s *Server) Name() string { return s.o.Name }

// displayName returns the name of the program, or the URL, for error messages. It omits
// what may contain a key: a program's arguments, a URL's query, and long parts of its path.
func (s *Server) displayName() string {
	if s.url == nil {
		return filepath.Base(s.o.Command[0])
	}
	parts := strings.Split(s.url.Path, "/")
	for i, part := range parts {
		if len(part) > maxShownPart {
			parts[i] = "[key]"
		}
	}
	return s.url.Scheme + "://" + s.url.Host + strings.Join(parts, "/")
}

// maxShownPart is the maximum length in bytes of the parts of a URL's path that are shown.
const maxShownPart = 15
