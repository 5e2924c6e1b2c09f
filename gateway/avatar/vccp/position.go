package vccp

import (
	"encoding/json"
	"errors"
	"math"

	"perch/device"
)

// position is a position in metres relative to the head: y up, z out of the face, x to the
// character's own left, as in VRM.
type position struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
	Z float64 `json:"z"`
}

// lookAt is the data of the action lookAt. The protocol gives a position for an object, too.
type lookAt struct {
	Target struct {
		Type  string    `json:"type"`
		Value *position `json:"value"`
	} `json:"target"`
}

// parseLookAt decodes the data of lookAt.
func parseLookAt(data json.RawMessage) (position, error) {
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

// mostYaw is how far a Stack-chan's head turns to a side, in degrees. The robot's tool checks its
// exact range, and the pitch.
const mostYaw = device.MaxHeadYaw

// angles returns the angles of a head that looks at p, in degrees: yaw is negative to the
// robot's own left, pitch is positive upwards.
func (p position) angles() (yaw, pitch int) {
	const degrees = 180 / math.Pi
	side := math.Atan2(-p.X, p.Z) * degrees
	if p.X == 0 && p.Z == 0 {
		side = 0 // straight up or down
	}
	up := math.Atan2(p.Y, math.Hypot(p.X, p.Z)) * degrees
	return int(math.Round(min(max(side, -mostYaw), mostYaw))), int(math.Round(up))
}
