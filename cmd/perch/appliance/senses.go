package appliance

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/bridge"
	"perch/gateway/robot"
	"perch/perception"
)

// senses are what robots sense: what comes in, and what is known of it, as the
// bridge and the agent are shown it.
type senses struct {
	intake *perception.Intake
	Board  *perception.States
}

func (s senses) Sense(_ context.Context, robot device.ID, name string, data json.RawMessage) error {
	return s.intake.FromProgram(string(robot), name, data)
}

func (s senses) States(now time.Time) (states map[device.ID]any, seq uint64) {
	all, seq := s.Board.Snapshot(now)
	states = make(map[device.ID]any, len(all))
	for _, one := range all {
		one.Recent = nil // they have an address of their own
		states[one.Robot] = one
	}
	return states, seq
}

func (s senses) Recent(robot device.ID, most int) (recent []bridge.Sensed, known bool) {
	if !slices.Contains(s.Board.Known(), robot) {
		return nil, false
	}
	for _, r := range slices.Backward(s.Board.Robot(robot, time.Now()).Recent) {
		if len(recent) == most {
			break
		}
		recent = append(recent, bridge.Sensed{Robot: robot, At: r.At, Name: r.Name, Data: r.Data})
	}
	return recent, true
}

// Who is before a robot.
func (s senses) Who(robot device.ID, now time.Time) string { return s.Board.Robot(robot, now).Who(now) }

// Senses are what a robot notices, in words.
func (s senses) Senses(robot device.ID, now time.Time) []string {
	return s.Board.Robot(robot, now).Senses(now)
}

// Perception is what an agent may know of a robot's senses: the latest events and
// not all fifty.
func (s senses) Perception(robot device.ID, now time.Time) any {
	const latest = 10
	one := s.Board.Robot(robot, now)
	one.Recent = one.Recent[max(0, len(one.Recent)-latest):]
	return one
}

// ownedRobots are the robots as their owner adopts and forgets them, which is
// published. With one that is forgotten goes what it has sensed, and what was
// said to it: another may come with its MAC.
type ownedRobots struct {
	*device.Registry
	talk   *robot.Server
	sensed *perception.States
	mind   *agent.Mind
	memory *agent.Memory
	bus    *event.Bus

	characters *characters
}

// Configure sets what the engines support, and publishes a new name.
func (r ownedRobots) Configure(id device.ID, c device.Change) (device.Robot, error) {
	if c.Persona != nil && strings.TrimSpace(*c.Persona) == agent.DefaultCharacter {
		c.Persona = new("") // the household's is that of a robot without its own
	}
	if err := r.characters.check(c); err != nil {
		return device.Robot{}, err
	}
	before := r.Settings(id).Name
	robot, err := r.Registry.Configure(id, c)
	if err != nil {
		return robot, err
	}
	if robot.Settings.Name != before {
		r.bus.Publish(id, "", event.RobotRenamed{Name: robot.Settings.Name})
	}
	r.bus.Publish(id, "", event.Changed{What: "robot"})
	return robot, nil
}

// Adopt is Registry.Adopt. The client that was there in the robot's place is disconnected.
func (r ownedRobots) Adopt(idOrCode string, now time.Time) (device.Robot, error) {
	return r.adopt(func() (device.Robot, error) { return r.Registry.Adopt(idOrCode, now) })
}

// AdoptClient is Registry.AdoptClient, as Adopt.
func (r ownedRobots) AdoptClient(id device.ID, client string) (device.Robot, error) {
	return r.adopt(func() (device.Robot, error) { return r.Registry.AdoptClient(id, client) })
}

func (r ownedRobots) adopt(adopt func() (device.Robot, error)) (device.Robot, error) {
	before := r.List()
	robot, err := adopt()
	if err != nil {
		return robot, err
	}
	i := slices.IndexFunc(before, func(was device.Robot) bool { return was.ID == robot.ID })
	if i >= 0 && before[i].Bound && before[i].Client != robot.Client {
		// The client that was connected in its place is disconnected first; a stranger's
		// conversation is deleted.
		ctx, cancel := context.WithTimeout(context.Background(), hangUpWithin) // the client may disconnect
		defer cancel()
		_ = r.talk.Hangup(ctx, robot.ID, "adopted anew") // it may not be connected
		if !before[i].Adopted() {
			r.memory.Dismiss(robot.ID)
			err = r.mind.Forget(string(robot.ID))
		}
	}
	r.bus.Publish(robot.ID, "", event.RobotAdopted{})
	return robot, err
}

// hangUpWithin bounds the closing of a session.
const hangUpWithin = 5 * time.Second

// CheckIn deletes the conversations of strangers that are displaced: another robot
// may come with the same MAC.
func (r ownedRobots) CheckIn(c device.CheckIn, now time.Time) (device.Robot, device.Admission) {
	robot, a := r.Registry.CheckIn(c, now)
	for _, id := range a.Gone {
		r.memory.Dismiss(id)
		r.mind.Dismiss(string(id))
	}
	return robot, a
}

func (r ownedRobots) Replace(id device.ID, client string) (device.Robot, error) {
	robot, err := r.Registry.Replace(id, client)
	if err == nil { // until it is adopted it is another robot, of which nothing is known
		err = r.removed(id)
	}
	return robot, err
}

func (r ownedRobots) Forget(id device.ID) error {
	if err := r.Registry.Forget(id); err != nil {
		return err
	}
	return r.removed(id)
}

func (r ownedRobots) ForgetStrangers() ([]device.ID, error) {
	gone, err := r.Registry.ForgetStrangers()
	for _, id := range gone {
		err = errors.Join(err, r.removed(id))
	}
	return gone, err
}

func (r ownedRobots) removed(id device.ID) error {
	r.sensed.Forget(id)
	r.memory.Dismiss(id)
	r.bus.Publish(id, "", event.RobotForgotten{})
	return r.mind.Forget(string(id))
}
