package web_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/datadir"
	"perch/device"
	"perch/event"
	"perch/firmware-tools/simrobot"
	"perch/must"
)

// seeAdoption checks that a waiting robot can be adopted with a click.
func seeAdoption(t *testing.T, c *chromium) {
	cfg := appliancetest.Config()
	cfg.Adoption = "code"
	h := appliancetest.Start(t, cfg, t.TempDir())
	b := c.visit(t, h, "")
	b.sees("[data-test=no-robot]")
	h.StartRobot(simrobot.Options{MAC: guestMAC, Asleep: true, Forever: true})
	b.sees("[data-test=waiting-" + guest + "]")
	b.axe("a robot that waits")
	b.click("[data-test=waiting-" + guest + "] [data-test=adopt]")
	b.sees("[data-test=robot-" + guest + "]")
	b.lacks("[data-test=waiting-" + guest + "]")
	b.axe("a robot is asked for its name")
	b.fill("[data-test=robot-name]", "Beep")
	b.click("[data-test=named]")
	b.says("[data-test=robot-"+guest+"]", "Beep")
	b.lacks("p-dialog")
}

// seeTwoClients checks that the owner can adopt one of two clients that claim to be a robot with a click.
func seeTwoClients(t *testing.T, c *chromium) {
	cfg := appliancetest.Config()
	cfg.Adoption = "code"
	h := appliancetest.Start(t, cfg, t.TempDir())
	for client, address := range map[string]string{"a-stranger": "192.168.1.66", "the-robot": "192.168.1.40"} {
		h.Robots.CheckIn(device.CheckIn{ID: guest, Client: device.NewClient(client), Address: address, BaseURL: h.URL("")},
			time.Now().Add(-time.Hour))
	}
	b := c.visit(t, h, "")
	for _, text := range []string{"192.168.1.66", "a-stranger", "192.168.1.40", "the-robot"} {
		b.says("[data-test=waiting-"+guest+"]", text)
	}
	b.sees("[data-test=waiting-" + guest + "] >>> [data-test=refuse]")
	b.axe("two clients of a robot")
	b.click("[data-test=waiting-" + guest + "] [data-test='adopt-client-the-robot']")
	b.sees("[data-test=robot-" + guest + "]")
	if robot, err := h.Robots.Get(guest); err != nil || robot.Client != device.NewClient("the-robot") || !robot.Adopted() {
		t.Errorf("adopted is %+v (%v)", robot, err)
	}
}

