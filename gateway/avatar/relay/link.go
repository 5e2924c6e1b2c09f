package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/avatar/feed"
)

// Waits between attempts to connect. The first is so short that a program that restarts shows
// the present state within a second, 0.3 s of that for connecting.
const (
	firstWait  = 700 * time.Millisecond
	longWait   = time.Minute
	quickTries = 20 // attempts before the wait grows
	// worksFrom is how long a connection must last to count as working. A program that closes
	// sooner is another program, or refuses Perch.
	worksFrom = 5 * time.Second
)

// Bounds of one call to a program.
const (
	openWithin = 10 * time.Minute // somebody may have to confirm a popup
	callWithin = 5 * time.Second
)

// relay is one program and the connection to it.
type relay struct {
	o       *Options
	kind    kind
	target  Target
	words   words
	program program
	log     *slog.Logger
	trials  chan *trial
	stop    context.CancelFunc    // cancels run
	busy    map[string]feed.State // sessions shown as working, by place
	noticed recent                // notifications already shown
	working map[string]bool       // who was working during the last wait, by place
	brief   bool                  // the latest connection was too short to count as working, and that was logged
	failed  string                // the connection error that was logged last

	mu    sync.Mutex
	state struct {
		open  bool
		since time.Time // when open last changed
		note  error
	}
}

// Status is the state of a relay as the API returns it.
type Status struct {
	Name  string    `json:"name"`
	Kind  string    `json:"kind"`
	Title string    `json:"title"`           // the program's own name
	URL   string    `json:"url"`             // empty where the program is searched for
	Robot string    `json:"robot,omitempty"` // the robot shown; omitted when it is whichever is working
	Shows []string  `json:"shows"`           // what the program can show
	OK    bool      `json:"ok"`              // connected
	Since time.Time `json:"since,omitzero"`
	Note  string    `json:"note,omitempty"` // what is wrong, or what is waited for
}

func (r *relay) status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Status{Name: r.target.Name, Kind: r.kind.Name, Title: r.kind.Title, URL: r.target.address(), Robot: r.target.Robot, Shows: r.kind.Shows,
		OK: r.state.open, Since: r.state.since, Note: text(r.state.note)}
}

// notConnected returns the error of a program that is not connected.
func (s Status) notConnected() error {
	return fmt.Errorf("%w: %s", ErrAway, s.Note)
}

// run connects and reconnects until ctx ends.
func (r *relay) run(ctx context.Context) {
	for tries := 0; ctx.Err() == nil; tries++ {
		end, err := r.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		if end == hasWorked {
			tries = 0
		}
		r.closed(end, err)
		r.wait(ctx, waitAfter(tries))
	}
}

// ending is how a connection attempt has ended.
type ending int

const (
	inVain    ending = iota // could not connect
	wasBrief                // connected for less than worksFrom
	hasWorked               // connected for longer
)

// waitAfter returns the wait after that many failed attempts.
func waitAfter(tries int) time.Duration {
	if tries < quickTries {
		return firstWait
	}
	return min(firstWait<<min(tries-quickTries+1, 10), longWait)
}

