package notice_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/store/storetest"
)

const chan1, chan2 device.ID = "a0b1c2d3e4f5", "a0b1c2d3e4f6"

// body is a robot that lists tools and records the calls.
type body struct {
	tools []device.Tool
	calls []string
	says  string
	fails error
	began func()
}

func (b *body) Tools() []device.Tool { return b.tools }

func (b *body) Call(_ context.Context, name string, arguments map[string]any) (device.Result, error) {
	b.calls = append(b.calls, fmt.Sprint(name, arguments))
	if b.began != nil {
		b.began()
	}
	return device.Result{Text: b.says}, b.fails
}

func (b *body) Reboot(context.Context) error { return nil }

// ringing is a Stack-chan, which has reminders of its own.
func ringing() *body {
	least, most := 1, 86400
	return &body{says: "7", tools: []device.Tool{
		{Name: "self.robot.get_reminders"},
		{Name: "self.robot.create_reminder", Schema: device.Schema{Properties: map[string]device.Argument{
			"duration_seconds": {Type: "integer", Minimum: &least, Maximum: &most}, "message": {Type: "string"}, "repeat": {Type: "boolean"}}}},
		{Name: "self.robot.stop_reminder", Schema: device.Schema{Properties: map[string]device.Argument{"id": {Type: "integer"}}}},
	}}
}

func tea(length time.Duration) agent.Timer {
	return agent.Timer{Robot: chan1, Text: "Tea is ready.", Length: length}
}

func TestSettingATimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &storetest.Table[agent.Timer]{}
		s := notice.NewTimers(table, nil)
		now := time.Now()
		set, err := s.Set(t.Context(), nil, tea(3*time.Minute), now)
		if err != nil || set.ID == "" || !set.Due.Equal(now.Add(3*time.Minute)) || set.OnRobot || table.Kept[set.ID] != set {
			t.Fatalf("%+v, %v, kept %+v", set, err, table.Kept)
		}
		if _, err := s.Set(t.Context(), nil, tea(time.Minute), now); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		pending := s.Pending(chan1, time.Now())
		if len(pending) != 2 || pending[0].Length != time.Minute || time.Until(pending[0].Due).Round(time.Second) != 40*time.Second {
			t.Errorf("pending %+v", pending)
		}
		if n, err := s.Cancel(t.Context(), nil, chan2); n != 0 || err != nil {
			t.Errorf("another robot's: %d, %v", n, err)
		}
		if n, err := s.Cancel(t.Context(), nil, chan1, set.ID); n != 1 || err != nil || len(table.Kept) != 1 {
			t.Errorf("one of them: %d, %v, %d kept", n, err, len(table.Kept))
		}
		if n, err := s.Cancel(t.Context(), nil, chan1); n != 1 || err != nil || len(table.Kept) != 0 {
			t.Errorf("the rest: %d, %v, %d kept", n, err, len(table.Kept))
		}
	})
}

