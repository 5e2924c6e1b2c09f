package robot

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/agent/thinker"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/notify"
)

// Times of an announcer.
const (
	retryFirst = 3 * time.Second // after a stream that was cut
	retryMost  = 5 * time.Minute
	quietCheck = time.Minute // of whether the quiet hours are over
)

// announcer makes a robot speak that is connected by MQTT and does not talk: one announcement after
// the other, the urgent first. Sentences wait in the CommandQueue, notifications and questions
// here as well as where they come from.
type announcer struct {
	conn  *connection
	added chan struct{} // has one slot, filled when there is more

	mu      sync.Mutex
	waiting []dialogue.Announcement
	running bool
	ended   bool // with the connection
	stop    context.CancelFunc
	skipped context.CancelCauseFunc // of the announcement that is being spoken; nil between them
	tasks   sync.WaitGroup
}

func newAnnouncer(c *connection) *announcer {
	return &announcer{conn: c, added: make(chan struct{}, 1)}
}

// add speaks an announcement, in place of one with the same id that waits.
func (n *announcer) add(a dialogue.Announcement) {
	n.mu.Lock()
	same := func(b dialogue.Announcement) bool {
		return b.Notice == a.Notice && (a.Notice != "" || b.Text == a.Text)
	}
	n.waiting = append(slices.DeleteFunc(n.waiting, same), a)
	n.mu.Unlock()
	n.wake()
}

// withdraw removes a question that waits.
func (n *announcer) withdraw(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting = slices.DeleteFunc(n.waiting, func(a dialogue.Announcement) bool { return a.Hint && a.Text == text })
}

// wake speaks what waits, unless the robot talks.
func (n *announcer) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended || n.conn.current() != nil || !n.conn.speaks() {
		return
	}
	select {
	case n.added <- struct{}{}:
	default:
	}
	if n.running {
		return
	}
	n.running = true
	ctx, stop := context.WithCancel(n.conn.shared.ctx)
	n.stop = stop
	n.tasks.Go(func() {
		defer stop()
		n.run(ctx)
	})
}

// interrupt ends what is being spoken: a talk begins that it is offered to again.
func (n *announcer) interrupt() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting = nil
	if n.running {
		n.running = false
		n.stop()
	}
}

// errSkipped ends an announcement that somebody does not want to hear.
var errSkipped = errors.New("the robot was told to be quiet")

// skip ends what is being spoken for good.
func (n *announcer) skip() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.skipped != nil {
		n.skipped(errSkipped)
	}
}

// close ends the announcer with its connection.
func (n *announcer) close() {
	n.mu.Lock()
	n.ended = true
	n.mu.Unlock()
	n.interrupt()
	n.tasks.Wait()
}

// run speaks what waits, until there is nothing or ctx ends.
func (n *announcer) run(ctx context.Context) {
	retry := retryFirst
	for {
		a, ok := n.next(ctx, time.Now())
		if !ok {
			return
		}
		if a.Text == "" {
			n.pause(ctx, quietCheck)
			continue
		}
		err := n.speak(ctx, a)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil, errors.Is(err, errSkipped):
			retry = retryFirst
			n.finish(a)
		case errors.Is(err, notify.ErrNotFetched):
			n.giveUp(a)
			return
		default:
			n.conn.log.Info("an announcement was not heard to its end, and will be made again", "err", err)
			n.pause(ctx, retry)
			retry = min(2*retry, retryMost)
		}
	}
}

// giveUp shows what a robot has not fetched in two minutes. Until its next talk we assume that it
// does not speak by itself.
func (n *announcer) giveUp(a dialogue.Announcement) {
	c := n.conn
	c.log.Warn("the robot does not fetch what it is to speak, and is shown it instead; its firmware may not know notify", "firmware", c.robot.Firmware)
	c.mute.Store(true)
	n.interrupt()
	if err := c.alert(notice.Announcement{ID: a.Notice, Text: a.Text}); err != nil {
		c.log.Info("an announcement cannot be shown", "err", err)
	}
}

// pause waits for a time, or until something is added.
func (n *announcer) pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-n.added:
	case <-ctx.Done():
	}
}

