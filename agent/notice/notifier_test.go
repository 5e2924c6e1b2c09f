package notice_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
)

// safeNotices is a table of notices that can fail, for many goroutines.
type safeNotices struct {
	mu     sync.Mutex
	kept   noticeTable
	broken error
}

func (t *safeNotices) Get(key string) (notice.Notification, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken != nil {
		return notice.Notification{}, false, t.broken
	}
	return t.kept.Get(key)
}

func (t *safeNotices) Put(key string, n notice.Notification) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken != nil {
		return t.broken
	}
	return t.kept.Put(key, n)
}

func (t *safeNotices) PutSoon(key string, n notice.Notification) { _ = t.Put(key, n) }

func (t *safeNotices) DeleteSoon(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept.DeleteSoon(key)
}

func (t *safeNotices) All() iter.Seq2[string, notice.Notification] {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken != nil {
		return maps.All(noticeTable{})
	}
	return t.kept.All()
}

func (t *safeNotices) breaks(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.broken = err
}

// house is a herald at work among robots of a test's making.
type house struct {
	t       *testing.T
	herald  *notice.Notifier
	timers  *notice.Timers
	notices *notice.Store
	bus     *event.Bus
	clock   *jumpy
	table   *safeNotices
	rings   *timerTable
	log     *strings.Builder
	stop    func()

	mu     sync.Mutex
	open   []device.ID
	told   []string // "robot: text", with ! for urgent and ~ for what is only shown
	held   []string // "robot until"
	refuse error
	gate   chan struct{} // where there is one, announcing waits for it to close
}

// newHouse runs a herald on what is kept, in a bubble.
func newHouse(t *testing.T, table *safeNotices, rings *timerTable) *house {
	h := &house{t: t, table: table, rings: rings, clock: newJumpy(), bus: event.NewBus(), log: &strings.Builder{}}
	h.run()
	return h
}

// run starts a herald anew.
func (h *house) run() {
	h.notices, h.timers = notice.NewStore(h.table), notice.NewTimers(h.rings, h.clock)
	h.herald = notice.New(notice.Options{Notices: h.notices, Timers: h.timers, Bus: h.bus, Clock: h.clock,
		Log: slog.New(slog.NewTextHandler(h.log, nil))})
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan error)
	go func() { ended <- h.herald.Run(ctx, h) }()
	h.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			h.t.Error(err)
		}
		h.bus.Close()
	}
	synctest.Wait()
}

func freshHouse(t *testing.T) *house {
	return newHouse(t, &safeNotices{kept: noticeTable{}}, newTimerTable())
}

func (h *house) Open() []device.ID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.open)
}

func (h *house) Announce(_ context.Context, id device.ID, a notice.Announcement) error {
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
	h.told = append(h.told, fmt.Sprintf("%s: %s%s", id[11:], a.Text, mark))
	return nil
}

func (h *house) Hold(id device.ID, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := "not"
	if !until.IsZero() {
		left = until.Sub(h.clock.Now()).Round(time.Second).String()
	}
	h.held = append(h.held, fmt.Sprintf("%s %s", id[11:], left))
}

// says hello, in a session of that name.
func (h *house) hello(id device.ID, session string) {
	h.mu.Lock()
	if !slices.Contains(h.open, id) {
		h.open = append(h.open, id)
	}
	h.mu.Unlock()
	h.bus.Publish(id, session, event.RobotOnline{Framing: 1})
	synctest.Wait()
}

func (h *house) goodbye(id device.ID, session string) {
	h.mu.Lock()
	h.open = slices.DeleteFunc(h.open, func(o device.ID) bool { return o == id })
	h.mu.Unlock()
	h.bus.Publish(id, session, event.RobotOffline{Why: "idle"})
	synctest.Wait()
}

func (h *house) changed(id, state string) {
	h.bus.Publish(chan1, "s", event.NotificationChanged{ID: id, State: state})
	synctest.Wait()
}

func (h *house) notify(n notice.Notification) notice.Notification {
	h.t.Helper()
	n, err := h.herald.Notify(n)
	if err != nil {
		h.t.Fatal(err)
	}
	synctest.Wait()
	return n
}

func (h *house) set(timer agent.Timer) agent.Timer {
	h.t.Helper()
	timer, err := h.timers.Set(h.t.Context(), nil, timer, h.clock.Now())
	if err != nil {
		h.t.Fatal(err)
	}
	synctest.Wait()
	return timer
}

// expects that just that was told since the last time.
func (h *house) expects(want ...string) {
	h.t.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.told, want) {
		h.t.Errorf("told %q, want %q", h.told, want)
	}
	h.told = nil
}

func (h *house) expectsHeld(want ...string) {
	h.t.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.held, want) {
		h.t.Errorf("held %q, want %q", h.held, want)
	}
	h.held = nil
}

