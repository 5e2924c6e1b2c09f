package web_test

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/firmware-tools/simrobot"
	"perch/must"
)

// gone returns the texts that a browser writes to the console for requests to an appliance that restarts.
func gone() []string {
	return []string{"ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE"}
}

// file returns the text of the configuration file of an appliance.
func file(h *appliancetest.Appliance) string {
	h.T.Helper()
	text, err := os.ReadFile(h.File)
	must.Succeed(h.T, err)
	return string(text)
}

// set finds a key of the configuration and types a value into its form.
func (b *tab) set(key, to string) {
	b.t.Helper()
	b.fill("#find", key)
	b.fill("[data-key='"+key+"'] >>> input", to)
	b.press(kb.Tab) // the page notices the change when the field loses the focus
}

// settings returns the settings that were changed on the page, as they are stored.
func settings(h *appliancetest.Appliance) string {
	h.T.Helper()
	text, err := os.ReadFile(filepath.Join(h.Data, config.OverlayFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.T.Fatal(err)
	}
	return string(text)
}

// seeSettings checks that a wrong value is refused with a sentence, in the language of the page or marked as English, and
// that a valid one is set without a change of the owner's file. The page says what needs a restart, and waits for the
// restart. A value can be reset, a rule is written in YAML, a secret can be replaced and is not shown, and a pasted
// configuration is checked.
func seeSettings(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "name: house # by mDNS\n")
	before := file(h)
	b := c.comeIn(t, h)
	b.allow("status of 422")
	b.open(h.LocalURL() + "#/settings")
	b.set("name", "my house")
	b.click("[data-test=save]")
	b.says("[data-key=name]", "name")
	b.axe("a setting with a fault")
	b.choose("p-shell >>> [data-test=language]", "de")
	b.says("[data-key=name]", "kein Name für das Netz")
	b.lacks("[data-key=name] [lang=en]")
	b.set("skins.live2d_model", "/nowhere")
	b.click("[data-test=save]")
	b.says("[data-key='skins.live2d_model'] [lang=en]", "no such file") // this sentence has no German translation
	b.click("[data-key='skins.live2d_model'] [data-test=undo]")
	b.choose("p-shell >>> [data-test=language]", "en")
	if settings(h) != "" {
		t.Errorf("a fault was written:\n%s", settings(h))
	}
	b.set("name", "cottage")
	b.click("[data-test=save]")
	b.sees("[data-key=name] [data-from=settings]")
	b.says("p-settings", "restart: Name in the network")
	b.set("skins.key", "another-key-of-the-screens")
	b.click("[data-test=save]")
	b.sees("[data-key='skins.key'] [data-from=settings]")
	b.lacks("p-settings >>> #bar")
	b.fill("#find", "rules")
	b.fill("[data-key=rules] >>> textarea", "- when: {event: touch}\n  do: [{say: hello}]\n")
	b.press(kb.Tab)
	b.click("[data-test=save]")
	b.sees("[data-key=rules] [data-from=settings]")
	if got := settings(h); !strings.Contains(got, "name: cottage\n") || !strings.Contains(got, "say: hello") || !strings.Contains(got, "key: another-key") {
		t.Errorf("the settings are:\n%s", got)
	}
	b.axe("settings that were changed")
	b.fill("#find", " ") // shows all groups again
	b.click("[data-group=advanced] summary")
	b.click("[data-test=text]")
	b.until(`see.all("#text")[0].value.includes("name: house # by mDNS") && see.all("#text")[0].value.includes("key: ••••••")`)
	b.click("#text")
	b.types("nmae: x\n")
	b.says("#faults", "nmae")
	b.axe("a text that is checked")
	b.allow(gone()...)
	b.click("#restart")
	b.click("p-dialog [data-test=yes]")
	b.sees("#restarting")
	h = h.Again()
	b.lacks("#restarting")
	b.lacks("#restart")
	if h.Config().Name != "cottage" || len(h.Config().Rules) != 1 {
		t.Errorf("its name is %q, and it has %d rules", h.Config().Name, len(h.Config().Rules))
	}
	b.fill("#find", "name")
	b.says("main", "cottage")
	b.click("[data-key=name] [data-test=reset]")
	b.click("[data-test=save]")
	b.sees("[data-key=name] [data-from=file]")
	if got := settings(h); strings.Contains(got, "cottage") {
		t.Errorf("the settings are:\n%s", got)
	}
	if file(h) != before {
		t.Errorf("the owner's file is:\n%s", file(h))
	}
}

