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

// finder finds servers on the network, and stores the servers that have responded.
type finder struct {
	o         Options
	create    func(host, port string) *server // newServer with the options
	searching chan struct{}                   // lock of capacity 1: holds an element during a search

	mu      sync.Mutex
	servers []*server // servers that have responded, the latest first

	// The latest failed search. It is not repeated before retryAt.
	failedNeed string // need.key of the search; "" if the search failed for all needs
	failure    error  // error of the search
	retryAt    time.Time
}

const (
	maxServers = 16 // maximum number of servers that are stored, and that a search uses
	// retryPause is the time before a failed search is repeated. It is long, because a person
	// waits during each search.
	retryPause = 15 * time.Second
	// slowerServers is the time that a search waits for other servers after a usable server
	// has responded, so that a better but slower server can be used.
	slowerServers = 250 * time.Millisecond
)

// newFinder returns a finder without servers.
func newFinder(o Options) *finder {
	return &finder{o: o, searching: make(chan struct{}, 1), create: func(host, port string) *server { return newServer(host, port, o) }}
}

// pick returns a server that satisfies n, and its info. It takes at most four fifths of
// connectTimeout, so that at least a fifth remains for connecting.
func (f *finder) pick(ctx context.Context, n need) (*server, Info, error) {
	if s, info, ok := f.pickCached(n); ok {
		return s, info, nil
	}
	limited, cancel := context.WithTimeout(ctx, connectTimeout*4/5)
	defer cancel()
	select {
	case f.searching <- struct{}{}:
		defer func() { <-f.searching }()
	case <-limited.Done():
		return nil, Info{}, f.timeoutError(ctx)
	}
	if s, info, ok := f.pickCached(n); ok { // found by another call
		return s, info, nil
	}
	if s, info, ok := f.pickExpired(limited, n); ok {
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
		err = f.timeoutError(ctx)
	}
	if err != nil {
		f.mu.Lock()
		f.failedNeed, f.failure, f.retryAt = n.key, err, time.Now().Add(retryPause)
		if len(f.servers) == 0 {
			f.failedNeed = ""
		}
		f.mu.Unlock()
	}
	return s, info, err
}

// pickCached returns a stored server with cached info that satisfies n.
func (f *finder) pickCached(n need) (s *server, info Info, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.servers {
		if info, ok := s.cachedInfo.Get(); ok && n.check(s, info) == nil {
			return s, info, true
		}
	}
	return nil, Info{}, false
}

// pickExpired requests the info of stored servers whose cached info has expired, and returns a
// server that satisfies n. It removes servers that do not respond within a fifth of
// connectTimeout, or within slowerServers after a usable server.
func (f *finder) pickExpired(ctx context.Context, n need) (s *server, info Info, ok bool) {
	f.mu.Lock()
	expired := slices.DeleteFunc(slices.Clone(f.servers), func(s *server) bool {
		_, ok := s.cachedInfo.Get()
		return ok
	})
	f.mu.Unlock()
	if len(expired) == 0 {
		return nil, Info{}, false
	}
	limited, cancel := context.WithTimeout(ctx, connectTimeout/5)
	defer cancel()
	responses := f.requestInfo(limited, expired, n)
	if ctx.Err() != nil {
		return nil, Info{}, false
	}
	f.store(responses)
	return firstUsable(responses)
}

// recentFailure returns the error of a recent search for n, or nil.
func (f *finder) recentFailure(n need) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Now().Before(f.retryAt) && (f.failedNeed == "" || f.failedNeed == n.key) {
		return f.failure
	}
	return nil
}

// reset removes the cached info of all servers, and allows a new search.
func (f *finder) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.servers {
		s.cachedInfo.Forget()
	}
	f.retryAt = time.Time{}
}

