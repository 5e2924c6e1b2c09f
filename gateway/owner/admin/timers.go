package admin

import (
	"context"
	"encoding/json"
	"fmt"
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

func (a *API) timers(now time.Time) []Timer {
	list := []Timer{}
	for _, t := range a.o.Timers.All(now) {
		list = append(list, Timer{t, a.o.Robots.Settings(t.Robot).Name})
	}
	return list
}

// timerRequest is the body of a request to set a timer.
type timerRequest struct {
	Text    string      `json:"text"`    // what the robot says when the timer rings
	Robot   string      `json:"robot"`   // name, ID or MAC address; "" means any robot
	Seconds json.Number `json:"seconds"` // until the timer rings, at most a day
	At      string      `json:"at"`      // instead of seconds: a time of day such as 18:30, in the configured time zone
	Days    string      `json:"days"`    // with at: the days on which it repeats, such as "mon tue"; "" means once
}

// setTimer sets a timer, a reminder at a time of day, or an alarm that repeats.
func (a *API) setTimer(ctx context.Context, r timerRequest, now time.Time) (Timer, error) {
	now = now.In(a.o.Zone)
	days, err := agent.ParseDays(r.Days)
	t := agent.Timer{Text: r.Text, At: r.At, Days: days, Reminder: r.At != "" && days == 0}
	var body agent.Body
	if r.Robot != "" {
		robot, err := a.adopted(r.Robot)
		if err != nil {
			return Timer{}, err
		}
		t.Robot, body = robot.ID, robotBody{a.o.Talk, robot.ID}
	}
	if err == nil && t.At == "" {
		t.Length, err = timerLength(r.Seconds)
	}
	if err != nil {
		return Timer{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, toolTimeout, errToolTimeout)
	defer cancel()
	t, err = a.o.Timers.Set(ctx, body, t, now)
	return Timer{t, a.o.Robots.Settings(t.Robot).Name}, err
}

// timerLength returns the duration of a timer. An error wraps agent.ErrTimer.
func timerLength(seconds json.Number) (time.Duration, error) {
	n, err := seconds.Float64()
	if err != nil || n < 1 || n > agent.MaxTimer.Seconds() {
		return 0, fmt.Errorf("%w: give seconds from 1 to 86400, or at", agent.ErrTimer)
	}
	return time.Duration(n * float64(time.Second)), nil
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

// robotBody implements agent.Body for the robot on which a timer is set or stopped.
type robotBody struct {
	talk  talk
	robot device.ID
}

func (r robotBody) Tools() []device.Tool { return r.talk.Tools(r.robot) }

func (r robotBody) Call(ctx context.Context, tool string, arguments map[string]any) (device.Result, error) {
	return r.talk.Call(ctx, r.robot, tool, arguments)
}

func (r robotBody) Reboot(ctx context.Context) error { return r.talk.Reboot(ctx, r.robot) }
