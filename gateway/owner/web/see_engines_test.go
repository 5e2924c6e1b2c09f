package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp/kb"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
	"perch/must"
)

// seeEngines checks the list of engines. An owner adds a brain while a robot talks; the page shows a wrong address at its
// field, and the new brain answers the next turn. The owner changes the order with keys and by dragging, changes and
// removes an engine, and resets the list to that of the configuration file.
func seeEngines(t *testing.T, c *chromium) {
	talking, next := appliancetest.NewPeers(t), appliancetest.NewPeers(t)
	talking.Words, talking.Rest = []string{"One.", " Two."}, make(chan struct{})
	next.Words = []string{"It", " is", " Miso."}
	_, present, _ := talking.URLs()
	_, brain, _ := next.URLs()
	h := appliancetest.Configured(t, "brains: [{kind: openai, url: \""+present+"\", model: m, within: 60s}, {kind: reflex}] # mine\n")
	before := file(h)
	h.Adopt(kitchenMAC)
	b := c.visit(t, h, "#/engines")
	b.allow("status of 422")
	b.says("#recognizer", "sphinx")
	b.lacks("#card-recognizer [data-test=remove]") // the only recognizer cannot be removed
	robot := h.StartCompanion(simrobot.Options{Firmware: "dotty", Events: appliancetest.Idle(),
		Say: appliancetest.Sentences(t, "what can you do", "what time is it")})
	h.Await(robot, "it is answered", appliancetest.Shows("One."))

	b.click("#card-brain [data-test=add]")
	b.click("p-engine-form >>> [name=kind][value=openai]")
	b.fill("[data-option=model] >>> input", "m")
	b.fill("[data-option=url] >>> input", "nas")
	b.fill("[data-option=key] >>> input", "geheim-geheim")
	b.click("[data-test=engine-save]")
	b.says("[data-option=url]", "such as http://192.168.1.9:11434/v1")
	if settings(h) != "" {
		t.Errorf("a fault was written:\n%s", settings(h))
	}
	b.fill("[data-option=url] >>> input", brain)
	b.click("[data-test=engine-save]")
	b.sees("#brain > li:nth-child(1) >>> [data-test=go]") // the brain can be tried
	b.lacks("#card-brain p-engine-form")
	close(talking.Rest)
	h.Await(robot, "the new brain answers", appliancetest.Shows("It is Miso."))
	b.says("#brain > li:nth-child(1) [data-test=wait]", "1 use)")
	b.says("#card-brain", "Your configuration file has this list, too")
	b.inspect("engines that were added")
	b.at(1400, 900)

	b.click("#card-synthesizer [data-test=add]")
	b.click("p-engine-form >>> [name=kind][value=elevenlabs]")
	b.click("[data-test=engine-save]")
	b.says("[data-option=voice]", "the id of a voice")
	b.inspect("an engine that is refused")
	b.at(1400, 900)
	b.click("[data-test=engine-cancel]")

	b.click("#brain > li:nth-child(2) [data-test=later]")
	b.says("#brain > li:nth-child(2)", "reflex")
	const moved = "brains:\n    - key: geheim-geheim\n      kind: openai\n      model: m\n      url: %s\n    - kind: reflex\n    - kind: openai\n"
	if got := settings(h); !strings.Contains(got, fmt.Sprintf(moved, brain)) {
		t.Errorf("the settings are:\n%s", got)
	}
	b.press(kb.Enter) // the focus is still on the button "earlier" of the moved engine
	b.says("#brain > li:nth-child(3)", "reflex")
	b.drag("#brain > li:nth-child(3) [data-test=grip]", 0, -400)
	b.says("#brain > li:nth-child(1)", "reflex")

	b.click("#brain > li:nth-child(2) [data-test=change]")
	b.fill("#brain >>> [data-option=model] >>> input", "deep")
	b.click("#brain >>> [data-test=engine-save]")
	b.says("#brain > li:nth-child(2)", "deep at ")
	if got := settings(h); !strings.Contains(got, "    - key: geheim-geheim\n      kind: openai\n      model: deep\n") {
		t.Errorf("the settings are:\n%s", got)
	}

	b.click("#brain > li:nth-child(2) [data-test=remove]")
	b.lacks("#brain > li:nth-child(3)")
	b.click("[data-test=note] [data-test=undo]")
	b.sees("#brain > li:nth-child(3)")
	b.click("#brain > li:nth-child(2) [data-test=remove]")
	b.lacks("#brain > li:nth-child(3)")
	b.view("turns", "p-turns") // leaving the view ends the time for undoing
	b.view("engines", "p-engines")
	b.lacks("#brain > li:nth-child(3)")
	if got := settings(h); strings.Contains(got, "geheim") {
		t.Errorf("the settings are:\n%s", got)
	}
	b.click("[data-test=give-back]")
	b.lacks("[data-test=give-back]")
	if got := settings(h); strings.Contains(got, "brains") || file(h) != before {
		t.Errorf("the settings are:\n%s\nthe owner's file is\n%s", got, file(h))
	}
}

