package robot

import (
	"cmp"
	"context"
	"errors"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/notify"
	"perch/gateway/robot/playback"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/agent/thinker"
	"perch/device/xiaozhi"
	"perch/event"
)

// Times of a teller.
const (
	retryFirst = 3 * time.Second // after a stream that was cut
	retryMost  = 5 * time.Minute
	quietLook  = time.Minute // at whether the quiet hours are over
)

// teller has a robot speak that is connected by MQTT and does not talk: one
// announcement after the other, the urgent first. What waits is in the CommandQueue,
// and, of notifications and questions, here as well as where they come from.
type teller struct {
	link *link
	news chan struct{} // poked when there is more

	mu      sync.Mutex
	waiting []dialogue.Announcement
	running bool
	ended   bool // with the connection
	stop    context.CancelFunc
	skipped context.CancelCauseFunc // of the announcement that is being spoken; nil between them
	tasks   sync.WaitGroup
}

func newTeller(k *link) *teller { return &teller{link: k, news: make(chan struct{}, 1)} }

// speaks reports whether a robot speaks without being asked: its firmware knows
// notify, as far as its version and the last attempt show, and its address for us is known.
func (k *link) speaks() bool {
	major, minor, ok := playback.Version(k.robot.Firmware)
	return ok && !k.mute.Load() && (major > 2 || major == 2 && minor >= 5) && k.robot.BaseURL != "" && k.server.options.Robots.Trusts(k.robot.ID)
}

// add has something spoken, instead of what waits of the same id.
func (t *teller) add(a dialogue.Announcement) {
	t.mu.Lock()
	same := func(b dialogue.Announcement) bool {
		return b.Notice == a.Notice && (a.Notice != "" || b.Text == a.Text)
	}
	t.waiting = append(slices.DeleteFunc(t.waiting, same), a)
	t.mu.Unlock()
	t.wake()
}

// withdraw takes a question back.
func (t *teller) withdraw(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = slices.DeleteFunc(t.waiting, func(a dialogue.Announcement) bool { return a.Hint && a.Text == text })
}

// wake has what waits spoken, unless the robot talks.
func (t *teller) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.link.current() != nil || !t.link.speaks() {
		return
	}
	select {
	case t.news <- struct{}{}:
	default:
	}
	if t.running {
		return
	}
	t.running = true
	ctx, stop := context.WithCancel(t.link.server.ctx)
	t.stop = stop
	t.tasks.Go(func() {
		defer stop()
		t.run(ctx)
	})
}

// hush ends what is being spoken: a talk begins, in which it is offered again.
func (t *teller) hush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = nil
	if t.running {
		t.running = false
		t.stop()
	}
}

// errSkipped ends an announcement that somebody does not want to hear.
var errSkipped = errors.New("the robot was told to be quiet")

// skip ends what is being spoken.
func (t *teller) skip() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.skipped != nil {
		t.skipped(errSkipped)
	}
}

// end ends the teller with its connection.
func (t *teller) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.hush()
	t.tasks.Wait()
}

// run speaks what waits, until there is nothing or ctx ends.
func (t *teller) run(ctx context.Context) {
	retry := retryFirst
	for {
		a, there := t.next(ctx, time.Now())
		if !there {
			return
		}
		if a.Text == "" {
			t.pause(ctx, quietLook)
			continue
		}
		err := t.tell(ctx, a)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil, errors.Is(err, errSkipped):
			retry = retryFirst
			t.told(a)
		case errors.Is(err, notify.ErrNotFetched):
			t.giveUp(a)
			return
		default:
			t.link.log.Info("an announcement was not heard to its end, and will be made again", "err", err)
			t.pause(ctx, retry)
			retry = min(2*retry, retryMost)
		}
	}
}

// giveUp shows what a robot has not fetched in two minutes. Until its next talk it is
// taken for one that does not speak by itself.
func (t *teller) giveUp(a dialogue.Announcement) {
	k := t.link
	k.log.Warn("the robot does not fetch what it is to speak, and is shown it instead; its firmware may not know notify", "firmware", k.robot.Firmware)
	k.mute.Store(true)
	t.hush()
	if err := k.announce(notice.Announcement{ID: a.Notice, Text: a.Text}); err != nil {
		k.log.Info("an announcement cannot be shown", "err", err)
	}
}

// pause waits, or until there is more to speak.
func (t *teller) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.news:
	case <-ctx.Done():
	}
}

