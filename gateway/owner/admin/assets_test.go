package admin_test

import (
	"errors"
	"strings"
	"testing"

	"perch/event"
	"perch/ota/espimage/espimagetest"
)

// TestAssetFiles checks the routes of asset files, from an upload to its removal.
func TestAssetFiles(t *testing.T) {
	h, boot := stocked(t)
	const point = "devices/a0b1c2d3e4f5/assets"
	ask := func(method, path, body string, wants int, answer string) {
		t.Helper()
		h.wants(t, method, "/api/v1/"+path, body, wants, answer)
	}
	ask("GET", "assets", "", 200, "[]")
	ask("POST", "assets/de.bin", "<html>", 422, `"not_assets"`)
	ask("POST", "assets/.de.bin", string(espimagetest.Assets("index.json", "{}")), 400, `"bad_name"`)
	ask("POST", "assets/de.bin", string(espimagetest.Assets("index.json", "{}")), 201, `"files":[{"name":"index.json","size":2}]`)
	ask("GET", "assets", "", 200, `{"name":"de.bin","size":60,`)
	boot("1.2.4")
	h.publish(t, robotA, "s1", event.RobotOnline{Framing: 1})
	ask("POST", point, `{"name":"de.bin"}`, 200, "")
	if asked := strings.Join(h.talk.asked, " "); !strings.HasPrefix(asked,
		`call a0b1c2d3e4f5 self.assets.set_download_url {"url":"http://perch.local:8003/xiaozhi/ota/assets/de.bin?r=a0b1c2d3e4f5.`) {
		t.Errorf("the robot is asked %q", asked)
	}
	ask("POST", point, `{"name":"none"}`, 404, `"unknown_asset"`)
	ask("POST", point, `[]`, 400, `"bad_body"`)
	h.talk.err = errors.New("no")
	ask("POST", point, `{"name":"de.bin"}`, 500, "")
	ask("DELETE", "assets/none", "", 404, `"unknown_asset"`)
	ask("DELETE", "assets/de.bin", "", 200, `{"ok":true}`)
	ask("GET", "assets", "", 200, "[]")
}
