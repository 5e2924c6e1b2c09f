package notice_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/must"
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

// ringing returns a robot with the Stack-chan's tools for reminders.
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
		must.Value(s.Set(t.Context(), nil, tea(time.Minute), now))(t)
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
		"a date":       {Text: "x", Due: noon.Add(time.Minute)},
		"a long text":  {Text: strings.Repeat("x", 301), Length: time.Minute},
		"a long id":    {ID: strings.Repeat("x", 65), Text: "x", Length: time.Minute},
		"a long while": {Text: "x", Length: 1<<63 - 1},
	} {
		if _, err := s.Set(t.Context(), nil, bad, noon); !errors.Is(err, agent.ErrTimer) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range 20 {
		must.Value(s.Set(t.Context(), nil, tea(time.Hour), noon))(t)
	}
	if _, err := s.Set(t.Context(), ringing(), tea(time.Hour), noon); !errors.Is(err, agent.ErrTooManyTimers) {
		t.Errorf("a 21st: %v", err)
	}
	if _, err := s.Set(t.Context(), nil, agent.Timer{Robot: chan2, Text: "x", Length: 24 * time.Hour}, noon); err != nil {
		t.Errorf("another robot's: %v", err)
	}
}

// TestATimerThatIsNotStored tests that a timer that could not be stored is not pending, and that
// the robot's reminder is stopped.
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

const years = 3 * 365 * 24 * time.Hour

func TestATimerRings(t *testing.T) {
	connected(t, func(t *testing.T, h *fixture) {
		long, short := h.set(tea(3*time.Minute)), h.set(tea(time.Minute))
		time.Sleep(time.Minute - time.Millisecond)
		h.expects()
		time.Sleep(time.Millisecond)
		h.expects("5: Tea is ready.!")
		h.changed(short.ID, notice.Spoken)
		if n, err := h.timers.Cancel(t.Context(), nil, chan1); n != 1 || err != nil {
			t.Errorf("cancelled %d, %v", n, err)
		}
		time.Sleep(time.Hour)
		h.expects()
		if want := []string{"rang " + short.ID, "notification " + short.ID, "spoken " + short.ID}; !slices.Equal(h.published(), want) {
			t.Errorf("published %v, want %v; %s was cancelled", h.published(), want, long.ID)
		}
		if len(h.rings.Kept) > 0 {
			t.Errorf("%d timers are kept", len(h.rings.Kept))
		}
	})
}

func TestATimerStaysUntilItsNotificationIsStored(t *testing.T) {
	running(t, func(t *testing.T, h *fixture) {
		timer := h.set(tea(time.Minute))
		h.table.Breaks(errors.New("disk full"))
		h.pass(5 * time.Minute)
		if len(h.rings.Kept) != 1 {
			t.Error("its only copy is deleted")
		}
		h.table.Breaks(nil)
		h.pass(time.Minute)
		if _, kept := h.table.Kept[timer.ID]; !kept || len(h.rings.Kept) != 0 || h.count("rang "+timer.ID) != 1 {
			t.Errorf("kept as a notification: %v; %d timers; published %v", kept, len(h.rings.Kept), h.published())
		}
	})
}

func TestATimerThatTheRobotRings(t *testing.T) {
	connected(t, func(t *testing.T, h *fixture) {
		timer, err := h.timers.Set(t.Context(), ringing(), tea(time.Minute), h.clock.Now())
		if err != nil || !timer.OnRobot {
			t.Fatalf("%+v, %v", timer, err)
		}
		time.Sleep(2 * time.Minute)
		h.expects()
		h.expectsHeld()
		if !slices.Equal(h.published(), []string{"rang " + timer.ID}) || len(h.rings.Kept) > 0 {
			t.Errorf("published %v, %d are kept", h.published(), len(h.rings.Kept))
		}
	})
}

// TestATimerThroughARestart tests that a timer of an earlier run rings at its time of the wall
// clock, or at once if that time has passed.
func TestATimerThroughARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := emptyFixture(t)
		h.set(tea(10 * time.Minute))
		h.set(agent.Timer{Robot: chan1, Text: "Eggs.", Length: 2 * time.Minute})
		h.stop()
		time.Sleep(5 * time.Minute)
		h = newFixture(t, h.table, h.rings)
		defer h.stop()
		h.hello(chan1, "s1")
		h.expects("5: Eggs.!")
		time.Sleep(5*time.Minute - time.Second)
		h.expects()
		time.Sleep(time.Second)
		h.expects("5: Tea is ready.!")
	})
}

