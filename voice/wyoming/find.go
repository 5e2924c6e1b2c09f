package wyoming

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// finder finds servers on the network and remembers which answered.
type finder struct {
	o       Options
	create  func(host, port string) *server
	looking chan struct{} // held during a search

	mu    sync.Mutex
	known []*server
	// The last search failed for this need, or for any need if empty, and is not
	// repeated before that time.
	vain    string
	failure error
	rest    time.Time
}

const (
	mostServers = 16
	// restFor is how long a failed search is not repeated, because each makes a person
	// wait.
	restFor = 15 * time.Second
	// stragglers is how long to wait for other servers once a usable one has answered,
	// so that the choice does not depend on speed.
	stragglers = 250 * time.Millisecond
)

func newFinder(o Options) *finder {
	return &finder{o: o, looking: make(chan struct{}, 1), create: func(host, port string) *server { return newServer(host, port, o) }}
}

// pick finds a server within four fifths of the time to connect, and leaves the rest to
// connecting. A known server takes no time.
func (f *finder) pick(ctx context.Context, n need) (*server, Info, error) {
	if s, info, ok := f.fresh(n); ok {
		return s, info, nil
	}
	limited, cancel := context.WithTimeout(ctx, connectWithin*4/5)
	defer cancel()
	select {
	case f.looking <- struct{}{}:
		defer func() { <-f.looking }()
	case <-limited.Done():
		return nil, Info{}, f.tooLate(ctx)
	}
	if s, info, ok := f.fresh(n); ok { // found by another call
		return s, info, nil
	}
	if s, info, ok := f.reask(limited, n); ok {
		return s, info, nil
	}
	if err := f.recentFailure(n); err != nil {
		return nil, Info{}, err
	}
	s, info, err := f.search(limited, n)
	switch {
	case ctx.Err() != nil:
		return nil, Info{}, ctx.Err()
	case limited.Err() != nil && err != nil && !errors.Is(err, errNotServed):
		err = f.tooLate(ctx)
	}
	if err != nil {
		f.mu.Lock()
		f.vain, f.failure, f.rest = n.key, err, time.Now().Add(restFor)
		if len(f.known) == 0 {
			f.vain = ""
		}
		f.mu.Unlock()
	}
	return s, info, err
}

// fresh returns a known server with cached info.
func (f *finder) fresh(n need) (*server, Info, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.known {
		if info, ok := s.served.Get(); ok && n.fits(s, info) == nil {
			return s, info, true
		}
	}
	return nil, Info{}, false
}

// reask asks the known servers whose info has expired or was dropped after a failure. A
// server that does not answer within a fifth of the time is forgotten: it may have moved.
func (f *finder) reask(ctx context.Context, n need) (*server, Info, bool) {
	f.mu.Lock()
	stale := slices.DeleteFunc(slices.Clone(f.known), func(s *server) bool {
		_, ok := s.served.Get()
		return ok
	})
	f.mu.Unlock()
	if len(stale) == 0 {
		return nil, Info{}, false
	}
	limited, cancel := context.WithTimeout(ctx, connectWithin/5)
	defer cancel()
	answers := f.ask(limited, stale, n)
	if ctx.Err() != nil {
		return nil, Info{}, false
	}
	f.remember(answers)
	return best(answers)
}

// recentFailure returns the error of a recent search.
func (f *finder) recentFailure(n need) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Now().Before(f.rest) && (f.vain == "" || f.vain == n.key) {
		return f.failure
	}
	return nil
}

// forget drops the info of the known servers, and allows a new search.
func (f *finder) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.known {
		s.served.Forget()
	}
	f.rest = time.Time{}
}

