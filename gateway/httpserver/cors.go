package httpserver

import (
	"net/http"
	"strings"
)

// The answer to a browser's preflight (Fetch standard, section 3.3). Credentials
// are not allowed: there are no cookies here, and a page sends its token itself.
const (
	// pagesSend are the headers a page may set: a robot's, for pages that stand
	// in for one, and those of the keys.
	pagesSend = "Authorization, X-Admin-Token, Content-Type, Accept, Accept-Language, User-Agent, Last-Event-ID, " +
		"Device-Id, Client-Id, Activation-Version, Serial-Number, Protocol-Version, X-Session-Id, X-Hermes-Tool-Progress, Mcp-Session-Id, Mcp-Protocol-Version"
	// pagesAlso begins the names of headers that OpenAI's own library sets in a
	// page besides. There are many, and they change.
	pagesAlso = "x-stainless-"
	mostAlso  = 20
	// pagesRemember is how long the answer holds, in seconds. It is short, so
	// that an origin taken out of the configuration is out soon.
	pagesRemember = "600"
)

// share lets a request of an allowed page, or of none, pass and has the
// browser show that page the answer, be it an error. Any other page is
// refused.
func (o Origins) share(answer http.Header, r *http.Request) error {
	// In every answer, for a cache must not give one origin's answer to another.
	answer.Add("Vary", "Origin")
	if err := o.Check(r); err != nil {
		return err
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		answer.Set("Access-Control-Allow-Origin", origin)
	}
	return nil
}

// isPreflight reports whether a browser asks on behalf of a page that share
// has let in what the page may send.
func isPreflight(answer http.Header, r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" &&
		answer.Get("Access-Control-Allow-Origin") != ""
}

// permit answers a preflight to an address that takes methods.
func permit(answer http.Header, r *http.Request, methods string) {
	answer.Set("Access-Control-Allow-Methods", methods)
	answer.Set("Access-Control-Allow-Headers", pagesSend+also(r))
	answer.Set("Access-Control-Max-Age", pagesRemember)
	// A page of the public internet asks this first, for this is a private
	// network (WICG Private Network Access).
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		answer.Set("Access-Control-Allow-Private-Network", "true")
	}
}

// also are the headers of OpenAI's library that a page asks to set.
func also(r *http.Request) string {
	var list strings.Builder
	for i, name := range strings.Split(r.Header.Get("Access-Control-Request-Headers"), ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if i < mostAlso && strings.HasPrefix(name, pagesAlso) && isHostName(name) {
			list.WriteString(", " + name)
		}
	}
	return list.String()
}
