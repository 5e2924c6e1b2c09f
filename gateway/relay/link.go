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
	"perch/agent/feed"
	"perch/device"
	"perch/event"
)

// How long a program is left alone that could not be reached or is gone. At first it is
// tried so often that one that starts anew shows what there is within a second, of which
// 0.3 s are left for connecting.
const (
	firstWait  = 700 * time.Millisecond
	longWait   = time.Minute
	patientFor = 20 // tries before the wait grows
	// worksFrom is for how long a program is connected that works. One that ends each
	// connection sooner is none, or none that wants us.
	worksFrom = 5 * time.Second
)

// Bounds of one call to a program.
const (
	openWithin = 10 * time.Minute // somebody may have to allow it in a popup
	tellWithin = 5 * time.Second
)

// relay is one program, and the connection to it.
type relay struct {
	o       *Options
	kind    kind
	target  Target
	words   words
	program program
	log     *slog.Logger
	tries   chan *try
	stop    context.CancelFunc    // ends run
	busy    map[string]feed.State // sessions that the program was told are at work, by place
	noticed []string              // notifications that it was told, the latest last
	working map[string]bool       // who was at work when it was waited for last, by place
	brief   bool                  // its latest connection ended before it had worked, and that was logged
	failed  string                // why it was tried in vain, as it was logged last

	mu    sync.Mutex
	state struct {
		open  bool
		since time.Time // since when it is open, or is not
		note  error
	}
}

// Shown is a relay as its owner is shown it.
type Shown struct {
	Name  string    `json:"name"`
	Kind  string    `json:"kind"`
	Title string    `json:"title"`           // as its users call the program
	URL   string    `json:"url"`             // empty where the program is looked for
	Robot string    `json:"robot,omitempty"` // the one that is shown; left out for whichever is at work
	Shows []string  `json:"shows"`           // what the program can be told
	OK    bool      `json:"ok"`              // it is connected
	Since time.Time `json:"since,omitzero"`
	Note  string    `json:"note,omitempty"` // what is wrong, or waited for
}

func (r *relay) shown() Shown {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Shown{Name: r.target.Name, Kind: r.kind.Name, Title: r.kind.Title, URL: r.target.address(), Robot: r.target.Robot, Shows: r.kind.Shows,
		OK: r.state.open, Since: r.state.since, Note: text(r.state.note)}
}

// away is the error of a program that is not connected.
func (s Shown) away() error {
	return fmt.Errorf("%w: %s", ErrAway, s.Note)
}

// run shows until ctx ends. It gives up nothing.
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

// ending is how a try to show by a program has ended.
type ending int

const (
	inVain    ending = iota // it could not be reached
	wasBrief                // it was connected for less than worksFrom
	hasWorked               // it was connected for longer
)

// waitAfter is the wait after so many tries in vain.
func waitAfter(tries int) time.Duration {
	if tries < patientFor {
		return firstWait
	}
	return min(firstWait<<min(tries-patientFor+1, 10), longWait)
}

