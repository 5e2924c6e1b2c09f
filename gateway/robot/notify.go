package robot

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4/pkg/media/oggwriter"

	"perch/device/xiaozhi"
	"perch/gateway/door"
	"perch/voice"
)

// A robot that is idle is spoken to by notify: it is sent a URL of ours, and fetches
// the sound there, which is made while it plays. The request is all that is heard
// of it, so that the stream is sent no faster than it plays, and its end when it has.
const (
	notifyPath = "/xiaozhi/notify/"

	ticketLives  = 2 * time.Minute
	mostAhead    = 200                     // packets that are made ahead: 12 s of sound
	planWithin   = 400 * time.Millisecond  // for the times of the subtitles
	streamLead   = 1200 * time.Millisecond // the robot's decode queue
	streamWithin = 10 * time.Second        // a robot that reads nothing for so long is gone
)

// Errors of a stream. Both mean that the robot has not played all of it.
var (
	errNotFetched = errors.New("the robot has not fetched the sound")
	errCut        = errors.New("the robot has broken off the sound")
)

// stream is the sound of an announcement, in packets of 60 ms. One goroutine makes
// it, another sends it.
type stream struct {
	mu      sync.Mutex
	changed chan struct{} // closed and made anew with every change
	packets [][]byte
	sent    int
	starts  []int // of each sentence that has begun, in packets
	planned []int // starts that the robot was told: no sentence begins sooner
	made    int   // sentences that are whole
	over    bool
	err     error // why it is not whole
}

func newStream() *stream { return &stream{changed: make(chan struct{})} }

// change does something to the stream and wakes who waits. mu is not held.
func (s *stream) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

// wait waits until enough is true, or ctx ends.
func (s *stream) wait(ctx context.Context, enough func() bool) error {
	for {
		s.mu.Lock()
		done, changed := enough(), s.changed
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// make synthesizes the sentences, not further ahead than a playback does.
func (s *stream) make(ctx context.Context, by voice.Synthesizer, o voice.Options, sentences []string) {
	err := s.synthesize(ctx, by, o, sentences)
	s.change(func() { s.over, s.err = true, err })
}

func (s *stream) synthesize(ctx context.Context, by voice.Synthesizer, o voice.Options, sentences []string) error {
	encoder, err := voice.NewEncoder(voice.SpeakerRate)
	if err != nil {
		return err
	}
	add := func(packet []byte) error {
		if err := s.wait(ctx, func() bool { return len(s.packets)-s.sent < mostAhead }); err != nil {
			return err
		}
		packet = slices.Clone(packet)
		s.change(func() { s.packets = append(s.packets, packet) })
		return nil
	}
	silence := make([]int16, voice.SpeakerFrame)
	for i, sentence := range sentences {
		for s.early(i) {
			if err := encoder.Encode(silence, add); err != nil {
				return err
			}
		}
		s.change(func() { s.starts = append(s.starts, len(s.packets)) })
		err := by.Synthesize(ctx, sentence, o, func(pcm []int16) error { return encoder.Encode(pcm, add) })
		if err == nil {
			err = encoder.Flush(add)
		}
		if err != nil {
			return fmt.Errorf("speak: %w", err)
		}
		s.change(func() { s.made++ })
	}
	return nil
}

// early reports whether a sentence is to begin later than now.
func (s *stream) early(sentence int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sentence < len(s.planned) && len(s.packets) < s.planned[sentence]
}

// plan returns the subtitles of the sentences. Times of those that are not known soon
// enough are estimated by those that are; the sentences keep to them.
func (s *stream) plan(ctx context.Context, sentences []string) ([]xiaozhi.Subtitle, error) {
	within, cancel := context.WithTimeout(ctx, planWithin)
	defer cancel()
	// Where the time is over the rest is estimated.
	_ = s.wait(within, func() bool { return len(s.starts) == len(sentences) || s.over || len(s.packets) == mostAhead })
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var all []xiaozhi.Subtitle
	s.change(func() {
		s.planned = slices.Clone(s.starts)
		for i, sentence := range sentences {
			if i == len(s.planned) {
				s.planned = append(s.planned, max(len(s.packets), s.planned[i-1]+s.estimate(sentences, i-1)))
			}
			all = append(all, xiaozhi.Subtitle{Start: s.planned[i] * int(voice.FrameDuration/time.Millisecond), Text: sentence})
		}
	})
	return all, s.failed()
}

// estimate is how long a sentence will be, in packets, by those that are whole. It is
// rather too long: a silence disturbs less than a subtitle that comes early. s.mu is held.
func (s *stream) estimate(sentences []string, n int) int {
	const usual = 10 // runes in a second of slow speech
	perSecond := int(time.Second / voice.FrameDuration)
	runes := utf8.RuneCountInString(sentences[n])
	if s.made == 0 || s.made >= len(s.starts) {
		return runes*perSecond/usual + perSecond/4
	}
	known := utf8.RuneCountInString(strings.Join(sentences[:s.made], ""))
	return runes*s.starts[s.made]/max(1, known) + perSecond/2
}

// failed is why nothing of the stream can be heard.
func (s *stream) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.packets) == 0 {
		return s.err
	}
	return nil
}