// seeRestored checks robots after a backup, which contains no adoption codes, was restored on another machine. Robots that
// waited are not shown as contested, and each can be refused or adopted with a click. Another device that claims to be an
// adopted robot can be refused.
func seeRestored(t *testing.T, c *chromium) {
	cfg := appliancetest.Config()
	cfg.Adoption = "code"
	h := appliancetest.Start(t, cfg, t.TempDir())
	const otherMAC, other = "A0:B1:C2:D3:E4:02", "a0b1c2d3e402"
	checkIn := func(mac, client string) (code string) {
		t.Helper()
		var boot struct{ Activation struct{ Code string } }
		_, text := h.Request(http.MethodPost, "/xiaozhi/ota/", "{}", "Device-Id", mac, "Client-Id", client)
		must.Succeed(t, json.Unmarshal([]byte(text), &boot))
		return boot.Activation.Code
	}
	h.Adopt(kitchenMAC)
	if old := checkIn(guestMAC, "the-guest"); old == "" || checkIn(otherMAC, "the-other") == "" {
		t.Fatal("they get no codes")
	}
	_, backup := h.Owner(http.MethodGet, "/api/v1/backup", "")
	h.Stop()
	data := t.TempDir()
	_, _, err := datadir.Archive(data, "dev", slog.New(slog.DiscardHandler)).Restore(t.Context(), strings.NewReader(backup))
	must.Succeed(t, err)

	h = appliancetest.Start(t, cfg, data)
	b := c.visit(t, h, "")
	canChoose := func(id string) {
		t.Helper()
		card := "[data-test=waiting-" + id + "] >>> "
		b.says(card+"p", "new here")
		b.sees(card + "[data-test=adopt]")
		b.sees(card + "[data-test=refuse]")
		b.lacks(card + "[data-test=code]")
	}
	canChoose(guest)
	canChoose(other)
	b.says("[data-test=waiting-"+guest+"]", checkIn(guestMAC, "the-guest")) // the code on its screen
	canChoose(guest)
	b.click("[data-test=waiting-" + guest + "] >>> [data-test=adopt]")
	b.click("[data-test=unnamed]")
	b.sees("[data-test=robot-" + guest + "]")
	b.click("[data-test=waiting-" + other + "] >>> [data-test=refuse]")
	b.click("[data-test=note] [data-test=close]")
	h.Eventually("it is refused", func() bool { return listed(h, "/api/v1/devices") == 2 })

	for range 2 { // the other device tries twice
		checkIn(kitchenMAC, "a-stranger")
		b.says("[data-test=waiting-"+kitchen+"]", "Another device")
		b.axe("another device that claims to be a robot")
		b.click("[data-test=waiting-" + kitchen + "] >>> [data-test=refuse]")
		b.says("[data-test=note]", "The other device was refused.")
		b.click("[data-test=note] [data-test=close]")
		h.Eventually("its owner has refused the other", func() bool {
			robot, err := h.Robots.Get(kitchen)
			return err == nil && robot.Adopted() && robot.Claim == nil
		})
		b.lacks("[data-test=waiting-" + kitchen + "]")
		b.sees("[data-test=robot-" + kitchen + "]")
	}
}

// seeAddByHand checks that a robot that makes no check-in can be added, and that the page shows what to enter in it.
func seeAddByHand(t *testing.T, c *chromium) {
	h := startAppliance(t, kitchenMAC)
	h.Admin(http.MethodPost, "/api/v1/devices", `{"name":"kitchen"}`, nil)
	b := c.visit(t, h, "")
	b.allow("409") // the first name is taken
	b.click("[data-test=another] summary")
	b.click("[data-test=other-ways] > summary")
	b.fill("[data-test=add-by-hand] [name=name]", "kitchen")
	b.click("[data-test=add-by-hand] p-button")
	b.sees("[data-test=add-by-hand] [role=alert]")
	b.fill("[data-test=add-by-hand] [name=name]", "workshop")
	b.click("[data-test=add-by-hand] p-button")
	b.says("[data-test=by-hand]", "ws://")
	b.sees("[data-test=by-hand] svg")
	b.axe("what is entered in a robot added by hand")
	robots := h.Robots.List()
	i := slices.IndexFunc(robots, func(r device.Robot) bool { return r.ByHand && r.Settings.Name == "workshop" })
	if i < 0 {
		t.Fatalf("the robots are %+v", robots)
	}
	robot := "[data-test=robot-" + string(robots[i].ID) + "]"
	b.says(robot, "workshop")
	if text := b.text(robot); strings.Contains(text, "ago") {
		t.Errorf("a robot that was never here shows %q", text)
	}
}

// called returns a condition for a simulated robot's observation: a call of the tool with the given arguments.
func called(tool string, arguments ...string) func(simrobot.Observation) bool {
	return func(o simrobot.Observation) bool {
		c, is := o.(simrobot.Called)
		for _, a := range arguments {
			is = is && strings.Contains(c.Arguments, a)
		}
		return is && strings.HasSuffix(c.Name, tool)
	}
}