// wait waits, but no longer than a second once an agent begins to work. One that was at work
// in the wait before has not brought the program back.
func (r *relay) wait(ctx context.Context, longest time.Duration) {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	began := time.Now()
	viewer := r.o.Feed.Join(feed.Filter{Kinds: []string{feed.KindState}, Sessions: r.sessions(), All: true})
	defer viewer.Leave()
	before := r.working
	r.working = map[string]bool{}
	for {
		select {
		case <-viewer.News():
			if r.begins(viewer, before) {
				timer.Reset(max(0, firstWait-time.Since(began)))
			}
		case t := <-r.tries:
			t.end(r.shown().away())
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// begins notes who is at work, of what waits for a viewer, and reports whether somebody is
// that was not before.
func (r *relay) begins(v *feed.Viewer, before map[string]bool) (news bool) {
	for {
		f, _ := v.Take()
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

// sessions are those of the robot that is shown, or nil for all. One that is not known
// by its name yet has none.
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

// connect opens the link and shows by it until it ends.
func (r *relay) connect(ctx context.Context) (ending, error) {
	opening, cancel := context.WithTimeout(ctx, openWithin)
	link, err := r.program.open(opening, r.note)
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

// note shows the owner what is wrong, or waited for.
func (r *relay) note(note error) { r.set(r.shown().OK, note) }

// opened notes that the program is connected, and logs it; after one that was so only
// briefly, not before it works.
func (r *relay) opened(note error) {
	if !r.brief {
		r.logConnected()
	}
	r.set(true, note)
}

func (r *relay) logConnected() {
	r.log.Info("an avatar program is connected", "kind", r.kind.Name, "url", r.target.address())
}

// works notes that the program was connected long enough to work.
func (c *connection) works() {
	if c.brief {
		c.logConnected()
	}
	c.end, c.brief, c.failed = hasWorked, false, ""
}

// closed notes that the program is not there, and logs it once until it has worked again.
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

// errLate is why a viewer joins anew.
var errLate = errors.New("too much waits for the program")

// connection shows by an open link.
type connection struct {
	*relay
	link   link
	viewer *feed.Viewer
	scenes scenes
	told   Scene   // what was told last
	open   float64 // how far its mouth was told to be open
	lips   *lips   // where nobody has the sound
	end    ending  // how it ends, as far as is known
	// unsaid are those of busy that the program was told nothing of since the viewer joined.
	unsaid map[string]feed.State
	try    *try // instead of what there is to show; else nil
}

// run shows until ctx or the link ends.
func (c *connection) run(ctx context.Context) error {
	filter := feed.Filter{Kinds: c.frames(), Sessions: c.sessions(), All: true, Words: agent.VocabularyXiaozhi}
	c.viewer = c.o.Feed.Join(filter)
	defer func() { c.viewer.Leave() }()
	c.opened(c.link.note()) // from here on it misses nothing
	defer func() { c.try.end(errEnded) }()
	c.noteName(filter.Sessions)
	var keep, look <-chan time.Time
	if every := c.link.every(); every > 0 {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		keep = ticker.C
	}
	if c.target.Robot != "" {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		look = ticker.C
	}
	worked := time.NewTimer(worksFrom)
	defer worked.Stop()
	// What there is waits already: a program that comes back is not shown at rest first.
	if err := c.begin(ctx); err != nil && !errors.Is(err, errLate) {
		return err
	}
	for {
		level, changed := c.level()
		err := c.mouth(ctx, level)
		if err != nil {
			return err
		}
		select {
		case <-c.viewer.News():
			if err = c.take(ctx); errors.Is(err, errLate) {
				err = c.anew(ctx, filter)
			}
		case <-changed:
		case <-keep:
			err = c.within(ctx, func(ctx context.Context) error { return c.link.keep(ctx, c.scene()) })
		case t := <-c.tries:
			c.try.end(errAnother)
			c.try = t
			err = c.show(ctx)
		case <-look:
			// Its robot may be adopted, renamed or forgotten meanwhile.
			if now := c.sessions(); !slices.Equal(now, filter.Sessions) {
				filter.Sessions = now
				c.noteName(now)
				err = c.anew(ctx, filter)
			}
		case <-worked.C:
			c.works()
		case <-c.try.next():
			if err = c.step(ctx); err == nil && c.try == nil {
				err = c.anew(ctx, filter) // what has happened meanwhile was not told
			}
		case err = <-c.link.ended():
		case <-ctx.Done():
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// lookEvery is how often the robot with the target's name is looked up.
const lookEvery = time.Second

// noteName tells the owner of a name that no robot has.
func (c *connection) noteName(sessions []string) {
	if slices.Equal(sessions, feed.SessionsOf("")) {
		c.note(fmt.Errorf("no robot is called %q; adopt one by that name, or correct robot", c.target.Robot))
		return
	}
	c.note(c.link.note())
}

// anew joins anew, and tells what there is.
func (c *connection) anew(ctx context.Context, filter feed.Filter) error {
	c.viewer.Leave()
	c.viewer, c.scenes = c.o.Feed.Join(filter), scenes{}
	if err := c.begin(ctx); err != nil && !errors.Is(err, errLate) {
		return err
	}
	return nil
}

// begin tells what there is when a viewer has joined, and that sessions have ended that
// the program was told are at work. One that it cannot be told of is kept for later.
func (c *connection) begin(ctx context.Context) error {
	c.unsaid = maps.Clone(c.busy)
	if err := c.take(ctx); err != nil {
		return err
	}
	for place, s := range c.unsaid {
		s.State, s.Detail = agent.Idle, nil
		ended := feed.NewFrame(feed.KindState, s)
		ended.Robot, ended.Session = s.Robot, s.Session
		if err := c.frame(ctx, ended, c.scenes.front()); err != nil && !errors.Is(err, errUntold) {
			return err
		}
		delete(c.busy, place)
	}
	return nil
}

// mostNoticed bounds the notifications that are remembered to have been told.
const mostNoticed = 256

// known reports whether the program was told a notification before: a robot's waits until
// the robot has spoken it, and comes again with every connection.
func (c *connection) known(f *feed.Frame) (notification string, known bool) {
	n, is := f.Body.(feed.Notice)
	if !is || n.ID == "" {
		return "", false
	}
	notification = n.ID + " " + n.Text
	return notification, slices.Contains(c.noticed, notification)
}

// noteTold remembers what the program was told.
func (c *connection) noteTold(f *feed.Frame, notification string) {
	if s, is := f.Body.(feed.State); is {
		place := cmp.Or(string(s.Robot), s.Session)
		delete(c.unsaid, place)
		if delete(c.busy, place); (Scene{State: s.State}).busy() && len(c.busy) < mostScenes {
			c.busy[place] = s
		}
	}
	if notification != "" {
		c.noticed = append(c.noticed, notification)
		c.noticed = c.noticed[max(0, len(c.noticed)-mostNoticed):]
	}
}

// frames are the kinds of frames that the program can be told.
func (c *connection) frames() []string {
	all := []string{feed.KindState, feed.KindFace, feed.KindNotice}
	for show, kind := range map[string]string{"tools": feed.KindTool, "moods": feed.KindMood, "gestures": feed.KindGesture, "speech": feed.KindSaid,
		"looks": feed.KindLook, "steps": feed.KindStep} {
		if c.kind.can(show) || kind == feed.KindSaid && c.kind.can("mouth") { // lips move by what is said
			all = append(all, kind)
		}
	}
	return all
}

// take tells all that waits, and then what is shown at its end.
func (c *connection) take(ctx context.Context) error {
	for {
		f, late := c.viewer.Take()
		switch {
		case late:
			return errLate
		case f == nil:
			return c.show(ctx)
		}
		c.scenes.take(f)
		c.lips.take(ctx, f, c.o.Voice.Speaks(f.Session), time.Now())
		notification, known := c.known(f)
		if c.try != nil || known {
			continue
		}
		switch err := c.frame(ctx, f, c.scenes.front()); {
		case errors.Is(err, errUntold):
			continue
		case err != nil:
			return err
		}
		c.noteTold(f, notification)
		if c.kind.can("notifications") && !c.kind.mute {
			c.viewer.Shown(f)
		}
	}
}

// frame tells what only happens.
func (c *connection) frame(ctx context.Context, f *feed.Frame, is Scene) error {
	return c.within(ctx, func(ctx context.Context) error { return c.link.frame(ctx, f, is) })
}

// scene is what is to be shown.
func (c *connection) scene() Scene {
	if c.try != nil {
		return c.try.scene
	}
	return c.scenes.front()
}

// show tells what is shown, where that has changed.
func (c *connection) show(ctx context.Context) error {
	is, was := c.scene(), c.told
	if is == was {
		return nil
	}
	c.told = is
	return c.within(ctx, func(ctx context.Context) error { return c.link.show(ctx, is, was) })
}

// level is how loud the speech is that the program's mouth follows, and when it changes.
func (c *connection) level() (level float64, changed <-chan struct{}) {
	if c.try != nil || !c.kind.can("mouth") {
		return c.open, nil
	}
	front := c.scenes.front()
	if front.Robot == "" && !c.o.Voice.Speaks(front.Session) {
		return c.lips.level(front.Session)
	}
	return c.o.Voice.Level(front.place())
}

// mouth tells how far the mouth is open, where that is another than it was told: the
// level has changed, or another robot is in front.
func (c *connection) mouth(ctx context.Context, level float64) error {
	if level == c.open {
		return nil
	}
	c.open = level
	return c.within(ctx, func(ctx context.Context) error { return c.link.mouth(ctx, level) })
}

// within gives a call its time.
func (c *connection) within(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	return call(ctx)
}
