package simrobot

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pion/opus/pkg/oggreader"

	"perch/device/xiaozhi"
	"perch/voice"
)

// notification is a notification being played: a sound with subtitles that an idle robot downloads
// (see docs/notify.md of the firmware).
type notification struct {
	packets   chan notificationPacket
	cancel    context.CancelFunc // stops the download; nil while no notification is played
	fetching  sync.WaitGroup
	started   time.Time // arrival of the notification
	popupEnd  time.Time // end of the popup sound
	begun     bool      // a packet has arrived
	ended     bool      // the stream has ended
	subtitles []xiaozhi.Subtitle
	queued    uint32 // milliseconds of sound queued so far
}

// notificationPacket is a packet of a notification's sound, or the end of the sound.
type notificationPacket struct {
	opus []byte
	end  bool
	err  error // at the end: the reason why the sound is incomplete, or nil
}

// popupDuration is the duration of the popup sound before every notification.
const popupDuration = 480 * time.Millisecond

// maxOggPacket is the maximum size of an Ogg packet in bytes, which is the size of the firmware's
// buffer.
const maxOggPacket = 2 << 10

// startNotification starts to download a notification. Only firmware 2.5 supports notifications. It
// ignores them unless the robot is idle and plays no other notification.
func (s *session) startNotification(now time.Time, o object) {
	url, ok := o.text("audio_url")
	n := &s.notification
	switch {
	case s.r.firmware.queue > 20: // firmware before 2.5 has a longer queue
		s.ignore("unknown message type %q", "notify")
		return
	case !ok:
		s.ignore("notify without an audio_url")
		return
	case n.cancel != nil || s.mqtt != nil || s.state != Idle:
		s.ignore("notify while the robot is busy")
		return
	}
	*n = notification{packets: make(chan notificationPacket), started: now, popupEnd: now.Add(popupDuration)}
	if raw := o.lookup("subtitles"); raw != nil {
		if err := json.Unmarshal(raw, &n.subtitles); err != nil {
			s.ignore("notify with subtitles that cannot be read: %s", err)
		}
	}
	slices.SortStableFunc(n.subtitles, func(a, b xiaozhi.Subtitle) int { return cmp.Compare(a.Start, b.Start) })
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(s.ctx)
	packets := n.packets
	send := func(p notificationPacket) bool { // blocks until the player has room
		select {
		case packets <- p:
			return true
		case <-ctx.Done():
			return false
		}
	}
	n.fetching.Go(func() {
		err := fetchNotification(ctx, s.r.http.Transport, url, func(opus []byte) bool { return send(notificationPacket{opus: opus}) })
		send(notificationPacket{end: true, err: err})
	})
	s.r.o.Observe(Notified{})
}

// fetchNotification downloads an Ogg Opus stream. It passes the packets to out until out
// returns false.
func fetchNotification(ctx context.Context, transport http.RoundTripper, url string, out func(opus []byte) bool) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Close = true
	response, err := transport.RoundTrip(request) // redirects are not followed
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("the server responded with %s", response.Status)
	}
	r, head, err := oggreader.NewWith(response.Body)
	switch {
	case err != nil:
		return err
	case head.Channels != 1:
		return fmt.Errorf("a stream with %d channels", head.Channels)
	}
	for hasTags := false; ; {
		packet, _, err := r.ParseNextPacket()
		switch {
		case errors.Is(err, io.EOF):
			_, err := io.Copy(io.Discard, response.Body) // fails if the body is incomplete
			return err
		case err != nil:
			return err
		case len(packet) > maxOggPacket:
			return fmt.Errorf("a packet of %d bytes", len(packet))
		case !hasTags:
			if hasTags = bytes.HasPrefix(packet, []byte("OpusTags")); !hasTags {
				return errors.New("a stream without OpusTags")
			}
		case len(packet) > 0 && !out(bytes.Clone(packet)):
			return ctx.Err()
		}
	}
}

// notificationInput returns the Go channel to receive packets from. It returns nil if no packet may be
// received now, because no notification is played, its popup sound is not over, all its packets have
// been received, or the player's queue is full.
func (s *session) notificationInput() <-chan notificationPacket {
	if n := &s.notification; n.cancel == nil || n.ended || len(s.play.queue) >= s.play.size || time.Now().Before(n.popupEnd) {
		return nil
	}
	return s.notification.packets
}

// nextStart returns the end of the popup sound while this sound is being played, and the zero
// time otherwise.
func (n *notification) nextStart() time.Time {
	if n.cancel == nil || !time.Now().Before(n.popupEnd) {
		return time.Time{}
	}
	return n.popupEnd
}

// queueNotificationPacket passes a packet to the player, or handles the end of the sound.
func (s *session) queueNotificationPacket(now time.Time, p notificationPacket) {
	n := &s.notification
	if p.end {
		n.ended = true
		if p.err != nil {
			s.r.o.Observe(NotificationCut{Why: p.err.Error()})
			s.stopNotification()
		}
		return
	}
	if !n.begun {
		n.begun = true
		s.r.o.Observe(NotificationHeard{After: now.Sub(n.started)})
		s.play.reset()
	}
	s.play.push(now, xiaozhi.Audio{Timestamp: n.queued, Opus: p.opus})
	n.queued += uint32(voice.FrameDuration / time.Millisecond)
	s.r.stats.Notified++
}

// updateNotification shows due subtitles, and ends the notification once it has been played.
func (s *session) updateNotification(now time.Time) {
	n := &s.notification
	if n.cancel == nil || !n.begun {
		return
	}
	for len(n.subtitles) > 0 && uint32(n.subtitles[0].Start) <= s.play.reached && s.play.speech {
		s.r.o.Observe(SentenceShown{Text: n.subtitles[0].Text, At: time.Duration(s.play.reached) * time.Millisecond})
		n.subtitles = n.subtitles[1:]
	}
	if n.ended && s.play.isSilent() {
		s.r.o.Observe(NotificationOver{})
		s.stopNotification()
	}
}

// stopNotification ends the notification, if one is being played.
func (s *session) stopNotification() {
	if n := &s.notification; n.cancel != nil {
		n.cancel()
		n.fetching.Wait()
		n.cancel = nil
		s.play.reset()
	}
}
