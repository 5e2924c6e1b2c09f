package openclaw

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"perch/gateway/avatar/avatartest"
	"perch/gateway/httpserver"
)

// set returns a change of the connect request's parameters.
func set(key string, value any) func(map[string]any) {
	return func(params map[string]any) { params[key] = value }
}

// TestConnect checks which connect requests are accepted, and the errors for the others.
func TestConnect(t *testing.T) {
	h := newHarness(t)
	for name, c := range map[string]struct {
		changes []func(map[string]any)
		want    string // part of the response
	}{
		"Flawed Avatar":        {nil, `"protocol":3,`},
		"today's gateway":      {f(set("minProtocol", 4), set("maxProtocol", 4)), `"protocol":4,`},
		"both":                 {f(set("maxProtocol", 9)), `"protocol":4,`},
		"an old one":           {f(set("minProtocol", 1), set("maxProtocol", 2)), "PROTOCOL_MISMATCH"},
		"a new one":            {f(set("minProtocol", 5), set("maxProtocol", 5)), "PROTOCOL_MISMATCH"},
		"the wrong way":        {f(set("minProtocol", 4)), "PROTOCOL_MISMATCH"},
		"a node":               {f(set("role", "node")), "invalid role"},
		"any number of scopes": {f(set("scopes", make([]string, 33))), "more than 32"},
		"a wrong type":         {f(set("scopes", 7)), "invalid connect params: scopes"},
		"a device's identity":  {f(set("device", map[string]any{"id": "x", "publicKey": "AAAA", "signature": "~", "signedAt": 1})), `"hello-ok"`},
	} {
		cl := h.dial()
		cl.Send(avatartest.Connect("x", c.changes...))
		answer := cl.next()
		if !strings.Contains(answer.whole, c.want) || answer.ID != "x" || answer.OK != strings.HasPrefix(c.want, `"`) {
			t.Errorf("%s: %s, want %s", name, answer.whole, c.want)
		}
		if !answer.OK {
			cl.gone()
		}
	}
}

func f(all ...func(map[string]any)) []func(map[string]any) { return all }

// TestToken checks that Options.Token requires the right token, even from a client that sends the
// identity of its device, and that too many wrong tokens are refused.
func TestToken(t *testing.T) {
	lock := httpserver.NewKey("the-key-of-the-skins", "skins.key", "")
	h := newHarness(t, func(o *Options, _ *timings) {
		o.Token = func(remote, token string) error {
			return lock.CheckToken(&http.Request{RemoteAddr: remote}, token, nil)
		}
	})
	auth := func(key, value string) func(map[string]any) { return set("auth", map[string]any{key: value}) }
	for name, c := range map[string]struct {
		change func(map[string]any)
		want   string
	}{
		"none":                {func(map[string]any) {}, "AUTH_TOKEN_MISSING"},
		"a device's identity": {set("device", map[string]any{"id": "x"}), "AUTH_TOKEN_MISSING"},
		"a wrong one":         {auth("token", "guess"), "AUTH_TOKEN_MISMATCH"},
		"the right one":       {auth("token", "the-key-of-the-skins"), `"hello-ok"`},
		"as a password":       {auth("password", "the-key-of-the-skins"), `"hello-ok"`},
	} {
		cl := h.dial()
		cl.Send(avatartest.Connect("x", c.change))
		if answer := cl.next(); !strings.Contains(answer.whole, c.want) || strings.Contains(answer.whole, "the-key-of-the-skins") {
			t.Errorf("%s: %s, want %s", name, answer.whole, c.want)
		}
	}
	for n := range 12 {
		cl := h.dial()
		cl.Send(avatartest.Connect("x", auth("token", fmt.Sprint("guess-", n))))
		if answer := cl.next(); n == 11 && !strings.Contains(answer.whole, "AUTH_RATE_LIMITED") {
			t.Errorf("a guesser: %s", answer.whole)
		}
	}
}

// TestScopes checks that methods that read require the scope operator.read, and that texts require
// operator.write.
func TestScopes(t *testing.T) {
	h := newHarness(t)
	for _, c := range []struct {
		scopes, list, chat string
	}{
		{"", "missing scope: operator.read", "missing scope: operator.write"},
		{"operator.read", `"ok":true`, "missing scope: operator.write"},
		{"operator.write", `"ok":true`, `"ok":true`},
		{"operator.admin", `"ok":true`, `"ok":true`},
		{"operator.pairing", "MISSING_SCOPE", "MISSING_SCOPE"},
	} {
		cl := h.join(func(p map[string]any) { p["scopes"] = []string{c.scopes} })
		for _, method := range []string{"sessions.list", "agents.list", "chat.history", "status"} {
			cl.call("l", method, "{}")
			if got := cl.answer("l"); !strings.Contains(got.whole, c.list) {
				t.Errorf("%q calls %s: %s", c.scopes, method, got.whole)
			}
		}
		cl.call("c", "chat.send", `{"sessionKey":"main","message":"hello","idempotencyKey":"`+c.scopes+`"}`)
		if got := cl.answer("c"); !strings.Contains(got.whole, c.chat) {
			t.Errorf("%q chats: %s", c.scopes, got.whole)
		}
	}
}
