package notice_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/must"
	"perch/store/storetest"
)

// noon is the time in tests without synctest.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a running Notifier with its tables, and with robots that the test controls.
type fixture struct {
	t        *testing.T
	notifier *notice.Notifier
	timers   *notice.Timers
	store    *notice.Store
	bus      *event.Bus
	clock    *jumpingClock
	table    *storetest.Table[notice.Notification]
	rings    *storetest.Table[agent.Timer]
	log      *strings.Builder
	zone     *time.Location // of alarms; nil means the machine's
	stop     func()
	robots
}

// jumpingClock is a clock whose wall clock can jump. It is based on the virtual time of
// synctest.
type jumpingClock struct {
	began time.Time
	off   atomic.Int64
}

func (c *jumpingClock) Now() time.Time         { return time.Now().Round(0).Add(time.Duration(c.off.Load())) }
func (c *jumpingClock) Running() time.Duration { return time.Since(c.began) }
func (c *jumpingClock) jump(by time.Duration)  { c.off.Add(int64(by)) }

// robots plays the robots of a fixture, and records the calls of the notifier.
type robots struct {
	mu        sync.Mutex
	open      []device.ID
	announced []string      // "robot: text", with ! for urgent and ~ for a text that is only shown
	held      []string      // "robot duration" for each call of KeepOpen; "robot not" for the zero time
	refuse    error         // result of Announce, unless nil
	gate      chan struct{} // if not nil, Announce waits until it is closed
}

// newFixture runs a notifier with these tables. The caller runs in a bubble of synctest.
func newFixture(t *testing.T, table *storetest.Table[notice.Notification], rings *storetest.Table[agent.Timer]) *fixture {
	h := &fixture{t: t, table: table, rings: rings, clock: &jumpingClock{began: time.Now()}, bus: event.NewBus(), log: &strings.Builder{}}
	h.run()
	return h
}

// run starts a new notifier.
func (h *fixture) run() {
	h.store, h.timers = notice.NewStore(h.table), notice.NewTimers(h.rings, h.clock)
	if h.zone != nil {
		h.timers.In(h.zone)
	}
	h.notifier = notice.New(notice.Options{Store: h.store, Timers: h.timers, Bus: h.bus, Clock: h.clock,
		Missed: func(t agent.Timer) string { return "missed " + t.Text + " of " + t.Due.Format("Mon 15:04") },
		Log:    slog.New(slog.NewTextHandler(h.log, nil))})
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan error)
	go func() { ended <- h.notifier.Run(ctx, h) }()
	h.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			h.t.Error(err)
		}
		h.bus.Close()
	}
	synctest.Wait()
}

func emptyFixture(t *testing.T) *fixture {
	return newFixture(t, &storetest.Table[notice.Notification]{}, &storetest.Table[agent.Timer]{})
}

// running runs a test in a bubble of synctest, with empty tables.
func running(t *testing.T, do func(t *testing.T, h *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := emptyFixture(t)
		defer func() { h.stop() }()
		do(t, h)
	})
}

// connected is like running, with one robot whose channel is open.
func connected(t *testing.T, do func(t *testing.T, h *fixture)) {
	t.Helper()
	running(t, func(t *testing.T, h *fixture) {
		h.hello(chan1, "s1")
		do(t, h)
	})
}

// pass lets the duration d pass, and waits until the notifier has handled everything due.
func (h *fixture) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (h *fixture) Reachable() []device.ID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.open)
}

