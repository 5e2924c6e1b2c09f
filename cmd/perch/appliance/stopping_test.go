package appliance_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
)

// TestAStopLetsDownloadsFinish: a robot whose connection ends in the middle of an image
// crashes every second time. An appliance that stops waits for it.
func TestAStopLetsDownloadsFinish(t *testing.T) {
	t.Parallel()
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	image := simrobot.Image("9.9.9", 2<<20)
	if status, text := h.Owner(http.MethodPost, "/api/v1/firmware?board=m5stack-stack-chan", string(image)); status >= 300 {
		t.Fatalf("%d %s", status, text)
	}
	h.Admin(http.MethodPost, fmt.Sprintf("/api/v1/firmware/%x/rollout", sha256.Sum256(image)),
		`{"boards":["m5stack-stack-chan"],"percent":100,"auto":true}`, nil)
	r := h.NewRobot(simrobot.Options{Upgrades: true})
	if err := r.Boot(t.Context()); err != nil { // which confirms what it runs
		t.Fatal(err)
	}
	booted := make(chan error, 1)
	go func() { booted <- r.Boot(t.Context()) }() // 2 MB take four seconds
	h.Eventually("a part of it is downloaded", func() bool {
		list := h.Firmware.List()
		robots := list[0].Robots
		trial := robots["a0b1c2d3e4f5"]
		return trial.Bytes > 0 && trial.Bytes < int64(len(image))
	})
	h.Stop()
	<-booted // fails where the robot checks in, once it has the image
	if _, upgraded := r.When(func(o simrobot.Observation) bool { return o == simrobot.Upgraded{Version: "9.9.9"} }); !upgraded {
		t.Errorf("the robot has not got the image: %+v", r.Seen())
	}
}
