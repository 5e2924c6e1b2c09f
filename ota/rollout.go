package ota

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"perch/device"
)

// Rollout selects the robots that are offered an image, and when. With the zero value it is
// only installed by hand.
type Rollout struct {
	Boards  []string     `json:"boards"`           // a subset of the image's; empty is all of them
	Robots  []device.ID  `json:"robots,omitempty"` // empty is all of those boards
	Percent int          `json:"percent"`          // of the robots, 0 to 100: always the same ones, plus others as it rises
	Hours   device.Hours `json:"hours,omitzero"`   // when it is offered; zero is the whole day
	Auto    bool         `json:"auto"`             // else each robot waits for Install
	Force   bool         `json:"force,omitempty"`  // even if older than the running image, once per robot
	Paused  bool         `json:"paused,omitempty"` // offered to nobody until it is resumed
}

// Limits of a rollout.
const (
	mostBoards = 32
	mostChosen = 1000
)

// ParseRollout parses a rollout's JSON: {boards, robots?, percent, hours?: "02:00-05:00",
// auto, force?, paused?}. The default percent is 100. Errors have a code and a status.
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
		return Rollout{}, badRollout("it is not the JSON object that belongs here: %v", err)
	}
	r := Rollout{Boards: b.Boards, Percent: b.Percent, Auto: b.Auto, Force: b.Force, Paused: b.Paused}
	if r.Percent < 0 || r.Percent > 100 {
		return Rollout{}, badRollout("percent is a number from 0 to 100, not %d", r.Percent)
	}
	if len(b.Boards) > mostBoards || len(b.Robots) > mostChosen {
		return Rollout{}, badRollout("it names more than %d boards or %d robots", mostBoards, mostChosen)
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

func badRollout(format string, values ...any) error {
	return &fault{"bad_rollout", http.StatusBadRequest, errors.New("the rollout: " + fmt.Sprintf(format, values...))}
}

// reaches returns why an image is not for a robot now, or "". It ignores the robot's own
// report and earlier offers.
func (r Rollout) reaches(sha string, robot device.ID, board string, at time.Time) string {
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
		return "it is not the hour"
	case !r.Auto:
		return "it waits to be installed by hand"
	}
	return ""
}

// onlyPaused reports whether plan only pauses or resumes r.
func (r Rollout) onlyPaused(plan Rollout) bool {
	return r.Paused != plan.Paused && slices.Equal(r.Boards, plan.Boards) && slices.Equal(r.Robots, plan.Robots) &&
		r.Percent == plan.Percent && r.Hours == plan.Hours && r.Auto == plan.Auto && r.Force == plan.Force
}

// share returns a robot's place from 0 to 99 for an image. It is constant, so that a growing
// rollout keeps its robots, and differs between images, so that other robots are the first
// each time.
func share(sha string, robot device.ID) int {
	sum := sha256.Sum256([]byte(sha + "\n" + string(robot)))
	return int(binary.BigEndian.Uint64(sum[:]) % 100)
}
