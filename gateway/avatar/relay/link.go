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

// Waiting times between attempts to connect.
const (
	// firstWait is so short that a restarted program shows the current state within a second,
	// including 0.3 s for connecting.
	firstWait  = 700 * time.Millisecond
	maxWait    = time.Minute
	quickTries = 20 // number of attempts before the wait grows
	// workingAfter is how long a connection must last to count as working. A program that closes
	// the connection sooner is of another kind, or refuses Perch.
	workingAfter = 5 * time.Second
)

// Timeouts of calls to a program.
const (
	openTimeout = 10 * time.Minute // for program.open, because somebody may have to confirm a popup
	callTimeout = 5 * time.Second  // for the methods of link
)

// relay is one program and the connection to it. The keys of its maps are results of Scene.place.
type relay struct {
	o       *Options
	kind    kind
	target  Target
	words   words
	program program
	log     *slog.Logger
	trials  chan *trial           // trials that RunTrial starts
	stop    context.CancelFunc    // cancels the context of run; nil before run
	busy    map[string]feed.State // latest states that were sent to the program, except idle and sleeping
	noticed recent                // notifications that were sent to the program
	working map[string]bool       // agents that were busy during the latest call of wait
	brief   bool                  // whether a warning was logged that the latest connection was shorter than workingAfter
	failed  recent                // connection errors that were logged since a connection last worked

	mu    sync.Mutex
	state struct {
		open  bool      // whether the program is connected
		since time.Time // when open last changed
		note  error     // Status.Note; may be nil
	}
}

// Status is the status of a relay.
type Status struct {
	Name  string    `json:"name"`
	Kind  string    `json:"kind"`
	Title string    `json:"title"`           // the program's own name
	URL   string    `json:"url"`             // empty if the address is searched for
	Robot string    `json:"robot,omitempty"` // the configured robot; empty if all robots and chats are shown
	Shows []string  `json:"shows"`           // as in Kind
	OK    bool      `json:"ok"`              // whether the program is connected
	Since time.Time `json:"since,omitzero"`  // when OK last changed
	Note  string    `json:"note,omitempty"`  // an error, a warning, or a sentence about what Perch waits for
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
	var serving sync.WaitGroup
	defer serving.Wait()
	if p, ok := r.program.(background); ok {
		serving.Go(func() { p.serve(ctx) })
	}
	for tries := 0; ctx.Err() == nil; tries++ {
		end, err := r.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		if end == endWorking {
			tries = 0
		}
		r.recordClosed(end, err)
		r.wait(ctx, waitAfter(tries))
	}
}

// ending is how an attempt to connect has ended.
type ending int

const (
	endFailed  ending = iota // could not connect
	endBrief                 // connected for less than workingAfter
	endWorking               // connected for longer
)

// waitAfter returns how long to wait before the next attempt. tries is the number of attempts before the latest one,
// counted from the latest attempt whose connection worked, or from the start.
func waitAfter(tries int) time.Duration {
	if tries < quickTries {
		return firstWait
	}
	return min(firstWait<<min(tries-quickTries+1, 10), maxWait)
}

