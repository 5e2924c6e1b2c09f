package openclaw

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"perch/gateway/avatar/avatartest"
	"perch/gateway/httpserver"
	"perch/must"
)

// TestPayloads are those of the gateway's own tests
// (packages/gateway-client/src/device-auth.test.ts), and Flawed Avatar's first version.
func TestPayloads(t *testing.T) {
	for _, c := range []struct{ params, want string }{
		{`{"client":{"id":"openclaw-macos","mode":"ui"},"role":"operator","scopes":["operator.admin","operator.read"],
			"device":{"id":"dev-1","signedAt":1700000000000,"nonce":"nonce-abc"}}`,
			"v2|dev-1|openclaw-macos|ui|operator|operator.admin,operator.read|1700000000000||nonce-abc"},
		{`{"client":{"id":"openclaw-macos","mode":"ui","platform":"  IOS  ","deviceFamily":"  iPhone  "},"role":"operator",
			"scopes":["operator.admin","operator.read"],"auth":{"token":"tok-123","deviceToken":"other"},
			"device":{"id":"dev-1","signedAt":1700000000000,"nonce":"nonce-abc"}}`,
			"v3|dev-1|openclaw-macos|ui|operator|operator.admin,operator.read|1700000000000|tok-123|nonce-abc|ios|iphone"},
		{`{"client":{"id":"openclaw-ios","mode":"ui"},"role":"operator","scopes":["operator.read"],
			"device":{"id":"dev-2","signedAt":1700000000001,"nonce":"nonce-def"}}`,
			"v3|dev-2|openclaw-ios|ui|operator|operator.read|1700000000001||nonce-def||"},
		{`{"client":{"id":"node-host","mode":"node","platform":"  macOS  ","deviceFamily":"  Mac  ","instanceId":" custom-node-id "},"role":"node",
			"auth":{"deviceToken":"tok-456"},"device":{"id":"dev-1","signedAt":1700000000002,"nonce":"nonce-ghi"}}`,
			"v4|dev-1|node-host|node|node||1700000000002|tok-456|nonce-ghi|macos|mac|custom-node-id"},
		{`{"client":{"id":"gateway-client","mode":"backend"},"role":"operator","scopes":["operator.admin"],"auth":{"token":"t"},
			"device":{"id":"dev-3","signedAt":1700000000003}}`,
			"v1|dev-3|gateway-client|backend|operator|operator.admin|1700000000003|t"},
	} {
		var p connectParams
		must.Succeed(t, json.Unmarshal([]byte(c.params), &p))
		if all := strings.Join(p.payloads(), "\n") + "\n"; !strings.Contains(all, c.want+"\n") {
			t.Errorf("%s is not among\n%s", c.want, all)
		}
	}
	if got := normalize("  İOS  "); got != "İos" {
		t.Errorf("the kind of a machine: %q", got)
	}
}

const (
	firstForm  = "v1|ID|gateway-client|backend|operator|operator.admin|AT|"
	secondForm = "v2|ID|gateway-client|backend|operator|operator.admin|AT||NONCE"
	thirdForm  = "v3|ID|gateway-client|backend|operator|operator.admin|AT||NONCE|linux|"
)

