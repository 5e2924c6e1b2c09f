package web_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
)

// Robots of these tests.
const (
	kitchenMAC = "A0:B1:C2:D3:E4:F5" // the default of appliancetest
	kitchen    = "a0b1c2d3e4f5"
	guestMAC   = "A0:B1:C2:D3:E4:01"
	guest      = "a0b1c2d3e401"
)

// aView is a view of the dashboard: its fragment in the URL and its HTML element.
type aView struct{ hash, element string }

// views returns all views of the dashboard, with that of the robot with the given ID.
func views(robot string) []aView {
	all := []aView{{"", "p-home"}, {"talk", "p-talk-view"}, {"memory", "p-memory"}, {"notifications", "p-notifications"}, {"timers", "p-timers"}, {"turns", "p-turns"},
		{"sensed", "p-sensed"}, {"firmware", "p-firmware"}, {"engines", "p-engines"}, {"doctor", "p-doctor"}, {"logs", "p-logs"},
		{"backup", "p-backup"}, {"connections", "p-connections"}, {"settings", "p-settings"}, {"first", "p-first"}}
	if robot != "" {
		all = append(all, aView{"robots/" + robot, "p-robot"})
	}
	return all
}

// everyView opens each view in a wide and in a narrow window, and checks its accessibility with axe-core.
func (b *tab) everyView(all []aView) {
	b.t.Helper()
	for _, v := range all {
		b.view(v.hash, v.element)
		b.inspect("#/" + v.hash)
	}
}

func seeEmpty(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "")
	b := c.visit(t, h, "")
	b.everyView(views(""))
	b.inLight("dark")
	b.at(1400, 900)
	b.view("", "p-home")
	b.axe("the home view in the dark")
}

func seeLivedIn(t *testing.T, c *chromium) {
	h, talked := livedIn(t)
	b := c.visit(t, h, "")
	b.says("main", "Kitchen")
	showTalk := func(v aView) bool {
		return slices.Contains([]string{"p-home", "p-timers", "p-turns", "p-sensed", "p-robot"}, v.element)
	}
	b.everyView(slices.DeleteFunc(views(kitchen), showTalk)) // while the robot talks
	talked()
	b.everyView(slices.DeleteFunc(views(kitchen), func(v aView) bool { return !showTalk(v) }))
	b.view("connections", "p-connections")
	b.says("[data-test=relay]", "nothing listens at ws://127.0.0.1:1")
	b.inLight("dark")
	b.at(1400, 900)
	for _, v := range []aView{{"", "p-home"}, {"robots/" + kitchen, "p-robot"}, {"turns", "p-turns"}, {"settings", "p-settings"}} {
		b.view(v.hash, v.element)
		b.axe("#/" + v.hash + " in the dark")
	}
}

// seePages checks the pages other than the dashboard: the robot in the page and the face of a robot.
func seePages(t *testing.T, c *chromium) {
	h := startAppliance(t, kitchenMAC)
	for path, shown := range map[string]string{"robot": `see.one("[data-test=status]")?.dataset.state === "idle"`,
		"face?robot=" + kitchen: `see.has("stack-chan-face")`} {
		b := c.visit(t, h, path)
		b.until(shown)
		b.inspect(path)
	}
}

// livedIn starts an appliance with data for each view, such as a robot that talks, another that waits, and a refused
// check-in. talked waits until the conversation has ended.
func livedIn(t *testing.T) (h *appliancetest.Appliance, talked func()) {
	t.Helper()
	var asking sync.WaitGroup
	t.Cleanup(asking.Wait)
	h = appliancetest.Configured(t, "adoption: code\nrelays: [{kind: warudo, url: \"ws://127.0.0.1:1\"}]\n")
	h.Adopt(kitchenMAC)
	h.Admin(http.MethodPut, "/api/v1/devices/"+kitchen, `{"name":"Kitchen"}`, nil)
	for _, text := range []string{"The cat is called Miso.", "Ann's keys are in the blue bowl.", "The bin is emptied on Tuesdays."} {
		h.Admin(http.MethodPost, "/api/v1/memory", `{"text":`+quote(text)+`}`, nil)
	}
	h.Admin(http.MethodPost, "/api/v1/notifications", `{"text":"The washing is done.","urgency":"high","action_url":"https://washing.example/"}`, nil)
	h.Admin(http.MethodPost, "/api/v1/notifications", `{"text":"The plants want water.","speak":false}`, nil)
	h.Admin(http.MethodPost, "/api/v1/firmware?board=m5stack-stack-chan", string(simrobot.Image("1.5.0", 64<<10)), nil)
	h.Watch(appliancetest.Everything)
	robot := h.StartCompanion(simrobot.Options{Firmware: "dotty", Events: appliancetest.Idle(),
		Say: appliancetest.Sentences(t, "set a timer for twenty minutes", "what can you do")})
	h.StartRobot(simrobot.Options{MAC: guestMAC, Asleep: true, Forever: true})
	h.Request(http.MethodPost, "/xiaozhi/ota/", "{}", "Device-Id", "not-a-mac", "Client-Id", "x")
	h.Eventually("the other waits", func() bool {
		_, text := h.Owner(http.MethodGet, "/api/v1/devices", "")
		return strings.Contains(text, guest)
	})
	return h, func() {
		h.Await(robot, "both sentences are answered", func(e simrobot.Observation) bool {
			ended, is := e.(simrobot.TurnEnded)
			return is && ended.Turn.Text == "what can you do"
		})
		robot.SendSensorEvent("face_detected", `{"count":1}`)
		h.StartAskPermission(&asking, "make test", func(string) {})
	}
}
