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
	// administratorsMaxAge is how long a list of administrators is used before it is fetched again. A former
	// administrator keeps access for up to this time.
	administratorsMaxAge = 30 * time.Second
	// administratorsRetry is how long an error is returned before the list is fetched again. It is needed because a
	// page sends many requests at once.
	administratorsRetry = 3 * time.Second
)

// administrators caches the list of Home Assistant's administrators. It is safe for concurrent use.
type administrators struct {
	list func(context.Context) ([]string, error)
	now  func() time.Time

	lock    chan struct{} // holds a value while the fields below are locked, also during a call of list
	expires time.Time     // when ids and err expire
	ids     []string
	err     error // error of the latest call of list
}

func newAdministrators(list func(context.Context) ([]string, error), now func() time.Time) *administrators {
	return &administrators{list: list, now: now, lock: make(chan struct{}, 1)}
}

// check returns an error if a user is not an administrator of Home Assistant, or if the list of administrators cannot be
// fetched. id is empty for an unknown user.
func (a *administrators) check(ctx context.Context, id string) error {
	if id == "" {
		return &httpserver.Fault{Word: "no_user", HTTP: http.StatusForbidden,
			Sentence: "Home Assistant does not say who you are; reload its page, and update its Supervisor if that does not help"}
	}
	select {
	case a.lock <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-a.lock }()
	if !a.now().Before(a.expires) {
		ids, err := a.list(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx) // not cached, because it is not an error of Home Assistant
		}
		a.ids, a.err, a.expires = ids, err, a.now().Add(administratorsMaxAge)
		if err != nil {
			a.expires = a.now().Add(administratorsRetry)
		}
	}
	switch {
	case a.err != nil:
		return &httpserver.Fault{Word: "role_unknown", HTTP: http.StatusServiceUnavailable, Err: a.err,
			Sentence: "Home Assistant cannot be asked whether you are an administrator (" + a.err.Error() + "); try again in a moment"}
	case !slices.Contains(a.ids, id):
		return &httpserver.Fault{Word: "not_administrator", HTTP: http.StatusForbidden,
			Sentence: "Perch can be used by administrators of Home Assistant only, and you are not one; an administrator can change that in " +
				"Home Assistant, under Settings, People, Users"}
	}
	return nil
}

// wait blocks until a user is no longer an administrator, two fetches of the list in a row have failed, or ctx ends.
func (a *administrators) wait(ctx context.Context, id string) {
	for failures := 0; failures < 2; {
		select {
		case <-time.After(administratorsMaxAge):
		case <-ctx.Done():
			return
		}
		err := a.check(ctx, id)
		fault, _ := errors.AsType[*httpserver.Fault](err)
		switch {
		case err == nil:
			failures = 0
		case fault != nil && fault.Word == "not_administrator":
			return
		default:
			failures++
		}
	}
}

// userOf returns the ID of the Home Assistant user who sent a request through the ingress, which is Home Assistant's
// proxy, or "" if the user is unknown. Home Assistant's Supervisor sets the header X-Remote-User-Id if it knows the
// user. A browser could send this header with the ID of an administrator, because the Supervisor removes a forged
// header only if it is spelled exactly X-Remote-User-Id. If the Supervisor then adds the true header, there are two,
// and userOf returns "". A forged header is therefore accepted only while the Supervisor does not know the user.
func userOf(r *http.Request) string {
	if ids := r.Header["X-Remote-User-Id"]; len(ids) == 1 {
		return ids[0]
	}
	return ""
}

// authenticateIngress authenticates a request that came through a proxy. It returns the same values as authenticate.
// It refuses requests of other pages, because a page on another port of Home Assistant's host could also use the
// cookie of the ingress.
func (s *Server) authenticateIngress(r *http.Request) (authenticated *http.Request, stop func(), err error) {
	if !isFromPage(r, r.Host, r.Header.Get("X-Forwarded-Host")) {
		return nil, nil, &httpserver.Fault{Word: "other_page", HTTP: http.StatusForbidden,
			Sentence: "this request does not come from Perch's page; open Perch in Home Assistant's side bar"}
	}
	if s.administrators == nil {
		s.visits.log(r, s.o.Now(), s.o.Log)
		return withAuthentication(r, authentication{how: ByIngress}), func() {}, nil
	}
	user := userOf(r)
	if err := s.administrators.check(r.Context(), user); err != nil {
		return nil, nil, err
	}
	s.visits.log(r, s.o.Now(), s.o.Log)
	wait := func(ctx context.Context) { s.administrators.wait(ctx, user) }
	authenticated, stop = cancelAfter(r, wait)
	return withAuthentication(authenticated, authentication{ByIngress, wait}), stop, nil
}