// packet waits for a packet; nil is the end.
func (s *stream) packet(ctx context.Context, n int) ([]byte, error) {
	if err := s.wait(ctx, func() bool { return n < len(s.packets) || s.over }); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n >= len(s.packets) {
		return nil, s.err
	}
	packet := s.packets[n]
	s.packets[n] = nil
	return packet, nil
}

// send writes the stream as Ogg Opus (RFC 7845), at the pace at which it plays.
func (s *stream) send(ctx context.Context, w http.ResponseWriter) error {
	out := http.NewResponseController(w)
	ogg, err := oggwriter.NewWriter(w, oggwriter.WithSampleRate(voice.SpeakerRate), oggwriter.WithChannelCount(1))
	if err != nil {
		return err
	}
	track, err := ogg.NewTrack(1)
	if err != nil {
		return err
	}
	var begun time.Time
	played := func(n int, lead time.Duration) error { // waits until so many packets but the lead were played
		return sleep(ctx, time.Until(begun.Add(time.Duration(n)*voice.FrameDuration-lead)))
	}
	n := 0
	for ; ; n++ {
		packet, err := s.packet(ctx, n)
		if err != nil {
			return err
		}
		if packet == nil {
			break
		}
		if n == 0 {
			begun = time.Now()
		}
		if err := played(n, streamLead); err != nil {
			return err
		}
		_ = out.SetWriteDeadline(time.Now().Add(streamWithin)) // what has no deadlines is no network
		if err := track.WriteRTP(&rtp.Packet{Header: rtp.Header{SSRC: 1}, Payload: packet}); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
		s.change(func() { s.sent = n + 1 })
	}
	if err := played(n, 0); err != nil {
		return err
	}
	return ogg.Close()
}

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tickets are the streams that robots may fetch, each once.
type tickets struct {
	mu   sync.Mutex
	open map[string]*ticket
}

// ticket is the right to fetch one stream.
type ticket struct {
	stream  *stream
	ctx     context.Context // of the announcement
	fetched chan struct{}   // closed once the robot has come for it
	done    chan error      // with a slot for how that ended
}

// issue returns a ticket and its name in the URL. Its owner withdraws it.
func (t *tickets) issue(ctx context.Context, s *stream) (name string, issued *ticket) {
	name = rand.Text()
	issued = &ticket{stream: s, ctx: ctx, fetched: make(chan struct{}), done: make(chan error, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[string]*ticket{}
	}
	t.open[name] = issued
	return name, issued
}

// take takes a ticket away from everybody else.
func (t *tickets) take(name string) *ticket {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.open[name]
	delete(t.open, name)
	return taken
}

var errNoTicket error = &door.Fault{Word: "no_such_sound", HTTP: http.StatusNotFound,
	Sentence: "there is no sound under this address: it was fetched before, or it has waited for more than two minutes"}

// fetch gives a robot the sound of a ticket.
func (s *Server) fetch(w http.ResponseWriter, r *http.Request, name string) error {
	t := s.tickets.take(name)
	if t == nil {
		return errNoTicket
	}
	close(t.fetched)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stop := context.AfterFunc(t.ctx, cancel) // a talk has begun
	defer stop()
	w.Header().Set("Content-Type", "audio/ogg")
	w.Header().Set("Cache-Control", "no-store")
	err := t.stream.send(ctx, w)
	if err != nil {
		err = fmt.Errorf("%w: %w", errCut, err)
	}
	t.done <- err
	if err != nil { // the answer cannot be ended, and is not taken for a whole one
		_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) // what has no deadlines is no network
	}
	return err
}
