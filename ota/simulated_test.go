package ota_test

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/ota/espimage/espimagetest"
)

func TestSimulatedRobotFetchesAssetsOnce(t *testing.T) {
	l := newAppliance(t)
	address := l.address(t)
	must.Value(l.AddAsset(t.Context(), "font.bin", bytes.NewReader(espimagetest.Font(100_000))))(t)
	path := must.Value(l.AssetFor("a0b1c2d3e4f5", "font.bin", time.Now()))(t)
	flash := filepath.Join(t.TempDir(), "flash.json")
	must.Succeed(t, os.WriteFile(flash, []byte(`{"assets_url":"`+address+path+`"}`), 0o600))
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
	must.Succeed(t, err)
}