func TestInvalidTimers(t *testing.T) {
	s := notice.NewTimers(&storetest.Table[agent.Timer]{}, nil)
	for name, bad := range map[string]agent.Timer{
		"no time":      {Text: "x"},
		"no text":      {Text: " \n", Length: time.Minute},
		"too long":     {Text: "x", Length: 24*time.Hour + time.Second},
		"too short":    {Text: "x", Length: time.Second - 1},
		"backwards":    {Text: "x", Length: -time.Minute},
		"past":         {Text: "x", Due: noon.Add(-time.Minute)},
		"next year":    {Text: "x", Due: noon.AddDate(1, 0, 0)},
		"a long text":  {Text: strings.Repeat("x", 301), Length: time.Minute},
		"a long id":    {ID: strings.Repeat("x", 65), Text: "x", Length: time.Minute},
		"a long while": {Text: "x", Length: 1<<63 - 1},
	} {
		if _, err := s.Set(t.Context(), nil, bad, noon); !errors.Is(err, agent.ErrTimer) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range 20 {
		if _, err := s.Set(t.Context(), nil, tea(time.Hour), noon); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Set(t.Context(), ringing(), tea(time.Hour), noon); !errors.Is(err, agent.ErrTooManyTimers) {
		t.Errorf("a 21st: %v", err)
	}
	if _, err := s.Set(t.Context(), nil, agent.Timer{Robot: chan2, Text: "x", Due: noon.Add(24 * time.Hour)}, noon); err != nil {
		t.Errorf("another robot's: %v", err)
	}
}

// TestATimerThatIsNotStored: if the store fails, the timer is set neither here nor
// on the robot.
func TestATimerThatIsNotStored(t *testing.T) {
	table, full := &storetest.Table[agent.Timer]{}, errors.New("disk full")
	table.Breaks(full)
	s, b := notice.NewTimers(table, nil), ringing()
	if _, err := s.Set(t.Context(), b, tea(time.Minute), noon); !errors.Is(err, full) || len(s.Pending(chan1, noon)) > 0 {
		t.Errorf("%v, pending %v", err, s.Pending(chan1, noon))
	}
	if want := "self.robot.stop_reminder" + fmt.Sprint(map[string]any{"id": 7}); len(b.calls) != 2 || b.calls[1] != want {
		t.Errorf("called %v", b.calls)
	}
}

func TestTheRobotRingsByItself(t *testing.T) {
	table := &storetest.Table[agent.Timer]{}
	s, b := notice.NewTimers(table, nil), ringing()
	set, err := s.Set(t.Context(), b, tea(90*time.Second), noon)
	want := []string{"self.robot.create_reminder" + fmt.Sprint(map[string]any{"duration_seconds": 90, "message": "Tea is ready.", "repeat": false})}
	if err != nil || !set.OnRobot || set.RobotID != "7" || !reflect.DeepEqual(b.calls, want) || !table.Kept[set.ID].OnRobot {
		t.Fatalf("%+v, %v, called %v", set, err, b.calls)
	}
	b.fails = errors.New("closed")
	if n, err := s.Cancel(t.Context(), b, chan1); n != 0 || err == nil || len(table.Kept) != 1 {
		t.Errorf("one that cannot be stopped: %d, %v, %d kept", n, err, len(table.Kept))
	}
	if n, err := s.Cancel(t.Context(), nil, chan1); n != 0 || err == nil {
		t.Errorf("without the robot: %d, %v", n, err)
	}
	b.fails = nil
	if n, err := s.Cancel(t.Context(), b, chan1); n != 1 || err != nil || len(table.Kept) != 0 {
		t.Errorf("%d, %v, %d kept", n, err, len(table.Kept))
	}
}

func TestTimersThatTheRobotDoesNotRing(t *testing.T) {
	short := 600
	for name, change := range map[string]func(*body){
		"a call that fails": func(b *body) { b.fails = errors.New("error") },
		"a refusal":         func(b *body) { b.says = "false" },
		"no such tool":      func(b *body) { b.tools = b.tools[:1] },
		"no such argument":  func(b *body) { b.tools[1].Schema.Properties = map[string]device.Argument{"minutes": {Type: "integer"}} },
		"longer than it can": func(b *body) {
			b.tools[1].Schema.Properties["duration_seconds"] = device.Argument{Type: "integer", Maximum: &short}
		},
		"a tool for seconds, no": func(b *body) { b.tools[1].Schema.Properties["duration_seconds"] = device.Argument{Type: "string"} },
	} {
		b := ringing()
		change(b)
		set, err := notice.NewTimers(&storetest.Table[agent.Timer]{}, nil).Set(t.Context(), b, tea(time.Hour), noon)
		if err != nil || set.OnRobot {
			t.Errorf("%s: %+v, %v", name, set, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	b := ringing()
	b.began = cancel
	s := notice.NewTimers(&storetest.Table[agent.Timer]{}, nil)
	if _, err := s.Set(ctx, b, tea(time.Hour), noon); err != context.Canceled || len(s.Pending(chan1, noon)) > 0 || len(b.calls) != 2 {
		t.Errorf("a turn that was interrupted: %v, called %v", err, b.calls)
	}
}
