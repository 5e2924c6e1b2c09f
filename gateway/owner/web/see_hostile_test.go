package web_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/device"
	"perch/event"
	"perch/firmware-tools/simrobot"
)

// hostile returns texts that a page could mistake for markup, a script or a link. Each sets the variable pwned if it runs.
func hostile() []string {
	return []string{
		`<img src=x onerror=globalThis.pwned=1>`,
		`"><script>globalThis.pwned=1</script>`,
		`javascript:globalThis.pwned=1`,
		"\u202Egpj.\u2066" + `<svg onload=globalThis.pwned=1>` + "\u2069",
		`${globalThis.pwned=1}{{globalThis.pwned=1}}`,
	}
}

// told returns all events with texts of robots, people, models and agents, with the given text in each text field.
func told(text string) (all []event.Event) {
	for _, e := range []event.Event{event.RobotSeen{}, event.RobotRenamed{}, event.RobotConnected{}, event.ListeningStarted{}, event.Heard{},
		event.ThinkingStarted{}, event.StateTold{}, event.ToolStatus{}, event.Emotion{}, event.SpeakingStarted{}, event.Said{}, event.TurnEnded{},
		event.Notification{}, event.NotificationChanged{}, event.Asked{}, event.Answered{}, event.TimerRang{}, event.Fault{}, event.FirmwareOffered{},
		event.FirmwareProgress{}, event.FirmwareInstalled{}, event.FirmwareRolledBack{}, event.FirmwareFailed{},
		event.Mood{}, event.Gesture{}} {
		filled := reflect.New(reflect.TypeOf(e)).Elem()
		filled.Set(reflect.ValueOf(e))
		for i := range filled.NumField() {
			if f := filled.Field(i); f.Kind() == reflect.String {
				f.SetString(text)
			}
		}
		all = append(all, filled.Interface().(event.Event))
	}
	return append(all, event.Perceived{Name: text, Data: json.RawMessage(`{` + quote(text) + `:` + quote(text) + `}`)})
}

// attack sends hostile texts to the appliance as robots that are not adopted, as an adopted robot and as the owner's
// programs, and writes them to the log.
func attack(h *appliancetest.Appliance) {
	h.T.Helper()
	var tools []device.Tool
	for i, text := range hostile() {
		tools = append(tools, device.Tool{Name: "self.evil" + string(rune('a'+i)) + text, Description: text,
			Schema: device.Schema{Type: "object", Properties: map[string]device.Argument{text: {Type: "string", Default: []byte(quote(text))}}}})
		h.Request(http.MethodPost, "/xiaozhi/ota/", `{"application":{"name":`+quote(text)+`,"version":`+quote(text)+`},"board":{"type":`+quote(text)+
			`,"name":`+quote(text)+`}}`, "Device-Id", guestMAC, "Client-Id", "c")
		h.Request(http.MethodPost, "/xiaozhi/ota/", "{}", "Device-Id", text, "Client-Id", text)
		h.Admin(http.MethodPost, "/api/v1/memory", `{"text":`+quote(text)+`}`, nil)
		h.Owner(http.MethodPost, "/api/v1/notifications", `{"text":`+quote(text)+`,"action_url":`+quote(text)+`}`)
		h.Admin(http.MethodPost, "/api/v1/notifications", `{"text":`+quote(text)+`,"action_url":`+quote("https://house.example/"+text)+`}`, nil)
		h.Log.Warn(text, text, text)
	}
	robot := h.StartCompanion(simrobot.Options{Firmware: "dotty", MoreTools: tools, Events: appliancetest.Idle()})
	h.Eventually("its tools are known", func() bool { return len(h.Talk.Tools(robot.ID())) > 0 })
	h.Owner(http.MethodPut, "/api/v1/devices/"+kitchen, `{"name":`+quote(hostile()[0][:30])+`}`)
}

// seeHostile checks that hostile texts are shown as text in every view.
func seeHostile(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "")
	evil := hostile()
	h.Adopt(kitchenMAC)
	b := c.comeIn(t, h)
	b.allow("status of 4") // the page requests a robot of such a name, which does not exist
	b.open(h.LocalURL())
	attack(h)
	for _, v := range views(kitchen) {
		b.at(360, 800)
		b.view(v.hash, v.element)
		for _, text := range append(evil, evil[0]+strings.Repeat("W", 10_000)) {
			for _, e := range told(text) {
				h.Bus.Publish(kitchen, "s", e)
			}
		}
		h.Bus.Publish(kitchen, "s", event.Heard{Text: "that was all"})
		b.frame()
		b.harmless(v.hash)
		b.fits(v.hash)
	}
	// The texts must be shown, so that they have been tried.
	b.view("", "p-home")
	b.says("[data-test=refused]", evil[len(evil)-1]) // the latest refused check-in of the address
	for _, shown := range []struct{ hash, element, where string }{
		{"memory", "p-memory", "[data-test=memory]"}, {"notifications", "p-notifications", "[data-test=notification]"},
		{"sensed", "p-sensed", "[data-test=sensed]"}, {"logs", "p-logs", "[data-test=line]"},
		{"robots/" + kitchen, "p-robot", "[data-test=transcript]"}, {"robots/" + kitchen, "p-robot", "p-tools"}} {
		b.view(shown.hash, shown.element)
		if shown.where == "p-tools" {
			b.click("[data-test=details] >>> summary")
		}
		b.says(shown.where, evil[0][:30])
		b.says(shown.where, evil[1][:20])
	}
}

// harmless fails the test if a text has become markup, or a link that runs a script.
func (b *tab) harmless(what string) {
	b.t.Helper()
	b.until("!see.has('main >>> .loading')")
	if value[bool](b, "globalThis.pwned === 1") {
		b.t.Errorf("%s: a text has run", what)
	}
	for _, name := range value[[]string](b, `see.below(document).filter((e) => e.matches("script:not([src]), img[src='x'], [onerror], [onload]") ||
		[...e.attributes].some((a) => ["href", "src", "action", "formaction", "xlink:href"].includes(a.name) && /^\s*javascript:/i.test(a.value))).map(
		(e) => see.name(e) + " " + e.outerHTML.slice(0, 200))`) {
		b.t.Errorf("%s: a text has become %s", what, name)
	}
}
