package httpserver

import (
	"net/http"
	"strings"
)

// Values of the response to a browser's preflight (Fetch standard, section 3.3). Credentials such as
// cookies are not allowed: a page of another origin sends its token in a header.
const (
	// allowedHeaders are the headers that a page may set: headers that hold keys, the headers of chat and MCP
	// clients, and the headers of robots, for pages that act as a robot.
	allowedHeaders = "Authorization, X-Admin-Token, Content-Type, Accept, Accept-Language, User-Agent, Last-Event-ID, " +
		"Device-Id, Client-Id, Activation-Version, Serial-Number, Protocol-Version, X-Session-Id, X-Hermes-Tool-Progress, Mcp-Session-Id, Mcp-Protocol-Version"
	// libraryHeaderPrefix begins the names of the further headers that OpenAI's library sets in a page. The
	// number and the names of these headers change from version to version.
	libraryHeaderPrefix = "x-stainless-"
	// maxLibraryHeaders is how many of the requested headers are searched for headers of OpenAI's library.
	maxLibraryHeaders = 20
	// preflightMaxAge is how long browsers may cache the response, in seconds. It is short, so that an
	// origin that is removed from the configuration is soon refused.
	preflightMaxAge = "600"
)

// allowOrigin returns an error for a request from a web page whose origin is not allowed. For an allowed origin
// it sets the header that makes the browser show the response to the page, even an error response.
func (o Origins) allowOrigin(response http.Header, r *http.Request) error {
	// Set in every response, because a cache must not return one origin's response to another.
	response.Add("Vary", "Origin")
	if err := o.Check(r); err != nil {
		return err
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		response.Set("Access-Control-Allow-Origin", origin)
	}
	return nil
}

// isPreflight reports whether a request is a browser's preflight for a page that allowOrigin has accepted.
func isPreflight(response http.Header, r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" &&
		response.Get("Access-Control-Allow-Origin") != ""
}

// setPreflightHeaders sets the headers of the response to a preflight. methods lists the methods that the
// path accepts.
func setPreflightHeaders(response http.Header, r *http.Request, methods string) {
	response.Set("Access-Control-Allow-Methods", methods)
	response.Set("Access-Control-Allow-Headers", allowedHeaders+libraryHeaders(r))
	response.Set("Access-Control-Max-Age", preflightMaxAge)
	// Browsers send this header before a page of the public internet uses a private network (WICG Private
	// Network Access).
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		response.Set("Access-Control-Allow-Private-Network", "true")
	}
}

// libraryHeaders returns the names of the headers of OpenAI's library that a page requests to set, each
// after a comma.
func libraryHeaders(r *http.Request) string {
	var list strings.Builder
	for i, name := range strings.Split(r.Header.Get("Access-Control-Request-Headers"), ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if i < maxLibraryHeaders && strings.HasPrefix(name, libraryHeaderPrefix) && isHostName(name) {
			list.WriteString(", " + name)
		}
	}
	return list.String()
}
