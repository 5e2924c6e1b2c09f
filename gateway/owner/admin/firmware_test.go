package admin_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
	"perch/event"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
	"perch/ota"
)

// application returns a firmware image for the ESP32-S3 with one segment.
func application(version string) string {
	out := make([]byte, 24+8+256, 512)
	copy(out, []byte{0xE9, 1, 2, 0x4F, 12: 9, 23: 1})
	binary.LittleEndian.PutUint32(out[24:], 0x3C000020)
	binary.LittleEndian.PutUint32(out[28:], 256)
	binary.LittleEndian.PutUint32(out[32:], 0xABCD5432)
	copy(out[48:], version)
	sum := byte(0xEF)
	for _, c := range out[32:] {
		sum ^= c
	}
	out = append(out, append(make([]byte, 15), sum)...)
	digest := sha256.Sum256(out)
	return string(append(out, digest[:]...))
}

// stocked returns an appliance with an adopted robot, and a function that lets the robot check in with a version of
// its firmware.
func stocked(t *testing.T) (h *appliance, boot func(version string)) {
	h = newAppliance(t)
	h.visit(t, robotA, "one")
	must.Value(h.robots.Adopt(string(robotA), time.Now()))(t)
	boots := ota.New(ota.Options{Robots: h.robots, Bus: h.bus, Zone: time.UTC, Framing: 1, Firmware: h.firmware, Log: slog.New(slog.DiscardHandler)})
	return h, func(version string) {
		_, err := boots.CheckIn(ota.Request{Host: "perch.local:8003", DeviceID: string(robotA), ClientID: "one",
			UserAgent: "m5stack-stack-chan/" + version}, time.Now())
		must.Succeed(t, err)
	}
}

// TestFirmwareCatalogue checks the routes of firmware images, from an upload to its removal.
func TestFirmwareCatalogue(t *testing.T) {
	h, boot := stocked(t)
	boot("1.2.4")
	file := application("1.3.0")
	sha := fmt.Sprintf("%x", sha256.Sum256([]byte(file)))
	h.wants(t, "GET", "/api/v1/firmware", "", 200, "=[]")
	for _, c := range []struct {
		method, path, body string
		status             int
		answer             string // text that the response contains
	}{
		{"POST", "firmware?board=m5stack-stack-chan", file[:300], 422, `"truncated"`},
		{"POST", "firmware?board=m5stack-stack-chan", "<html>", 422, `"not_an_application"`},
		{"POST", "firmware", file, 400, `"bad_board"`},
		{"POST", "firmware?board=m5stack-stack-chan&sha256=00", file, 422, `"wrong_sha256"`},
		{"POST", "firmware?board=m5stack-stack-chan&board=other&sha256=" + sha, file, 201, `"sha256":"` + sha + `"`},
		{"GET", "firmware", "", 200, `"boards":["m5stack-stack-chan","other"]`},
		{"POST", "firmware/" + sha + "/rollout", `{"boards":["third"]}`, 400, `"bad_rollout"`},
		{"POST", "firmware/" + sha + "/rollout", `{"percent":200}`, 400, `"bad_rollout"`},
		{"POST", "firmware/" + sha + "/rollout", strings.Repeat(" ", 65<<10), 413, `"body_too_large"`},
		{"POST", "firmware/none/rollout", `{}`, 404, `"unknown_image"`},
		{"POST", "firmware/" + sha + "/rollout", `{"boards":["other"],"percent":10,"hours":"02:00-05:00","auto":true}`, 200, `"hours":"02:00-05:00"`},
		{"GET", "devices/a0b1c2d3e4f5/firmware", "", 200, `{"installed_version":"1.2.4","latest_version":"1.3.0","sha256":"` + sha},
		{"GET", "devices/020000000001/firmware", "", 404, `"unknown_robot"`},
		{"POST", "devices/a0b1c2d3e4f5/upgrade", `{"sha256":"none"}`, 404, `"unknown_image"`},
		{"POST", "devices/a0b1c2d3e4f5/upgrade", `[]`, 400, `"bad_body"`},
		{"POST", "devices/a0b1c2d3e4f5/upgrade", ``, 202, `{"ok":true,"queued":true}`},
		{"DELETE", "firmware/none", "", 404, `"unknown_image"`},
		{"DELETE", "firmware/" + sha, "", 200, `{"ok":true}`},
		{"GET", "firmware", "", 200, `[]`},
		{"POST", "devices/a0b1c2d3e4f5/upgrade", ``, 409, `"nothing_newer"`},
	} {
		h.wants(t, c.method, "/api/v1/"+c.path, c.body, c.status, c.answer)
	}
}