// published lists the events of those kinds, as "kind id state".
func (h *house) published() (all []string) {
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

func (h *house) count(of string) (n int) {
	for _, p := range h.published() {
		if p == of {
			n++
		}
	}
	return n
}

func TestANotificationReachesAnOpenRobot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := freshHouse(t)
		defer h.stop()
		h.hello(chan1, "s1")
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
			if _, err := h.herald.Notify(bad); !errors.Is(err, notice.ErrInvalid) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
		if want := []string{"notification a", "notification b", "notification c", "notification d"}; !slices.Equal(h.published(), want) {
			t.Errorf("published %v", h.published())
		}
		h.table.breaks(errors.New("disk full"))
		if _, err := h.herald.Notify(notice.Notification{Text: "x"}); err == nil || len(h.published()) != 4 {
			t.Errorf("accepted what was not kept: %v", err)
		}
	})
}

func TestANotificationWaitsForTheNextHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := freshHouse(t)
		defer h.stop()
		h.notify(notice.Notification{ID: "own", Text: "own", Robot: chan1, Speak: true})
		time.Sleep(time.Second)
		h.notify(notice.Notification{ID: "all", Text: "all", Speak: true})
		h.notify(notice.Notification{ID: "now", Text: "now", Speak: true, Urgency: notice.UrgencyHigh})
		h.expects()
		h.hello(chan2, "s2")
		h.expects("6: now!", "6: all")
		h.hello(chan1, "s1")
		h.expects("5: own") // what is for all is on offer already
		h.changed("own", notice.Shown)
		h.goodbye(chan1, "s1") // before it was spoken
		h.hello(chan1, "s3")
		h.expects("5: own")
		h.changed("own", notice.Spoken)
		h.changed("all", notice.Spoken)
		h.goodbye(chan2, "s2")
		h.expects("5: now!") // the one that had it is gone
		h.hello(chan1, "s4")
		h.hello(chan2, "s5")
		h.expects("5: now!") // a session in the place of another, without a word of its end
		for id, want := range map[string]string{"own": notice.Spoken, "all": notice.Spoken, "now": notice.Received} {
			if got := h.table.kept[id].State; got != want {
				t.Errorf("%s is kept as %s, want %s", id, got, want)
			}
		}
	})
}

func TestWhatIsOnlyShownIsToldWhenItIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := freshHouse(t)
		defer h.stop()
		h.hello(chan1, "s1")
		h.notify(notice.Notification{ID: "a", Text: "one"})
		h.expects("5: one~")
		h.changed("a", notice.Shown)
		h.hello(chan1, "s2")
		h.expects()
	})
}

func TestAnotherOfTheSameIdIsToldAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := freshHouse(t)
		defer h.stop()
		h.hello(chan1, "s1")
		h.notify(notice.Notification{ID: "door", Text: "The door is open.", Speak: true})
		h.changed("door", notice.Spoken)
		time.Sleep(time.Second)
		h.notify(notice.Notification{ID: "door", Text: "The door is closed.", Speak: true})
		h.expects("5: The door is open.", "5: The door is closed.")
	})
}

// TestTheEarlierOfTwoIsNotTheLater: that the first was spoken says nothing of
// the second, though it has its id.
func TestTheEarlierOfTwoIsNotTheLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := freshHouse(t)
		defer h.stop()
		h.hello(chan1, "s1")
		h.notify(notice.Notification{ID: "door", Text: "The door is open.", Speak: true})
		h.expects("5: The door is open.")
		h.gate = make(chan struct{})
		h.notify(notice.Notification{ID: "other", Text: "other", Speak: true}) // the herald is busy
		h.changed("door", notice.Spoken)
		h.notify(notice.Notification{ID: "door", Text: "The door is closed.", Speak: true})
		close(h.gate)
		h.expects("5: other", "5: The door is closed.")
	})
}

func TestANotificationExpiresOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &safeNotices{kept: noticeTable{}}
		table.kept["old"] = notice.Notification{ID: "old", Text: "old", State: notice.Received, Expires: time.Now().Add(-time.Hour)}
		h := newHouse(t, table, newTimerTable())
		defer h.stop()
		h.notify(notice.Notification{ID: "a", Text: "one", Speak: true, Expires: h.clock.Now().Add(10 * time.Minute)})
		h.notify(notice.Notification{ID: "b", Text: "two", Speak: true})
		h.notify(notice.Notification{ID: "c", Text: "three", Speak: true, Expires: h.clock.Now().Add(10 * time.Minute)})
		if err := h.herald.Acknowledge("c"); err != nil {
			t.Error(err)
		}
		if err := h.herald.Acknowledge("c"); !errors.Is(err, notice.ErrNotFound) {
			t.Errorf("acknowledged twice: %v", err)
		}
		time.Sleep(9*time.Minute + 59*time.Second)
		if h.count("expired a") != 0 {
			t.Error("expired before its time")
		}
		time.Sleep(time.Second)
		h.hello(chan1, "s1")
		h.expects("5: two")
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		for event, want := range map[string]int{"expired old": 1, "expired a": 1, "expired b": 1, "expired c": 0, "acknowledged c": 1} {
			if n := h.count(event); n != want {
				t.Errorf("%q was published %d times, want %d", event, n, want)
			}
		}
		if len(h.table.kept) != 0 {
			t.Errorf("%d are still kept", len(h.table.kept))
		}
	})
}