// seeFoundEngines checks that a server that was found on the network can be chosen as an engine, with a list of its models.
func seeFoundEngines(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "")
	b := c.comeIn(t, h)
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `{
		const real = fetch;
		globalThis.fetch = (what, init) => String(what?.url ?? what).endsWith("/api/v1/found") ? Promise.resolve(Response.json({
			wyoming: [{name: "Piper <b>", url: "tcp://127.0.0.1:1", speaks: true}], homeassistant: [], ollama: [{url: "http://127.0.0.1:2", models: ["qwen3:4b", "gemma"]}]})) : real(what, init);
	}`})
	b.open(h.LocalURL() + "#/engines")
	b.inspect("servers that were found")
	b.at(1400, 900)
	b.lacks("[data-url='tcp://127.0.0.1:1'] [data-test=use-recognizer]")
	b.click("[data-url='tcp://127.0.0.1:1'] [data-test=use-synthesizer]")
	b.until(`see.one("p-engine-form >>> [data-option=url] >>> input").value === "tcp://127.0.0.1:1"`)
	b.click("[data-url='http://127.0.0.1:2'] [data-test=use-brain]")
	b.choose("p-engine-form >>> [data-option=model] >>> select", "gemma")
	b.inspect("the form for a server that was found")
	b.at(1400, 900)
	b.click("[data-test=engine-save]")
	b.says("#brain > li:nth-child(1)", "gemma at http://127.0.0.1:2")
	b.says("[data-url='http://127.0.0.1:2']", "thinks")
	if got := settings(h); !strings.Contains(got, "dialect: ollama\n      kind: openai\n      model: gemma\n      url: http://127.0.0.1:2/v1\n    - kind: reflex\n") {
		t.Errorf("the settings are:\n%s", got)
	}
}

// seeRobotChoices checks that the language, the voice and the brain of a robot are chosen from lists, and that a refused
// value is shown at its field.
func seeRobotChoices(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "")
	h.Admin(http.MethodPut, "/api/v1/config/robots.each", `[{"robot":"`+kitchenMAC+`","brain":"reflex"}]`, nil)
	h.Adopt(kitchenMAC, guestMAC)
	h.Admin(http.MethodPut, "/api/v1/devices/"+guest, `{"name":"cellar"}`, nil)
	b := c.visit(t, h, "#/robots/"+kitchen)
	b.allow("status of 400", "status of 409")
	b.until(`see.one("p-robot-settings >>> [data-test=voice]")?.options?.length > 20`)
	b.choose("p-robot-settings >>> [data-test=voice]", "en-us")
	b.choose("p-robot-settings >>> [data-test=language]", "pt-BR")
	b.click("p-robot-settings >>> [data-test=save]")
	b.says("[data-test=note]", "Saved")
	var robot struct{ Voice, Language string }
	if h.Admin(http.MethodGet, "/api/v1/devices/"+kitchen, "", &robot); robot.Voice != "en-us" || robot.Language != "pt-BR" {
		t.Errorf("the robot is %+v", robot)
	}
	b.says("p-robot-settings >>> [data-test=language]", "Brazilian Portuguese")
	b.fill("[data-test=name]", "cel:lar")
	b.click("p-robot-settings >>> [data-test=save]")
	b.says("p-robot-settings >>> p-field=Name", "used in addresses")
	b.inspect("a robot's setting that is refused")
	b.at(1400, 900)
	b.fill("[data-test=name]", "Cellar")
	b.click("p-robot-settings >>> [data-test=save]")
	b.says("p-robot-settings >>> p-field=Name", "taken")
	b.click("p-robot-settings >>> [data-test=undo]")
	b.choose("[data-test=brain]", "")
	b.click("p-robot-settings >>> [data-test=save]")
	b.says("p-robot-settings >>> p-field=Brain", "configuration file")
}

