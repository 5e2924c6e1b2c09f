package mdns

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// announceAgain is the pause before the second announcement (RFC 6762 section 8.3).
const announceAgain = time.Second

// serve announces on these links until they change or ctx ends, which it returns as nil, and takes everything back.
func (a *Announcer) serve(ctx context.Context, links []link) error {
	s, err := listen(links)
	if err != nil {
		return err
	}
	defer s.close()
	by, err := a.claim(ctx, s)
	if err != nil {
		return unlessDone(ctx, err)
	}
	name := hostName(a.opts.Name, a.suffix)
	var h *host
	if by == ByPerch {
		if h, err = startHost(name, s, links); err != nil {
			return err
		}
		defer h.close()
	}
	announced, err := register(a.opts, name, links)
	if err != nil {
		return err
	}
	defer announced.close()
	now := a.announced(name, by, links)
	a.set(now)
	a.log.Info("mdns announced", "host", now.Host, "instance", now.Instance, "services", now.Services, "by", now.By, "addresses", now.Addresses)
	return unlessDone(ctx, a.watch(ctx, s, h, links))
}

func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// watch answers what is asked and returns nil when it is time to announce anew. h is nil where the system's responder
// answers for the host name.
func (a *Announcer) watch(ctx context.Context, s *socket, h *host, links []link) error {
	// A machine that idles is woken up seldom: one that is announced seldom has other addresses.
	poll, check := time.NewTicker(3*a.poll), time.NewTicker(a.check)
	defer poll.Stop()
	defer check.Stop()
	again := time.NewTimer(announceAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.failed:
			return err
		case <-poll.C:
			if now, err := machineLinks(a.opts.Interfaces); err != nil || !slices.EqualFunc(now, links, link.equal) {
				return nil // where there is no link left, Run finds the same error and rests
			}
		case <-again.C:
			if h != nil {
				h.announce()
			}
		case <-check.C:
			if h == nil && !a.systemAnswers(ctx, s) {
				return nil
			}
		case p := <-s.packets:
			if h == nil {
				continue
			}
			if err := h.receive(p); err != nil {
				return fmt.Errorf("%s: %w", h.name, err)
			}
		}
	}
}

// systemAnswers asks whether the system's responder still answers for the host name: it may have been stopped.
func (a *Announcer) systemAnswers(ctx context.Context, s *socket) bool {
	w, err := s.ask(ctx, hostName(a.opts.Name, a.suffix)+".")
	return err == nil && w.verdict == system
}