// next is the announcement that comes next: an urgent notification, a sentence, any
// other. Without a text, what there is has to wait. Where there is none, the
// goroutine ends.
func (t *teller) next(ctx context.Context, now time.Time) (a dialogue.Announcement, there bool) {
	k := t.link
	all := t.commands(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() != nil {
		return a, false
	}
	t.waiting = slices.DeleteFunc(t.waiting, func(a dialogue.Announcement) bool {
		return a.Notice != "" && k.server.options.Waits != nil && !k.server.options.Waits(a.Notice)
	})
	all = append(all, t.waiting...)
	if len(all) == 0 {
		t.running = false
		return a, false
	}
	if i := slices.IndexFunc(all, func(a dialogue.Announcement) bool { return a.Urgent }); i >= 0 {
		return all[i], true
	}
	if k.server.quiet(now) {
		return dialogue.Announcement{}, true
	}
	return all[0], true
}

// commands are the sentences that wait for the robot.
func (t *teller) commands(now time.Time) (all []dialogue.Announcement) {
	k := t.link
	for _, c := range k.server.options.Commands.list(k.robot.ID) {
		switch {
		case !now.Before(c.Expires):
			k.server.options.Commands.drop(k.robot.ID, c.ID)
			k.publish(event.Command{Thing: c.Thing, State: event.CommandRejected, Reason: dialogue.ReasonExpired})
		case c.Thing == commandAlert:
			if k.send(c.alert()) == nil {
				k.server.options.Commands.drop(k.robot.ID, c.ID)
				k.publish(event.Command{Thing: c.Thing, State: event.CommandDone})
			}
		default:
			all = append(all, dialogue.Announcement{Text: c.Text, Command: c.ID})
		}
	}
	return all
}

// told takes note of what the robot has played to its end.
func (t *teller) told(a dialogue.Announcement) {
	k := t.link
	t.mu.Lock()
	t.waiting = slices.DeleteFunc(t.waiting, func(b dialogue.Announcement) bool { return b.Notice == a.Notice && b.Text == a.Text })
	t.mu.Unlock()
	switch {
	case a.Command != "":
		k.server.options.Commands.drop(k.robot.ID, a.Command)
		k.publish(event.Command{Thing: dialogue.CommandSay, State: event.CommandDone})
	case a.Notice != "":
		k.publish(event.NotificationChanged{ID: a.Notice, State: notice.Spoken})
	}
}

// announce has the robot speak a notification, or only shows it: where that is all
// there is to do, or all that its firmware can do between talks.
func (k *link) announce(a notice.Announcement) error {
	if a.Speak && k.speaks() {
		k.teller.add(dialogue.Announcement{Text: a.Text, Notice: a.ID, Urgent: a.Urgent})
		return nil
	}
	if err := k.send(alertOf(a)); err != nil {
		return err
	}
	if a.ID != "" {
		k.publish(event.NotificationChanged{ID: a.ID, State: notice.Shown})
	}
	return nil
}

// wakeHint is shown after a question: the robot cannot hear its answer yet.
const wakeHint = "Touch me, or say my wake word, to answer."

// tell has the robot speak one announcement, and returns when it has played it.
func (t *teller) tell(ctx context.Context, a dialogue.Announcement) error {
	ctx, cancelled := context.WithCancelCause(ctx)
	cancel := func() { cancelled(nil) }
	t.mu.Lock()
	t.skipped = cancelled
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.skipped = nil
		t.mu.Unlock()
	}()
	k, s := t.link, t.link.server
	face, words := agent.SplitEmotion(a.Text)
	sentences := thinker.Sentences(words)
	sound := notify.NewStream(sentences)
	var making sync.WaitGroup
	defer making.Wait()
	defer cancel() // which ends that
	o, done := s.hold()
	making.Go(func() {
		defer done()
		sound.Make(ctx, o.Synthesizer, o.Character(k.robot.ID).Speech)
	})
	subtitles, err := sound.Plan(ctx)
	if err != nil {
		return err
	}
	if a.Hint {
		subtitles = append(subtitles, xiaozhi.Subtitle{Start: subtitles[len(subtitles)-1].Start + hintAfter, Text: wakeHint})
	}
	if face != agent.Neutral {
		if err := k.send(xiaozhi.LLM{Emotion: face.On(k.robot.Board).Name, Text: face.Emoji}); err != nil {
			return err
		}
	}
	err = s.tickets.Play(ctx, sound, func(path string) error {
		return k.send(xiaozhi.Notify{URL: strings.TrimSuffix(k.robot.BaseURL, "/") + path, Subtitles: subtitles})
	})
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	for _, sentence := range sentences {
		k.publish(event.Said{Text: sentence})
	}
	return nil
}

// hintAfter is in milliseconds.
const hintAfter = 2000
