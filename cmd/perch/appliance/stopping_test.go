package appliance_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/listener"
	"perch/firmware-tools/simrobot"
	"perch/must"
)

// TestAStopLetsDownloadsFinish checks that an appliance that stops waits for downloads of firmware: in about half of
// the cases a robot crashes if its download is cut off.
func TestAStopLetsDownloadsFinish(t *testing.T) {
	t.Parallel()
	h, r, booted := downloading(t)
	h.Stop()
	<-booted // an error: after the download, the robot cannot check in
	if _, upgraded := r.LastTime(func(o simrobot.Observation) bool { return o == simrobot.Upgraded{Version: "9.9.9"} }); !upgraded {
		t.Errorf("the robot has not got the image: %+v", r.Observations())
	}
}

// downloading starts an appliance and a robot that has downloaded a part of a firmware image. booted receives the
// result of the robot's boot.
func downloading(t *testing.T) (h *appliancetest.Appliance, r *appliancetest.Robot, booted <-chan error) {
	t.Helper()
	h = appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	image := simrobot.Image("9.9.9", 2<<20)
	if status, text := h.Owner(http.MethodPost, "/api/v1/firmware?board=m5stack-stack-chan", string(image)); status >= 300 {
		t.Fatalf("%d %s", status, text)
	}
	h.Admin(http.MethodPost, fmt.Sprintf("/api/v1/firmware/%x/rollout", sha256.Sum256(image)),
		`{"boards":["m5stack-stack-chan"],"percent":100,"auto":true}`, nil)
	r = h.NewRobot(simrobot.Options{Upgrades: true})
	must.Succeed(t, r.Boot(t.Context())) // confirms the firmware that the robot runs
	ended := make(chan error, 1)
	go func() { ended <- r.Boot(t.Context()) }() // downloading 2 MB takes four seconds
	h.Eventually("a part of it is downloaded", func() bool {
		list := h.Firmware.List()
		robots := list[0].Robots
		trial := robots["a0b1c2d3e4f5"]
		return trial.Bytes > 0 && trial.Bytes < int64(len(image))
	})
	return h, r, ended
}

// TestNoTalkBeginsDuringAStop checks that an appliance that stops, and waits for downloads, refuses new channels and
// new downloads of robots.
func TestNoTalkBeginsDuringAStop(t *testing.T) {
	t.Parallel()
	h, _, booted := downloading(t)
	identity := []string{"Device-Id", "a0:b1:c2:d3:e4:f6", "Client-Id", "other"}
	token := h.Token("/xiaozhi/ota/", identity...)
	stopped := make(chan struct{})
	go func() { defer close(stopped); h.Stop() }()
	h.Eventually("downloads are refused", func() bool {
		status, _ := h.Request(http.MethodGet, "/xiaozhi/ota/firmware/x.bin", "")
		return status == http.StatusServiceUnavailable
	})
	h.Expect(http.StatusServiceUnavailable, `"stopping"`, http.MethodGet, "/xiaozhi/v1/", "", append(identity, "Authorization", "Bearer "+token,
		"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")...)
	<-stopped
	<-booted
}

// TestAStopIsShorterThanTheServiceManagerWaits checks that TimeoutStopSec of the systemd unit leaves at least eight
// seconds after the listeners have closed, to end conversations and write all data.
func TestAStopIsShorterThanTheServiceManagerWaits(t *testing.T) {
	unit := must.Value(os.ReadFile("../../../packaging/perch.service"))(t)
	found := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindStringSubmatch(string(unit))
	if found == nil {
		t.Fatal("packaging/perch.service has no TimeoutStopSec")
	}
	waits, err := time.ParseDuration(found[1] + "s")
	if left := waits - listener.StopWithin; err != nil || left < 8*time.Second {
		t.Errorf("of %s (%v) closing the listeners leaves %s", waits, err, left)
	}
}
