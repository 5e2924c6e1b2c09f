package web_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/device"
	"perch/must"
)

// waiting starts an appliance with robots that wait for adoption.
func waiting(t *testing.T, robots ...device.ID) *appliancetest.Appliance {
	t.Helper()
	cfg := appliancetest.Config()
	cfg.Adoption = "code"
	h := appliancetest.Start(t, cfg, t.TempDir())
	for _, id := range robots {
		h.Robots.CheckIn(device.CheckIn{ID: id, Client: device.NewClient(string(id)), Address: "192.168.1.40", BaseURL: h.URL("")}, time.Now())
	}
	return h
}

// listed returns the length of the list at a path of the API.
func listed(h *appliancetest.Appliance, path string) int {
	var all []any
	h.Admin(http.MethodGet, path, "", &all)
	return len(all)
}

// seeWants checks that Home first shows what needs the owner's attention, that the menu and the title of the tab show the
// number of such items, and that actions can be undone.
func seeWants(t *testing.T, c *chromium) {
	h := waiting(t, guest, "a0b1c2d3e402", "a0b1c2d3e403")
	h.Admin(http.MethodPost, "/api/v1/notifications", `{"text":"The plants want water.","speak":false}`, nil)
	h.Admin(http.MethodPost, "/api/v1/notifications", `{"text":"The washing is done.","urgency":"high"}`, nil)
	b := c.visit(t, h, "")
	b.says("[data-test=notice]", "washing")
	b.until(`see.text(see.all("[data-test=notice]")[0]).includes("washing")`) // the urgent one is first
	title := func(begins string) { t.Helper(); b.until("document.title.startsWith(" + quote(begins) + ")") }
	title("(5) Home")
	b.says("[data-test=badge-notifications]", "2")
	b.says("[data-test=badge-home]", "3")
	b.inspect("what wants a person")
	b.at(1400, 900)

	b.click("[data-test=notice] >>> [data-test=ack]")
	title("(4) Home")
	b.axe("something that can be undone")
	if n := listed(h, "/api/v1/notifications"); n != 2 {
		t.Errorf("while it can be undone, %d notifications are open", n)
	}
	b.click("[data-test=undo]")
	title("(5) Home")
	b.click("[data-test=ack-all]")
	title("(3) Home")
	b.click("[data-test=note] [data-test=close]") // ends the time for undoing
	h.Eventually("both are acknowledged", func() bool { return listed(h, "/api/v1/notifications") == 0 })
	b.lacks("[data-test=badge-notifications]")

	b.click("[data-test=waiting-" + guest + "] [data-test=refuse]")
	b.lacks("[data-test=waiting-" + guest + "]")
	b.click("[data-test=undo]")
	b.sees("[data-test=waiting-" + guest + "]")
	b.click("[data-test=waiting-" + guest + "] [data-test=refuse]")
	b.view("timers", "p-timers") // leaving the view ends the time for undoing
	h.Eventually("the robot is refused", func() bool { return listed(h, "/api/v1/devices") == 2 })
	b.view("", "p-home")
	b.lacks("[data-test=waiting-" + guest + "]")
	b.click("[data-test=adopt-all]")
	b.sees("[data-test=robot-a0b1c2d3e402]")
	b.sees("[data-test=robot-a0b1c2d3e403]")
	title("Home")
	b.sees("[data-test=calm]")
}

// seeRefused checks that the list of refused check-ins can be deleted.
func seeRefused(t *testing.T, c *chromium) {
	h := startAppliance(t)
	h.Request(http.MethodPost, "/xiaozhi/ota/", "{}", "Device-Id", "not-a-mac", "Client-Id", "x")
	b := c.visit(t, h, "")
	b.says("[data-test=refused]", "not-a-mac")
	b.click("[data-test=forget-refused]")
	b.lacks("[data-test=refused]")
	b.click("[data-test=undo]")
	b.sees("[data-test=refused]")
	b.click("[data-test=forget-refused]")
	b.click("[data-test=note] [data-test=close]")
	h.Eventually("they are forgotten", func() bool { return listed(h, "/api/v1/refused") == 0 })
}

// seeFifty checks that fifty robots are all shown, with small cards, and that a robot can be found by its name.
func seeFifty(t *testing.T, c *chromium) {
	h := startAppliance(t)
	for i := range 50 {
		id := device.ID(fmt.Sprintf("a0b1c2d3e4%02x", i))
		h.Robots.CheckIn(device.CheckIn{ID: id, Client: device.NewClient(string(id))}, time.Now())
		must.Value(h.Robots.Adopt(string(id), time.Now()))(t)
		must.Value(h.Robots.Configure(id, device.Change{Name: new(fmt.Sprintf("Room %02d", i+1))}))(t)
	}
	b := c.visit(t, h, "")
	b.until(`see.all("p-robot-card").length === 50`)
	b.inspect("fifty robots")
	if to := os.Getenv("PERCH_FIFTY"); to != "" {
		b.at(1400, 900)
		b.picture(filepath.Join(to, "fifty.png"))
		b.at(390, 844)
		b.picture(filepath.Join(to, "fifty-narrow.png"))
	}
	b.at(1400, 900)
	b.fill("[data-test=find]", "room 17")
	b.until(`see.all("p-robot-card").length === 1`)
	b.sees("[data-test=robot-a0b1c2d3e410]")
	b.fill("[data-test=find]", "cellar")
	b.says("main", "No robot has this name")
}

