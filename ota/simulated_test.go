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
	"perch/ota"
)

// TestTheSimulatedRobotTakesAnUpgrade: it boots, is offered an image at its
// next boot, downloads it, boots it and has it confirmed.
func TestTheSimulatedRobotTakesAnUpgrade(t *testing.T) {
	l := newLife(t)
	server := httptest.NewServer(l.handler)
	defer server.Close()
	i := l.add(t, simrobot.Image("1.3.0", 100_000), board)
	if _, err := l.Plan(i.SHA256, ota.Rollout{Percent: 100, Auto: true}); err != nil {
		t.Fatal(err)
	}
	l.robots.Welcome(time.Now().Add(time.Hour))
	robot := newSimulated(t, server, simrobot.Options{})
	for range 3 {
		if err := robot.Boot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.since(t); !slices.Equal(got, []string{"offered", "sent 1.3.0", "installed"}) {
		t.Errorf("the bus tells %q", got)
	}
	if u := l.Update("a0b1c2d3e4f5"); u.Installed != "1.3.0" {
		t.Errorf("shown as %+v", u)
	}
}

// TestTheSimulatedRobotTakesAssets that it was told of, once.
func TestTheSimulatedRobotTakesAssets(t *testing.T) {
	l := newLife(t)
	server := httptest.NewServer(l.handler)
	defer server.Close()
	if _, err := l.AddAsset(t.Context(), "font.bin", bytes.NewReader(assets(100_000))); err != nil {
		t.Fatal(err)
	}
	path, err := l.AssetFor("a0b1c2d3e4f5", "font.bin", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	flash := filepath.Join(t.TempDir(), "flash.json")
	if err := os.WriteFile(flash, []byte(`{"assets_url":"`+server.URL+path+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var fetched []simrobot.Fetched
	l.robots.Welcome(time.Now().Add(time.Hour))
	robot := newSimulated(t, server, simrobot.Options{FlashFile: flash, Observe: func(h simrobot.Observation) {
		if f, is := h.(simrobot.Fetched); is {
			fetched = append(fetched, f)
		}
	}})
	for range 2 {
		if err := robot.Boot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(fetched) != 1 || len(fetched[0].Assets.Files) != 2 {
		t.Errorf("it fetched %+v", fetched)
	}
}

// TestASimulatedRobotThatRollsBack is given up.
func TestASimulatedRobotThatRollsBack(t *testing.T) {
	l := newLife(t)
	server := httptest.NewServer(l.handler)
	defer server.Close()
	i := l.add(t, simrobot.Image("1.3.0", 0), board)
	if _, err := l.Plan(i.SHA256, ota.Rollout{Percent: 100, Auto: true}); err != nil {
		t.Fatal(err)
	}
	l.robots.Welcome(time.Now().Add(time.Hour))
	robot := newSimulated(t, server, simrobot.Options{Crashes: true})
	for range 5 {
		if err := robot.Boot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(l.since(t), " "); strings.Count(got, "rolled_back") != 3 || !strings.HasSuffix(got, "rolled_back failed") {
		t.Errorf("the bus tells %s", got)
	}
}

func newSimulated(t *testing.T, server *httptest.Server, o simrobot.Options) *simrobot.Robot {
	t.Helper()
	o.OTA, o.MAC, o.Upgrades = server.URL+"/xiaozhi/ota/", mac, true
	robot, err := simrobot.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return robot
}
