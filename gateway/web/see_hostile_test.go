package web_test

import (
	"net/http"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/device"
	"perch/event"
	"perch/firmware-tools/simrobot"
)

// hostile are texts that are markup, if they are not taken for text. Each sets a
// flag where it runs.
func hostile() []string {
	return []string{
		`<img src=x onerror=globalThis.pwned=1>`,
		`"><script>globalThis.pwned=1</script>`,
		`javascript:globalThis.pwned=1`,
		"\u202Egpj.\u2066" + `<svg onload=globalThis.pwned=1>` + "\u2069",
		`${globalThis.pwned=1}{{globalThis.pwned=1}}`,
	}
}

// seeHostile: whatever robots, skins, models and others of the network write is
// shown as it is, in every view.
func seeHostile(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "")
	evil := hostile()
	long := evil[0] + strings.Repeat("W", 10_000)
	h.Adopt(kitchenMAC)
	b := c.browse(t)
	b.open(local(h))
	var tools []device.Tool
	for i, text := range evil {
		tools = append(tools, device.Tool{Name: "self.evil" + string(rune('a'+i)) + text, Description: text,
			Schema: device.Schema{Type: "object", Properties: map[string]device.Argument{text: {Type: "string", Default: []byte(quote(text))}}}})
	}
	robot := h.Companion(simrobot.Options{Firmware: "dotty", MoreTools: tools,
		Events: appliancetest.Idle()})
	h.Eventually("its tools are known", func() bool { return len(h.Talk.Tools(robot.ID())) > 0 })
	for _, text := range evil {
		h.Request(http.MethodPost, "/xiaozhi/ota/", `{"application":{"name":`+quote(text)+`,"version":`+quote(text)+`},"board":{"type":`+quote(text)+
			`,"name":`+quote(text)+`}}`, "Device-Id", guestMAC, "Client-Id", "c", "User-Agent", strings.ToValidUTF8(text, "")+"/1.0")
		h.Request(http.MethodPost, "/xiaozhi/ota/", "{}", "Device-Id", text, "Client-Id", text)
		h.Admin(http.MethodPost, "/api/v1/memory", `{"text":`+quote(text)+`}`, nil)
		h.Owner(http.MethodPost, "/api/v1/notifications", `{"text":`+quote(text)+`,"action_url":`+quote(text)+`}`)
		h.Log.Warn(text, text, text)
	}
	h.Owner(http.MethodPut, "/api/v1/devices/"+kitchen, `{"name":`+quote(evil[0][:30])+`}`)
	for _, v := range views(kitchen) {
		b.view(v.hash, v.element)
		b.at(360, 800)
		for _, text := range evil {
			h.Bus.Publish(kitchen, "s", event.Heard{Text: text})
			h.Bus.Publish(kitchen, "s", event.Perceived{Name: text, Data: []byte(`{` + quote(text) + `:` + quote(text) + `}`)})
		}
		h.Bus.Publish(kitchen, "s", event.Heard{Text: long})
		b.frame()
		b.harmless(v.hash)
		b.fits(v.hash)
		b.at(1400, 800)
	}
	b.view("memory", "p-memory")
	b.says("[data-test=memory]", evil[0])
	b.says("[data-test=memory]", evil[1])
	b.view("sensed", "p-sensed")
	b.says("[data-test=sensed]", evil[0])
}

// harmless fails the test where a text has become markup, or a link that runs.
func (b *tab) harmless(what string) {
	b.t.Helper()
	b.until("!see.has('main >>> .loading')")
	if value[bool](b, "globalThis.pwned === 1") {
		b.t.Errorf("%s: a text has run", what)
	}
	for _, name := range value[[]string](b, `see.below(document).filter((e) => e.matches("script:not([src]), img[src='x'], [onerror], [onload]") ||
		[...e.attributes].some((a) => ["href", "src", "action", "formaction", "xlink:href"].includes(a.name) && /^\s*javascript:/i.test(a.value))).map((e) => see.name(e) + " " + e.outerHTML.slice(0, 200))`) {
		b.t.Errorf("%s: a text has become %s", what, name)
	}
}