// seeAsk checks that a question that is typed at a robot's card is answered: by the robot if its channel is open, and
// otherwise by the agent, whose answer the robot speaks when it connects next.
func seeAsk(t *testing.T, c *chromium) {
	h := startAppliance(t, kitchenMAC)
	h.Admin(http.MethodPut, "/api/v1/devices/"+kitchen, `{"name":"Kitchen"}`, nil)
	robot := c.visit(t, h, "robot")
	robot.until(`see.one("[data-test=status]")?.dataset.state === "idle"`)
	robot.talkInPage("what time is it") // opens the robot's channel
	id := value[string](robot, `see.one("p-web-robot").robot.keeper.flash.mac.replaceAll(":", "")`)
	b := robot.beside()
	b.open(h.LocalURL())
	ask := func(id, text string) {
		t.Helper()
		b.fill("[data-test=robot-"+id+"] input", text)
		b.click("[data-test=robot-" + id + "] form p-button")
	}
	ask(kitchen, "what is two plus two")
	b.says("[data-test=robot-"+kitchen+"] >>> [data-test=heard]", "two plus two")
	b.sees("[data-test=robot-" + kitchen + "] >>> [data-test=said]")
	b.says("[data-test=robot-"+kitchen+"] >>> [data-test=answer-waits]", "Kitchen")
	ask(id, "look left")
	robot.says("[data-test=said-you]", "look left")
	robot.says("[data-test=said-robot]", "left")
	b.view("talk", "p-talk-view")
	b.inspect("a talk")
	b.at(390, 844)
	b.click("[data-test=with-" + kitchen + "]")
	b.says("[data-test=transcript]", "two plus two")
}

// seeTab checks that Home shows a robot in a browser tab until the tab is closed, and again after the browser's "Back".
func seeTab(t *testing.T, c *chromium) {
	h := startAppliance(t)
	robot := c.visit(t, h, "robot")
	robot.until(`see.one("[data-test=status]")?.dataset.state === "idle"`)
	id := value[string](robot, `see.one("p-web-robot").robot.keeper.flash.mac.replaceAll(":", "")`)
	b := robot.beside()
	b.open(h.LocalURL())
	b.sees("[data-test=robot-" + id + "]")
	value[bool](robot, `window.dispatchEvent(new PageTransitionEvent("pagehide", {persisted: true}))`)
	b.lacks("[data-test=robot-" + id + "]")
	value[bool](robot, `window.dispatchEvent(new PageTransitionEvent("pageshow", {persisted: true}))`)
	b.sees("[data-test=robot-" + id + "]")
	robot.open("about:blank")
	b.lacks("[data-test=robot-" + id + "]")
	b.sees("[data-test=no-robot]")
}

// seeOffline checks that the page says when the server was last reached while it cannot be reached, and opens without
// an action of the owner when the server is back. The browser stores no private data for that.
func seeOffline(t *testing.T, c *chromium) {
	h := startAppliance(t, kitchenMAC)
	r, at := relayTo(t, h.LocalURL())
	b := c.browse(t)
	b.allow("ERR_", "503", "Failed to load resource")
	b.open(at)
	b.until("see.has('main > p-home') && navigator.serviceWorker.controller !== null")
	b.until(`caches.open("perch").then((c) => c.keys()).then((k) => k.length === 2)`)
	if kept := value[[]string](b, `caches.keys().then((all) => Promise.all(all.map((n) => caches.open(n).then((c) => c.keys())))).then((k) => k.flat().map((r) => new URL(r.url).pathname))`); strings.Join(kept, " ") != "/words /last" && strings.Join(kept, " ") != "/last /words" {
		t.Errorf("the browser keeps %v", kept)
	}
	manifest := value[map[string]any](b, `fetch(document.querySelector("link[rel=manifest]").href).then((r) => r.json())`)
	if manifest["display"] != "standalone" || manifest["start_url"] != "./" {
		t.Errorf("the manifest is %v", manifest)
	}
	r.cut()
	b.open(at)
	b.says("h1", "Perch is not there")
	b.says("main", fmt.Sprint(time.Now().Year()))
	b.axe("the offline page")
	b.at(360, 800)
	b.fits("the offline page")
	r.mend()
	b.until("see.has('main > p-home')")
}

// seeTargets checks that on a phone all buttons of the bar, of Home and of Talk are at least 44 px wide and high.
func seeTargets(t *testing.T, c *chromium) {
	h := waiting(t, "a0b1c2d3e402", "a0b1c2d3e403")
	h.Adopt(kitchenMAC)
	h.Admin(http.MethodPost, "/api/v1/notifications", `{"text":"The washing is done.","urgency":"high","action_url":"https://washing.example/"}`, nil)
	h.Admin(http.MethodPost, "/api/v1/notifications", `{"text":"The plants want water.","speak":false}`, nil)
	b := c.visit(t, h, "")
	b.at(390, 844)
	for _, v := range []aView{{"", "p-home"}, {"talk", "p-talk-view"}} {
		b.view(v.hash, v.element)
		if small := value[[]string](b, "see.small()"); len(small) > 0 {
			t.Errorf("#/%s has small targets: %q", v.hash, small)
		}
	}
	b.click("[data-test=menu]")
	b.sees("p-dialog [data-test=nav-settings]")
	if small := value[[]string](b, "see.small()"); len(small) > 0 {
		t.Errorf("the menu has small targets: %q", small)
	}
	if bar := b.text("nav.bar"); bar != "Home 2 Talk Notifications 2 More" {
		t.Errorf("the bar shows %q", bar)
	}
}
