package admin

import (
	"context"
	"net/http"
	"slices"
	"time"

	"perch/agent"
	"perch/device"
	"perch/gateway/httpserver"
)

// Timer is a timer in a response.
type Timer struct {
	agent.Timer
	Name string `json:"name,omitempty"` // name of the robot
}

// timers returns all timers.
func (a *API) timers(now time.Time) []Timer {
	list := []Timer{}
	for _, t := range a.o.Timers.All(now) {
		list = append(list, Timer{t, a.o.Robots.Settings(t.Robot).Name})
	}
	return list
}

// cancelTimer cancels a timer. A timer that runs on a robot is first stopped there, which fails if the robot is not
// connected.
func (a *API) cancelTimer(ctx context.Context, id string) error {
	unknown := &httpserver.Fault{Word: "unknown_timer", Sentence: "no timer is set under that id; it may have rung just now", HTTP: http.StatusNotFound}
	timers := a.o.Timers.All(time.Now())
	i := slices.IndexFunc(timers, func(t agent.Timer) bool { return t.ID == id })
	if i < 0 {
		return unknown
	}
	ctx, cancel := context.WithTimeoutCause(ctx, toolTimeout, errToolTimeout)
	defer cancel()
	cancelled, err := a.o.Timers.Cancel(ctx, robotBody{a.o.Talk, timers[i].Robot}, timers[i].Robot, id)
	if err == nil && cancelled == 0 {
		return unknown
	}
	return err
}

// robotBody implements agent.Body for the robot on which a timer has to be stopped.
type robotBody struct {
	talk  talk
	robot device.ID
}

func (r robotBody) Tools() []device.Tool { return r.talk.Tools(r.robot) }

func (r robotBody) Call(ctx context.Context, tool string, arguments map[string]any) (device.Result, error) {
	return r.talk.Call(ctx, r.robot, tool, arguments)
}

func (r robotBody) Reboot(ctx context.Context) error { return r.talk.Reboot(ctx, r.robot) }
