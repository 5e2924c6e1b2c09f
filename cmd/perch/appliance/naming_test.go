package appliance_test

import (
	"net/http"
	"strings"
	"testing"

	"perch/agent"
	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
)

// TestAdoptedRobotAsksForItsName checks that an adopted robot proposes a name after its first turn, and gets the name
// if the owner agrees.
func TestAdoptedRobotAsksForItsName(t *testing.T) {
	t.Parallel()
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	const mac, id = "A0:B1:C2:D3:E4:F5", "a0b1c2d3e4f5"
	h.Adopt(mac)
	h.Admin(http.MethodPost, "/api/v1/adopt", `{"robot":"`+id+`"}`, nil)
	h.StartRobot(simrobot.Options{MAC: mac, Say: appliancetest.Sentences(t, "what time is it"), Stay: true})
	var questions []agent.Question
	h.Eventually("it asks for its name", func() bool {
		h.Admin(http.MethodGet, "/api/v1/permissions", "", &questions)
		return len(questions) == 1 && strings.Contains(questions[0].Text, "What shall I be called? How about Momo?")
	})
	h.Admin(http.MethodPost, "/api/v1/permissions/"+questions[0].ID, `{"allow":true}`, nil)
	h.Eventually("it has its name", func() bool { return h.Robots.Settings(id).Name == "Momo" })
}

// TestRobotsAskForDifferentNames checks that two robots do not propose the same name.
func TestRobotsAskForDifferentNames(t *testing.T) {
	t.Parallel()
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	for _, mac := range []string{"A0:B1:C2:D3:E4:F5", "A0:B1:C2:D3:E4:F6"} {
		h.Adopt(mac)
		h.Admin(http.MethodPost, "/api/v1/adopt", `{"robot":"`+mac+`"}`, nil)
		h.StartRobot(simrobot.Options{MAC: mac, Say: appliancetest.Sentences(t, "what time is it"), Stay: true})
	}
	var questions []agent.Question
	h.Eventually("both ask for their names", func() bool {
		h.Admin(http.MethodGet, "/api/v1/permissions", "", &questions)
		return len(questions) == 2
	})
	if questions[0].Text == questions[1].Text {
		t.Errorf("both ask %q", questions[0].Text)
	}
}