// seeRobot checks that an owner can make a robot speak, turn its head with the mouse and with keys, light its LEDs, set
// its volume and its name, and run one of its tools.
func seeRobot(t *testing.T, c *chromium) {
	h := startAppliance(t, kitchenMAC)
	robot := h.StartCompanion(simrobot.Options{Firmware: "dotty", Events: appliancetest.Idle()})
	h.WaitForTools(kitchen)
	b := c.visit(t, h, "#/robots/"+kitchen)
	b.fill("[data-test=say]", "Dinner is ready.")
	b.press(kb.Enter)
	h.Await(robot, "it says so", appliancetest.Shows("Dinner is ready."))
	b.says("[data-test=transcript]", "Dinner is ready.")

	b.drag("[data-test=head]", 60, -20)
	h.Await(robot, "its head is turned by the mouse", func(o simrobot.Observation) bool {
		m, is := o.(simrobot.HeadMoved)
		return is && m.Yaw != 0
	})
	b.click("[data-test=ahead]")
	h.Await(robot, "it looks ahead", called("set_head_angles", `"yaw":0`))
	value[bool](b, `(see.one("[data-test=head]").focus(), true)`)
	b.press(kb.ArrowUp)
	h.Await(robot, "its head is turned by a key", func(o simrobot.Observation) bool {
		m, is := o.(simrobot.HeadMoved)
		return is && m.Yaw == 0 && m.Pitch > 0
	})
	b.click("[data-test=led-red]")
	h.Await(robot, "it shines red", called("set_led_color", `"red":168`, `"green":0`))
	b.choose("[data-test=volume]", "35")
	h.Await(robot, "its volume is set", func(o simrobot.Observation) bool { return o == simrobot.VolumeChanged{Volume: 35} })

	b.fill("[data-test=name]", "Kitchen")
	b.click("p-robot-settings >>> [data-test=save]")
	b.says("h1", "Kitchen")
	var all []struct{ ID, Name string }
	if h.Admin(http.MethodGet, "/api/v1/devices", "", &all); len(all) != 1 || all[0].Name != "Kitchen" {
		t.Errorf("the robots are %+v", all)
	}
	const tool = "[data-test='tool-self.screen.set_theme']"
	b.click("[data-test=details] >>> summary")
	b.click(tool + " summary")
	b.axe("the form of a tool")
	b.fill(tool+" >>> input", "dark")
	b.click(tool + " >>> [data-test=call]")
	h.Await(robot, "its tool is run", called("set_theme", `"dark"`))
	b.says(tool+" >>> [data-test=answer]", "true")
}

// seeFacts checks that a connected robot is shown as here, not as last seen minutes ago; that firmware is not called up to
// date if there is no image for the board; that an unknown robot has no face; that a waiting robot whose code has expired
// can be adopted with one click; and that the page names a configured language that no recognizer supports.
func seeFacts(t *testing.T, c *chromium) {
	cfg := appliancetest.Config()
	cfg.Adoption, cfg.Language, cfg.Skins.Key = "code", "ja", appliancetest.Key
	h := appliancetest.Start(t, cfg, t.TempDir())
	h.Adopt(kitchenMAC)
	h.Robots.CheckIn(device.CheckIn{ID: guest, Client: device.NewClient("the-robot"), Address: "192.168.1.40", BaseURL: h.URL("")},
		time.Now().Add(-time.Hour))
	h.StartCompanion(simrobot.Options{Firmware: "dotty", Events: appliancetest.Idle()})
	h.WaitForTools(kitchen)
	h.Robots.RecordSeen(kitchen, time.Now().Add(-7*time.Minute))
	b := c.visit(t, h, "#/robots/"+kitchen)
	b.until(`see.one("main > p-robot")?.shadowRoot.textContent.includes("here now")`)
	var robot struct {
		LastSeen time.Time `json:"last_seen"`
	}
	if h.Admin(http.MethodGet, "/api/v1/devices/"+kitchen, "", &robot); time.Since(robot.LastSeen) > time.Minute {
		t.Errorf("last seen %s ago", time.Since(robot.LastSeen))
	}
	b.view("firmware", "p-firmware")
	b.sees("main >>> [data-test=robot]")
	if text := b.text("main >>> #robots"); strings.Contains(text, "up to date") {
		t.Errorf("the firmware is %s", text)
	}
	b.view("", "p-home")
	b.says("[data-test=deaf]", "Japanese")
	b.axe("a language that robots do not hear")
	b.lacks("[data-test=waiting-" + guest + "] [data-test=code]")
	b.click("[data-test=waiting-" + guest + "] [data-test=adopt]")
	b.lacks("[data-test=waiting-" + guest + "]")
	nobody := c.visit(t, h, "face?robot=nobody")
	nobody.until(`see.one("stack-chan-face")?.text.includes("no robot “nobody”")`)
}

