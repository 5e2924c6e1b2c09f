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
	// administratorsLast is how long a list of administrators is used before Home
	// Assistant is asked again. Somebody who is an administrator no more has access for
	// that long.
	administratorsLast = 30 * time.Second
	// askAgainAfter is how long the error is the answer where Home Assistant could not be
	// asked. A page sends many requests at once.
	askAgainAfter = 3 * time.Second
)

// administrators are Home Assistant's. They are safe for concurrent use.
type administrators struct {
	list func(context.Context) ([]string, error)
	now  func() time.Time

	turn  chan struct{} // holds one while Home Assistant is asked, or the rest is read
	until time.Time     // when ids and err are too old
	ids   []string
	err   error
}

func newAdministrators(list func(context.Context) ([]string, error), now func() time.Time) *administrators {
	return &administrators{list: list, now: now, turn: make(chan struct{}, 1)}
}

// check refuses everybody whom Home Assistant does not list as an administrator, and
// everybody while it cannot be asked. id is a user's; empty is a user who is not known.
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
			return context.Cause(ctx) // which says nothing about Home Assistant
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

// wait returns when a user is an administrator no more, when Home Assistant could not be asked
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

// userOf is the id of the user of Home Assistant who sends a request through its ingress.
// Empty is that the request does not say. Home Assistant's Supervisor sets the header where it
// knows who began the session of the ingress. It removes the header that a browser sends only
// if that is spelled as its own: in another spelling, a user can send an administrator's id.
// If the Supervisor sets its own as well, there are two, and the answer is empty; a forged one
// is believed only while the Supervisor does not know the user.
func userOf(r *http.Request) string {
	if ids := r.Header["X-Remote-User-Id"]; len(ids) == 1 {
		return ids[0]
	}
	return ""
}

// admit lets somebody in who comes through a proxy, as recognize does. A page of another port of
// Home Assistant's host has the cookie of its ingress, too.
func (d *Server) admit(r *http.Request) (known *http.Request, stop func(), err error) {
	if !ofThisPage(r, r.Host, r.Header.Get("X-Forwarded-Host")) {
		return nil, nil, &httpserver.Fault{Word: "other_page", HTTP: http.StatusForbidden,
			Sentence: "this request is not of Perch's own page; open Perch in Home Assistant's side bar"}
	}
	if d.administrators == nil {
		d.visits.log(r, d.o.Now(), d.o.Log)
		return by(r, entry{how: ByIngress}), func() {}, nil
	}
	user := userOf(r)
	if err := d.administrators.check(r.Context(), user); err != nil {
		return nil, nil, err
	}
	d.visits.log(r, d.o.Now(), d.o.Log)
	wait := func(ctx context.Context) { d.administrators.wait(ctx, user) }
	known, stop = until(r, wait)
	return by(known, entry{ByIngress, wait}), stop, nil
}