// next returns the next announcement: an urgent notification, a sentence, any other. One without a
// text means that all have to wait. If ok is false nothing waits, and the goroutine ends.
func (n *announcer) next(ctx context.Context, now time.Time) (a dialogue.Announcement, ok bool) {
	c := n.conn
	all := n.commands(now)
	n.mu.Lock()
	defer n.mu.Unlock()
	if ctx.Err() != nil {
		return a, false
	}
	n.waiting = slices.DeleteFunc(n.waiting, func(a dialogue.Announcement) bool {
		return a.Notice != "" && !c.shared.options.Waits(a.Notice)
	})
	all = append(all, n.waiting...)
	if len(all) == 0 {
		n.running = false
		return a, false
	}
	if i := slices.IndexFunc(all, func(a dialogue.Announcement) bool { return a.Urgent }); i >= 0 {
		return all[i], true
	}
	if c.shared.options.Quiet(now) {
		return dialogue.Announcement{}, true
	}
	return all[0], true
}

// commands returns the sentences that wait for the robot, and shows the alert that does.
func (n *announcer) commands(now time.Time) (all []dialogue.Announcement) {
	c := n.conn
	for _, w := range c.shared.options.Commands.list(c.robot.ID) {
		switch {
		case !now.Before(w.Expires):
			c.shared.options.Commands.drop(c.robot.ID, w.ID)
			c.publish(event.Command{Thing: w.Thing, State: event.CommandRejected, Reason: dialogue.ReasonExpired})
		case w.Thing == commandAlert:
			if c.send(w.alert()) == nil {
				c.shared.options.Commands.drop(c.robot.ID, w.ID)
				c.publish(event.Command{Thing: w.Thing, State: event.CommandDone})
			}
		default:
			all = append(all, dialogue.Announcement{Text: w.Text, Command: w.ID})
		}
	}
	return all
}

// finish records that the robot has played an announcement to its end.
func (n *announcer) finish(a dialogue.Announcement) {
	c := n.conn
	n.mu.Lock()
	n.waiting = slices.DeleteFunc(n.waiting, func(b dialogue.Announcement) bool { return b.Notice == a.Notice && b.Text == a.Text })
	n.mu.Unlock()
	switch {
	case a.Command != "":
		c.shared.options.Commands.drop(c.robot.ID, a.Command)
		c.publish(event.Command{Thing: dialogue.CommandSay, State: event.CommandDone})
	case a.Notice != "":
		c.publish(event.NotificationChanged{ID: a.Notice, State: notice.Spoken})
	}
}

// wakeHint is shown after a question: the robot cannot hear its answer yet.
const wakeHint = "Touch me, or say my wake word, to answer."

// speak makes the robot speak one announcement, and returns when it has played it.
func (n *announcer) speak(ctx context.Context, a dialogue.Announcement) error {
	ctx, cancelled := context.WithCancelCause(ctx)
	cancel := func() { cancelled(nil) }
	n.mu.Lock()
	n.skipped = cancelled
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.skipped = nil
		n.mu.Unlock()
	}()
	c, s := n.conn, n.conn.shared
	face, words := agent.SplitEmotion(a.Text)
	sentences := thinker.Sentences(words)
	sound := notify.NewStream(sentences)
	var making sync.WaitGroup
	defer making.Wait()
	defer cancel() // which ends it
	o, done := s.acquire()
	making.Go(func() {
		defer done()
		sound.Synthesize(ctx, o.Synthesizer, o.Character(c.robot.ID).Speech)
	})
	subtitles, err := sound.Plan(ctx)
	if err != nil {
		return err
	}
	if a.Hint {
		subtitles = append(subtitles, xiaozhi.Subtitle{Start: subtitles[len(subtitles)-1].Start + hintAfter, Text: wakeHint})
	}
	if face != agent.Neutral {
		if err := c.send(xiaozhi.LLM{Emotion: face.On(c.robot.Board).Name, Text: face.Emoji}); err != nil {
			return err
		}
	}
	err = s.streams.Play(ctx, sound, func(path string) error {
		return c.send(xiaozhi.Notify{URL: strings.TrimSuffix(c.robot.BaseURL, "/") + path, Subtitles: subtitles})
	})
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	for _, sentence := range sentences {
		c.publish(event.Said{Text: sentence})
	}
	return nil
}

// hintAfter is in milliseconds.
const hintAfter = 2000