// seeWhatPeopleWant checks that people find on a phone what they often want to set: by a sentence in their own words, or
// with one tap. They need not know the format of the file. The page shows a fault at its field, and whether a restart is
// needed, before the value is saved. If a search finds nothing, the page says where else to look.
func seeWhatPeopleWant(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "")
	b := c.visit(t, h, "#/settings")
	b.at(390, 844)
	saved := func(key, want string) {
		b.t.Helper()
		b.click("[data-test=save]")
		b.sees("[data-key='" + key + "'] [data-from=settings]")
		b.lacks("p-settings >>> #bar")
		if got := settings(h); !strings.Contains(got, want) {
			t.Errorf("%s: the settings are:\n%s", key, got)
		}
	}
	first := func(sentence, key string) {
		b.t.Helper()
		b.fill("#find", sentence)
		b.until("see.one('#found [data-key]')?.dataset.key === " + quote(key))
		b.axe(sentence)
		b.fits(sentence)
	}

	first("I want it quiet at night", "behaviours.quiet.hours")
	b.click("[data-key='behaviours.quiet.hours'] >>> [type=checkbox]")
	b.lacks("[data-key='behaviours.quiet.hours'] >>> [data-test=later]")
	b.choose("[data-key='behaviours.quiet.hours'] .times label:last-child input", "06:30")
	saved("behaviours.quiet.hours", "hours: 22:00-06:30\n")

	first("change the voice", "speech.synthesizers.0.voice")
	b.says("#found", "espeak")
	b.sees("#found a[href='#/engines']")
	b.until(`see.one("[data-key='speech.synthesizers.0.voice'] >>> select")?.options?.length > 20`)
	b.choose("[data-key='speech.synthesizers.0.voice'] >>> select", "de")
	saved("speech.synthesizers.0.voice", "voice: de\n")

	first("stop keeping what was said", "robots.keep_turns")
	b.fill("[data-key='robots.keep_turns'] >>> input", "0")
	b.press(kb.Tab)
	saved("robots.keep_turns", "keep_turns: 0\n")

	b.fill("#find", " ")
	b.click("[data-group=home] summary") // the one tap
	b.sees("[data-group=home] a[href='#/connections']")
	b.choose("[data-key='mqtt.broker'] >>> select", "")
	b.fill("[data-key='mqtt.broker'] >>> input", "mqtt://192.168.1.9:port")
	b.press(kb.Tab)
	b.says("#bar", "after a restart: MQTT broker")
	b.says("[data-key='mqtt.broker'] .error", "mqtt://192.168.1.9:1883") // the value is not saved yet
	b.inspect("a fault before it is saved")
	b.at(390, 844)
	b.fill("[data-key='mqtt.broker'] >>> input", "mqtt://192.168.1.9:1883")
	b.press(kb.Tab)
	b.lacks("[data-key='mqtt.broker'] .error")
	b.fill("[data-key='mqtt.password'] >>> input", "a-password-of-the-broker")
	b.press(kb.Tab)
	saved("mqtt.broker", "broker: mqtt://192.168.1.9:1883\n")
	b.lacks("main >>> input[value*=a-password]")
	first("connect Home Assistant", "mqtt.broker")

	// A duration is entered as a number and a unit.
	first("a robot is shown as offline", "robots.away_after")
	b.until("see.one(\"[data-key='robots.away_after'] >>> select\").value === 'd'")
	b.fill("[data-key='robots.away_after'] >>> input", "2")
	b.press(kb.Tab)
	saved("robots.away_after", "away_after: 48h\n")
	b.choose("[data-key='robots.away_after'] >>> select", "m")
	b.says("#bar", "1 change")
	b.choose("[data-key='robots.away_after'] >>> select", "d")
	b.lacks("p-settings >>> #bar") // the value is the former one, so there is nothing to save

	for sentence, place := range map[string]string{"louder": "#/", "alarm clock": "#/timers", "password": ""} {
		b.fill("#find", sentence)
		if place == "" {
			b.sees("#found [data-key='mqtt.password']")
		} else {
			b.sees("#found a[href='" + place + "']")
		}
	}
	b.fill("#find", "xyzzy")
	b.says("p-empty", "look here")
	b.sees("p-empty a[href='#/engines']")
	b.inspect("nothing found")

	speak := func(language string) {
		b.t.Helper()
		b.at(1400, 900)
		b.choose("p-shell >>> [data-test=language]", language)
		b.at(390, 844)
	}
	speak("de")
	b.says("p-config-form", "leise nachts")
	first("leise nachts", "behaviours.quiet.hours")
	first("Stimme ändern", "speech.synthesizers.0.voice")
	b.fill("#find", "skins.system") // this key has no German label
	b.says("[data-key='skins.system'] label [lang=en]", "Skins may instruct")
	speak("ja")
	b.says("p-config-form", "夜は静かに")
	first("夜は静かにしてほしい", "behaviours.quiet.hours")
	speak("en")
	b.view("settings/languages", "p-settings") // this address opens the group of languages
	b.choose("[data-key=language] .compound:last-child select", "ja")
	b.says("[data-key=language]", "Japanese")
	saved("language", "language: en, ja\n")
	b.inspect("the group of an address")
}