func (h *fixture) Announce(_ context.Context, id device.ID, a notice.Announcement) error {
	if h.gate != nil {
		<-h.gate
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse != nil {
		return h.refuse
	}
	if !slices.Contains(h.open, id) {
		return errors.New("the channel is closed")
	}
	mark := ""
	if a.Urgent {
		mark = "!"
	}
	if !a.Speak {
		mark += "~"
	}
	h.announced = append(h.announced, fmt.Sprintf("%s: %s%s", id[11:], a.Text, mark))
	return nil
}

func (h *fixture) KeepOpen(id device.ID, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := "not"
	if !until.IsZero() {
		left = until.Sub(h.clock.Now()).Round(time.Second).String()
	}
	h.held = append(h.held, fmt.Sprintf("%s %s", id[11:], left))
}

// hello opens a robot's channel, in a session with this ID.
func (h *fixture) hello(id device.ID, session string) {
	h.mu.Lock()
	if !slices.Contains(h.open, id) {
		h.open = append(h.open, id)
	}
	h.mu.Unlock()
	h.bus.Publish(id, session, event.RobotOnline{Framing: 1})
	synctest.Wait()
}

func (h *fixture) goodbye(id device.ID, session string) {
	h.mu.Lock()
	h.open = slices.DeleteFunc(h.open, func(o device.ID) bool { return o == id })
	h.mu.Unlock()
	h.bus.Publish(id, session, event.RobotOffline{Why: "idle"})
	synctest.Wait()
}

func (h *fixture) changed(id, state string) {
	h.bus.Publish(chan1, "s", event.NotificationChanged{ID: id, State: state})
	synctest.Wait()
}

func (h *fixture) notify(n notice.Notification) notice.Notification {
	h.t.Helper()
	n = must.Value(h.notifier.Notify(n))(h.t)
	synctest.Wait()
	return n
}

func (h *fixture) set(timer agent.Timer) agent.Timer {
	h.t.Helper()
	timer = must.Value(h.timers.Set(h.t.Context(), nil, timer, h.clock.Now()))(h.t)
	synctest.Wait()
	return timer
}

// expects checks that exactly these announcements were made since the last call.
func (h *fixture) expects(want ...string) {
	h.t.Helper()
	h.takes(&h.announced, want)
}

func (h *fixture) expectsHeld(want ...string) {
	h.t.Helper()
	h.takes(&h.held, want)
}

func (h *fixture) takes(from *[]string, want []string) {
	h.t.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(*from, want) {
		h.t.Errorf("announced or held %q, want %q", *from, want)
	}
	*from = nil
}

// published returns the published events of notifications and timers, as "kind id".
func (h *fixture) published() (all []string) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for r := h.bus.ReadFrom(1); ; {
		e, err := r.Next(ctx)
		if err != nil {
			return all
		}
		switch ev := e.Event.(type) {
		case event.Notification:
			all = append(all, fmt.Sprintf("notification %s", ev.ID))
		case event.NotificationChanged:
			all = append(all, fmt.Sprintf("%s %s", ev.State, ev.ID))
		case event.TimerRang:
			all = append(all, fmt.Sprintf("rang %s", ev.ID))
		}
	}
}

func (h *fixture) count(of string) (n int) {
	for _, p := range h.published() {
		if p == of {
			n++
		}
	}
	return n
}