// TestAnUnannouncedTimerThroughARestart tests that a timer that has rung while no robot was
// connected is announced in the next run.
func TestAnUnannouncedTimerThroughARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := emptyFixture(t)
		h.set(tea(time.Minute))
		time.Sleep(2 * time.Minute)
		h.stop()
		h = newFixture(t, h.table, h.rings)
		defer h.stop()
		h.hello(chan1, "s1")
		h.expects("5: Tea is ready.!")
		time.Sleep(time.Hour)
		h.expects()
	})
}

// TestTimersWhenTheClockJumps tests that a timer rings after its length although the wall clock
// jumps, as on a Raspberry Pi minutes after its start.
func TestTimersWhenTheClockJumps(t *testing.T) {
	for name, by := range map[string]time.Duration{"forwards": years, "backwards": -years, "a little": 90 * time.Second} {
		t.Run(name, func(t *testing.T) {
			connected(t, func(t *testing.T, h *fixture) {
				timer := h.set(tea(10 * time.Minute))
				time.Sleep(4 * time.Minute)
				h.clock.jump(by)
				if left := h.timers.Pending(chan1, h.clock.Now())[0].Due.Sub(h.clock.Now()); left.Round(time.Second) != 6*time.Minute {
					t.Errorf("%s left, right after the jump", left)
				}
				time.Sleep(time.Minute) // the notifier checks the clock every minute
				synctest.Wait()
				due := h.clock.Now().Add(5 * time.Minute)
				if kept := h.rings.Kept[timer.ID]; kept.Due.Sub(due).Abs() > time.Second {
					t.Errorf("kept as due at %s, want %s", kept.Due, due)
				}
				if left := h.timers.Pending(chan1, h.clock.Now())[0].Due.Sub(h.clock.Now()); left.Round(time.Second) != 5*time.Minute {
					t.Errorf("%s left", left)
				}
				h.expects()
				puts := h.rings.Puts
				time.Sleep(5*time.Minute - time.Millisecond)
				h.expects()
				time.Sleep(time.Millisecond)
				h.expects("5: Tea is ready.!")
				if h.rings.Puts != puts {
					t.Errorf("written %d times more", h.rings.Puts-puts)
				}
			})
		})
	}
}

// TestATimerOfAnEarlierRunWhenTheClockJumps tests that a timer of an earlier run follows the wall
// clock, but waits no longer than its length.
func TestATimerOfAnEarlierRunWhenTheClockJumps(t *testing.T) {
	for name, c := range map[string]struct {
		behind, jump, after time.Duration // error of the wall clock at the start, its jump a minute later, and time from the jump until the timer rings
	}{
		"the clock is right":            {0, 0, 8 * time.Minute},
		"it is behind and stays so":     {time.Hour, 0, 9 * time.Minute},
		"it is behind and set right":    {time.Hour, time.Hour, 8 * time.Minute},
		"it is far behind":              {years, years, 8 * time.Minute},
		"it is set right past the time": {time.Hour, 2 * time.Hour, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rings := &storetest.Table[agent.Timer]{}
				timer := tea(10 * time.Minute)
				timer.ID, timer.Set, timer.Due = "tea", time.Now().Round(0), time.Now().Round(0).Add(10*time.Minute)
				rings.PutSoon("tea", timer)
				h := emptyFixture(t)
				h.stop()
				h.clock.jump(-c.behind)
				h.rings, h.bus = rings, event.NewBus()
				h.run()
				defer h.stop()
				h.hello(chan1, "s1")
				time.Sleep(time.Minute)
				h.clock.jump(c.jump)
				began := time.Now()
				for range 20 * 60 {
					h.pass(time.Second)
					if h.count("rang tea") > 0 {
						break
					}
				}
				if took := time.Since(began); (took - c.after).Abs() > time.Minute {
					t.Errorf("it rang %s after, want %s", took, c.after)
				}
			})
		})
	}
}