// seeTwoConfigurations checks that two owners can change different keys at the same time, and neither change is lost.
func seeTwoConfigurations(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "name: house\n")
	first, second := c.visit(t, h, "#/settings"), c.visit(t, h, "#/settings")
	second.fill("#find", "timezone")
	second.choose("[data-key=timezone] >>> select", "Europe/Berlin")
	first.set("name", "cottage")
	first.click("[data-test=save]")
	second.says("p-settings", "restart: Name in the network")
	second.click("[data-test=save]")
	second.sees("[data-key=timezone] [data-from=settings]")
	if got := settings(h); !strings.Contains(got, "name: cottage\ntimezone: Europe/Berlin\n") {
		t.Errorf("the settings are:\n%s", got)
	}
}

// step waits until the first steps, the page's setup assistant, show the named step.
func (b *tab) step(name string) {
	b.t.Helper()
	b.until("see.one('main >>> [data-test=step]')?.dataset.step === " + quote(name))
}

// skipTo skips steps until the named step is shown.
func (b *tab) skipTo(name string) {
	b.t.Helper()
	b.sees("main >>> [data-test=step]")
	for _, step := range []string{"language", "timezone", "name", "hears", "speaks", "thinks", "home", "robot"} {
		if step == name {
			break
		}
		if value[bool](b, "see.one('main >>> [data-test=step]').dataset.step === "+quote(step)) {
			b.click("[data-test=skip]")
			b.until("see.one('main >>> [data-test=step]').dataset.step !== " + quote(step))
		}
	}
	b.step(name)
}

// backTo goes back to the named step. The number of steps before that depends on what the network search has found.
func (b *tab) backTo(name string) {
	b.t.Helper()
	for {
		step := value[string](b, "see.one('main >>> [data-test=step]').dataset.step")
		if step == name {
			return
		}
		b.click("[data-test=back]")
		b.until("see.one('main >>> [data-test=step]').dataset.step !== " + quote(step))
	}
}

// seeFirstSteps checks that the first steps keep the configured languages, can add one, and name the languages that no
// recognizer supports.
func seeFirstSteps(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "language: [en, de]\n")
	const language = "main >>> [data-test=language]"
	b := c.visit(t, h, "#/first")
	b.step("language")
	b.says(language, "English")
	b.until(`see.all("[data-test=also]").filter((e) => e.checked).map((e) => e.value).join() === "de"`)
	b.says("[data-test=unheard]", "not German.")
	b.click("[data-test=also][value=ja]")
	b.says("[data-test=unheard]", "not German and Japanese.")
	b.choose(language, "fr")
	b.says("h1", "Premiers pas")
	b.says("[data-test=unheard]", "français, allemand et japonais")
	b.click("[data-test=next]")
	b.step("timezone")
	if got := settings(h); !strings.Contains(got, "language:\n    - fr\n    - de\n    - ja\n") {
		t.Errorf("the settings are:\n%s", got)
	}
	b.skipTo("hears") // this step exists because no recognizer supports some of these languages
	b.says("[data-test=unheard]", "français, allemand et japonais")
	b.skipTo("speaks")
	b.says("main", "openjtalk, espeak")
	b.backTo("language")
	b.says(language, "français")
	b.choose(language, "de")
	b.says("h1", "ersten Minuten")
	b.until(`see.all("[data-test=also]").filter((e) => e.checked).map((e) => e.value).join() === "ja,fr"`)
	// The page is in German now, and voices are tried in the configured default language.
	b.view("engines", "p-engines")
	b.says("h1", "Module")
	b.click("#synthesizer >>> [data-test=try]")
	b.says("p-try", "Bonjour")
}