func TestANotificationReachesAnOpenRobot(t *testing.T) {
	connected(t, func(t *testing.T, h *fixture) {
		h.hello(chan2, "s2")
		h.notify(notice.Notification{ID: "a", Text: "one", Robot: chan1, Speak: true})
		h.expects("5: one")
		h.notify(notice.Notification{ID: "b", Text: "two", Speak: true, Urgency: notice.UrgencyHigh})
		h.expects("5: two!", "6: two!")
		h.notify(notice.Notification{ID: "c", Text: "three", SessionID: "s2"})
		h.expects("6: three~")
		h.notify(notice.Notification{ID: "d", Text: "four", SessionID: "somebody else's", Speak: true})
		h.expects()
		for _, bad := range []notice.Notification{{}, {Text: "x", Urgency: "now"}, {Text: "x", Expires: h.clock.Now()}} {
			if _, err := h.notifier.Notify(bad); !errors.Is(err, notice.ErrInvalid) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
		if want := []string{"notification a", "notification b", "notification c", "notification d"}; !slices.Equal(h.published(), want) {
			t.Errorf("published %v", h.published())
		}
		h.table.Breaks(errors.New("disk full"))
		if _, err := h.notifier.Notify(notice.Notification{Text: "x"}); err == nil || len(h.published()) != 4 {
			t.Errorf("accepted what was not kept: %v", err)
		}
	})
}

func TestANotificationWaitsForTheNextHello(t *testing.T) {
	running(t, func(t *testing.T, h *fixture) {
		h.notify(notice.Notification{ID: "own", Text: "own", Robot: chan1, Speak: true})
		time.Sleep(time.Second)
		h.notify(notice.Notification{ID: "all", Text: "all", Speak: true})
		h.notify(notice.Notification{ID: "now", Text: "now", Speak: true, Urgency: notice.UrgencyHigh})
		h.expects()
		h.hello(chan2, "s2")
		h.expects("6: now!", "6: all")
		h.hello(chan1, "s1")
		h.expects("5: own") // the notifications for all robots were offered to the other robot
		h.changed("own", notice.Shown)
		h.goodbye(chan1, "s1") // before the text was spoken
		h.hello(chan1, "s3")
		h.expects("5: own")
		h.changed("own", notice.Spoken)
		h.changed("all", notice.Spoken)
		h.goodbye(chan2, "s2")
		h.expects("5: now!") // the robot to which it was offered has disconnected
		h.hello(chan1, "s4")
		h.hello(chan2, "s5")
		h.expects("5: now!") // a new session replaces the earlier one without RobotOffline
		for id, want := range map[string]string{"own": notice.Spoken, "all": notice.Spoken, "now": notice.Received} {
			if got := h.table.Kept[id].State; got != want {
				t.Errorf("%s is kept as %s, want %s", id, got, want)
			}
		}
	})
}

// TestARobotThatIsConnected tests that a robot that is connected by MQTT is offered
// notifications before, during and after a session, until it has announced them.
func TestARobotThatIsConnected(t *testing.T) {
	running(t, func(t *testing.T, h *fixture) {
		h.notify(notice.Notification{ID: "a", Text: "before", Robot: chan1, Speak: true})
		h.mu.Lock()
		h.open = append(h.open, chan1)
		h.mu.Unlock()
		h.bus.Publish(chan1, "", event.RobotConnected{Speaks: true})
		h.expects("5: before")
		h.hello(chan1, "s1") // the new session has ended the announcement
		h.expects("5: before")
		h.changed("a", notice.Spoken)
		h.notify(notice.Notification{ID: "b", Text: "unheard", Robot: chan1, Speak: true})
		h.expects("5: unheard")
		h.bus.Publish(chan1, "s1", event.RobotOffline{Why: "idle"}) // the robot is still connected by MQTT
		h.expects("5: unheard")
		h.goodbye(chan1, "s1")
		h.bus.Publish(chan1, "", event.RobotDisconnected{})
		h.expects()
		h.notify(notice.Notification{ID: "c", Text: "gone", Robot: chan1, Speak: true})
		h.expects()
	})
}

func TestANotificationToShowOnly(t *testing.T) {
	connected(t, func(t *testing.T, h *fixture) {
		h.notify(notice.Notification{ID: "a", Text: "one"})
		h.expects("5: one~")
		h.changed("a", notice.Shown)
		h.hello(chan1, "s2")
		h.expects()
	})
}

// TestAReportAboutAReplacedNotification tests that a late report about a notification does not
// end a newer notification with the same ID.
func TestAReportAboutAReplacedNotification(t *testing.T) {
	connected(t, func(t *testing.T, h *fixture) {
		h.notify(notice.Notification{ID: "door", Text: "The door is open.", Speak: true})
		h.expects("5: The door is open.")
		h.gate = make(chan struct{})
		h.notify(notice.Notification{ID: "other", Text: "other", Speak: true}) // the notifier waits in Announce
		h.changed("door", notice.Spoken)
		h.notify(notice.Notification{ID: "door", Text: "The door is closed.", Speak: true})
		close(h.gate)
		h.expects("5: other", "5: The door is closed.")
	})
}

func TestANotificationExpiresOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &storetest.Table[notice.Notification]{}
		table.PutSoon("old", notice.Notification{ID: "old", Text: "old", State: notice.Received, Expires: time.Now().Add(-time.Hour)})
		h := newFixture(t, table, &storetest.Table[agent.Timer]{})
		defer h.stop()
		h.notify(notice.Notification{ID: "a", Text: "one", Speak: true, Expires: h.clock.Now().Add(10 * time.Minute)})
		h.notify(notice.Notification{ID: "b", Text: "two", Speak: true})
		h.notify(notice.Notification{ID: "c", Text: "three", Speak: true, Expires: h.clock.Now().Add(10 * time.Minute)})
		must.Succeed(t, h.notifier.Acknowledge("c"))
		if err := h.notifier.Acknowledge("c"); !errors.Is(err, notice.ErrNotFound) {
			t.Errorf("acknowledged twice: %v", err)
		}
		time.Sleep(9*time.Minute + 59*time.Second)
		if h.count("expired a") != 0 {
			t.Error("expired before its time")
		}
		time.Sleep(time.Second)
		h.hello(chan1, "s1")
		h.expects("5: two")
		h.pass(48 * time.Hour)
		for event, want := range map[string]int{"expired old": 1, "expired a": 1, "expired b": 1, "expired c": 0, "acknowledged c": 1} {
			if n := h.count(event); n != want {
				t.Errorf("%q was published %d times, want %d", event, n, want)
			}
		}
		if len(h.table.Kept) != 0 {
			t.Errorf("%d are still kept", len(h.table.Kept))
		}
	})
}

func TestAtMost40WaitForARobot(t *testing.T) {
	running(t, func(t *testing.T, h *fixture) {
		for i := range 42 {
			n := notice.Notification{ID: fmt.Sprint(i), Text: fmt.Sprint(i), Robot: chan1, Speak: true}
			if i == 5 {
				n.Urgency = notice.UrgencyLow
			}
			h.notify(n)
			time.Sleep(time.Second)
		}
		if h.count("expired 5") != 1 || h.count("expired 0") != 1 {
			t.Errorf("published %v", h.published())
		}
		h.hello(chan1, "s1")
		if len(h.announced) != 40 || h.announced[0] != "5: 1" || h.announced[39] != "5: 41" {
			t.Errorf("announced %v", h.announced)
		}
	})
}

