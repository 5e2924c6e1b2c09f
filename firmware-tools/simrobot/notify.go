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

// notification is the notification being played (docs/notify.md of the firmware).
type notification struct {
	packets   chan notificationPacket
	cancel    context.CancelFunc // nil while nothing is played
	fetching  sync.WaitGroup
	started   time.Time
	from      time.Time // end of the popup sound
	first     bool      // a packet has arrived
	ended     bool      // the stream has ended
	subtitles []xiaozhi.Subtitle
	at        uint32 // milliseconds of the stream queued so far
}

// notificationPacket is a packet of the stream, or its end.
type notificationPacket struct {
	opus []byte
	end  bool
	err  error // why it is incomplete
}

// popup is the length of the sound before every notification.
const popup = 480 * time.Millisecond

// maxOggPacket is the size of the firmware's buffer for a packet of an Ogg stream.
const maxOggPacket = 2 << 10

// notify starts a notification. Firmware 2.5 and later accepts one, while idle.
func (s *session) notify(now time.Time, o object) {
	url, ok := o.text("audio_url")
	n := &s.notification
	switch {
	case s.r.firmware.queue > 20:
		s.ignore("unknown message type %q", "notify")
		return
	case !ok:
		s.ignore("notify without an audio_url")
		return
	case n.cancel != nil || s.talk != nil || s.state != Idle:
		s.ignore("notify while it is busy")
		return
	}
	*n = notification{packets: make(chan notificationPacket), started: now, from: now.Add(popup)}
	if raw := o.lookup("subtitles"); raw != nil {
		if err := json.Unmarshal(raw, &n.subtitles); err != nil {
			s.ignore("notify with subtitles that cannot be read: %s", err)
		}
	}
	slices.SortStableFunc(n.subtitles, func(a, b xiaozhi.Subtitle) int { return cmp.Compare(a.Start, b.Start) })
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(s.ctx)
	to := n.packets
	send := func(p notificationPacket) bool { // as fast as the robot reads them
		select {
		case to <- p:
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

// fetchNotification passes the packets of a stream to out until it returns false.
func fetchNotification(ctx context.Context, transport http.RoundTripper, url string, out func(opus []byte) bool) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Close = true
	answer, err := transport.RoundTrip(request) // redirects are not followed
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("the server answers %s", answer.Status)
	}
	r, head, err := oggreader.NewWith(answer.Body)
	switch {
	case err != nil:
		return err
	case head.Channels != 1:
		return fmt.Errorf("a stream with %d channels", head.Channels)
	}
	for tags := false; ; {
		packet, _, err := r.ParseNextPacket()
		switch {
		case errors.Is(err, io.EOF):
			_, err := io.Copy(io.Discard, answer.Body) // fails if the body is incomplete
			return err
		case err != nil:
			return err
		case len(packet) > maxOggPacket:
			return fmt.Errorf("a packet of %d bytes", len(packet))
		case !tags:
			if tags = bytes.HasPrefix(packet, []byte("OpusTags")); !tags {
				return errors.New("a stream without OpusTags")
			}
		case len(packet) > 0 && !out(bytes.Clone(packet)):
			return ctx.Err()
		}
	}
}

// input returns the stream while the decode queue has room for it, or nil.
func (s *session) input() <-chan notificationPacket {
	if n := &s.notification; n.cancel == nil || n.ended || len(s.play.queue) >= s.play.size || time.Now().Before(n.from) {
		return nil
	}
	return s.notification.packets
}

// soundEnd returns the end of the popup sound while it is played, or the zero time.
func (n *notification) soundEnd() time.Time {
	if n.cancel == nil || !time.Now().Before(n.from) {
		return time.Time{}
	}
	return n.from
}

// queueNotificationPacket handles a packet of the stream.
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
	if !n.first {
		n.first = true
		s.r.o.Observe(NotificationHeard{After: now.Sub(n.started)})
		s.play.reset()
	}
	s.play.push(now, xiaozhi.Audio{Timestamp: n.at, Opus: p.opus})
	n.at += uint32(voice.FrameDuration / time.Millisecond)
	s.r.stats.Notified++
}

// updateNotification shows due subtitles, and ends the notification when it was played.
func (s *session) updateNotification(now time.Time) {
	n := &s.notification
	if n.cancel == nil || !n.first {
		return
	}
	for len(n.subtitles) > 0 && uint32(n.subtitles[0].Start) <= s.play.reached && s.play.speech {
		s.r.o.Observe(SentenceShown{Text: n.subtitles[0].Text, At: time.Duration(s.play.reached) * time.Millisecond})
		n.subtitles = n.subtitles[1:]
	}
	if n.ended && s.play.silent() {
		s.r.o.Observe(NotificationOver{})
		s.stopNotification()
	}
}

// stopNotification cancels the notification, if one is played.
func (s *session) stopNotification() {
	if n := &s.notification; n.cancel != nil {
		n.cancel()
		n.fetching.Wait()
		n.cancel = nil
		s.play.reset()
	}
}
