package httpserver

import (
	"net/http"
	"strings"
)

// The answer to a browser's preflight (Fetch standard, section 3.3). Credentials
// are not allowed: there are no cookies here, and a page sends its token itself.
const (
	// pagesSend are the headers a page may set: a robot's, for pages that act as one, and
	// the headers of keys.
	pagesSend = "Authorization, X-Admin-Token, Content-Type, Accept, Accept-Language, User-Agent, Last-Event-ID, " +
		"Device-Id, Client-Id, Activation-Version, Serial-Number, Protocol-Version, X-Session-Id, X-Hermes-Tool-Progress, Mcp-Session-Id, Mcp-Protocol-Version"
	// pagesAlso begins the names of further headers, which OpenAI's library sets in a
	// page. They are many, and change.
	pagesAlso = "x-stainless-"
	mostAlso  = 20
	// pagesRemember is how long the answer is valid, in seconds. It is short, so
	// that an origin removed from the configuration is refused soon.
	pagesRemember = "600"
)

// share accepts a request of an allowed page, or of no page, and has the browser show the
// page the answer, also an error. Any other page is refused.
func (o Origins) share(answer http.Header, r *http.Request) error {
	// In every answer, since a cache must not give one origin's answer to another.
	answer.Add("Vary", "Origin")
	if err := o.Check(r); err != nil {
		return err
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		answer.Set("Access-Control-Allow-Origin", origin)
	}
	return nil
}

// isPreflight reports whether a browser sends a preflight for a page that share has
// accepted.
func isPreflight(answer http.Header, r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" &&
		answer.Get("Access-Control-Allow-Origin") != ""
}

// permit answers a preflight to an address that takes methods.
func permit(answer http.Header, r *http.Request, methods string) {
	answer.Set("Access-Control-Allow-Methods", methods)
	answer.Set("Access-Control-Allow-Headers", pagesSend+also(r))
	answer.Set("Access-Control-Max-Age", pagesRemember)
	// A page of the public internet asks this before it uses a private network (WICG
	// Private Network Access).
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		answer.Set("Access-Control-Allow-Private-Network", "true")
	}
}

// also returns the headers of OpenAI's library that a page asks to set.
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
