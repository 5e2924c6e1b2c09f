package admin_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/device"
	"perch/gateway/owner/admin"
	"perch/must"
)

// TestTimers checks that the timers of all robots are listed, the next one first, and that a timer can be cancelled.
func TestTimers(t *testing.T) {
	h := newAppliance(t)
	h.adopts(t, robotA, "one")
	name := "kitchen"
	must.Value(h.robots.Configure(robotA, device.Change{Name: &name}))(t)
	h.wants(t, http.MethodGet, "/api/v1/timers", "", http.StatusOK, "=[]")
	now := time.Now()
	for _, timer := range []agent.Timer{
		{ID: "pizza", Robot: robotB, Text: "<i>Pizza</i>", Length: time.Hour},
		{ID: "tea", Robot: robotA, Text: "Tea is ready.", Length: time.Minute},
		{ID: "bins", Text: "Bins", At: now.Add(2 * time.Hour).Format("15:04"), Reminder: true},
	} {
		must.Value(h.timers.Set(t.Context(), nil, timer, now))(t)
	}
	all := get[[]admin.Timer](t, h, "/api/v1/timers")
	if len(all) != 3 || all[0].ID != "tea" || all[0].Name != "kitchen" || all[1].Text != "<i>Pizza</i>" || all[1].Name != "" || !all[2].Reminder ||
		all[0].Due.Sub(now).Abs() > 2*time.Minute {
		t.Errorf("%+v", all)
	}
	for _, c := range []struct {
		id     string
		status int
		answer string
	}{{"tea", 200, `{"ok":true}`}, {"tea", 404, `"unknown_timer"`}, {"bins", 200, `{"ok":true}`}, {"nothing", 404, `"unknown_timer"`}} {
		h.wants(t, http.MethodDelete, "/api/v1/timers/"+c.id, "", c.status, c.answer)
	}
	if all := get[[]admin.Timer](t, h, "/api/v1/timers"); len(all) != 1 || all[0].ID != "pizza" {
		t.Errorf("left are %+v", all)
	}
}

// TestSetTimer checks timers with a duration, at a time of day and on days of the week in the configured time zone, and the errors for
// invalid requests.
func TestSetTimer(t *testing.T) {
	kathmandu := time.FixedZone("Kathmandu", 5*3600+45*60)
	h := newAppliance(t, func(o *admin.Options) { o.Zone = kathmandu })
	h.adopts(t, robotA, "one")
	h.visit(t, robotB, "two")
	now := time.Now()
	soon := now.In(kathmandu).Add(90 * time.Minute).Truncate(time.Minute)
	h.wants(t, http.MethodPost, "/api/v1/timers", `{"text":"Tea is ready.","robot":"A0:B1:C2:D3:E4:F5","seconds":600}`, http.StatusCreated, `"length":600000000000`)
	h.wants(t, http.MethodPost, "/api/v1/timers", `{"text":"Bins","at":"`+soon.Format("15:04")+`"}`, http.StatusCreated, `"reminder":true`)
	h.wants(t, http.MethodPost, "/api/v1/timers", `{"text":"Up!","at":"07:00","days":"tue mon","robot":"`+string(robotA)+`"}`, http.StatusCreated,
		`"at":"07:00","days":"mon tue"`)
	all := slices.DeleteFunc(get[[]admin.Timer](t, h, "/api/v1/timers"), func(t admin.Timer) bool { return t.Days != 0 && !t.Reminder })
	if len(all) != 2 || all[0].Robot != robotA || all[0].Due.Sub(now).Round(time.Minute) != 10*time.Minute || !all[1].Due.Equal(soon) {
		t.Errorf("%+v", all)
	}
	for body, want := range map[string]struct {
		status int
		text   string
	}{
		`{"text":"Tea"}`:                                               {400, "bad_timer"},
		`{"text":"Tea","seconds":0}`:                                   {400, "bad_timer"},
		`{"text":"Tea","seconds":"soon"}`:                              {400, "bad_body"},
		`{"text":"Tea","seconds":86401}`:                               {400, "bad_timer"},
		`{"text":"Tea","at":"25:00"}`:                                  {400, "bad_timer"},
		`{"text":"Tea","at":"7:00","days":"every day"}`:                {400, "bad_timer"},
		`{"text":"Tea","seconds":60,"days":"mon"}`:                     {400, "bad_timer"},
		`{"text":" ","seconds":60}`:                                    {400, "no text"},
		`{"text":"Tea","seconds":60,"robot":"nobody"}`:                 {400, "bad_robot_id"},
		`{"text":"Tea","seconds":60,"robot":"` + string(robotB) + `"}`: {409, "not_adopted"},
		`{"text":"` + strings.Repeat("x", 301) + `","seconds":5}`:      {400, "301 bytes"},
	} {
		h.wants(t, http.MethodPost, "/api/v1/timers", body, want.status, want.text)
	}
	for range 20 {
		h.ask(http.MethodPost, "/api/v1/timers", `{"text":"Tea","seconds":60}`)
	}
	h.wants(t, http.MethodPost, "/api/v1/timers", `{"text":"Tea","seconds":60}`, http.StatusConflict, "too_many_timers")
}

// TestCancelTimerOnRobot checks that a timer that runs on a robot is stopped there, and is kept if that fails.
func TestCancelTimerOnRobot(t *testing.T) {
	h := newAppliance(t)
	h.adopts(t, robotA, "one")
	least, most := 1, 86400
	h.talk.tools = []device.Tool{
		{Name: "self.robot.create_reminder", Schema: device.Schema{Properties: map[string]device.Argument{
			"duration_seconds": {Type: "integer", Minimum: &least, Maximum: &most}}}},
		{Name: "self.robot.stop_reminder", Schema: device.Schema{Properties: map[string]device.Argument{"id": {Type: "integer"}}}},
	}
	h.talk.result = device.Result{Text: "7"}
	set, err := h.timers.Set(t.Context(), bodyHandler{h.talk}, agent.Timer{ID: "tea", Robot: robotA, Text: "Tea", Length: time.Hour}, time.Now())
	if err != nil || !set.OnRobot {
		t.Fatal(set, err)
	}
	h.talk.err = errors.New("hung up")
	h.wants(t, http.MethodDelete, "/api/v1/timers/tea", "", http.StatusConflict, `"timer_on_robot"`)
	if len(get[[]admin.Timer](t, h, "/api/v1/timers")) != 1 {
		t.Error("a timer that the robot will ring is gone")
	}
	h.talk.err = nil
	h.wants(t, http.MethodDelete, "/api/v1/timers/tea", "", http.StatusOK, "")
	if last := h.talk.asked[len(h.talk.asked)-1]; last != `call a0b1c2d3e4f5 self.robot.stop_reminder {"id":7}` ||
		slices.Contains(h.talk.asked, "reboot a0b1c2d3e4f5") {
		t.Errorf("the robot is asked %q", h.talk.asked)
	}
}
