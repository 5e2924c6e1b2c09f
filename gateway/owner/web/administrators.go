package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"perch/gateway/httpserver"
)

const (
	// administratorsLast is the age at which a list of administrators is fetched again. A
	// former administrator has access for that long.
	administratorsLast = 30 * time.Second
	// askAgainAfter is the age of an error at which Home Assistant is asked again. A page
	// sends many requests at once.
	askAgainAfter = 3 * time.Second
)

// administrators are Home Assistant's. They are safe for concurrent use.
type administrators struct {
	list func(context.Context) ([]string, error)
	now  func() time.Time

	turn  chan struct{} // a lock for the fields below, also while Home Assistant is asked
	until time.Time     // when ids and err are too old
	ids   []string
	err   error
}

func newAdministrators(list func(context.Context) ([]string, error), now func() time.Time) *administrators {
	return &administrators{list: list, now: now, turn: make(chan struct{}, 1)}
}

// check refuses users whom Home Assistant does not list as administrators, and all users
// while it cannot be asked. id is empty for an unknown user.
func (a *administrators) check(ctx context.Context, id string) error {
	if id == "" {
		return &httpserver.Fault{Word: "no_user", HTTP: http.StatusForbidden,
			Sentence: "Home Assistant does not say who you are; reload its page, and update its Supervisor if that does not help"}
	}
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-a.turn }()
	if !a.now().Before(a.until) {
		ids, err := a.list(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx) // not an error of Home Assistant
		}
		a.ids, a.err, a.until = ids, err, a.now().Add(administratorsLast)
		if err != nil {
			a.until = a.now().Add(askAgainAfter)
		}
	}
	switch {
	case a.err != nil:
		return &httpserver.Fault{Word: "role_unknown", HTTP: http.StatusServiceUnavailable, Err: a.err,
			Sentence: "Home Assistant cannot be asked whether you are an administrator (" + a.err.Error() + "); try again in a moment"}
	case !slices.Contains(a.ids, id):
		return &httpserver.Fault{Word: "not_administrator", HTTP: http.StatusForbidden,
			Sentence: "Perch can be used by administrators of Home Assistant only, and your user is none; an administrator can change that in " +
				"Home Assistant, under Settings, People, Users"}
	}
	return nil
}

// wait returns when a user is no longer an administrator, when Home Assistant could not be asked
// twice in a row, or when ctx ends.
func (a *administrators) wait(ctx context.Context, id string) {
	for failed := 0; failed < 2; {
		select {
		case <-time.After(administratorsLast):
		case <-ctx.Done():
			return
		}
		err := a.check(ctx, id)
		fault, _ := errors.AsType[*httpserver.Fault](err)
		switch {
		case err == nil:
			failed = 0
		case fault != nil && fault.Word == "not_administrator":
			return
		default:
			failed++
		}
	}
}

// userOf returns the id of the user of Home Assistant who sends a request through its ingress, or
// nothing if the request has none. Home Assistant's Supervisor sets the header if it
// knows the user of the ingress session. It removes a header that a browser sends only
// if it has the same spelling: in another spelling, a user can send an administrator's id.
// With the Supervisor's own there are then two, and userOf returns nothing; a forged header
// is believed only while the Supervisor does not know the user.
func userOf(r *http.Request) string {
	if ids := r.Header["X-Remote-User-Id"]; len(ids) == 1 {
		return ids[0]
	}
	return ""
}

// admit authenticates a user of a proxy, as recognize does. A page of another port of
// Home Assistant's host has the cookie of its ingress, too.
func (s *Server) admit(r *http.Request) (known *http.Request, stop func(), err error) {
	if !ofThisPage(r, r.Host, r.Header.Get("X-Forwarded-Host")) {
		return nil, nil, &httpserver.Fault{Word: "other_page", HTTP: http.StatusForbidden,
			Sentence: "this request is not of Perch's own page; open Perch in Home Assistant's side bar"}
	}
	if s.administrators == nil {
		s.visits.log(r, s.o.Now(), s.o.Log)
		return by(r, entry{how: ByIngress}), func() {}, nil
	}
	user := userOf(r)
	if err := s.administrators.check(r.Context(), user); err != nil {
		return nil, nil, err
	}
	s.visits.log(r, s.o.Now(), s.o.Log)
	wait := func(ctx context.Context) { s.administrators.wait(ctx, user) }
	known, stop = until(r, wait)
	return by(known, entry{ByIngress, wait}), stop, nil
}