// seeTwoRemovals checks that the right engines of several of the same kind are removed and changed, also while another
// removal can still be undone.
func seeTwoRemovals(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "# nothing\n")
	var list []map[string]any
	for _, model := range []string{"a", "b", "c", "d"} {
		list = append(list, map[string]any{"kind": "openai", "url": "http://127.0.0.1:9/" + model, "model": model, "key": "geheim-" + model})
	}
	h.Admin(http.MethodPut, "/api/v1/config/brains", string(must.Value(json.Marshal(list))(t)), nil)
	b := c.visit(t, h, "#/engines")
	b.says("#brain > li:nth-child(4)", "/d")
	b.click("#brain > li:nth-child(1) [data-test=remove]") // a
	b.lacks("#brain > li:nth-child(4)")
	b.click("#brain > li:nth-child(3) [data-test=remove]") // d
	b.lacks("#brain > li:nth-child(3)")
	b.click("#brain > li:nth-child(1) [data-test=change]") // b
	b.fill("[data-option=model] >>> input", "other")
	b.click("[data-test=engine-save]")
	b.lacks("p-engine-form")
	want := "brains:\n    - key: geheim-b\n      kind: openai\n      model: other\n      url: http://127.0.0.1:9/b\n" +
		"    - key: geheim-c\n      kind: openai\n      model: c\n      url: http://127.0.0.1:9/c\n"
	if got := settings(h); !strings.HasSuffix(got, want) {
		t.Errorf("the settings are\n%s", got)
	}
}

// seeSpeechModels checks that models of perch-speech are downloaded, stopped, continued and removed on the page, that the page
// shows why a download has failed, and what to do without a perch-speech.
func seeSpeechModels(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "speech: {synthesizers: [{kind: espeak}, {kind: wyoming, url: \""+appliancetest.Speech(t)+"\"}]}\n")
	b := c.visit(t, h, "#/engines")
	b.allow("status of 409")
	b.says("[data-name=good]", "any language")
	b.says("[data-name=good]", "22 byte")
	b.says("[data-name=good]", "MIT")
	b.inspect("models of perch-speech")
	b.at(1400, 900)
	b.click("[data-name=good] [data-test=get]")
	b.says("[data-name=good]", "is there")
	b.click("[data-name=wrong] [data-test=get]")
	b.says("[data-name=wrong] [role=alert]", "sent another file")
	b.click("[data-name=huge] [data-test=get]")
	b.says("[data-name=huge] [role=alert]", "make room")
	b.inspect("downloads that have failed")
	b.at(1400, 900)

	b.click("[data-name=slow] [data-test=get]")
	b.says("[data-name=slow]", "11 byte of 22 byte")
	b.until(`see.one("[data-name=slow] >>> [role=progressbar]").ariaValueNow === "50"`)
	b.inspect("a download")
	b.at(1400, 900)
	b.click("[data-name=cut] [data-test=get]")
	b.says("p-models >>> [role=alert]", "slow is being downloaded")
	b.click("[data-name=slow] [data-test=stop]")
	b.click("[data-name=slow] [data-test=get]")
	b.says("[data-name=slow]", "is there")

	b.click("[data-name=good] [data-test=remove]")
	b.click("p-dialog [data-test=yes]")
	b.sees("[data-name=good] [data-test=get]")

	b = c.visit(t, appliancetest.Configured(t, ""), "#/engines")
	b.says("p-models >>> [data-test=missing]", "how-to/speech-on-this-machine.md")
}