// search searches the network for a server that satisfies n. The search for addresses takes at
// most two fifths of connectTimeout. Then search requests the info of the servers until ctx ends.
func (f *finder) search(ctx context.Context, n need) (*server, Info, error) {
	finding, cancel := context.WithTimeout(ctx, connectTimeout*2/5)
	addresses, err := f.o.Find(finding)
	timedOut := finding.Err() != nil
	cancel()
	servers := f.serversAt(addresses)
	switch {
	case ctx.Err() != nil && len(servers) == 0:
		return nil, Info{}, ctx.Err()
	case err != nil && !timedOut && len(servers) == 0:
		return nil, Info{}, &fault{"", "the network cannot be searched for Wyoming servers (" + printable(err.Error()) + "); " + advice, err}
	case len(servers) == 0:
		return nil, Info{}, &fault{"", "no Wyoming server announces itself on this network; " + advice, errNotServed}
	}
	responses := f.requestInfo(ctx, servers, n)
	f.store(responses)
	if s, info, ok := firstUsable(responses); ok {
		f.o.Log.Info("a Wyoming server was found", "server", s.endpoint.String(), "servers", len(servers))
		return s, info, nil
	}
	return nil, Info{}, noneUsable(responses)
}

// advice ends the message if no usable server is found.
const advice = "give the address of one as url: tcp://host:port"

// serversAt returns the servers at these addresses, at most maxServers. It creates the servers that
// are not stored, and skips invalid addresses.
func (f *finder) serversAt(addresses []string) []*server {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []*server
	for _, address := range addresses {
		host, port, err := net.SplitHostPort(address)
		if n, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || n == 0 || host == "" {
			continue
		}
		isHere := func(s *server) bool { return s.endpoint.host == host && s.endpoint.port == port }
		if slices.ContainsFunc(list, isHere) || len(list) == maxServers {
			continue
		}
		if i := slices.IndexFunc(f.servers, isHere); i >= 0 {
			list = append(list, f.servers[i])
		} else {
			list = append(list, f.create(host, port))
		}
	}
	return list
}

// response is the response of a server to a request for its info.
type response struct {
	server  *server
	info    Info
	err     error // why there is no info
	needErr error // why the server does not satisfy the need
}

// isUsable reports whether the server has responded and satisfies the need.
func (r response) isUsable() bool { return r.err == nil && r.needErr == nil }

// requestInfo requests the info of all servers concurrently. It returns when ctx ends, when all
// servers have responded, or slowerServers after a usable server has responded.
func (f *finder) requestInfo(ctx context.Context, servers []*server, n need) []response {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	responses := make([]response, len(servers))
	usable := make(chan struct{}, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() {
			r := response{server: s}
			if r.info, r.err = s.info(ctx); r.err == nil {
				r.needErr = n.check(s, r.info)
			}
			responses[i] = r
			if r.isUsable() {
				usable <- struct{}{}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-usable:
		timer := time.AfterFunc(slowerServers, stop)
		<-done
		timer.Stop()
	}
	return responses
}

func firstUsable(responses []response) (s *server, info Info, ok bool) {
	for _, r := range responses {
		if r.isUsable() {
			return r.server, r.info, true
		}
	}
	return nil, Info{}, false
}

// store puts the servers that have responded before the other stored servers, and removes the
// servers that were asked but have not responded.
func (f *finder) store(responses []response) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var servers []*server
	for _, r := range responses {
		if r.err == nil {
			servers = append(servers, r.server)
		}
	}
	for _, s := range f.servers {
		if !slices.ContainsFunc(responses, func(r response) bool { return r.server == s }) && len(servers) < maxServers {
			servers = append(servers, s)
		}
	}
	f.servers = servers
}

// noneUsable returns the error if no server is usable, with the reason for one of them.
func noneUsable(responses []response) error {
	for _, errOf := range []func(response) error{
		func(r response) error { return r.needErr },
		func(r response) error { return r.err },
	} {
		for _, r := range responses {
			if f, ok := errors.AsType[*fault](errOf(r)); ok {
				return &fault{"", fmt.Sprintf("none of the Wyoming servers found on this network can be used; the one at %s: %s (%s)",
					f.server, f.message, advice), errNotServed}
			}
		}
	}
	return &fault{"", "the Wyoming servers found on this network do not answer; " + advice, errNotServed}
}

// timeoutError returns the error of ctx or, if ctx has not ended, of a search that took too
// long.
func (f *finder) timeoutError(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &fault{"", fmt.Sprintf("no Wyoming server was found within %s; %s", connectTimeout, advice), context.DeadlineExceeded}
}
