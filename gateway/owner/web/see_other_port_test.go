package web_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
	"perch/must"
)

// plainName is a name of this machine for which a browser treats plain HTTP as insecure. For such a name, unlike for a
// loopback address, it sends no Sec-Fetch-Site.
const plainName = "perch.home.arpa"

// otherPort is a JavaScript function with which a page on another port of the same host tries to read the owner's data
// with the owner's cookie.
const otherPort = `(async (perch, robot) => {
	const shows = (src) => new Promise((resolve) => {
		const image = new Image();
		image.onload = () => resolve("shown");
		image.onerror = () => resolve("refused");
		image.src = src;
	});
	const reads = (path, init) => fetch(perch + path, { credentials: "include", ...init }).then((r) => r.type + " " + r.status, () => "refused");
	const all = {
		image: await shows(perch + "api/v1/devices/" + robot + "/picture"),
		icon: await shows(perch + "assets/icon.svg"),
		scripted: await reads("api/v1/status", { headers: { "X-Perch-Page": "1" } }),
		cors: await reads("api/v1/status", {}),
	};
	for (const path of ["api/v1/doctor", "api/v1/devices/" + robot + "/picture", "metrics", "session"]) all[path] = await reads(path, { mode: "no-cors" });
	return JSON.stringify(all);
})`

// TestAnotherPortReadsNothing checks that a page on another port of the same host, over plain HTTP, can read nothing with
// the owner's cookie, while Perch's own page shows pictures and events.
func TestAnotherPortReadsNothing(t *testing.T) {
	c := startChromium(t, chromedp.Flag("host-resolver-rules", "MAP "+plainName+" 127.0.0.1"))
	h := startAppliance(t, kitchenMAC)
	robot := h.StartCompanion(simrobot.Options{Firmware: "dotty", Events: appliancetest.Idle()})
	h.WaitForTools(kitchen)
	at := strings.Replace(h.URL("/"), "127.0.0.1", plainName, 1)

	b := c.browse(t)
	b.open(at)
	b.fill("#token", h.OwnerToken())
	b.press(kb.Enter)
	b.sees("main > p-home")
	b.view("robots/"+kitchen, "p-robot")
	b.click("[data-test=photo]")
	b.until(`see.one("[data-test=picture]")?.naturalWidth > 0`)
	robot.SendSensorEvent("face_detected", `{"count":1}`)
	b.until("see.one('p-shell')?.link === 'fine'")
	h.StartRobot(simrobot.Options{MAC: guestMAC, Asleep: true, Forever: true})
	b.view("", "p-home") // Home learns of changes from the stream of events
	b.until(`see.says("body", "` + guest + `")`)

	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!doctype html><title>Another port</title><link rel="icon" href="data:,">`)
	}))
	t.Cleanup(other.Close)
	stranger := b.beside()
	stranger.allow("net::ERR_FAILED", "blocked by CORS", "ERR_BLOCKED_BY_RESPONSE", "status of 40")
	stranger.open(strings.Replace(other.URL, "127.0.0.1", plainName, 1) + "/")
	var read map[string]string
	must.Succeed(t, json.Unmarshal([]byte(value[string](stranger, otherPort+"("+quote(at)+", "+quote(kitchen)+")")), &read))
	if len(read) != 8 {
		t.Errorf("tried were %v", read)
	}
	for what, came := range read {
		if came != "refused" {
			t.Errorf("a page of another port has read %s: %s", what, came)
		}
	}
}
