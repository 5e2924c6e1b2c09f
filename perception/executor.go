package perception

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"perch/device"
	"perch/event"
)

// Time limits of acts.
const (
	maxActDelay     = 2 * time.Second  // an act that has waited longer is dropped
	maxPatientDelay = time.Minute      // like maxActDelay, for an act whose request is patient (see request)
	actTimeout      = 15 * time.Second // for the execution of one act
)

// executor executes the acts of behaviours. The acts of one robot are executed in order.
type executor struct {
	o        Options
	robots   robots
	services services
	movedAt  func(device.ID) time.Time // returns when an agent or a client last moved the head

	lanes   device.Lanes
	mu      sync.Mutex
	failing map[failure]bool // failures that have been logged; guarded by mu
}

// failure identifies the failures of one behaviour of one robot. After one of them was logged,
// no other is logged until an act of the behaviour succeeds.
type failure struct {
	robot device.ID
	by    string // name of the behaviour
}

func newExecutor(r robots, s services, movedAt func(device.ID) time.Time, o Options) *executor {
	return &executor{o: o, robots: r, services: s, movedAt: movedAt, failing: map[failure]bool{}}
}

// enqueue queues the requested acts of a robot. Acts that exceed the length of the queue
// are dropped.
func (h *executor) enqueue(ctx context.Context, id device.ID, now time.Time, requests []request) {
	for _, r := range requests {
		if !h.lanes.Add(ctx, id, device.Job{Do: func(ctx context.Context) { h.executeInTime(ctx, id, r, now) }}) {
			h.logOnce(failure{id, r.by}, fmt.Errorf("%d acts are already waiting", device.MaxJobs))
		}
	}
}

// executeInTime executes a request that was queued at the time queued. It drops a request that
// has waited too long, and a turn of the head if an agent or a client has moved the head since
// queued.
func (h *executor) executeInTime(ctx context.Context, id device.ID, r request, queued time.Time) {
	maxDelay := maxActDelay
	if r.patient {
		maxDelay = maxPatientDelay
	}
	_, turns := r.act.(TurnHead)
	overruled := turns && h.movedAt(id).After(queued)
	if time.Since(queued) <= maxDelay && !overruled {
		h.logOnce(failure{id, r.by}, h.execute(ctx, id, r))
	}
}

// logOnce logs err, unless an error of f has been logged since the last call with a nil error. A
// nil error means that an act has succeeded.
func (h *executor) logOnce(f failure, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		delete(h.failing, f)
		return
	}
	if !h.failing[f] {
		h.o.Log.Warn("a behaviour could not act", "behaviour", f.by, "robot", f.robot, "err", err)
	}
	h.failing[f] = true
}

// text returns the text that an act speaks: in the robot's language if it is a text of
// DefaultTuning, and with {name} replaced.
func (h *executor) text(id device.ID, a Say) string {
	text := a.Text
	if name := defaultPhrases()[text]; a.Translated && name != "" && h.o.Phrase != nil {
		text = h.o.Phrase(id, name)
	}
	if a.Person != "" {
		text = strings.ReplaceAll(text, "{name}", a.Person)
	}
	return text
}

// defaultPhrases maps the texts of DefaultTuning to the names of their phrases.
func defaultPhrases() map[string]string {
	t := DefaultTuning()
	return map[string]string{t.Greeter.Hello: "hello", t.Greeter.Named: "hello_named", t.Dance.Text: "danced"}
}

// Names of the firmware's tools that execute acts.
const (
	headTool  = "self.robot.set_head_angles"
	lightTool = "self.robot.set_led_color"
	faceTool  = "self.robot.set_face_identified"
	stateTool = "self.robot.set_state"
)

// execute executes one act, for at most actTimeout.
func (h *executor) execute(ctx context.Context, id device.ID, r request) (err error) {
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
	switch a := r.act.(type) {
	case Say:
		_, err = h.robots.Speak(ctx, id, h.text(id, a))
	case Look:
		h.o.Bus.Publish(id, "", event.LookAt{Target: a.Target, By: event.ByRobot})
	case Abort:
		err = h.robots.Abort(ctx, id)
	case Play:
		err = h.robots.Play(ctx, id, a.Sound)
	case TurnHead:
		err = h.turnHead(ctx, id, r.by, a)
	case FindHead:
		err = h.findHead(ctx, id, r.by)
	case Lights:
		_, err = h.call(ctx, id, lightTool, map[string]any{"red": a.Red, "green": a.Green, "blue": a.Blue})
	case RefreshFace:
		_, err = h.call(ctx, id, faceTool, nil)
	case SetState:
		_, err = h.call(ctx, id, stateTool, map[string]any{"state": a.State})
	case CallTool:
		_, err = h.call(ctx, id, a.Name, a.Arguments)
	case Feel:
		err = h.services.Feel(ctx, id, a.Emotion)
	case Publish:
		err = h.services.Publish(ctx, a.Topic, a.Payload)
	case Notify:
		err = h.services.Notify(ctx, id, a.Text, !a.Silent)
	}
	return err
}

// turnHead turns the head and publishes the turn.
func (h *executor) turnHead(ctx context.Context, id device.ID, by string, a TurnHead) error {
	arguments := map[string]any{"yaw": a.Yaw, "speed": a.Speed}
	data := map[string]any{"yaw": a.Yaw, "by": by}
	if a.Pitch != nil {
		arguments["pitch"], data["pitch"] = *a.Pitch, *a.Pitch
	}
	turned, err := h.call(ctx, id, headTool, arguments)
	if err != nil || !turned {
		return err
	}
	h.publishTurn(id, data)
	return nil
}

// findHead asks a robot for the position of its head and publishes the position as a turn.
// Nothing is published if the robot cannot report its angles.
func (h *executor) findHead(ctx context.Context, id device.ID, by string) error {
	tool, ok := device.FindAngles(h.robots.Tools(id))
	if !ok {
		return nil
	}
	result, err := h.robots.Call(ctx, id, tool.Name, map[string]any{})
	if err != nil {
		return fmt.Errorf("call %s: %w", tool.Name, err)
	}
	var position struct{ Yaw, Pitch *float64 }
	if json.Unmarshal([]byte(result.Text), &position) != nil || position.Yaw == nil || position.Pitch == nil {
		return nil
	}
	clamp := func(angle, lower, upper float64) int { return int(min(max(angle, lower), upper)) }
	h.publishTurn(id, map[string]any{"by": by, "yaw": clamp(*position.Yaw, -device.MaxHeadYaw, device.MaxHeadYaw),
		"pitch": clamp(*position.Pitch, 0, device.FirmwareHeadPitch)})
	return nil
}

// publishTurn publishes a turn of the head by a behaviour.
func (h *executor) publishTurn(id device.ID, data map[string]any) {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // impossible for numbers and a text
	}
	h.o.Bus.Publish(id, "", event.Perceived{Name: headTurn, Data: text})
}

// call calls a tool with the arguments fitted to the tool's schema. called is false if the robot
// does not have the tool, or after an error.
func (h *executor) call(ctx context.Context, id device.ID, name string, arguments map[string]any) (called bool, err error) {
	tool, ok := device.FindTool(h.robots.Tools(id), name)
	if !ok {
		return false, nil
	}
	fitted, err := tool.Fit(arguments)
	if err != nil {
		return false, err
	}
	if _, err := h.robots.Call(ctx, id, tool.Name, fitted); err != nil {
		return false, fmt.Errorf("call %s: %w", tool.Name, err)
	}
	return true, nil
}