// TestUpgradeAtOnce checks that a robot is upgraded at once only if its channel is open and it has the tool for that.
func TestUpgradeAtOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		online bool
		tools  []device.Tool
		err    error
		called bool
		queued bool
	}{
		{"open, with the tool", true, []device.Tool{{Name: "self.upgrade_firmware"}}, nil, true, false},
		{"it goes quiet", true, []device.Tool{{Name: "self.upgrade_firmware"}}, errors.New("hung up"), true, true},
		{"open, without it", true, []device.Tool{{Name: "self.reboot"}}, nil, false, true},
		{"closed", false, []device.Tool{{Name: "self.upgrade_firmware"}}, nil, false, true},
	} {
		h, boot := stocked(t)
		boot("1.2.4")
		h.wants(t, "POST", "/api/v1/firmware?board=m5stack-stack-chan", application("1.3.0"), 201, "")
		h.talk.tools, h.talk.err = c.tools, c.err
		if c.online {
			h.publish(t, robotA, "s1", event.RobotOnline{Framing: 1})
		}
		h.wants(t, "POST", "/api/v1/devices/a0b1c2d3e4f5/upgrade", "", 202, fmt.Sprintf(`={"ok":true,"queued":%v}`, c.queued))
		asked := strings.Join(h.talk.asked, " ")
		if c.called != strings.HasPrefix(asked,
			`call a0b1c2d3e4f5 self.upgrade_firmware {"url":"http://perch.local:8003/xiaozhi/ota/firmware/`) || !c.called && asked != "" {
			t.Errorf("%s: the robot is asked %q", c.name, asked)
		}
	}
}

// TestForgetRobotForgetsFirmware checks that deleting a robot deletes what is known of its firmware.
func TestForgetRobotForgetsFirmware(t *testing.T) {
	h, boot := stocked(t)
	boot("1.2.4")
	h.wants(t, "DELETE", "/api/v1/devices/a0b1c2d3e4f5", "", 202, "")
	h.visit(t, robotA, "one")
	if u := get[ota.Update](t, h, "/api/v1/devices/a0b1c2d3e4f5/firmware"); u.Installed != "" {
		t.Errorf("known is %+v", u)
	}
}

// TestStalledUpload checks that an upload that pauses for too long is refused, and that a slow upload is accepted,
// however long it takes.
func TestStalledUpload(t *testing.T) {
	for name, c := range map[string]struct {
		pause  time.Duration
		status int
	}{"slow": {20 * time.Second, 201}, "stalled": {40 * time.Second, 408}} {
		synctest.Test(t, func(t *testing.T) {
			h, _ := stocked(t)
			owner := httpservertest.Serve(t, h.engine)
			file := application("1.3.0")
			go func() {
				fmt.Fprintf(owner, "POST /api/v1/firmware?board=b HTTP/1.1\r\nHost: perch\r\nContent-Length: %d\r\n\r\n", len(file))
				for n := 0; n < len(file); n += 50 {
					if _, err := io.WriteString(owner, file[n:min(n+50, len(file))]); err != nil {
						return
					}
					time.Sleep(c.pause)
				}
			}()
			answer, err := http.ReadResponse(bufio.NewReader(owner), nil)
			if err != nil || answer.StatusCode != c.status {
				t.Errorf("%s: %v (%v)", name, answer, err)
			} else if c.status == 408 {
				var fault struct{ Error struct{ Code string } }
				if err := json.NewDecoder(answer.Body).Decode(&fault); err != nil || fault.Error.Code != "stalled" {
					t.Errorf("%s: %+v (%v)", name, fault, err)
				}
			}
			_ = owner.Close()
			time.Sleep(time.Minute) // so that the goroutine above ends
		})
	}
}

// TestRefusedUploadIsDrained checks that a client that is still sending a refused upload gets the response instead of
// a closed connection. A client that has sent Expect: 100-continue sends no body.
func TestRefusedUploadIsDrained(t *testing.T) {
	for _, path := range []string{"/api/v1/firmware", "/api/v1/assets/.hidden"} {
		for _, expects := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				h, _ := stocked(t)
				owner := httpservertest.Serve(t, h.engine)
				const length = 1 << 20
				ask := ""
				if expects {
					ask = "Expect: 100-continue\r\n"
				}
				fmt.Fprintf(owner, "POST %s HTTP/1.1\r\nHost: perch\r\nConnection: close\r\n%sContent-Length: %d\r\n\r\n", path, ask, length)
				if !expects {
					if _, err := owner.Write(make([]byte, length)); err != nil {
						t.Errorf("%s: after the refusal: %v", path, err)
					}
				}
				answer, err := http.ReadResponse(bufio.NewReader(owner), nil)
				if err != nil || answer.StatusCode != http.StatusBadRequest {
					t.Errorf("%s: %v, %v", path, answer, err)
				} else {
					_ = answer.Body.Close()
				}
				_ = owner.Close()
			})
		}
	}
}
