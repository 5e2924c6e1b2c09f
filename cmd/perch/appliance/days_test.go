package appliance_test

import (
	"net/http"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
	"perch/gateway/owner/daily"
)

// TestDays checks that turns of a robot are counted, that the counts are kept across a restart, and that they are
// deleted with the robot.
func TestDays(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	h := appliancetest.Start(t, appliancetest.Config(), data)
	h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it")}).CheckComplete(t)
	days := func() []daily.Day {
		var week daily.Week
		h.Admin(http.MethodGet, "/api/v1/days", "{}", &week)
		return week.Days
	}
	h.Eventually("the turn is counted", func() bool { return len(days()) == 1 && len(days()[0].Talks) == 1 })
	if d := days()[0]; d.Robot != "a0b1c2d3e4f5" || d.Waits["first_packet"].Turns != 1 {
		t.Errorf("counted %+v", d)
	}
	h.Stop()
	h = appliancetest.Start(t, appliancetest.Config(), data)
	if got := days(); len(got) != 1 || len(got[0].Talks) != 1 {
		t.Errorf("after a restart: %+v", got)
	}
	h.Admin(http.MethodDelete, "/api/v1/devices/a0b1c2d3e4f5", "{}", nil)
	if got := days(); len(got) != 0 {
		t.Errorf("after the robot was forgotten: %+v", got)
	}
}

// TestStrangersAreNotCounted checks that turns of a robot that is not adopted are not counted.
func TestStrangersAreNotCounted(t *testing.T) {
	t.Parallel()
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	h.Robots.Welcome(time.Time{}) // ends the time in which robots are adopted automatically
	h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it")}).CheckComplete(t)
	var week daily.Week
	h.Admin(http.MethodGet, "/api/v1/days", "{}", &week)
	if len(week.Days) > 0 {
		t.Errorf("counted %+v", week.Days)
	}
}
