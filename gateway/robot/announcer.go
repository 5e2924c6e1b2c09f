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

// Intervals of an announcer.
const (
	minRetry        = 3 * time.Second // wait before an announcement that was broken off is repeated; doubles each time
	maxRetry        = 5 * time.Minute
	quietHoursCheck = time.Minute // wait between checks whether the quiet hours are over
)

// announcer makes an idle robot with an MQTT connection speak: one announcement after the other, urgent ones
// first. Stored sentences stay in the CommandQueue until they are spoken. Notifications and questions are
// held in the field waiting, and their senders keep them too.
type announcer struct {
	conn  *connection
	added chan struct{} // has a buffer for one value, which wake sends to end a pause

	mu          sync.Mutex
	waiting     []dialogue.Announcement
	interrupted map[announcementKey]bool // announcements that were interrupted, and are repeated after the others
	running     bool                     // the goroutine of run is active
	ended       bool                     // the connection has ended
	stop        context.CancelFunc       // stops run
	skip        context.CancelCauseFunc  // ends the announcement being spoken; nil while nothing is spoken
	tasks       sync.WaitGroup
}

// announcementKey identifies an announcement: the ID of its notification or stored sentence, or its text.
type announcementKey string

func keyOf(a dialogue.Announcement) announcementKey {
	return announcementKey(cmp.Or(a.Notice, a.Command, a.Text))
}

// newAnnouncer returns the announcer of a connection. The caller must call close.
func newAnnouncer(c *connection) *announcer {
	return &announcer{conn: c, added: make(chan struct{}, 1), interrupted: map[announcementKey]bool{}}
}

// add queues an announcement and calls wake. It replaces a waiting announcement of the same notification or,
// if a belongs to no notification, with the same text.
func (n *announcer) add(a dialogue.Announcement) {
	n.mu.Lock()
	same := func(b dialogue.Announcement) bool {
		return b.Notice == a.Notice && (a.Notice != "" || b.Text == a.Text)
	}
	n.waiting = append(slices.DeleteFunc(n.waiting, same), a)
	n.mu.Unlock()
	n.wake()
}

// withdraw removes the waiting question with a text.
func (n *announcer) withdraw(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting = slices.DeleteFunc(n.waiting, func(a dialogue.Announcement) bool { return a.Hint && a.Text == text })
}

// wake starts speaking the waiting announcements, unless the robot has a session or cannot speak while idle.
func (n *announcer) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended || n.conn.current() != nil || !n.conn.canSpeak() {
		return
	}
	select {
	case n.added <- struct{}{}:
	default: // filled already
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

// interrupt ends the announcement being spoken and drops the waiting ones. When a session begins, their
// senders offer the dropped announcements to the session.
func (n *announcer) interrupt() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting = nil
	if n.running {
		n.running = false
		n.stop()
	}
}

// errSkipped is the error of an announcement that was ended by skipCurrent.
var errSkipped = errors.New("somebody has silenced the robot")

// skipCurrent ends the announcement being spoken, which is not repeated.
func (n *announcer) skipCurrent() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.skip != nil {
		n.skip(errSkipped)
	}
}

// close stops the announcer and waits for its goroutine. It is called once the connection has ended.
func (n *announcer) close() {
	n.mu.Lock()
	n.ended = true
	n.mu.Unlock()
	n.interrupt()
	n.tasks.Wait()
}

// run speaks the waiting announcements until all are spoken, ctx ends, or the robot does not fetch the sound of one
// (see giveUp).
func (n *announcer) run(ctx context.Context) {
	retry := minRetry
	for {
		a, ok := n.next(ctx, time.Now())
		if !ok {
			return
		}
		if a.Text == "" {
			n.pause(ctx, quietHoursCheck)
			continue
		}
		unspoken, err := n.speak(ctx, a)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil, errors.Is(err, errSkipped):
			retry = minRetry
			n.finish(a, unspoken)
		case errors.Is(err, notify.ErrNotFetched):
			n.giveUp(a)
			return
		default:
			n.conn.log.Info("an announcement was broken off, and will be repeated", "err", err)
			n.markInterrupted(a)
			n.pause(ctx, retry)
			retry = min(2*retry, maxRetry)
		}
	}
}

// giveUp shows an announcement whose sound the robot has not fetched within two minutes, and drops the waiting
// ones. Until the end of the robot's next session, the appliance assumes that the robot cannot speak while idle.
func (n *announcer) giveUp(a dialogue.Announcement) {
	c := n.conn
	c.log.Warn("the robot does not fetch the sound of an announcement, so the announcement is shown; its firmware may not support notify", "firmware", c.robot.Firmware)
	c.fetchFailed.Store(true)
	n.interrupt()
	if err := c.showAlert(notice.Announcement{ID: a.Notice, Text: a.Text}); err != nil {
		c.log.Info("an announcement cannot be shown", "err", err)
	}
}

// markInterrupted records that an announcement was interrupted.
func (n *announcer) markInterrupted(a dialogue.Announcement) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.interrupted[keyOf(a)] = true
}

// pause waits for a time, or until wake is called or ctx ends.
func (n *announcer) pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-n.added:
	case <-ctx.Done():
	}
}

