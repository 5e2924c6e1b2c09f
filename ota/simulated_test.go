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
	server := httptest.NewServer(l.handler)
	defer server.Close()
	must.Value(l.AddAsset(t.Context(), "font.bin", bytes.NewReader(espimagetest.Font(100_000))))(t)
	path := must.Value(l.AssetFor("a0b1c2d3e4f5", "font.bin", time.Now()))(t)
	flash := filepath.Join(t.TempDir(), "flash.json")
	must.Succeed(t, os.WriteFile(flash, []byte(`{"assets_url":"`+server.URL+path+`"}`), 0o600))
	var fetched []simrobot.Fetched
	l.robots.Welcome(time.Now().Add(time.Hour))
	robot := must.Value(simrobot.New(simrobot.Options{OTA: server.URL + "/xiaozhi/ota/", MAC: mac, Upgrades: true, FlashFile: flash,
		Observe: func(h simrobot.Observation) {
			if f, is := h.(simrobot.Fetched); is {
				fetched = append(fetched, f)
			}
		}}))(t)
	for range 2 {
		must.Succeed(t, robot.Boot(t.Context()))
	}
	if len(fetched) != 1 || len(fetched[0].Assets.Files) != 2 {
		t.Errorf("it fetched %+v", fetched)
	}
}
