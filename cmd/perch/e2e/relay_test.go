package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/must"
)

// TestRelayCommands: the commands relay list and relay try list the avatar programs with their faults, and show all
// states on one.
func TestRelayCommands(t *testing.T) {
	t.Parallel()
	works := appliancetest.NewAvatar(t, "")
	c := appliancetest.Config()
	other := open(t, appliancetest.Config(), t.TempDir()) // an HTTP server that is no avatar program
	c.Relays = []config.Relay{
		{Kind: "warudo", URL: "ws://" + works.Address, Words: map[string]string{"state.thinking": "ponders"}},
		{Kind: "warudo", Name: "closed", URL: "ws://" + appliancetest.FreeAddress(t)},
		{Kind: "warudo", Name: "other", URL: strings.Replace(other.URL("/"), "http", "ws", 1)},
		{Kind: "obs", URL: "ws://" + works.Address, Key: "a secret of OBS"},
	}
	data := t.TempDir()
	gestures := filepath.Join(data, "gestures", "mine.json")
	must.Succeed(t, os.MkdirAll(filepath.Dir(gestures), 0o700))
	must.Succeed(t, os.WriteFile(gestures, []byte(`{"gestures":[{"name":"twirl","duration_ms":900,"frames":[{"at_ms":0,"yaw":9}]}]}`), 0o600))
	h := open(t, c, data)
	h.Eventually("it is connected", func() bool { return h.Part("relay warudo").OK })
	for name, note := range map[string]string{"closed": "nothing listens at", "other": "another program answers",
		"obs": "the program at"} {
		h.Eventually(name+" says what is wrong", func() bool { return strings.Contains(h.Part("relay "+name).Note, note) })
	}
	out := h.command("relay list", 0, "warudo           Warudo               ok    ws://"+works.Address,
		"closed           Warudo               away  nothing listens at ws://", "start the program and switch on its API, or correct url",
		"other            Warudo               away  another program answers at ws://", "obs ")
	if strings.Contains(out, "a secret") {
		t.Errorf("the list shows a secret: %s", out)
	}
	var list []struct {
		OK    bool
		Since time.Time
	}
	if err := json.Unmarshal([]byte(h.command("relay list --json", 0)), &list); err != nil || len(list) != 4 || !list[0].OK || list[1].OK ||
		list[0].Since.IsZero() {
		t.Errorf("as JSON: %+v %v", list, err)
	}
	h.command("relay try warudo --each 100ms", 0, "state thinking", "face happy", "gesture wave", "gesture twirl", "mouth 100 %", "notification",
		"rest")
	for _, want := range []string{`"ponders"`, `{"action":"stackchan.gesture","data":"dance"}`, `{"action":"stackchan.mouth","data":1}`} {
		if len(works.Containing(want)) == 0 {
			t.Errorf("%s was not told", want)
		}
	}
	if all := works.Containing("stackchan.mouth"); all[len(all)-1].Text != `{"action":"stackchan.mouth","data":0}` {
		t.Errorf("its mouth stays open: %+v", all)
	}
	h.command("relay list", 0, "warudo           Warudo               ok    ws://"+works.Address)
	h.command("relay try closed", 1, "the program is not connected")
	h.command("relay try closed", 1, "the program is not connected", "nothing listens at")
	h.command("relay try nobody", 1, "there is no such relay", "nobody")
	h.command("relay try warudo --each 1m", 1, "from 100 to 10000 milliseconds")
	h.command("relay try", 2, "perch relay try")
	h.command("doctor --config "+elsewherePorts(t), 1, "ok    relay warudo        Warudo at ws://",
		"FAIL  relay closed        nothing listens at", "FAIL  relay other         another program answers at",
		"FAIL  relay obs           the program at")
}

// vtube returns a function that responds like VTube Studio with a model without expressions. If popup is true, it does
// not respond to the request for a token, as VTube Studio while its popup waits.
func vtube(popup bool) func(string) string {
	return func(text string) string {
		var m map[string]any
		if json.Unmarshal([]byte(text), &m) != nil {
			return ""
		}
		kind, _ := m["messageType"].(string)
		if popup && kind == "AuthenticationTokenRequest" {
			return ""
		}
		m["messageType"] = strings.TrimSuffix(kind, "Request") + "Response"
		m["data"] = map[string]any{"active": true, "authenticationToken": "a token of VTube Studio", "authenticated": true,
			"modelLoaded": true, "modelName": "Plain", "modelID": "1", "availableHotkeys": []any{}, "expressions": []any{},
			"customParameters": []any{}, "defaultParameters": []any{}}
		answer, err := json.Marshal(m)
		if err != nil {
			return ""
		}
		return string(answer)
	}
}

// TestTheDoctorNamesWhatAnAvatarProgramWaitsFor: the doctor reports a popup of VTube Studio that waits, and a model
// that has no expressions.
func TestTheDoctorNamesWhatAnAvatarProgramWaitsFor(t *testing.T) {
	t.Parallel()
	popup, plain := appliancetest.NewReplyingAvatar(t, "", vtube(true)), appliancetest.NewReplyingAvatar(t, "", vtube(false))
	c := appliancetest.Config()
	c.Relays = []config.Relay{{Kind: "vtube_studio", Name: "popup", URL: "ws://" + popup.Address},
		{Kind: "vtube_studio", Name: "plain", URL: "ws://" + plain.Address}}
	h := open(t, c, t.TempDir())
	h.Eventually("a popup waits", func() bool { return strings.Contains(h.Part("relay popup").Note, "popup") })
	h.Eventually("the model is known", func() bool { return strings.Contains(h.Part("relay plain").Note, "no expressions") })
	out := h.command("doctor --config "+elsewherePorts(t), 1,
		"FAIL  relay popup         VTube Studio at ws://"+popup.Address+" shows a popup", "press Allow there",
		`ok    relay plain         the model "Plain" has no expressions and no hotkeys`)
	if out += h.command("relay list", 0, "press Allow there", "no expressions"); strings.Contains(out, "a token of") {
		t.Errorf("a token is shown: %s", out)
	}
}