// next returns the next announcement: an urgent one first, then stored sentences, then others.
// Interrupted announcements come after all others. next drops notifications that no longer wait to be
// announced. An announcement with an empty text means that all announcements must wait for the end of the
// quiet hours. If ok is false, nothing waits or ctx has ended, and the goroutine must end.
func (n *announcer) next(ctx context.Context, now time.Time) (a dialogue.Announcement, ok bool) {
	c := n.conn
	announcements := n.collectStored(now)
	n.mu.Lock()
	defer n.mu.Unlock()
	if ctx.Err() != nil {
		return a, false
	}
	n.waiting = slices.DeleteFunc(n.waiting, func(a dialogue.Announcement) bool {
		return a.Notice != "" && !c.shared.options.Waits(a.Notice)
	})
	announcements = append(announcements, n.waiting...)
	if len(announcements) == 0 {
		n.running = false
		return a, false
	}
	untried := slices.DeleteFunc(slices.Clone(announcements), func(a dialogue.Announcement) bool { return n.interrupted[keyOf(a)] })
	if len(untried) > 0 {
		announcements = untried
	} else {
		clear(n.interrupted) // all interrupted announcements are tried again
	}
	if i := slices.IndexFunc(announcements, func(a dialogue.Announcement) bool { return a.Urgent }); i >= 0 {
		return announcements[i], true
	}
	if c.shared.options.Quiet(now) {
		return dialogue.Announcement{}, true
	}
	return announcements[0], true
}

// collectStored returns the robot's stored sentences as announcements. It shows the stored alert at once,
// and drops expired commands.
func (n *announcer) collectStored(now time.Time) (sentences []dialogue.Announcement) {
	c := n.conn
	for _, command := range c.shared.options.Commands.list(c.robot.ID) {
		switch {
		case !now.Before(command.Expires):
			c.shared.options.Commands.drop(c.robot.ID, command.ID)
			for _, e := range command.rejected(dialogue.ReasonExpired) {
				c.publish(e)
			}
		case command.Thing == commandAlert:
			if c.send(command.alert()) == nil {
				c.shared.options.Commands.drop(c.robot.ID, command.ID)
				c.publish(event.Command{Thing: command.Thing, State: event.CommandDone})
			}
		default:
			sentences = append(sentences, command.announcement())
		}
	}
	return sentences
}

// finish removes an announcement that the robot has played or somebody has skipped, and publishes that
// it is done. If nothing of the announcement could be spoken, unspoken is the reason; otherwise it is empty.
func (n *announcer) finish(a dialogue.Announcement, unspoken string) {
	c := n.conn
	n.mu.Lock()
	n.waiting = slices.DeleteFunc(n.waiting, func(b dialogue.Announcement) bool { return b.Notice == a.Notice && b.Text == a.Text })
	n.mu.Unlock()
	switch {
	case a.Command != "":
		c.shared.options.Commands.drop(c.robot.ID, a.Command)
		for _, e := range dialogue.SayEnded(a, unspoken) {
			c.publish(e)
		}
	case a.Notice != "":
		c.publish(event.NotificationChanged{ID: a.Notice, State: notice.Spoken})
	}
}

// wakeHint is shown after a question. The robot is idle, so somebody has to wake it to answer.
const wakeHint = "Touch me, or say my wake word, to answer."

// speak makes the robot speak one announcement, and returns when the robot has played all of it. Parts that
// cannot be spoken are shown. If nothing could be spoken, unspoken is the reason; otherwise it is empty. The
// error is errSkipped after skipCurrent, and wraps notify.ErrNotFetched if the robot does not fetch the sound.
func (n *announcer) speak(ctx context.Context, a dialogue.Announcement) (unspoken string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	n.mu.Lock()
	n.skip = cancel
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.skip = nil
		n.mu.Unlock()
	}()
	c, s := n.conn, n.conn.shared
	face, text := agent.SplitEmotion(a.Text)
	sentences := thinker.Sentences(text)
	if len(sentences) == 0 {
		return dialogue.ErrNothingToSay.Error(), c.showAlert(notice.Announcement{Text: a.Text})
	}
	sound := notify.NewStream(sentences)
	var synthesis sync.WaitGroup
	defer synthesis.Wait()
	defer cancel(nil) // ends the synthesis if it is still running
	o, done := s.acquire()
	synthesis.Go(func() {
		defer done()
		sound.Synthesize(ctx, o.Synthesizer, o.Character(c.robot.ID).Speech)
	})
	subtitles, err := sound.Plan(ctx)
	if err != nil {
		return "", cmp.Or(context.Cause(ctx), err)
	}
	if a.Hint {
		subtitles = append(subtitles, xiaozhi.Subtitle{Start: subtitles[len(subtitles)-1].Start + wakeHintDelay, Text: wakeHint})
	}
	if face != agent.Neutral {
		if err := c.send(xiaozhi.LLM{Emotion: face.On(c.robot.Board).Name, Text: face.Emoji}); err != nil {
			return "", err
		}
	}
	err = s.streams.Play(ctx, sound, func(path string) error {
		return c.send(xiaozhi.Notify{URL: strings.TrimSuffix(c.robot.BaseURL, "/") + path, Subtitles: subtitles})
	}, func() {
		switch {
		case a.Notice != "":
			c.publish(event.NotificationChanged{ID: a.Notice, State: notice.Shown})
		case a.Command != "":
			c.publish(event.Speech{Text: a.Text, State: event.SpeechSpeaking})
		}
	})
	if err != nil {
		return "", cmp.Or(context.Cause(ctx), err)
	}
	spoken, rest := sound.Spoken()
	if rest != nil {
		c.log.Warn("an announcement could not be spoken as a whole; the rest was shown", "err", rest)
	}
	for _, sentence := range sentences {
		c.publish(event.Said{Text: sentence})
	}
	if !spoken && rest != nil {
		return rest.Error(), nil
	}
	return "", nil
}

// wakeHintDelay is how long after the beginning of the last sentence wakeHint is shown, in milliseconds.
const wakeHintDelay = 2000
