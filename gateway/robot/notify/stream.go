// Package notify makes robots speak that are idle. Such a robot is sent a URL, and fetches the sound
// there, which is made while it plays. The request is all that is heard of it, so the stream is
// sent no faster than it plays, and its end when all of it was played.
package notify

import (
	"context"
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
	"perch/voice"
)

const (
	mostAhead    = 200                     // packets that are made ahead: 12 s of sound
	planWithin   = 400 * time.Millisecond  // for the times of the subtitles
	streamLead   = 1200 * time.Millisecond // the robot's decode queue
	streamWithin = 10 * time.Second        // a robot that reads nothing for so long is gone
)

// Stream is the sound of an announcement, in packets of 60 ms. One goroutine calls Synthesize, another
// sends what it makes.
type Stream struct {
	sentences []string

	mu      sync.Mutex
	changed chan struct{} // closed and replaced with every change
	packets [][]byte
	sent    int
	starts  []int // of each sentence that has begun, in packets
	planned []int // starts that the robot was given: no sentence begins sooner
	made    int   // sentences that are whole
	over    bool
	err     error // why it is not whole
}

// NewStream returns a stream of sentences.
func NewStream(sentences []string) *Stream {
	return &Stream{sentences: sentences, changed: make(chan struct{})}
}

// change changes the stream and wakes those who wait. s.mu is not held.
func (s *Stream) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

// wait waits until enough is true, or ctx ends.
func (s *Stream) wait(ctx context.Context, enough func() bool) error {
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

// Synthesize synthesizes the sentences, a little ahead of what is sent.
func (s *Stream) Synthesize(ctx context.Context, by voice.Synthesizer, o voice.Options) {
	err := s.synthesize(ctx, by, o)
	s.change(func() { s.over, s.err = true, err })
}

func (s *Stream) synthesize(ctx context.Context, by voice.Synthesizer, o voice.Options) error {
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
	for i, sentence := range s.sentences {
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
func (s *Stream) early(sentence int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sentence < len(s.planned) && len(s.packets) < s.planned[sentence]
}

// Plan returns the subtitles of the sentences. Times that are not known soon enough are estimated
// from the others, and no sentence begins before its time.
func (s *Stream) Plan(ctx context.Context) ([]xiaozhi.Subtitle, error) {
	within, cancel := context.WithTimeout(ctx, planWithin)
	defer cancel()
	// When the time is over the rest is estimated.
	_ = s.wait(within, func() bool { return len(s.starts) == len(s.sentences) || s.over || len(s.packets) == mostAhead })
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var all []xiaozhi.Subtitle
	var failed error
	s.change(func() {
		if len(s.packets) == 0 { // nothing can be heard
			failed = s.err
		}
		s.planned = slices.Clone(s.starts)
		for i, sentence := range s.sentences {
			if i == len(s.planned) {
				s.planned = append(s.planned, max(len(s.packets), s.planned[i-1]+s.estimate(i-1)))
			}
			all = append(all, xiaozhi.Subtitle{Start: s.planned[i] * int(voice.FrameDuration/time.Millisecond), Text: sentence})
		}
	})
	return all, failed
}

// estimate returns how long a sentence will be, in packets, judged by the whole ones. It is rather
// too long: a silence disturbs less than a subtitle that comes early. s.mu is held.
func (s *Stream) estimate(n int) int {
	const usual = 10 // runes in a second of slow speech
	perSecond := int(time.Second / voice.FrameDuration)
	runes := utf8.RuneCountInString(s.sentences[n])
	if s.made == 0 || s.made >= len(s.starts) {
		return runes*perSecond/usual + perSecond/4
	}
	known := utf8.RuneCountInString(strings.Join(s.sentences[:s.made], ""))
	return runes*s.starts[s.made]/max(1, known) + perSecond/2
}

// packet waits for a packet; nil is the end.
func (s *Stream) packet(ctx context.Context, n int) ([]byte, error) {
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
func (s *Stream) send(ctx context.Context, w http.ResponseWriter) error {
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
		select {
		case <-time.After(time.Until(begun.Add(time.Duration(n)*voice.FrameDuration - lead))):
		case <-ctx.Done():
		}
		return ctx.Err()
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
		_ = out.SetWriteDeadline(time.Now().Add(streamWithin)) // a test's writer may have no deadlines
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
