package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
	"perch/remote/supervisor/supervisortest"
)

// seeIngress checks that the page needs no login in Home Assistant's side bar, and that it requests everything below the
// path of the ingress: files, the stream of events, and the WebSocket of the robot.
func seeIngress(t *testing.T, c *chromium) {
	config := appliancetest.Config()
	config.Web.Ingress, config.Web.IngressListen = []string{"127.0.0.1"}, appliancetest.FreeAddress(t)
	h := appliancetest.Start(t, config, t.TempDir())
	mux := http.NewServeMux()
	mux.Handle(supervisortest.IngressPath+"/", supervisortest.Ingress{App: config.Web.IngressListen, User: supervisortest.User{ID: "1", Name: "ada"}})
	mux.HandleFunc("/perch", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><title>Home Assistant</title><link rel="icon" href="data:,"><iframe src="%s/"></iframe>`,
			supervisortest.IngressPath)
	})
	ha := httptest.NewServer(mux)
	t.Cleanup(ha.Close)
	b := c.browse(t)
	b.open(ha.URL + "/perch")
	b.until(`document.querySelector("iframe").contentDocument?.querySelector("script[type=module]")`)
	b.open(ha.URL + supervisortest.IngressPath + "/")
	b.until("see.has('main > p-home') && !see.has('main >>> .loading')")
	b.lacks("body=" + kitchen)
	h.StartRobot(simrobot.Options{MAC: kitchenMAC, Asleep: true, Forever: true}) // the page learns of this robot only from the stream of events
	b.until(`see.says("body", "` + kitchen + `")`)
	b.boots(ha.URL + supervisortest.IngressPath + "/robot")
}
