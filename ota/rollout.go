package ota

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"perch/device"
)

// Rollout selects the robots that an image is offered to, and when. With the zero value, an
// image is offered only to robots that the owner has chosen with Firmware.Install.
type Rollout struct {
	Boards  []string     `json:"boards"`           // a subset of the image's boards; empty means all of them
	Robots  []device.ID  `json:"robots,omitempty"` // empty means all robots with these boards
	Percent int          `json:"percent"`          // percentage of these robots; raising it adds robots and removes none
	Hours   device.Hours `json:"hours,omitzero"`   // when the image is offered; zero means the whole day
	Auto    bool         `json:"auto"`             // offer the image; if false, robots wait for Firmware.Install
	Force   bool         `json:"force,omitempty"`  // offer the image also to robots whose image is as new or newer, once per robot
	Paused  bool         `json:"paused,omitempty"` // do not offer the image, except after Firmware.Install
}

// Limits of a rollout.
const (
	maxBoards = 32
	maxRobots = 1000 // in Rollout.Robots
)

// ParseRollout parses the JSON of a rollout: {boards, robots?, percent, hours?: "02:00-05:00",
// auto, force?, paused?}. The default percent is 100. find returns the ID of the robot with a
// name or MAC address. The error is a *httpserver.Fault.
func ParseRollout(body []byte, find func(robot string) (device.ID, error)) (Rollout, error) {
	b := struct {
		Boards  []string `json:"boards"`
		Robots  []string `json:"robots"`
		Percent int      `json:"percent"`
		Hours   string   `json:"hours"`
		Auto    bool     `json:"auto"`
		Force   bool     `json:"force"`
		Paused  bool     `json:"paused"`
	}{Percent: 100}
	if err := json.Unmarshal(body, &b); err != nil {
		return Rollout{}, badRollout("it is not the expected JSON object: %v", err)
	}
	r := Rollout{Boards: b.Boards, Percent: b.Percent, Auto: b.Auto, Force: b.Force, Paused: b.Paused}
	if r.Percent < 0 || r.Percent > 100 {
		return Rollout{}, badRollout("percent is a number from 0 to 100, not %d", r.Percent)
	}
	if len(b.Boards) > maxBoards || len(b.Robots) > maxRobots {
		return Rollout{}, badRollout("it names more than %d boards or %d robots", maxBoards, maxRobots)
	}
	for _, text := range b.Robots {
		id, err := find(text)
		if err != nil {
			return Rollout{}, badRollout("robots: %v", err)
		}
		r.Robots = append(r.Robots, id)
	}
	var err error
	if r.Hours, err = device.ParseHours(b.Hours); err != nil {
		return Rollout{}, badRollout("hours are two times of the day, as in 02:00-05:00, not %q", clip(b.Hours))
	}
	return r, nil
}

// badRollout returns a *httpserver.Fault for an invalid rollout.
func badRollout(format string, values ...any) error {
	return refuse("bad_rollout", http.StatusBadRequest, "the rollout: "+format, values...)
}

// reasonAgainst returns why the rollout does not offer an image to a robot at a time, or "" if
// the rollout offers the image. Unit.reasonAgainst also considers the robot's facts and earlier offers.
func (r Rollout) reasonAgainst(sha string, robot device.ID, board string, at time.Time) string {
	switch {
	case r.Paused:
		return "the rollout is paused"
	case len(r.Boards) > 0 && !slices.Contains(r.Boards, board):
		return "its board is not in the rollout"
	case len(r.Robots) > 0 && !slices.Contains(r.Robots, robot):
		return "it is not among the robots of the rollout"
	case share(sha, robot) >= r.Percent:
		return "it is not in the rollout's share"
	case r.Hours != (device.Hours{}) && !r.Hours.Contains(at):
		return "it is outside of the rollout's hours"
	case !r.Auto:
		return "it waits to be installed by hand"
	}
	return ""
}

// differsOnlyInPaused reports whether plan only pauses or resumes r.
func (r Rollout) differsOnlyInPaused(plan Rollout) bool {
	return r.Paused != plan.Paused && slices.Equal(r.Boards, plan.Boards) && slices.Equal(r.Robots, plan.Robots) &&
		r.Percent == plan.Percent && r.Hours == plan.Hours && r.Auto == plan.Auto && r.Force == plan.Force
}

// share returns a number from 0 to 99 for an image and a robot. A rollout includes the robot if
// its percentage is higher than this number. The number depends on the image, because otherwise
// the same robots would be the first in every rollout.
func share(sha string, robot device.ID) int {
	sum := sha256.Sum256([]byte(sha + "\n" + string(robot)))
	return int(binary.BigEndian.Uint64(sum[:]) % 100)
}