// search searches the network: two fifths of the time to find servers, and the rest to ask
// them.
func (f *finder) search(ctx context.Context, n need) (*server, Info, error) {
	finding, cancel := context.WithTimeout(ctx, connectWithin*2/5)
	targets, err := f.o.Find(finding)
	late := finding.Err() != nil
	cancel()
	servers := f.servers(targets)
	switch {
	case ctx.Err() != nil && len(servers) == 0:
		return nil, Info{}, ctx.Err()
	case err != nil && !late && len(servers) == 0:
		return nil, Info{}, &fault{"", "Wyoming servers cannot be looked for (" + printable(err.Error()) + "); " + cure, err}
	case len(servers) == 0:
		return nil, Info{}, &fault{"", "no Wyoming server announces itself on this network; " + cure, errNotServed}
	}
	answers := f.ask(ctx, servers, n)
	f.remember(answers)
	if s, info, ok := best(answers); ok {
		f.o.Log.Info("a Wyoming server was found", "server", s.endpoint.String(), "servers", len(servers))
		return s, info, nil
	}
	return nil, Info{}, useless(answers)
}

// cure is the advice if nothing is found.
const cure = "give the address of one as url: tcp://host:port"

// servers returns servers for the given addresses, reusing known ones.
func (f *finder) servers(targets []string) []*server {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []*server
	for _, target := range targets {
		host, port, err := net.SplitHostPort(target)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" {
			continue
		}
		same := func(s *server) bool { return s.endpoint.host == host && s.endpoint.port == port }
		if slices.ContainsFunc(list, same) || len(list) == mostServers {
			continue
		}
		if i := slices.IndexFunc(f.known, same); i >= 0 {
			list = append(list, f.known[i])
		} else {
			list = append(list, f.create(host, port))
		}
	}
	return list
}

// answer is the result of asking a server what it serves.
type answer struct {
	server *server
	info   Info
	err    error // it did not answer
	unfit  error // it answered, and is of no use
}

// ask asks all servers at once, until ctx ends, all have answered, or one is usable and
// stragglers has passed.
func (f *finder) ask(ctx context.Context, servers []*server, n need) []answer {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answers := make([]answer, len(servers))
	useful := make(chan struct{}, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() {
			a := answer{server: s}
			if a.info, a.err = s.info(ctx); a.err == nil {
				a.unfit = n.fits(s, a.info)
			}
			answers[i] = a
			if a.err == nil && a.unfit == nil {
				useful <- struct{}{}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-useful:
		enough := time.AfterFunc(stragglers, stop)
		<-done
		enough.Stop()
	}
	return answers
}

// best returns the first usable server.
func best(answers []answer) (*server, Info, bool) {
	for _, a := range answers {
		if a.err == nil && a.unfit == nil {
			return a.server, a.info, true
		}
	}
	return nil, Info{}, false
}

// remember puts the servers that answered before the known ones, and forgets servers that
// did not answer.
func (f *finder) remember(answers []answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var known []*server
	for _, a := range answers {
		if a.err == nil {
			known = append(known, a.server)
		}
	}
	for _, s := range f.known {
		if !slices.ContainsFunc(answers, func(a answer) bool { return a.server == s }) && len(known) < mostServers {
			known = append(known, s)
		}
	}
	f.known = known
}

// useless says why no server is of use, with the reason of one.
func useless(answers []answer) error {
	for _, why := range []func(answer) error{
		func(a answer) error { return a.unfit },
		func(a answer) error { return a.err },
	} {
		for _, a := range answers {
			if f, ok := errors.AsType[*fault](why(a)); ok {
				return &fault{"", fmt.Sprintf("none of the Wyoming servers found on this network can be used; the one at %s: %s (%s)",
					f.server, f.why, cure), errNotServed}
			}
		}
	}
	return &fault{"", "the Wyoming servers found on this network do not answer; " + cure, errNotServed}
}

// tooLate returns the error for a search that took too long.
func (f *finder) tooLate(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &fault{"", fmt.Sprintf("no Wyoming server was found within %s; %s", connectWithin, cure), context.DeadlineExceeded}
}