// TestConnect accepts the supported versions, and refuses with the gateway's words.
func TestConnect(t *testing.T) {
	h := newHarness(t)
	with := func(key string, value any) func(map[string]any) { return func(p map[string]any) { p[key] = value } }
	in := func(key string, change func(map[string]any)) func(map[string]any) {
		return func(p map[string]any) { change(p[key].(map[string]any)) }
	}
	a, b := newDevice(0), newDevice(1)
	for name, c := range map[string]struct {
		change func(c *client) []func(map[string]any)
		want   string // in the answer
	}{
		"Flawed Avatar":        {func(*client) []func(map[string]any) { return nil }, `"protocol":3,`},
		"today's gateway":      {func(*client) []func(map[string]any) { return f(with("minProtocol", 4), with("maxProtocol", 4)) }, `"protocol":4,`},
		"both":                 {func(*client) []func(map[string]any) { return f(with("maxProtocol", 9)) }, `"protocol":4,`},
		"an old one":           {func(*client) []func(map[string]any) { return f(with("minProtocol", 1), with("maxProtocol", 2)) }, "PROTOCOL_MISMATCH"},
		"a new one":            {func(*client) []func(map[string]any) { return f(with("minProtocol", 5), with("maxProtocol", 5)) }, "PROTOCOL_MISMATCH"},
		"the wrong way":        {func(*client) []func(map[string]any) { return f(with("minProtocol", 4)) }, "PROTOCOL_MISMATCH"},
		"a node":               {func(*client) []func(map[string]any) { return f(with("role", "node")) }, "invalid role"},
		"any number of scopes": {func(*client) []func(map[string]any) { return f(with("scopes", make([]string, 33))) }, "more than 32"},
		"a wrong type":         {func(*client) []func(map[string]any) { return f(with("client", 7)) }, "invalid connect params: client"},
		"the first signature":  {func(*client) []func(map[string]any) { return f(a.signs("", firstForm)) }, `"hello-ok"`},
		"the second signature": {func(c *client) []func(map[string]any) { return f(a.signs(c.nonce, secondForm)) }, `"hello-ok"`},
		"the third signature":  {func(c *client) []func(map[string]any) { return f(a.signs(c.nonce, thirdForm)) }, `"hello-ok"`},
		"another's challenge":  {func(*client) []func(map[string]any) { return f(a.signs("other", secondForm)) }, "DEVICE_AUTH_NONCE_MISMATCH"},
		"other scopes": {func(c *client) []func(map[string]any) {
			return f(a.signs(c.nonce, secondForm), with("scopes", []string{}))
		}, "DEVICE_AUTH_SIGNATURE_INVALID"},
		"the first with nonce": {func(c *client) []func(map[string]any) { return f(a.signs(c.nonce, firstForm)) }, "DEVICE_AUTH_SIGNATURE_INVALID"},
		"another's id": {func(c *client) []func(map[string]any) {
			return f(a.signs(c.nonce, secondForm), in("device", with("id", b.id())))
		}, "DEVICE_AUTH_DEVICE_ID_MISMATCH"},
		"no key": {func(c *client) []func(map[string]any) {
			return f(a.signs(c.nonce, secondForm), in("device", with("publicKey", "AAAA")))
		}, "DEVICE_AUTH_PUBLIC_KEY_INVALID"},
		"no signature": {func(c *client) []func(map[string]any) {
			return f(a.signs(c.nonce, secondForm), in("device", with("signature", "~")))
		}, "DEVICE_AUTH_SIGNATURE_INVALID"},
		"signed yesterday": {func(c *client) []func(map[string]any) {
			return f(a.signs(c.nonce, secondForm), in("device", with("signedAt", 1)))
		}, "DEVICE_AUTH_SIGNATURE_EXPIRED"},
		"signed at another time": {func(c *client) []func(map[string]any) {
			return f(a.signs(c.nonce, secondForm), in("device", with("signedAt", time.Now().Add(time.Minute).UnixMilli())))
		}, "DEVICE_AUTH_SIGNATURE_INVALID"},
	} {
		cl := h.dial()
		cl.Send(avatartest.Connect("x", c.change(cl)...))
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

// TestToken: with Options.Token a client needs the token, and a device has to sign the
// challenge.
func TestToken(t *testing.T) {
	lock := httpserver.NewKey("the-key-of-the-skins", "skins.key", "")
	h := newHarness(t, func(o *Options, _ *paces) {
		o.Token = func(remote, token string) error {
			return lock.CheckToken(&http.Request{RemoteAddr: remote}, token, nil)
		}
	})
	auth := func(key, value string) func(map[string]any) {
		return func(p map[string]any) { p["auth"] = map[string]any{key: value} }
	}
	a := newDevice(0)
	for name, c := range map[string]struct {
		change func(c *client) []func(map[string]any)
		want   string
	}{
		"none":             {func(*client) []func(map[string]any) { return nil }, "AUTH_TOKEN_MISSING"},
		"a device's alone": {func(c *client) []func(map[string]any) { return f(a.signs(c.nonce, secondForm)) }, "AUTH_TOKEN_MISSING"},
		"a wrong one":      {func(*client) []func(map[string]any) { return f(auth("token", "guess")) }, "AUTH_TOKEN_MISMATCH"},
		"the right one":    {func(*client) []func(map[string]any) { return f(auth("token", "the-key-of-the-skins")) }, `"hello-ok"`},
		"as a password":    {func(*client) []func(map[string]any) { return f(auth("password", "the-key-of-the-skins")) }, `"hello-ok"`},
		"signed": {func(c *client) []func(map[string]any) {
			return f(auth("token", "the-key-of-the-skins"),
				a.signs(c.nonce, "v2|ID|gateway-client|backend|operator|operator.admin|AT|the-key-of-the-skins|NONCE"))
		}, `"hello-ok"`},
		"signed without the challenge": {func(*client) []func(map[string]any) {
			return f(auth("token", "the-key-of-the-skins"), a.signs("", firstForm+"the-key-of-the-skins"))
		}, "DEVICE_AUTH_NONCE_REQUIRED"},
	} {
		cl := h.dial()
		cl.Send(avatartest.Connect("x", c.change(cl)...))
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

// TestScopes: reading is needed for lists, writing for texts.
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
		cl.call("l", "sessions.list", "{}")
		if got := cl.answer("l"); !strings.Contains(got.whole, c.list) {
			t.Errorf("%q lists: %s", c.scopes, got.whole)
		}
		cl.call("a", "agents.list", "{}")
		if got := cl.answer("a"); !strings.Contains(got.whole, c.list) {
			t.Errorf("%q lists agents: %s", c.scopes, got.whole)
		}
		cl.call("c", "chat.send", `{"sessionKey":"main","message":"hello","idempotencyKey":"`+c.scopes+`"}`)
		if got := cl.answer("c"); !strings.Contains(got.whole, c.chat) {
			t.Errorf("%q chats: %s", c.scopes, got.whole)
		}
	}
}