func TestAtMost20WaitForARobot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := freshHouse(t)
		defer h.stop()
		for i := range 22 {
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
		if len(h.told) != 20 || h.told[0] != "5: 1" || h.told[19] != "5: 21" {
			t.Errorf("told %v", h.told)
		}
	})
}

func TestEventsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := freshHouse(t)
		defer h.stop()
		h.hello(chan1, "s1")
		h.notify(notice.Notification{ID: "gone", Text: "gone", Robot: chan2, Speak: true})
		h.gate = make(chan struct{})
		h.notify(notice.Notification{ID: "a", Text: "one", Robot: chan1, Speak: true}) // the herald waits there while much goes past
		h.open = append(h.open, chan2)
		h.bus.Publish(chan2, "s2", event.RobotOnline{})
		h.notify(notice.Notification{ID: "b", Text: "two", Robot: chan2, Speak: true})
		if err := h.herald.Acknowledge("gone"); err != nil {
			t.Error(err)
		}
		for range 5000 {
			h.bus.Publish(chan1, "s1", event.Misheard{})
		}
		close(h.gate)
		synctest.Wait()
		if !slices.Contains(h.told, "6: two") || slices.Contains(h.told, "6: gone") {
			t.Errorf("told %v", h.told)
		}
	})
}

// TestASessionThatWasListedIsNotToldTwice: at the start the robots are listed,
// and the hello of one of them is still to be read.
func TestASessionThatWasListedIsNotToldTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := freshHouse(t)
		h.stop()
		h.bus = event.NewBus()
		notices := notice.NewStore(&safeNotices{kept: noticeTable{}})
		h.herald = notice.New(notice.Options{Notices: notices, Timers: h.timers, Bus: h.bus, Clock: h.clock, Log: slog.New(slog.DiscardHandler)})
		if _, err := h.herald.Notify(notice.Notification{Text: "one", Speak: true}); err != nil {
			t.Fatal(err)
		}
		h.open = []device.ID{chan1}
		listed := &listing{house: h, then: func() { h.bus.Publish(chan1, "s1", event.RobotOnline{}) }}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- h.herald.Run(ctx, listed) }()
		synctest.Wait()
		h.expects("5: one")
		cancel()
		<-ended
		h.bus.Close()
	})
}

// listing is a house in which something happens while robots are listed.
type listing struct {
	*house
	then func()
}

func (l *listing) Open() []device.ID {
	open := l.house.Open()
	if then := l.then; then != nil {
		l.then = nil
		then()
	}
	return open
}

func TestARobotThatRefusesIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := freshHouse(t)
		defer h.stop()
		h.hello(chan1, "s1")
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

// TestAStoreThatFails: it is told all the same, logged once, and kept later.
func TestAStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := freshHouse(t)
		defer h.stop()
		h.hello(chan1, "s1")
		timer := h.set(tea(10 * time.Minute))
		n := h.notify(notice.Notification{ID: "a", Text: "one", Robot: chan1, Speak: true})
		h.expects("5: one")
		full := errors.New("disk full")
		h.table.breaks(full)
		h.rings.breaks(full)
		h.changed(n.ID, notice.Spoken)
		time.Sleep(10*time.Minute + time.Second)
		h.expects("5: Tea is ready.!")
		time.Sleep(10 * time.Minute)
		h.hello(chan1, "s2")
		h.expects("5: Tea is ready.!")
		if n := strings.Count(h.log.String(), "disk full"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, h.log)
		}
		h.table.breaks(nil)
		h.rings.breaks(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := h.table.kept["a"].State; got != notice.Spoken {
			t.Errorf("what was spoken is kept as %s", got)
		}
		if _, kept := h.table.kept[timer.ID]; !kept || h.rings.len() > 0 {
			t.Errorf("the ring is kept: %v; %d timers are", kept, h.rings.len())
		}
		if h.count("rang "+timer.ID) != 1 || h.count("notification "+timer.ID) != 1 {
			t.Errorf("published %v", h.published())
		}
	})
}
