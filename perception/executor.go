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
	actWithin        = 2 * time.Second  // an act that has waited longer is stale
	waitingActWithin = time.Minute      // for acts of the owner's rules
	mostActing       = 15 * time.Second // for executing one act
)

// executor executes the acts of behaviours.
type executor struct {
	o       Options
	robots  robots
	outside outside

	lanes   device.Lanes
	mu      sync.Mutex
	failing map[failure]bool // already logged
}

// failure is a kind of failure. It is logged once until the act works again.
type failure struct {
	robot device.ID
	by    string
}

func newExecutor(r robots, outside outside, o Options) *executor {
	return &executor{o: o, robots: r, outside: outside, failing: map[failure]bool{}}
}

// enqueue queues acts. If too many wait, it drops the rest.
func (h *executor) enqueue(ctx context.Context, id device.ID, now time.Time, requests []request) {
	for _, d := range requests {
		if !h.lanes.Add(ctx, id, device.Job{Do: func(ctx context.Context) { h.work(ctx, id, d, now) }}) {
			h.logOnce(failure{id, d.by}, fmt.Errorf("%d acts wait already", device.MostJobs))
		}
	}
}

// work executes one act, unless it has waited too long.
func (h *executor) work(ctx context.Context, id device.ID, d request, since time.Time) {
	limit := actWithin
	if d.patient {
		limit = waitingActWithin
	}
	var err error
	if time.Since(since) <= limit {
		err = h.execute(ctx, id, d)
	}
	h.logOnce(failure{id, d.by}, err)
}

// logOnce logs a failure once, until the act works again.
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

// text returns the text to say, replacing a default text by the robot's language's.
func (h *executor) text(id device.ID, a Say) string {
	text := a.Text
	if name := defaultPhrases()[text]; a.Usual && name != "" && h.o.Phrase != nil {
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

// Tools of the firmware that acts use.
const (
	headTool  = "self.robot.set_head_angles"
	lightTool = "self.robot.set_led_color"
	faceTool  = "self.robot.set_face_identified"
	stateTool = "self.robot.set_state"
)

// execute executes one act.
func (h *executor) execute(ctx context.Context, id device.ID, d request) (err error) {
	ctx, cancel := context.WithTimeout(ctx, mostActing)
	defer cancel()
	switch a := d.act.(type) {
	case Say:
		_, err = h.robots.Speak(ctx, id, h.text(id, a))
	case Abort:
		err = h.robots.Abort(ctx, id)
	case Play:
		err = h.robots.Play(ctx, id, a.Sound)
	case TurnHead:
		err = h.turn(ctx, id, d.by, a)
	case FindHead:
		err = h.findHead(ctx, id, d.by)
	case Lights:
		_, err = h.call(ctx, id, lightTool, map[string]any{"red": a.Red, "green": a.Green, "blue": a.Blue})
	case RefreshFace:
		_, err = h.call(ctx, id, faceTool, nil)
	case SetState:
		_, err = h.call(ctx, id, stateTool, map[string]any{"state": a.State})
	case CallTool:
		_, err = h.call(ctx, id, a.Name, a.Arguments)
	case Feel:
		err = h.outside.Feel(ctx, id, a.Emotion)
	case Publish:
		err = h.outside.Publish(ctx, a.Topic, a.Payload)
	case Notify:
		err = h.outside.Notify(ctx, id, a.Text, !a.Silent)
	}
	return err
}

// turn turns the head and publishes the turn.
func (h *executor) turn(ctx context.Context, id device.ID, by string, a TurnHead) error {
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

// findHead asks a robot for its head's position, and publishes that as a turn. Missing
// or invalid angles change nothing.
func (h *executor) findHead(ctx context.Context, id device.ID, by string) error {
	tool, tells := device.FindAngles(h.robots.Tools(id))
	if !tells {
		return nil
	}
	answer, err := h.robots.Call(ctx, id, tool.Name, map[string]any{})
	if err != nil {
		return fmt.Errorf("call %s: %w", tool.Name, err)
	}
	var at struct{ Yaw, Pitch *float64 }
	if json.Unmarshal([]byte(answer.Text), &at) != nil || at.Yaw == nil || at.Pitch == nil {
		return nil
	}
	within := func(angle, least, most float64) int { return int(min(max(angle, least), most)) }
	h.publishTurn(id, map[string]any{"by": by, "yaw": within(*at.Yaw, -device.MaxHeadYaw, device.MaxHeadYaw),
		"pitch": within(*at.Pitch, 0, device.FirmwareHeadPitch)})
	return nil
}

func (h *executor) publishTurn(id device.ID, data map[string]any) {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // a map of numbers and a name
	}
	h.o.Bus.Publish(id, "", event.Perceived{Name: headTurn, Data: text})
}

// call calls one of the robot's tools, with the arguments in that robot's form. If
// the robot lacks the tool, called is false.
func (h *executor) call(ctx context.Context, id device.ID, name string, arguments map[string]any) (called bool, err error) {
	tool, there := device.FindTool(h.robots.Tools(id), name)
	if !there {
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
