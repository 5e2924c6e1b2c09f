package vccp

import (
	"encoding/json"
	"errors"
	"math"

	"perch/device"
)

// position is a position in metres relative to the head, as in VRM: x is to the character's own
// left, y is up, z is the direction of the face.
type position struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
	Z float64 `json:"z"`
}

// lookAt is the data of the action lookAt.
type lookAt struct {
	Target struct {
		Type  string    `json:"type"`  // position or object
		Value *position `json:"value"` // required for an object too
	} `json:"target"`
}

// parseLookAt decodes the data of the action lookAt.
func parseLookAt(data json.RawMessage) (position, error) {
	var l lookAt
	if err := json.Unmarshal(data, &l); err != nil || l.Target.Value == nil {
		return position{}, errors.New(`lookAt needs {"target":{"type":"position","value":{"x":0,"y":0,"z":1}}}, in metres from the head`)
	}
	if l.Target.Type != "position" && l.Target.Type != "object" {
		return position{}, errors.New("the type of a target must be position or object")
	}
	p := *l.Target.Value
	if math.Hypot(math.Hypot(p.X, p.Y), p.Z) < 0.001 {
		return position{}, errors.New("the target is inside the head, so it has no direction")
	}
	return p, nil
}

// maxYaw is the largest yaw of a Stack-chan's head to either side, in degrees. robotControl.Call limits
// yaw and pitch to the range of the robot's tool.
const maxYaw = device.MaxHeadYaw

// angles returns the angles of a head that looks at p, in degrees. yaw is negative to the robot's
// own left; pitch is positive upwards.
func (p position) angles() (yaw, pitch int) {
	const degrees = 180 / math.Pi
	exactYaw := math.Atan2(-p.X, p.Z) * degrees
	if p.X == 0 && p.Z == 0 {
		exactYaw = 0 // straight up or down
	}
	exactPitch := math.Atan2(p.Y, math.Hypot(p.X, p.Z)) * degrees
	return int(math.Round(min(max(exactYaw, -maxYaw), maxYaw))), int(math.Round(exactPitch))
}
