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

// Timer is a timer in an answer.
type Timer struct {
	agent.Timer
	Name string `json:"name,omitempty"` // of its robot
}

func (a *API) timers(now time.Time) []Timer {
	list := []Timer{}
	for _, t := range a.o.Timers.All(now) {
		list = append(list, Timer{t, a.o.Robots.Settings(t.Robot).Name})
	}
	return list
}

// cancelTimer cancels a timer. If it runs on its robot, it is stopped there first, which needs the robot.
func (a *API) cancelTimer(ctx context.Context, id string) error {
	unknown := &httpserver.Fault{Word: "unknown_timer", Sentence: "no timer is set under that id; it may have rung just now", HTTP: http.StatusNotFound}
	all := a.o.Timers.All(time.Now())
	i := slices.IndexFunc(all, func(t agent.Timer) bool { return t.ID == id })
	if i < 0 {
		return unknown
	}
	ctx, cancel := context.WithTimeoutCause(ctx, toolWithin, errToolTimeout)
	defer cancel()
	cancelled, err := a.o.Timers.Cancel(ctx, onRobot{a.o.Talk, all[i].Robot}, all[i].Robot, id)
	if err == nil && cancelled == 0 {
		return unknown
	}
	return err
}

// onRobot implements agent.Body for a robot whose timer is stopped.
type onRobot struct {
	talk  talk
	robot device.ID
}

func (r onRobot) Tools() []device.Tool { return r.talk.Tools(r.robot) }

func (r onRobot) Call(ctx context.Context, tool string, arguments map[string]any) (device.Result, error) {
	return r.talk.Call(ctx, r.robot, tool, arguments)
}

func (r onRobot) Reboot(ctx context.Context) error { return r.talk.Reboot(ctx, r.robot) }