// seeFirstTalk checks that the first steps preselect what the browser knows, continue where they were left, and end when
// the robot in the page has answered the question for its name. Until then, the home view offers the steps.
func seeFirstTalk(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "name: perch\n")
	b := c.comeIn(t, h)
	call(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Europe/Paris"})
	b.open(h.LocalURL() + "robot") // a robot in the page does not end the steps
	b.until(`see.one("[data-test=status]")?.dataset.state === "idle"`)
	b.open(h.LocalURL())
	b.click("[data-test=first]")
	b.step("language")
	b.click("[data-test=next]")
	b.step("timezone")
	b.until(`see.one("main >>> [data-test=timezone]").value === "Europe/Paris"`)
	b.inspect("a step")
	b.at(1400, 900)
	b.open(h.LocalURL())
	b.click("[data-test=first]")
	b.step("timezone") // the step at which they were left
	b.skipTo("robot")
	b.inspect("the step of a robot")
	b.at(1400, 900)
	b.click("[data-test=next]")
	b.step("talk")
	b.says("h2", "What time is it?")
	b.until(`see.one("[data-test=status]")?.dataset.state === "idle"`)
	b.inspect("the last step")
	b.at(1400, 900)
	b.fill("[data-test=write]", "what time is it")
	b.click("[data-test=send]")
	b.says("[data-test=answered]", "It is")
	b.axe("the first answer")
	b.click("[data-test=named]")
	b.until("!see.has('[data-test=robot-name]')")
	b.says("[data-test=called]", "Momo is here")
	b.until(`see.one("[data-test=status]")?.dataset.state === "idle"`) // a text within 500 ms after another is ignored
	b.fill("[data-test=write]", "set the volume to forty percent")
	b.click("[data-test=send]")
	b.until(`see.one("[data-test=face]").getAttribute("text").includes("40")`)
	b.says("[data-test=answered]", "It is") // a later utterance does not replace the first answer
	if robots := h.Robots.List(); len(robots) != 1 || robots[0].Settings.Name != "Momo" {
		t.Errorf("the appliance knows %+v", robots)
	}
	b.click("main >>> [data-test=home]")
	b.sees("main > p-home")
	b.lacks("[data-test=first]")
	b.click("[data-test=nav-first]")
	b.step("language")
}

// foundServers is a script that replaces the result of the network search.
const foundServers = `{
	const real = fetch;
	globalThis.fetch = (what, init) => String(what?.url ?? what).endsWith("/api/v1/found")
		? Promise.resolve(Response.json({ wyoming: [{ name: "Piper", url: "tcp://192.168.1.9:10200", speaks: true }, { name: "Whisper", url: "tcp://192.168.1.9:10300", hears: true }],
			ollama: [{ url: "http://192.168.1.9:11434", models: ["qwen3:4b"] }], homeassistant: [] }))
		: real(what, init);
}`

