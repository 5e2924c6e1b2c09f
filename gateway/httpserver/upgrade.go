package httpserver

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// bearer is the prefix of a WebSocket subprotocol that holds a key (RFC 6455 section 1.9). A web page that
// opens a WebSocket can set no other header than the list of subprotocols. The server never selects this
// subprotocol.
const bearer = "bearer."

// InUpgrade extends a check of the Authorization header to WebSockets of web pages, which cannot set that
// header. If a request lacks it, the key may come in a subprotocol "bearer.<base64url of the key>" or, if
// query is set, in ?token= of the URL, which proxies may log.
func InUpgrade(query bool, check func(*http.Request) error) func(*http.Request) error {
	return func(r *http.Request) error {
		if key := keyOfUpgrade(r, query); key != "" && r.Header.Get("Authorization") == "" {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+key)
		}
		return check(r)
	}
}

// keyOfUpgrade returns the key in a request that opens a WebSocket, or "".
func keyOfUpgrade(r *http.Request, query bool) string {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return ""
	}
	for _, line := range r.Header.Values("Sec-Websocket-Protocol") {
		for name := range strings.SplitSeq(line, ",") {
			encoded, ok := strings.CutPrefix(strings.TrimSpace(name), bearer)
			if !ok {
				continue
			}
			// The name of a subprotocol must not contain padding, but some clients send it.
			if key, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(encoded, "=")); err == nil {
				return string(key)
			}
		}
	}
	if query {
		return r.URL.Query().Get("token")
	}
	return ""
}
