package httpserver

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// bearer begins the name of a subprotocol that holds a key (RFC 6455 section
// 1.9): a browser can set no other header where it opens a WebSocket. It is
// never repeated in the answer.
const bearer = "bearer."

// InUpgrade has a check find the key that a browser sends to open a WebSocket: in a
// subprotocol "bearer.<base64url of the key>", or, if query is set, as ?token= in
// the address, which proxies may log. A key in the header comes first.
func InUpgrade(query bool, check func(*http.Request) error) func(*http.Request) error {
	return func(r *http.Request) error {
		if key := keyOfUpgrade(r, query); key != "" && r.Header.Get("Authorization") == "" {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+key)
		}
		return check(r)
	}
}

// keyOfUpgrade returns the key in a request to open a WebSocket, if any.
func keyOfUpgrade(r *http.Request, query bool) string {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return ""
	}
	for _, line := range r.Header.Values("Sec-Websocket-Protocol") {
		for name := range strings.SplitSeq(line, ",") {
			coded, is := strings.CutPrefix(strings.TrimSpace(name), bearer)
			if !is {
				continue
			}
			// A subprotocol's name may not hold the padding; some clients send it anyway.
			if key, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(coded, "=")); err == nil {
				return string(key)
			}
		}
	}
	if query {
		return r.URL.Query().Get("token")
	}
	return ""
}