// seeFirstRobot checks that servers that were found on the network are preselected, and that a robot that checks in
// during the first steps can be named and answers.
func seeFirstRobot(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "name: perch\n")
	h.Adopt(kitchenMAC)
	b := c.comeIn(t, h)
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: foundServers})
	for step, chosen := range map[string]string{"hears": "tcp://192.168.1.9:10300", "speaks": "tcp://192.168.1.9:10200", "thinks": "http://192.168.1.9:11434 qwen3:4b"} {
		b.open(h.LocalURL() + "#/first")
		b.until("(localStorage.removeItem('perch.first'), true)")
		b.open(h.LocalURL())
		b.view("first", "p-first")
		b.skipTo(step)
		b.until("see.all('main >>> input[type=radio]').find((r) => r.checked)?.value === " + quote(chosen))
	}
	b.axe("engines that were found")
	b.skipTo("robot")
	b.says("[data-test=here]", kitchen+" is here")
	b.fill("[data-test=robot-name]", "Beep")
	b.click("[data-test=named]")
	b.says("[data-test=here]", "Beep is here")
	h.Request(http.MethodPost, "/xiaozhi/ota/", "{}", "Device-Id", kitchenMAC, "Client-Id", "a-stranger")
	b.click("[data-test=waiting-" + kitchen + "] >>> [data-test=refuse]")
	b.lacks("[data-test=waiting-" + kitchen + "]")
	b.click("[data-test=next]")
	b.step("talk")
	b.says("main", "Wake Beep first")
	b.axe("the last step with a robot")
	h.StartCompanion(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it")})
	b.says("[data-test=answered]", "It is")
}

// addressed is a script that replaces the addresses that the page requests, because an appliance in a test has no
// address on a network.
const addressed = `{
	const real = fetch;
	globalThis.host = "perch.local";
	globalThis.fetch = (what, init) => String(what?.url ?? what).endsWith("/api/v1/address")
		? Promise.resolve(Response.json({ url: ["http://" + host + ":8003/", "http://10.0.0.2:8003/"], ota: ["http://" + host + ":8003/xiaozhi/ota/"] }))
		: real(what, init);
}`

// seeNewName checks that the page says before a new name is saved that the address will change, and shows the new
// addresses. A page whose own address stays the same continues, and shows the new address for robots.
func seeNewName(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "name: perch\n")
	b := c.comeIn(t, h)
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: addressed})
	b.allow(gone()...)
	b.open(h.LocalURL() + "#/first")
	b.skipTo("robot")
	b.says("p-point", "perch.local")
	const code = `see.one("p-point >>> svg path").getAttribute("d")`
	b.sees("p-point >>> svg path")
	before := value[string](b, code)
	b.backTo("name")
	b.fill("main >>> [data-test=name]", "nest")
	b.says("main", "nest.local and no longer perch.local")
	b.click("[data-test=next]")
	b.until("see.one('main >>> [data-test=step]').dataset.step !== 'name'")
	b.skipTo("home")
	b.click("[data-test=skip]")
	b.says("[data-test=moved]", "http://nest.local:8003/")
	b.says("[data-test=moved]", "http://10.0.0.2:8003/")
	b.axe("a new name")
	value[bool](b, `(host = "nest.local", true)`) // the name that Perch returns after the restart
	h.Again()
	b.sees("[data-phase=back]")
	b.says("p-point", "nest.local")
	b.until(code + " !== " + quote(before)) // the QR code has changed too
}

// TestPageLeaves checks that a page whose own address becomes invalid with a new name does not wait for the restart, both
// in the first steps and in the settings.
func TestPageLeaves(t *testing.T) {
	c := startChromium(t, chromedp.Flag("host-resolver-rules", "MAP perch.local 127.0.0.1"))
	for name, save := range map[string]func(b *tab){
		"first": func(b *tab) {
			b.skipTo("name")
			b.fill("main >>> [data-test=name]", "nest")
			b.click("[data-test=next]")
			b.until("see.one('main >>> [data-test=step]').dataset.step !== 'name'")
			b.skipTo("home")
			b.click("[data-test=skip]")
			b.sees("[data-phase=moved]")
		},
		"settings": func(b *tab) {
			b.set("name", "nest")
			b.click("[data-test=save]")
			b.click("#restart")
			b.says("p-dialog p", "nest.local and no longer perch.local")
			b.click("p-dialog [data-test=yes]")
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := appliancetest.Configured(t, "name: perch\n")
			b := c.browse(t)
			call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: addressed})
			b.allow(gone()...)
			at := strings.Replace(h.URL("/"), "127.0.0.1", "perch.local", 1)
			b.open(at)
			b.fill("#token", h.OwnerToken())
			b.press(kb.Enter)
			b.sees("main > p-home")
			b.view(name, "p-"+name)
			save(b)
			b.says("[data-test=moved]", "http://nest.local:8003/")
			h.Again()
			b.lacks("#restart")
			b.until("see.one('p-shell')?.link === 'fine'") // the page does not say that the connection is being restored
		})
	}
}
