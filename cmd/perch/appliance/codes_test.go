package appliance_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/device"
	"perch/firmware-tools/simrobot"
)

// TestSpokenCode checks that a robot that its owner has adopted can say a login code for the page, and that the list
// of turns does not contain it.
func TestSpokenCode(t *testing.T) {
	t.Parallel()
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	const mac = "A0:B1:C2:D3:E4:F5"
	say := func() int {
		status, _ := h.Request(http.MethodPost, "/session/code", "")
		return status
	}
	if status := say(); status != http.StatusNotFound {
		t.Errorf("without a robot, a code is answered with %d", status)
	}
	h.Adopt(mac)
	if status := say(); status != http.StatusConflict {
		t.Errorf("while no robot listens, a code is answered with %d", status)
	}
	r := h.StartRobot(simrobot.Options{MAC: mac, Say: appliancetest.Sentences(t, "what time is it"), Stay: true, Record: true})
	h.Await(r, "it has answered", func(o simrobot.Observation) bool { _, ended := o.(simrobot.TurnEnded); return ended })
	h.Eventually("it says a code", func() bool { return say() == http.StatusNoContent })
	if status := say(); status != http.StatusTooManyRequests {
		t.Errorf("a second code at once is answered with %d", status)
	}
	_, turns := h.Owner(http.MethodGet, "/api/v1/turns", "")
	if strings.Contains(turns, "code") {
		t.Errorf("the turns repeat it: %s", turns)
	}
}

// TestWelcomedRobotsSayNoCodes checks that a robot that was adopted automatically in the first hour says no login
// codes, because it may belong to anybody, and still says none after it was given a name by voice. A robot that its
// owner has configured says codes.
func TestWelcomedRobotsSayNoCodes(t *testing.T) {
	t.Parallel()
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	const id = "a0b1c2d3e4f5"
	h.Robots.Welcome(time.Now().Add(time.Hour))
	robot, _ := h.Robots.CheckIn(device.CheckIn{ID: id, Client: device.NewClient("anybody"), Address: "192.168.1.40"}, time.Now())
	if !robot.Adopted() {
		t.Fatal("it was not adopted")
	}
	say := func() int {
		status, _ := h.Request(http.MethodPost, "/session/code", "")
		return status
	}
	if status := say(); status != http.StatusNotFound {
		t.Errorf("a code is answered with %d", status)
	}
	if _, err := h.Robots.Nickname(id, "Momo"); err != nil {
		t.Error(err)
	}
	if status := say(); status != http.StatusNotFound {
		t.Errorf("once it has a nickname, a code is answered with %d", status)
	}
	h.Admin(http.MethodPut, "/api/v1/devices/"+id, `{"name":"kitchen"}`, nil)
	if status := say(); status != http.StatusConflict { // the robot may say codes, but is not connected
		t.Errorf("once its owner has named it, a code is answered with %d", status)
	}
}
