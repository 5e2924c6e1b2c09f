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

// finder finds servers on the network and keeps those that answered.
type finder struct {
	o       Options
	create  func(host, port string) *server
	looking chan struct{} // held during a search

	mu    sync.Mutex
	known []*server
	// The last search found nothing for this need, or for any where it is empty,
	// and is not repeated until then.
	vain    string
	failure error
	rest    time.Time
}

const (
	mostServers = 16
	// restFor is how long a search without a result is not repeated, because each
	// keeps a person at a robot waiting.
	restFor = 15 * time.Second
	// stragglers is how long the others are waited for once a server of use
	// has answered, so that the choice does not depend on speed.
	stragglers = 250 * time.Millisecond
)

func newFinder(o Options) *finder {
	return &finder{o: o, looking: make(chan struct{}, 1), create: func(host, port string) *server { return newServer(host, port, o) }}
}

// pick finds a server within four fifths of the time there is to connect, and
// leaves the rest to connecting. What is known already takes no time.
func (f *finder) pick(ctx context.Context, n need) (*server, Info, error) {
	if s, info, ok := f.fresh(n); ok {
		return s, info, nil
	}
	limited, cancel := context.WithTimeout(ctx, f.o.ConnectWithin*4/5)
	defer cancel()
	select {
	case f.looking <- struct{}{}:
		defer func() { <-f.looking }()
	case <-limited.Done():
		return nil, Info{}, f.late(ctx)
	}
	if s, info, ok := f.fresh(n); ok { // another call found it meanwhile
		return s, info, nil
	}
	if s, info, ok := f.again(limited, n); ok {
		return s, info, nil
	}
	if err := f.resting(n); err != nil {
		return nil, Info{}, err
	}
	s, info, err := f.look(limited, n)
	switch {
	case ctx.Err() != nil:
		return nil, Info{}, ctx.Err()
	case limited.Err() != nil && err != nil && !errors.Is(err, errNotServed):
		err = f.late(ctx)
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

// fresh is a known server of which it is known what it serves.
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

// again asks the known servers anew of which it is not known any more what
// they serve, for time went by or they failed. One that does not answer in
// a fifth of the time is forgotten: it may have moved.
func (f *finder) again(ctx context.Context, n need) (*server, Info, bool) {
	f.mu.Lock()
	stale := slices.DeleteFunc(slices.Clone(f.known), func(s *server) bool {
		_, ok := s.served.Get()
		return ok
	})
	f.mu.Unlock()
	if len(stale) == 0 {
		return nil, Info{}, false
	}
	limited, cancel := context.WithTimeout(ctx, f.o.ConnectWithin/5)
	defer cancel()
	answers := f.ask(limited, stale, n)
	if ctx.Err() != nil {
		return nil, Info{}, false
	}
	f.keep(answers)
	return best(answers)
}

// resting is the failure of a search that was not long ago.
func (f *finder) resting(n need) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Now().Before(f.rest) && (f.vain == "" || f.vain == n.key) {
		return f.failure
	}
	return nil
}

// forget has the known servers asked anew, and others looked for where none of
// them is of use.
func (f *finder) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.known {
		s.served.Forget()
	}
	f.rest = time.Time{}
}

// look searches the network: two fifths of the time are for finding servers,
// and what is left for asking them.
func (f *finder) look(ctx context.Context, n need) (*server, Info, error) {
	finding, cancel := context.WithTimeout(ctx, f.o.ConnectWithin*2/5)
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
	f.keep(answers)
	if s, info, ok := best(answers); ok {
		f.o.Log.Info("a Wyoming server was found", "server", s.endpoint.String(), "servers", len(servers))
		return s, info, nil
	}
	return nil, Info{}, useless(answers)
}

// cure is what a user can do where nothing is found.
const cure = "give the address of one as url: tcp://host:port"

// servers makes servers of what was found, those that are known already of
// those.
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

// answer is what became of asking a server what it serves.
type answer struct {
	server *server
	info   Info
	err    error // it did not say
	unfit  error // it did, and is of no use
}

// ask asks all servers at once, in the time that ctx has, and until all have
// answered or one of use has and the others were given some time.
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

// best is the first that is of use.
func best(answers []answer) (*server, Info, bool) {
	for _, a := range answers {
		if a.err == nil && a.unfit == nil {
			return a.server, a.info, true
		}
	}
	return nil, Info{}, false
}

// keep remembers the servers that answered, before those known already, and forgets
// those that did not.
func (f *finder) keep(answers []answer) {
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

// useless says why none of the servers is of use, by the example of one.
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

// late is the error for a search that took too long.
func (f *finder) late(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &fault{"", fmt.Sprintf("no Wyoming server was found within %s; %s", f.o.ConnectWithin, cure), context.DeadlineExceeded}
}