// seeSpeech checks that the page shows whether a text waits for the robot, is being spoken, was spoken, or cannot be
// spoken.
func seeSpeech(t *testing.T, c *chromium) {
	h := startAppliance(t, kitchenMAC)
	b := c.visit(t, h, "#/robots/"+kitchen)
	b.fill("[data-test=say]", "Dinner is ready, and it will be cold soon.")
	b.press(kb.Enter)
	b.says("[data-test=speech]", "waits for the robot")
	b.axe("a text that waits for its robot")
	value[bool](b, `(globalThis.shown = [], new MutationObserver(() => shown.push(see.text(see.one("[data-test=speech]")))).
		observe(see.one("[data-test=speech]"), {subtree: true, childList: true, characterData: true}), true)`)
	h.StartCompanion(simrobot.Options{Firmware: "dotty", Events: appliancetest.Idle()})
	b.says("[data-test=speech]", "Spoken")
	if shown := value[[]string](b, `[...new Set(shown)]`); len(shown) != 2 || !strings.Contains(shown[0], "is speaking") {
		t.Errorf("meanwhile it showed %q", shown)
	}
	b.allow("400")
	b.fill("[data-test=say]", "!!!")
	b.press(kb.Enter)
	b.says("[data-test=note]", "there is nothing in the text that can be spoken")
	b.says("[data-test=speech]", "")
}

// seeTwoSettings checks that an owner who is editing a robot's settings sees what another owner has set meanwhile, and
// loses nothing that was typed.
func seeTwoSettings(t *testing.T, c *chromium) {
	h := startAppliance(t, kitchenMAC)
	first, second := c.visit(t, h, "#/robots/"+kitchen), c.visit(t, h, "#/robots/"+kitchen)
	second.fill("[data-test=name]", "Cellar")
	first.fill("[data-test=name]", "Kitchen")
	first.click("p-robot-settings >>> [data-test=save]")
	first.says("h1", "Kitchen")
	second.says("p-robot-settings", "Kitchen")
	second.says("[data-test=name]", "Cellar")
}

// seeMusic checks that an owner chooses what a robot plays, sees why it cannot be played and what is played, and has
// nothing to choose without music.
func seeMusic(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "")
	h.Adopt(kitchenMAC)
	b := c.visit(t, h, "#/robots/"+kitchen)
	b.sees("[data-test=say]")
	b.lacks("[data-test=music]")
	h.Admin(http.MethodPut, "/api/v1/config/music", `[{"name":"jazz","source":"/nowhere/jazz.mp3"}]`, nil)
	b.sees("[data-test=music]")
	b.allow("status of 409", "status of 502")
	b.choose("[data-test=music]", "jazz")
	b.says("[data-test=note]", "channel is closed")
	b.click("[data-test=note] [data-test=close]")
	b.until(`see.one("[data-test=music]").value === ""`)
	h.StartCompanion(simrobot.Options{Firmware: "dotty", Events: appliancetest.Idle()})
	h.WaitForTools(kitchen)
	b.choose("[data-test=music]", "jazz")
	b.says("[data-test=note]", "there is no /nowhere/jazz.mp3 on this machine")
	b.until(`see.one("[data-test=music]").value === ""`)
	b.axe("music that cannot be played")
	open := h.Talk.List()
	h.Bus.Publish(kitchen, open[0].Session, event.Music{Name: "jazz", State: event.MusicPlaying})
	b.until(`see.one("[data-test=music]").value === "jazz"`)
	b.choose("[data-test=music]", "")
	h.Bus.Publish(kitchen, open[0].Session, event.Music{Name: "jazz", State: event.MusicStopped})
	b.until(`see.one("[data-test=music]").value === ""`)
}
