// Package command parses what is published on the command topics of robots and agents and on the
// request topics of the bridge, and carries it out.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/perception"
)

// Services are what commands and requests act on.
type Services struct {
	Robots   registry
	Talk     talk
	Notifier notifier
	Senses   intake
	Firmware catalogue
	Gestures perception.Gestures // that robots can be asked for; without any, no entity offers them
	Board    *agent.Board
	Bus      *event.Bus
	// Phrase returns one of the appliance's own sentences, by its name, in a robot's language.
	Phrase func(id device.ID, name string) string
}

// registry knows the robots.
type registry interface {
	List() []device.Robot
	Get(id device.ID) (device.Robot, error)
	// Find returns the robot with a MAC address or a name.
	Find(robot string) (device.ID, error)
	Configure(id device.ID, c device.Change) (device.Robot, error)
	// Trusts reports whether the robot's owner has adopted it by name. Any other is a stranger.
	Trusts(id device.ID) bool
	Adopt(idOrCode string, now time.Time) (device.Robot, error)
	// AdoptClient adopts one of several clients that claim a robot, by its Client-Id or address.
	AdoptClient(id device.ID, client string) (device.Robot, error)
	Forget(id device.ID) error
}

// talk acts on robots. Sentences and alerts for a robot that is offline are stored for its next
// hello, and queued is true; other acts fail with an error for which Offline is true.
type talk interface {
	// SayKept has a robot speak a sentence, and returns once the sentence cannot be lost.
	SayKept(ctx context.Context, id device.ID, text string) (queued bool, err error)
	Alert(ctx context.Context, id device.ID, status, message, emotion string) (queued bool, err error)
	Feel(ctx context.Context, id device.ID, e agent.Emotion) error
	Mute(id device.ID, on bool)
	Abort(ctx context.Context, id device.ID) error
	Hangup(ctx context.Context, id device.ID, why string) error
	Reboot(ctx context.Context, id device.ID) error
	// Tools returns the tools of an open channel, or else those last known.
	Tools(id device.ID) []device.Tool
	Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error)
}

// notifier accepts notifications, and has them shown and spoken.
type notifier interface {
	Notify(n notice.Notification) (notice.Notification, error)
}

// intake accepts what other programs report that a robot has sensed.
type intake interface {
	FromBroker(id device.ID, name string, data json.RawMessage) error
}

// catalogue has firmware for robots. Its errors are sentences for the robot's owner.
type catalogue interface {
	// Update returns the version that a robot runs and the newest that it could run, which is the
	// same if there is no newer one. Both are empty for a robot that the catalogue does not know.
	Update(id device.ID) (installed, latest string)
	// Install offers a robot an image at its next check-in: the one with a SHA-256, or the newest.
	// The robot can download it at once from the appliance's address and the returned path.
	Install(id device.ID, sha256 string, now time.Time) (path string, err error)
	// Fetch downloads an image for a board into the catalogue, which may take minutes.
	Fetch(ctx context.Context, from, sha256, board string, now time.Time) (version string, err error)
	// Forget removes what is known of a robot.
	Forget(id device.ID) error
}

// Offline reports whether an error means that a robot's channel is closed.
func Offline(err error) bool {
	var c interface{ Code() string }
	return errors.As(err, &c) && c.Code() == "robot_offline"
}
