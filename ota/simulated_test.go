package ota_test

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/firmware-tools/simrobot"
)

// TestTheSimulatedRobotTakesAnUpgrade: it boots, is offered an image at its
// next boot, downloads it, boots it and has it confirmed.
func TestTheSimulatedRobotTakesAnUpgrade(t *testing.T) {
	l := newAppliance(t)
	l.rollOut(t, simrobot.Image("1.3.0", 100_000))
	l.boots(t, 3, l.address(t), simrobot.Options{})
	if got := l.since(t); !slices.Equal(got, []string{"offered", "sent 1.3.0", "installed"}) {
		t.Errorf("the bus tells %q", got)
	}
	if u := l.Update("a0b1c2d3e4f5"); u.Installed != "1.3.0" {
		t.Errorf("shown as %+v", u)
	}
}

// TestTheSimulatedRobotTakesAssets from the address that it was given, once.
func TestTheSimulatedRobotTakesAssets(t *testing.T) {
	l := newAppliance(t)
	address := l.address(t)
	must(l.AddAsset(t.Context(), "font.bin", bytes.NewReader(assets(100_000))))(t)
	path := must(l.AssetFor("a0b1c2d3e4f5", "font.bin", time.Now()))(t)
	flash := filepath.Join(t.TempDir(), "flash.json")
	noError(t, os.WriteFile(flash, []byte(`{"assets_url":"`+address+path+`"}`), 0o600))
	var fetched []simrobot.Fetched
	l.boots(t, 2, address, simrobot.Options{FlashFile: flash, Observe: func(h simrobot.Observation) {
		if f, is := h.(simrobot.Fetched); is {
			fetched = append(fetched, f)
		}
	}})
	if len(fetched) != 1 || len(fetched[0].Assets.Files) != 2 {
		t.Errorf("it fetched %+v", fetched)
	}
}

// TestASimulatedRobotThatRollsBack is given up.
func TestASimulatedRobotThatRollsBack(t *testing.T) {
	l := newAppliance(t)
	l.rollOut(t, simrobot.Image("1.3.0", 0))
	l.boots(t, 5, l.address(t), simrobot.Options{Crashes: true})
	if got := strings.Join(l.since(t), " "); strings.Count(got, "rolled_back") != 3 || !strings.HasSuffix(got, "rolled_back failed") {
		t.Errorf("the bus tells %s", got)
	}
}

func (l *appliance) address(t *testing.T) string {
	server := httptest.NewServer(l.handler)
	t.Cleanup(server.Close)
	return server.URL
}

// boots has a simulated robot, which is adopted as the first, start so often.
func (l *appliance) boots(t *testing.T, times int, address string, o simrobot.Options) {
	t.Helper()
	l.robots.Welcome(time.Now().Add(time.Hour))
	o.OTA, o.MAC, o.Upgrades = address+"/xiaozhi/ota/", mac, true
	robot, err := simrobot.New(o)
	for range times {
		if err == nil {
			err = robot.Boot(t.Context())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