func TestMissedEvents(t *testing.T) {
	connected(t, func(t *testing.T, h *fixture) {
		h.notify(notice.Notification{ID: "gone", Text: "gone", Robot: chan2, Speak: true})
		h.gate = make(chan struct{})
		h.notify(notice.Notification{ID: "a", Text: "one", Robot: chan1, Speak: true}) // the notifier waits in Announce and misses events
		h.open = append(h.open, chan2)
		h.bus.Publish(chan2, "s2", event.RobotOnline{})
		h.notify(notice.Notification{ID: "b", Text: "two", Robot: chan2, Speak: true})
		must.Succeed(t, h.notifier.Acknowledge("gone"))
		for range 5000 {
			h.bus.Publish(chan1, "s1", event.Misheard{})
		}
		close(h.gate)
		synctest.Wait()
		if !slices.Contains(h.announced, "6: two") || slices.Contains(h.announced, "6: gone") {
			t.Errorf("announced %v", h.announced)
		}
	})
}

// TestAListedSessionIsAnnouncedOnce tests a robot that is in the list at the start, and whose
// event RobotOnline arrives afterwards. The notification must be announced once.
func TestAListedSessionIsAnnouncedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := emptyFixture(t)
		h.stop()
		h.bus = event.NewBus()
		notices := notice.NewStore(&storetest.Table[notice.Notification]{})
		h.notifier = notice.New(notice.Options{Store: notices, Timers: h.timers, Bus: h.bus, Clock: h.clock, Log: slog.New(slog.DiscardHandler)})
		must.Value(h.notifier.Notify(notice.Notification{Text: "one", Speak: true}))(t)
		h.open = []device.ID{chan1}
		listed := &listing{fixture: h, then: func() { h.bus.Publish(chan1, "s1", event.RobotOnline{}) }}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- h.notifier.Run(ctx, listed) }()
		synctest.Wait()
		h.expects("5: one")
		cancel()
		<-ended
		h.bus.Close()
	})
}

// listing is a fixture that calls the function then during the first call of Reachable.
type listing struct {
	*fixture
	then func()
}

func (l *listing) Reachable() []device.ID {
	open := l.fixture.Reachable()
	if then := l.then; then != nil {
		l.then = nil
		then()
	}
	return open
}

func TestARefusedAnnouncementIsRetried(t *testing.T) {
	connected(t, func(t *testing.T, h *fixture) {
		h.refuse = errors.New("busy")
		h.notify(notice.Notification{ID: "a", Text: "one", Robot: chan1, Speak: true})
		h.mu.Lock()
		h.refuse = nil
		h.mu.Unlock()
		h.bus.Publish(chan2, "x", event.RobotOffline{})
		h.expects()
		time.Sleep(time.Minute)
		h.expects("5: one")
	})
}

// TestAFailingStore tests that notifications are announced although the store fails, that the
// failure is logged once, and that the states are stored later.
func TestAFailingStore(t *testing.T) {
	connected(t, func(t *testing.T, h *fixture) {
		timer := h.set(tea(10 * time.Minute))
		n := h.notify(notice.Notification{ID: "a", Text: "one", Robot: chan1, Speak: true})
		h.expects("5: one")
		full := errors.New("disk full")
		h.table.Breaks(full)
		h.rings.Breaks(full)
		h.changed(n.ID, notice.Spoken)
		time.Sleep(10*time.Minute + time.Second)
		h.expects("5: Tea is ready.!")
		time.Sleep(10 * time.Minute)
		h.hello(chan1, "s2")
		h.expects("5: Tea is ready.!")
		if n := strings.Count(h.log.String(), "disk full"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, h.log)
		}
		h.table.Breaks(nil)
		h.rings.Breaks(nil)
		h.pass(time.Minute)
		if got := h.table.Kept["a"].State; got != notice.Spoken {
			t.Errorf("what was spoken is kept as %s", got)
		}
		if _, kept := h.table.Kept[timer.ID]; !kept || len(h.rings.Kept) > 0 {
			t.Errorf("the ring is kept: %v; %d timers are", kept, len(h.rings.Kept))
		}
		if h.count("rang "+timer.ID) != 1 || h.count("notification "+timer.ID) != 1 {
			t.Errorf("published %v", h.published())
		}
	})
}