// TestAReminderWhenTheClockJumps tests that a reminder follows the wall clock. If the clock jumps
// far, the reminder rings at the next occurrence of its time of day.
func TestAReminderWhenTheClockJumps(t *testing.T) {
	for name, c := range map[string]struct{ jump, after time.Duration }{
		"nearer to it":      {6 * time.Hour, time.Hour},
		"five years on":     {5 * 365 * 24 * time.Hour, 7 * time.Hour},
		"a day back":        {-24 * time.Hour, 7 * time.Hour},
		"past it, by hours": {10 * time.Hour, 21 * time.Hour},
		"just past it":      {8*time.Hour - 30*time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			connected(t, func(t *testing.T, h *fixture) {
				h.set(agent.Timer{Robot: chan1, Text: "It is eight.", At: h.clock.Now().Add(8 * time.Hour).Format("15:04"), Reminder: true})
				time.Sleep(time.Hour)
				h.clock.jump(c.jump)
				if c.after > 0 {
					time.Sleep(c.after - time.Second)
					h.expects()
				}
				time.Sleep(2 * time.Minute)
				h.expects("5: It is eight.!")
			})
		})
	}
}

// TestNotificationsWhenTheClockJumps tests that a jump of the wall clock does not let a recent
// notification expire, unless its sender has set the time of expiry.
func TestNotificationsWhenTheClockJumps(t *testing.T) {
	running(t, func(t *testing.T, h *fixture) {
		h.notify(notice.Notification{ID: "a", Text: "one", Speak: true})
		h.notify(notice.Notification{ID: "b", Text: "two", Speak: true, Expires: h.clock.Now().Add(time.Hour)})
		h.clock.jump(years)
		time.Sleep(2 * time.Minute)
		h.hello(chan1, "s1")
		h.expects("5: one")
		if h.count("expired a") != 0 || h.count("expired b") != 1 {
			t.Errorf("published %v", h.published())
		}
		if open := h.store.Open(h.clock.Now()); len(open) != 1 || !open[0].Expires.After(h.clock.Now()) {
			t.Errorf("open: %+v", open)
		}
	})
}

// TestAChannelIsHeldForATimer tests that a robot's channel is held open in the last half hour
// before a timer rings.
func TestAChannelIsHeldForATimer(t *testing.T) {
	running(t, func(t *testing.T, h *fixture) {
		h.set(tea(45 * time.Minute))
		h.hello(chan1, "s1")
		h.hello(chan2, "s2")
		h.expectsHeld()
		h.set(tea(10 * time.Minute))
		h.expectsHeld("5 10m0s")
		h.set(tea(20 * time.Minute))
		h.set(tea(5 * time.Minute))
		h.expectsHeld("5 20m0s")
		time.Sleep(14 * time.Minute)
		h.hello(chan1, "s3")
		h.expectsHeld("5 6m0s")
		time.Sleep(time.Minute)
		h.expectsHeld("5 30m0s")
		must.Value(h.timers.Cancel(t.Context(), nil, chan1))(t)
		h.expectsHeld("5 not")
	})
}

// TestWatchReportsEachChangeOnce tests that Watch reports each timer that is set or
// cancelled, that has rung, or whose time changes because the wall clock jumps.
func TestWatchReportsEachChangeOnce(t *testing.T) {
	running(t, func(t *testing.T, h *fixture) {
		var changed []string
		h.timers.Watch(func(id string) { changed = append(changed, id) })
		for id, length := range map[string]time.Duration{"a": time.Minute, "b": time.Hour, "c": 2 * time.Hour} {
			timer := tea(length)
			timer.ID = id
			h.set(timer)
		}
		slices.Sort(changed)
		if n, err := h.timers.Cancel(t.Context(), nil, chan1, "b"); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if n, err := h.timers.Cancel(t.Context(), nil, chan1, "b"); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		h.pass(2 * time.Minute)
		if all := h.timers.All(h.clock.Now()); len(all) != 1 || all[0].ID != "c" {
			t.Errorf("left are %+v", all)
		}
		if want := []string{"a", "b", "c", "b", "a"}; !slices.Equal(changed, want) {
			t.Errorf("changed are %q, want %q", changed, want)
		}
		h.clock.jump(30 * time.Minute)
		h.pass(2 * time.Hour)
		if want := []string{"a", "b", "c", "b", "a", "c", "c"}; !slices.Equal(changed, want) {
			t.Errorf("after the clock was set and it rang changed are %q, want %q", changed, want)
		}
	})
}