// wait waits, but at most firstWait once an agent starts working. An agent that was already
// working during the previous wait does not shorten this one.
func (r *relay) wait(ctx context.Context, longest time.Duration) {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	began := time.Now()
	viewer := r.o.Feed.Join(feed.Filter{Kinds: []string{feed.KindState}, Sessions: r.sessions(), AllStates: true})
	defer viewer.Leave()
	before := r.working
	r.working = map[string]bool{}
	for {
		select {
		case <-viewer.News():
			if r.workBegins(viewer, before) {
				timer.Reset(max(0, firstWait-time.Since(began)))
			}
		case t := <-r.trials:
			t.finish(r.status().notConnected())
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// workBegins records who is working, from the frames that v has queued, and reports whether
// somebody has started since before.
func (r *relay) workBegins(v *feed.Viewer, before map[string]bool) (news bool) {
	for {
		f, _ := v.Pop()
		if f == nil {
			return news
		}
		s, is := f.Body.(feed.State)
		if !is {
			continue
		}
		place := cmp.Or(string(s.Robot), s.Session)
		if !(Scene{State: s.State}).busy() {
			delete(before, place)
			delete(r.working, place)
			continue
		}
		news = news || !before[place] && !r.working[place]
		r.working[place] = true
	}
}

// sessions returns the sessions of the target's robot, or nil for all sessions. They are empty
// for a robot name that is not known yet.
func (r *relay) sessions() []string {
	if r.target.Robot == "" {
		return nil
	}
	id, err := r.o.Find(r.target.Robot)
	if err != nil {
		id, _ = device.ParseID(r.target.Robot)
	}
	return feed.SessionsOf(id)
}

// connect opens the link and serves it until it ends.
func (r *relay) connect(ctx context.Context) (ending, error) {
	opening, cancel := context.WithTimeout(ctx, openWithin)
	link, err := r.program.open(opening, r.setNote)
	cancel()
	if err != nil {
		return inVain, err
	}
	defer link.close()
	c := &connection{relay: r, link: link, lips: newLips(), end: wasBrief}
	ctx, cancel = context.WithCancel(ctx)
	var moving sync.WaitGroup
	moving.Go(func() { c.lips.run(ctx) })
	defer moving.Wait()
	defer cancel()
	err = c.run(ctx)
	return c.end, err
}

// setNote sets what is wrong, or waited for, in the status.
func (r *relay) setNote(note error) { r.set(r.status().OK, note) }

// opened sets the status to connected, and logs it. After a connection that was too short to
// count as working, markWorking logs instead.
func (r *relay) opened(note error) {
	if !r.brief {
		r.logConnected()
	}
	r.set(true, note)
}

func (r *relay) logConnected() {
	r.log.Info("an avatar program is connected", "kind", r.kind.Name, "url", r.target.address())
}

// markWorking records that the connection has lasted long enough to count as working.
func (c *connection) markWorking() {
	if c.brief {
		c.logConnected()
	}
	c.end, c.brief, c.failed = hasWorked, false, ""
}

// closed sets the status to not connected. It logs a repeated failure once.
func (r *relay) closed(end ending, err error) {
	news := true
	switch end {
	case inVain:
		news, r.failed = r.failed != err.Error(), err.Error()
	case wasBrief:
		news, r.brief = !r.brief, true
	}
	if news {
		r.log.Warn("an avatar program is not connected; it is tried again", "kind", r.kind.Name, "url", r.target.address(), "err", err)
	}
	r.set(false, err)
}

func (r *relay) set(open bool, note error) {
	r.mu.Lock()
	opens := r.state.open != open
	news := opens || text(r.state.note) != text(note)
	if opens || r.state.since.IsZero() {
		r.state.since = time.Now()
	}
	r.state.open, r.state.note = open, note
	r.mu.Unlock()
	if news {
		r.o.Bus.Publish("", "", event.Changed{What: "connections"})
	}
}

// errLate says that the viewer has lost frames and must join again.
var errLate = errors.New("too much waits for the program")

// connection serves an open link.
type connection struct {
	*relay
	link   link
	viewer *feed.Viewer
	scenes scenes
	sent   Scene   // the scene sent last
	open   float64 // how far the mouth was opened, as sent last
	lips   *lips   // for sessions whose sound nobody plays
	end    ending  // how the connection ends, as far as is known
	// unseen holds the entries of busy that no frame has mentioned since the viewer joined.
	unseen map[string]feed.State
	trial  *trial // replaces the real scene while not nil
}

// run serves the link until ctx or the link ends.
func (c *connection) run(ctx context.Context) error {
	filter := feed.Filter{Kinds: c.frames(), Sessions: c.sessions(), AllStates: true, Words: agent.VocabularyXiaozhi}
	c.viewer = c.o.Feed.Join(filter)
	defer func() { c.viewer.Leave() }()
	c.opened(c.link.warning()) // no frame is missed from here on
	defer func() { c.trial.finish(errEnded) }()
	c.reportRobot(filter.Sessions)
	var keep, look <-chan time.Time
	if every := c.link.refreshEvery(); every > 0 {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		keep = ticker.C
	}
	if c.target.Robot != "" {
		ticker := time.NewTicker(robotLookupEvery)
		defer ticker.Stop()
		look = ticker.C
	}
	worked := time.NewTimer(worksFrom)
	defer worked.Stop()
	// The present state is queued already, so a reconnected program does not show rest first.
	if err := c.catchUp(ctx); err != nil {
		return err
	}
	for {
		level, changed := c.level()
		err := c.setMouth(ctx, level)
		if err != nil {
			return err
		}
		select {
		case <-c.viewer.News():
			if err = c.drain(ctx); errors.Is(err, errLate) {
				err = c.rejoin(ctx, filter)
			}
		case <-changed:
		case <-keep:
			err = c.within(ctx, func(ctx context.Context) error { return c.link.refresh(ctx, c.scene()) })
		case t := <-c.trials:
			c.trial.finish(errAnother)
			c.trial = t
			err = c.update(ctx)
		case <-look:
			// The robot may have been adopted, renamed or removed.
			if now := c.sessions(); !slices.Equal(now, filter.Sessions) {
				filter.Sessions = now
				c.reportRobot(now)
				err = c.rejoin(ctx, filter)
			}
		case <-worked.C:
			c.markWorking()
		case <-c.trial.next():
			if err = c.step(ctx); err == nil && c.trial == nil {
				err = c.rejoin(ctx, filter) // frames received during the trial were not sent
			}
		case err = <-c.link.disconnected():
		case <-ctx.Done():
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// robotLookupEvery is how often the target's robot is looked up by name.
const robotLookupEvery = time.Second

// reportRobot warns the owner if no robot has the configured name.
func (c *connection) reportRobot(sessions []string) {
	if slices.Equal(sessions, feed.SessionsOf("")) {
		c.setNote(fmt.Errorf("no robot is called %q; adopt one by that name, or correct robot", c.target.Robot))
		return
	}
	c.setNote(c.link.warning())
}

// rejoin joins the feed again and sends the present state.
func (c *connection) rejoin(ctx context.Context, filter feed.Filter) error {
	c.viewer.Leave()
	c.viewer, c.scenes = c.o.Feed.Join(filter), scenes{}
	return c.catchUp(ctx)
}

// catchUp sends the queued frames after joining the feed, and ends the sessions that the
// program shows as working but that are gone. What it could not send stays for the next time.
func (c *connection) catchUp(ctx context.Context) error {
	c.unseen = maps.Clone(c.busy)
	if err := c.drain(ctx); errors.Is(err, errLate) {
		return nil // run joins again
	} else if err != nil {
		return err
	}
	for place, s := range c.unseen {
		s.State, s.Detail = agent.Idle, nil
		ended := feed.NewFrame(feed.KindState, s)
		ended.Robot, ended.Session = s.Robot, s.Session
		if err := c.frame(ctx, ended, c.scenes.front()); err != nil && !errors.Is(err, errNotShown) {
			return err
		}
		delete(c.busy, place)
	}
	return nil
}

// alreadyNotified reports whether the program has shown a notification. A robot's notification
// stays queued until the robot has spoken it, and so repeats with each connection.
func (c *connection) alreadyNotified(f *feed.Frame) (notification string, known bool) {
	n, is := f.Body.(feed.Notice)
	if !is || n.ID == "" {
		return "", false
	}
	notification = n.ID + " " + n.Text
	return notification, c.noticed.has(notification)
}

// recordSent remembers what the program was sent.
func (c *connection) recordSent(f *feed.Frame, notification string) {
	if s, is := f.Body.(feed.State); is {
		place := cmp.Or(string(s.Robot), s.Session)
		delete(c.unseen, place)
		if delete(c.busy, place); (Scene{State: s.State}).busy() && len(c.busy) < mostScenes {
			c.busy[place] = s
		}
	}
	if notification != "" {
		c.noticed.add(notification)
	}
}

// frames returns the kinds of frames that this program can show.
func (c *connection) frames() []string {
	all := []string{feed.KindState, feed.KindFace, feed.KindNotice}
	for show, kind := range map[string]string{"tools": feed.KindTool, "moods": feed.KindMood, "gestures": feed.KindGesture, "speech": feed.KindSaid,
		"looks": feed.KindLook, "steps": feed.KindStep} {
		if c.kind.can(show) || kind == feed.KindSaid && c.kind.can("mouth") { // lips follow the text
			all = append(all, kind)
		}
	}
	return all
}

// drain sends all queued frames, and then the scene that results.
func (c *connection) drain(ctx context.Context) error {
	for {
		f, late := c.viewer.Pop()
		switch {
		case late:
			return errLate
		case f == nil:
			return c.update(ctx)
		}
		c.scenes.apply(f)
		c.lips.handleFrame(ctx, f, c.o.Voice.Speaks(f.Session), time.Now())
		notification, known := c.alreadyNotified(f)
		if c.trial != nil || known {
			continue
		}
		switch err := c.frame(ctx, f, c.scenes.front()); {
		case errors.Is(err, errNotShown):
			continue
		case err != nil:
			return err
		}
		c.recordSent(f, notification)
		if c.kind.can("notifications") && !c.kind.mute {
			c.viewer.Shown(f)
		}
	}
}

// frame sends an occurrence.
func (c *connection) frame(ctx context.Context, f *feed.Frame, is Scene) error {
	return c.within(ctx, func(ctx context.Context) error { return c.link.frame(ctx, f, is) })
}

// scene returns the scene to show.
func (c *connection) scene() Scene {
	if c.trial != nil {
		return c.trial.scene
	}
	return c.scenes.front()
}

// update sends the scene if it has changed.
func (c *connection) update(ctx context.Context) error {
	is, was := c.scene(), c.sent
	if is == was {
		return nil
	}
	c.sent = is
	return c.within(ctx, func(ctx context.Context) error { return c.link.update(ctx, is, was) })
}

// level returns the loudness that the mouth follows, from 0 to 1, and a channel that is closed
// on change.
func (c *connection) level() (level float64, changed <-chan struct{}) {
	if c.trial != nil || !c.kind.can("mouth") {
		return c.open, nil
	}
	front := c.scenes.front()
	if front.Robot == "" && !c.o.Voice.Speaks(front.Session) {
		return c.lips.level(front.Session)
	}
	return c.o.Voice.Level(front.place())
}

// setMouth sends how far the mouth is open if that has changed, because of the level or because
// another robot is in front.
func (c *connection) setMouth(ctx context.Context, level float64) error {
	if level == c.open {
		return nil
	}
	c.open = level
	return c.within(ctx, func(ctx context.Context) error { return c.link.setMouth(ctx, level) })
}

// within runs call with a timeout.
func (c *connection) within(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	return call(ctx)
}
