package web_test

import (
	"net/http"
	"net/url"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
	"perch/must"
)

// TestPageInFirefox checks the most important uses in Firefox: an owner logs in with a link, adopts a robot, changes a
// setting, writes to the robot in the page, and can use its microphone over https.
func TestPageInFirefox(t *testing.T) {
	t.Parallel()
	h := openHTTPS(t, appliancetest.Configured(t, "adoption: code\n"))
	f := startFirefox(t, h.file)

	var made struct{ URLs []string }
	h.Admin(http.MethodPost, "/api/v1/link", "", &made)
	f.open(h.at() + "#" + must.Value(url.Parse(made.URLs[0]))(t).Fragment)
	f.sees("main > p-home")

	h.StartRobot(simrobot.Options{MAC: guestMAC, Asleep: true, Forever: true})
	f.click("[data-test=waiting-" + guest + "] [data-test=adopt]")
	f.fill("[data-test=robot-name]", "Beep")
	f.click("[data-test=named]")
	f.says("[data-test=robot-"+guest+"]", "Beep")
	f.until(`!see.has("p-dialog")`)

	f.open(h.at() + "#/settings")
	f.fill("#find", "name")
	f.fill("[data-key=name] >>> input", "cottage")
	f.press(tabKey)
	f.click("[data-test=save]")
	f.sees("[data-key=name] [data-from=settings]")

	f.open(h.at() + "robot")
	f.until(`see.one("[data-test=status]")?.dataset.state === "activating"`)
	for _, robot := range h.Robots.List() {
		if !robot.Adopted() {
			must.Value(h.Robots.Adopt(string(robot.ID), robot.LastSeen))(t)
		}
	}
	f.until(`see.one("[data-test=status]")?.dataset.state === "idle"`)
	f.says("[data-test=deaf]", "https")
	f.fill("[data-test=write]", "look left")
	f.click("[data-test=send]")
	f.says("[data-test=tool]", "self.robot.set_head_angles")
	f.says("[data-test=said-robot]", "left") // only the text, because Firefox plays nothing without a sound card

	f.click("[data-test=use-microphone]")
	f.says("[data-test=fingerprint]", h.Fingerprint)
	f.click("[data-test=go-https]")
	f.until(`location.protocol === "https:" && location.pathname === "/robot"`)
	f.until(`see.one("[data-test=status]")?.dataset.state === "idle"`)
	f.until(`isSecureContext && !see.has("[data-test=deaf]") && navigator.mediaDevices.getUserMedia({ audio: true }).then((s) => s.getAudioTracks().length === 1)`)
}