// wait waits until the next attempt to connect. It ends each new trial with ErrAway. If an agent becomes
// busy that was not busy during the previous call, wait returns as soon as firstWait has passed.
func (r *relay) wait(ctx context.Context, duration time.Duration) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	began := time.Now()
	viewer := r.o.Feed.Join(feed.Filter{Kinds: []string{feed.KindState}, Sessions: r.sessions(), AllStates: true})
	defer viewer.Leave()
	before := r.working
	r.working = map[string]bool{}
	for {
		select {
		case <-viewer.News():
			if r.hasNewWork(viewer, before) {
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

// hasNewWork updates r.working with the frames that are queued for v. It reports whether an agent
// has become busy that is not in before, and removes agents that are not busy from before.
func (r *relay) hasNewWork(v *feed.Viewer, before map[string]bool) (newWork bool) {
	for {
		f, _ := v.Pop()
		if f == nil {
			return newWork
		}
		s, ok := f.Body.(feed.State)
		if !ok {
			continue
		}
		place := cmp.Or(string(s.Robot), s.Session)
		if !(Scene{State: s.State}).isBusy() {
			delete(before, place)
			delete(r.working, place)
			continue
		}
		newWork = newWork || !before[place] && !r.working[place]
		r.working[place] = true
	}
}

// sessions returns the value of feed.Filter.Sessions for the configured robot, or nil if no robot is
// configured. If the configured value is neither a robot's name nor a MAC address, it returns
// feed.SessionsOf(""), which selects no session.
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
	openCtx, cancel := context.WithTimeout(ctx, openTimeout)
	link, err := r.program.open(openCtx, r.setNote)
	cancel()
	if err != nil {
		return endFailed, err
	}
	defer link.close()
	c := &connection{relay: r, link: link, end: endBrief}
	err = c.run(ctx)
	return c.end, err
}

func (r *relay) setNote(note error) { r.setStatus(r.status().OK, note) }

// recordOpened sets the status to connected, and logs the connection. If the previous connection was
// brief, recordOpened does not log: recordWorking does so if the new connection lasts.
func (r *relay) recordOpened(note error) {
	if !r.brief {
		r.logConnected()
	}
	r.setStatus(true, note)
}

func (r *relay) logConnected() {
	r.log.Info("an avatar program is connected", "kind", r.kind.Name, "url", r.target.address())
}

// recordWorking records that the connection has lasted for workingAfter.
func (c *connection) recordWorking() {
	if c.brief {
		c.logConnected()
	}
	c.end, c.brief, c.failed = endWorking, false, recent{}
}

// recordClosed sets the status to not connected. It logs each error once until a connection has
// lasted for workingAfter.
func (r *relay) recordClosed(end ending, err error) {
	logs := true
	switch end {
	case endFailed:
		if logs = !r.failed.has(err.Error()); logs {
			r.failed.add(err.Error())
		}
	case endBrief:
		logs, r.brief = !r.brief, true
	}
	if logs {
		r.log.Warn("an avatar program is not connected; connecting again", "kind", r.kind.Name, "url", r.target.address(), "err", err)
	}
	r.setStatus(false, err)
}

// setStatus sets whether the program is connected, and the note. If either has changed, it publishes
// event.Changed.
func (r *relay) setStatus(open bool, note error) {
	r.mu.Lock()
	openChanged := r.state.open != open
	changed := openChanged || text(r.state.note) != text(note)
	if openChanged || r.state.since.IsZero() {
		r.state.since = time.Now()
	}
	r.state.open, r.state.note = open, note
	r.mu.Unlock()
	if changed {
		r.o.Bus.Publish("", "", event.Changed{What: "connections"})
	}
}

// errLate reports that the viewer has lost frames and must join the feed again.
var errLate = errors.New("too many frames are queued for the program")

// connection serves an open link.
type connection struct {
	*relay
	link   link
	viewer *feed.Viewer
	scenes scenes
	sent   Scene   // latest scene that was sent
	mouth  float64 // latest level of the mouth that was sent
	end    ending  // the ending that run reports if the connection ends now
	// unseen holds the entries of busy whose current state was not sent since the viewer joined the feed.
	unseen map[string]feed.State
	trial  *trial // if not nil, its scene is shown instead of a session's
}

// run serves the link until ctx or the link ends.
func (c *connection) run(ctx context.Context) error {
	filter := feed.Filter{Kinds: c.frameKinds(), Sessions: c.sessions(), AllStates: true, Vocabulary: agent.VocabularyXiaozhi}
	c.viewer = c.o.Feed.Join(filter)
	defer func() { c.viewer.Leave() }()
	c.recordOpened(c.link.warning()) // after Join, so that a program that counts as connected misses no frame
	defer func() { c.trial.finish(errEnded) }()
	c.reportRobot(filter.Sessions)
	var refresh, lookUp <-chan time.Time
	if every := c.link.refreshEvery(); every > 0 {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		refresh = ticker.C
	}
	if c.target.Robot != "" {
		ticker := time.NewTicker(robotLookupEvery)
		defer ticker.Stop()
		lookUp = ticker.C
	}
	working := time.NewTimer(workingAfter)
	defer working.Stop()
	// The feed has queued the current state, so a reconnected program does not show an idle agent first.
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
			if err = c.sendQueued(ctx); errors.Is(err, errLate) {
				err = c.rejoin(ctx, filter)
			}
		case <-changed:
		case <-refresh:
			err = c.withTimeout(ctx, func(ctx context.Context) error { return c.link.refresh(ctx, c.scene()) })
		case t := <-c.trials:
			c.trial.finish(errAnother)
			c.trial = t
			err = c.update(ctx)
		case <-lookUp:
			// The robot may have been adopted, renamed or removed.
			if sessions := c.sessions(); !slices.Equal(sessions, filter.Sessions) {
				filter.Sessions = sessions
				c.reportRobot(sessions)
				err = c.rejoin(ctx, filter)
			}
		case <-working.C:
			c.recordWorking()
		case <-c.trial.next():
			if err = c.showStep(ctx); err == nil && c.trial == nil {
				err = c.rejoin(ctx, filter) // the frames that arrived during the trial were not sent
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

// robotLookupEvery is the interval at which the configured robot is looked up by name.
const robotLookupEvery = time.Second

// reportRobot sets the note to the link's warning, or to an error if no robot has the configured
// name.
func (c *connection) reportRobot(sessions []string) {
	if slices.Equal(sessions, feed.SessionsOf("")) {
		c.setNote(fmt.Errorf("no robot is called %q; adopt one by that name, or correct robot", c.target.Robot))
		return
	}
	c.setNote(c.link.warning())
}

// rejoin joins the feed again, and sends the current state.
func (c *connection) rejoin(ctx context.Context, filter feed.Filter) error {
	c.viewer.Leave()
	c.viewer, c.scenes = c.o.Feed.Join(filter), scenes{}
	return c.catchUp(ctx)
}

// catchUp sends the queued frames after joining the feed. It then sends the state idle for sessions
// that the program shows as busy but that no longer exist. If sending fails, these sessions stay in
// c.busy, and the next call tries again.
func (c *connection) catchUp(ctx context.Context) error {
	c.unseen = maps.Clone(c.busy)
	if err := c.sendQueued(ctx); errors.Is(err, errLate) {
		return nil // run will join the feed again
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

// wasNotified reports whether the notification in a frame was already sent to the program: until the
// robot has spoken a notification, the feed sends it to each viewer that joins. The result
// notification identifies the notification; it is empty for other frames.
func (c *connection) wasNotified(f *feed.Frame) (notification string, shown bool) {
	n, ok := f.Body.(feed.Notice)
	if !ok || n.ID == "" {
		return "", false
	}
	notification = n.ID + " " + n.Text
	return notification, c.noticed.has(notification)
}

// recordSent records a state or a notification that was sent to the program.
func (c *connection) recordSent(f *feed.Frame, notification string) {
	if s, ok := f.Body.(feed.State); ok {
		place := cmp.Or(string(s.Robot), s.Session)
		delete(c.unseen, place)
		if delete(c.busy, place); (Scene{State: s.State}).isBusy() && len(c.busy) < maxScenes {
			c.busy[place] = s
		}
	}
	if notification != "" {
		c.noticed.add(notification)
	}
}

// frameKinds returns the kinds of frames that this program needs.
func (c *connection) frameKinds() []string {
	kinds := []string{feed.KindState, feed.KindFace, feed.KindNotice}
	for show, kind := range map[string]string{"tools": feed.KindTool, "moods": feed.KindMood, "gestures": feed.KindGesture, "speech": feed.KindSaid,
		"looks": feed.KindLook, "steps": feed.KindStep} {
		if c.kind.can(show) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// sendQueued sends the queued frames, and then the scene if it has changed. It skips notifications that
// were sent before and, during a trial, all frames. It returns errLate if frames were lost.
func (c *connection) sendQueued(ctx context.Context) error {
	for {
		f, late := c.viewer.Pop()
		switch {
		case late:
			return errLate
		case f == nil:
			return c.update(ctx)
		}
		c.scenes.apply(f)
		notification, shown := c.wasNotified(f)
		if c.trial != nil || shown {
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
			c.viewer.MarkShown(f)
		}
	}
}

// frame passes a frame to the link.
func (c *connection) frame(ctx context.Context, f *feed.Frame, scene Scene) error {
	return c.withTimeout(ctx, func(ctx context.Context) error { return c.link.frame(ctx, f, scene) })
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
	scene, previous := c.scene(), c.sent
	if scene == previous {
		return nil
	}
	c.sent = scene
	return c.withTimeout(ctx, func(ctx context.Context) error { return c.link.update(ctx, scene, previous) })
}

// level returns how far to open the mouth, from 0 to 1. changed is closed when the level changes; it is
// nil during a trial, and for a program that shows no mouth.
func (c *connection) level() (level float64, changed <-chan struct{}) {
	if c.trial != nil || !c.kind.can("mouth") {
		return c.mouth, nil
	}
	return c.o.Voice.Level(c.scenes.front().place())
}

// setMouth sends how far the mouth is open, unless the program was already sent that level.
func (c *connection) setMouth(ctx context.Context, level float64) error {
	if level == c.mouth {
		return nil
	}
	c.mouth = level
	return c.withTimeout(ctx, func(ctx context.Context) error { return c.link.setMouth(ctx, level) })
}

// withTimeout runs call with the timeout callTimeout.
func (c *connection) withTimeout(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return call(ctx)
}
