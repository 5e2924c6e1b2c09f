package vccp

import (
	"encoding/json"
	"errors"
	"math"

	"perch/device"
)

// position is a place in metres as seen from the head: y up, z out of the face,
// x to the character's own left, as VRM has it.
type position struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
	Z float64 `json:"z"`
}

// lookAt is the data of that action. What is looked at is a position either way:
// the protocol gives an object's as well.
type lookAt struct {
	Target struct {
		Type  string    `json:"type"`
		Value *position `json:"value"`
	} `json:"target"`
}

// parseLook reads where to look.
func parseLook(data json.RawMessage) (position, error) {
	var l lookAt
	if err := json.Unmarshal(data, &l); err != nil || l.Target.Value == nil {
		return position{}, errors.New(`lookAt needs {"target":{"type":"position","value":{"x":0,"y":0,"z":1}}}, in metres from the head`)
	}
	if l.Target.Type != "position" && l.Target.Type != "object" {
		return position{}, errors.New("a target's type is position or object")
	}
	p := *l.Target.Value
	if math.Hypot(math.Hypot(p.X, p.Y), p.Z) < 0.001 {
		return position{}, errors.New("the target is in the head itself; there is no looking at it")
	}
	return p, nil
}

// How far a Stack-chan's head turns to a side, in degrees. The robot's own tool
// is more exact, and how far it tilts.
const mostYaw = device.MaxHeadYaw

// angles are those of a head that looks there, in degrees: yaw is negative to
// the robot's own left, pitch is up.
func (p position) angles() (yaw, pitch int) {
	const degrees = 180 / math.Pi
	side := math.Atan2(-p.X, p.Z) * degrees
	if p.X == 0 && p.Z == 0 {
		side = 0 // straight up, wherever the face is
	}
	up := math.Atan2(p.Y, math.Hypot(p.X, p.Z)) * degrees
	return int(math.Round(min(max(side, -mostYaw), mostYaw))), int(math.Round(up))
}
