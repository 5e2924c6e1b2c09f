package e2e

import (
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/device"
	"perch/firmware-tools/simrobot"
)

// TestAdoption: a new robot waits and is listed. Its owner can adopt it by the code that it shows or by its
// ID, without restarting it.
func TestAdoption(t *testing.T) {
	t.Parallel()
	for way, by := range map[string]func(w simrobot.AwaitsAdoption) string{
		"by its code": func(w simrobot.AwaitsAdoption) string { return w.Code },
		"by its id":   func(simrobot.AwaitsAdoption) string { return "A0:B1:C2:D3:E4:F5" },
	} {
		t.Run(way, func(t *testing.T) {
			c := appliancetest.Config()
			c.Adoption = "code"
			h := open(t, c, t.TempDir())
			waited, booted := 0, 0
			h.RunRobot(simrobot.Options{Observe: func(e simrobot.Observation) {
				switch e := e.(type) {
				case simrobot.CheckedIn:
					booted++
				case simrobot.AwaitsAdoption:
					waited++
					h.byNetwork("robot list", exitDone, "perch robot adopt a0b1c2d3e4f5, or the code it shows, "+e.Code)
					if len(e.Code) != 6 {
						t.Errorf("it shows %q", e.Code)
					}
					h.byNetwork("robot adopt "+by(e), exitDone, "a0b1c2d3e4f5 is adopted")
				}
			}})
			if waited != 1 || booted != 2 || !h.Robots.Trusts("a0b1c2d3e4f5") {
				t.Errorf("it waited %d times, checked in %d times, and is trusted: %t", waited, booted, h.Robots.Trusts("a0b1c2d3e4f5"))
			}
			if list := h.byNetwork("robot list", exitDone); strings.Contains(list, "waits") {
				t.Errorf("the list is %s", list)
			}
		})
	}
}

// TestAdoptingOneOfTwoClients: adoption by a MAC address that two clients use fails, even an hour after the
// robot was last seen. The list shows both clients, neither as the robot, and the owner can adopt one by its
// Client-Id.
func TestAdoptingOneOfTwoClients(t *testing.T) {
	for _, adoption := range []string{"open", "code"} {
		t.Run(adoption, func(t *testing.T) {
			c, data := appliancetest.Config(), t.TempDir()
			c.Adoption = adoption
			h := open(t, c, data)
			h.Robots.Welcome(time.Time{})
			comes := func(client, address string, ago time.Duration) {
				h.Robots.CheckIn(device.CheckIn{ID: "a0b1c2d3e4f5", Client: device.NewClient(client),
					Board: "m5stack-stack-chan", Firmware: "1.2.4",
					Address: address, BaseURL: h.URL("")}, time.Now().Add(-ago))
			}
			comes("a-stranger", "192.168.1.66", 2*time.Hour)
			comes("the-robot", "192.168.1.40", time.Hour)
			comes("a-stranger", "192.168.1.66", 0)
			all := []string{"a-stranger from 192.168.1.66", "the-robot from 192.168.1.40"}
			out := h.command("robot list", 0, all...)
			first, _, _ := strings.Cut(out[strings.Index(out, "a0b1c2d3e4f5"):], "\n")
			if strings.Contains(first, "192.168.1.") {
				t.Errorf("one of the two is shown as the robot: %s", first)
			}
			refused := []string{"more than one client names itself by this MAC address", `"a-stranger" from 192.168.1.66 at 20`,
				`"the-robot" from 192.168.1.40 at 20`}
			h.command("robot adopt a0b1c2d3e4f5", 1, refused...)
			h.Stop()
			h = open(t, c, data)
			h.Robots.Welcome(time.Now().Add(time.Hour)) // the same during the first hour of the appliance
			h.command("robot adopt A0:B1:C2:D3:E4:F5", 1, refused...)
			h.command("robot adopt a0b1c2d3e4f5 --client neither", 1, "no client with this Client-Id or address")
			h.command("robot adopt a0b1c2d3e4f5 --client the-robot", 0, "is adopted")
			if robot, err := h.Robots.Get("a0b1c2d3e4f5"); err != nil || robot.Client != device.NewClient("the-robot") || !robot.Adopted() {
				t.Errorf("adopted is %+v (%v)", robot, err)
			}
			comes("a-stranger", "192.168.1.66", 0)
			out = h.command("robot list", 0, "claimed by Client-Id a-stranger from 192.168.1.66", "claimed by Client-Id the-robot from 192.168.1.40")
			first, _, _ = strings.Cut(out[strings.Index(out, "a0b1c2d3e4f5"):], "\n")
			if !strings.Contains(first, "192.168.1.40") {
				t.Errorf("the robot is shown as %s", first)
			}
		})
	}
}
