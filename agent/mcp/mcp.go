// Package mcp has external servers of the Model Context Protocol offer their
// tools to a thinker: a child process on its standard input and output, or a
// server at an address, over streamable HTTP or the older SSE.
//
// Who runs what: the first use starts one goroutine, the keeper, which owns the
// connection until Close: it connects, waits until the connection is gone, and
// connects anew after a pause. Everybody else reads what the keeper last found
// out. A second goroutine lives as long as a connection and reads the list of
// tools again when the server says that it has changed.
//
// The protocol is that of github.com/modelcontextprotocol/go-sdk. Processes,
// the lines they write, and what HTTP may bring are kept in bounds here: a
// server is a program of others, and may do anything.
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

// Options of a server. Command or URL is needed, and Name and Log are; zero
// values of the rest stand for the defaults given.
type Options struct {
	// Name is what the server is called here. It stands before the names of its
	// tools ("files.read_file") so that those of two servers never clash: 1 to
	// 32 letters, digits, hyphens and underscores.
	Name string

	Command []string // the program and its arguments
	Dir     string   // the folder it works in; the current one
	// Env is added to the appliance's own environment, of which nothing that
	// begins with PERCH_ or comes from the service manager is passed on.
	Env []string

	URL string // http:// or https://, as the server's manual gives it
	Key string // is sent as a bearer token

	// Only are the tools that are offered, all where there are none; Except
	// those that are not. Both are the server's own names, and * stands for any
	// letters. What is not offered cannot be called either.
	Only, Except []string

	CallWithin    time.Duration // for a call to be answered; 60 s
	ConnectWithin time.Duration // for a connection and the list of tools; 30 s for a command, 10 s for an address

	// Pause waits between two attempts to connect. It fails where ctx ends.
	// Tests set it; it sleeps where nil.
	Pause func(ctx context.Context, d time.Duration) error
	Log   *slog.Logger
}

// What a server may bring, and how it is treated.
const (
	mostTools = 100
	mostPages = 20              // of a list of tools
	patience  = 10              // attempts that fail in a row before one waits to be asked
	goodbye   = time.Second     // for a session to be ended in good order
	silences  = 3               // calls in a row without an answer in time before it is connected anew
	settled   = 2 * time.Minute // a connection that lasted so long was a good one
)

// errClosed is what is left after Close.
var errClosed = awayf("the MCP server has been closed")

// Server is one server, connected or not. Its methods may be called at a time.
type Server struct {
	o      Options
	url    *url.URL
	server remote.Server // as sentences speak of it
	ctx    context.Context
	end    context.CancelFunc
	wg     sync.WaitGroup
	asked  chan struct{} // a caller wants to use it

	mu     sync.Mutex
	kept   bool // the keeper runs
	closed bool // by Close
	tools  []thinker.Tool
	listed bool
	connecting
}

// connecting is how the connection to a server is, and was.
type connecting struct {
	trying   chan struct{} // closed when the attempt under way has ended; nil where there is none
	link     *link         // nil where there is none
	why      error         // there is none
	away     bool          // so it was last logged
	met      bool          // it has been connected at least once
	failures int           // attempts in a row
	silent   int           // calls in a row that were not answered in time
}

// New checks the options. It starts nothing: the first use does.
func New(o Options) (*Server, error) {
	s := &Server{asked: make(chan struct{}, 1)}
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.URL != "" {
		s.url, _ = address(o.URL) // it has been checked
	}
	standard := 30 * time.Second
	if s.url != nil {
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

// Check reports what New refuses.
func (o Options) Check() error {
	if o.Name == "" || len(o.Name) > 32 || strings.Trim(o.Name, letters) != "" {
		return fmt.Errorf("%q is no name for an MCP server; give it 1 to 32 letters, digits, hyphens or underscores", o.Name)
	}
	err := o.check()
	if err == nil && o.URL != "" {
		_, err = address(o.URL)
	}
	if err != nil {
		return fmt.Errorf("MCP server %s: %w", o.Name, err)
	}
	return nil
}

// check finds what is wrong with the options, the name and the address aside.
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
	return nil
}

// address reads a server's address. The error does not hold it,
// for it may hold a key.
func address(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("its url is no address; write it as http://host:port/path")
	}
	u.Fragment = ""
	return u, nil
}

// Name is the server's, as the configuration spells it.
func (s *Server) Name() string { return s.o.Name }

// where is how sentences call what the server is. A program's arguments and
// an address's query may hold keys, so they are never shown; nor are parts of
// its path that are too long for a word, which with a hosted server may be one.
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

// longestWord is how long a part of a path may be that is shown.
const longestWord = 15
