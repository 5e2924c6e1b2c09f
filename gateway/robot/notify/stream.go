// Package notify makes idle robots speak. A robot receives a URL, fetches the sound of an announcement from that
// URL, and plays the sound while the rest is synthesized. The robot does not report what it has played, so the
// sound is sent at the pace at which it is played, and the response ends when the robot has played all of it.
package notify

import (
	"context"
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
	"perch/voice"
)

// Limits of a stream.
const (
	maxAhead     = 200                     // packets that may be synthesized ahead: 12 s of sound
	planTimeout  = 400 * time.Millisecond  // how long Plan waits for the synthesis, before it estimates
	streamLead   = 1200 * time.Millisecond // how far sending is ahead of playing: the length of the robot's decode queue
	writeTimeout = 10 * time.Second        // how long a robot may read nothing before it counts as disconnected
)

// Stream is the sound of an announcement, in packets of 60 ms. One goroutine calls Synthesize; others call
// Plan and send.
type Stream struct {
	sentences []string

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced with every change of the fields below
	packets  [][]byte      // packets synthesized so far; nil for sent packets
	sent     int           // number of packets sent
	starts   []int         // indexes of the first packets of the sentences synthesized so far
	planned  []int         // earliest indexes of the first packets of all sentences; set by Plan
	complete int           // number of sentences that are synthesized completely
	over     bool          // Synthesize has returned
	err      error         // error of Synthesize
	spoken   bool          // something of the text was spoken
	unspoken error         // why a part of the text was not spoken; nil if all of it was
}

// NewStream returns a stream of sentences without sound.
func NewStream(sentences []string) *Stream {
	return &Stream{sentences: sentences, changed: make(chan struct{})}
}

// update calls change with s.mu held, and wakes all callers of wait.
func (s *Stream) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

// wait waits until condition returns true, or ctx ends. It calls condition with s.mu held.
func (s *Stream) wait(ctx context.Context, condition func() bool) error {
	for {
		s.mu.Lock()
		satisfied, changed := condition(), s.changed
		s.mu.Unlock()
		if satisfied {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Synthesize synthesizes the sentences, at most 12 s ahead of what is sent. It returns when all are
// synthesized, at the first error, or when ctx ends. Plan or send returns the error. A sentence that no
// engine can read becomes silence, for as long as reading it takes. If the synthesizer fails after it has
// spoken something, the stream ends there without an error, so that nobody hears its beginning twice.
func (s *Stream) Synthesize(ctx context.Context, synthesizer voice.Synthesizer, o voice.Options) {
	err := s.synthesize(ctx, synthesizer, o)
	s.update(func() { s.over, s.err = true, err })
}

// synthesize is Synthesize with the error as result.
func (s *Stream) synthesize(ctx context.Context, synthesizer voice.Synthesizer, o voice.Options) error {
	encoder, err := voice.NewEncoder(voice.SpeakerRate)
	if err != nil {
		return err
	}
	add := func(packet []byte) error {
		if err := s.wait(ctx, func() bool { return len(s.packets)-s.sent < maxAhead }); err != nil {
			return err
		}
		packet = slices.Clone(packet)
		s.update(func() { s.packets = append(s.packets, packet) })
		return nil
	}
	silence := make([]int16, voice.SpeakerFrame)
	for i, sentence := range s.sentences {
		for s.isEarly(i) {
			if err := encoder.Encode(silence, add); err != nil {
				return err
			}
		}
		s.update(func() { s.starts = append(s.starts, len(s.packets)) })
		sounded := false
		encode := func(pcm []int16) error { return encoder.Encode(pcm, add) }
		err := synthesizer.Synthesize(ctx, sentence, o, func(pcm []int16) error {
			sounded = true
			return encode(pcm)
		})
		s.update(func() { s.spoken = s.spoken || sounded })
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, voice.ErrText):
			s.update(func() { s.unspoken = err })
			if err = nil; !sounded {
				err = voice.Silence(ctx, sentence, encode)
			}
		case err != nil && s.spoken:
			s.update(func() { s.unspoken = err })
			return encoder.Flush(add)
		}
		if err == nil {
			err = encoder.Flush(add)
		}
		if err != nil {
			return fmt.Errorf("speak: %w", err)
		}
		s.update(func() { s.complete++ })
	}
	return nil
}

// Spoken reports whether something of the text was spoken, and why the rest was not spoken. unspoken is nil if all
// of the text was spoken. Spoken must be called after the stream has been played.
func (s *Stream) Spoken() (spoken bool, unspoken error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spoken, s.unspoken
}

// isEarly reports whether the sentence with an index would begin before its planned time if it began with the
// next packet.
func (s *Stream) isEarly(sentence int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sentence < len(s.planned) && len(s.packets) < s.planned[sentence]
}

// Plan returns the subtitles of the sentences with their times. It estimates the times of sentences whose
// synthesis does not begin soon enough; silence then delays a sentence that would begin before its estimated
// time.
func (s *Stream) Plan(ctx context.Context) ([]xiaozhi.Subtitle, error) {
	waiting, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	// A timeout is not an error: the rest is estimated.
	_ = s.wait(waiting, func() bool {
		begun := len(s.packets) > 0 // before the first packet, the synthesis may fail, and Plan must return that error
		return s.over || begun && (len(s.starts) == len(s.sentences) || len(s.packets) == maxAhead)
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var subtitles []xiaozhi.Subtitle
	var failed error
	s.update(func() {
		if len(s.packets) == 0 { // an error after the first packet is reported by send instead
			failed = s.err
		}
		s.planned = slices.Clone(s.starts)
		for i, sentence := range s.sentences {
			switch {
			case i < len(s.planned):
			case i == 0: // nothing is synthesized yet
				s.planned = append(s.planned, 0)
			default:
				s.planned = append(s.planned, max(len(s.packets), s.planned[i-1]+s.estimate(i-1)))
			}
			subtitles = append(subtitles, xiaozhi.Subtitle{Start: s.planned[i] * int(voice.FrameDuration/time.Millisecond), Text: sentence})
		}
	})
	return subtitles, failed
}

// estimate estimates how long the sentence with an index will be, in packets, from the sentences that are
// synthesized completely. The result is a quarter or half a second too long on purpose, because a pause
// disturbs less than an early subtitle. s.mu must be held.
func (s *Stream) estimate(n int) int {
	const runesPerSecond = 10 // slow speech
	perSecond := int(time.Second / voice.FrameDuration)
	runes := utf8.RuneCountInString(s.sentences[n])
	if s.complete == 0 || s.complete >= len(s.starts) {
		return runes*perSecond/runesPerSecond + perSecond/4
	}
	spokenRunes := utf8.RuneCountInString(strings.Join(s.sentences[:s.complete], ""))
	return runes*s.starts[s.complete]/max(1, spokenRunes) + perSecond/2
}

// awaitPacket waits for the packet with an index and returns it, or nil at the end of the stream.
func (s *Stream) awaitPacket(ctx context.Context, n int) ([]byte, error) {
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

// send writes the stream as Ogg Opus (RFC 7845), at the pace at which the robot plays it. It returns when the
// robot has played all of it.
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
	// waitPlayed waits until the robot has played n packets, but returns earlier by lead.
	waitPlayed := func(n int, lead time.Duration) error {
		select {
		case <-time.After(time.Until(begun.Add(time.Duration(n)*voice.FrameDuration - lead))):
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	n := 0
	for ; ; n++ {
		packet, err := s.awaitPacket(ctx, n)
		if err != nil {
			return err
		}
		if packet == nil {
			break
		}
		if n == 0 {
			begun = time.Now()
		}
		if err := waitPlayed(n, streamLead); err != nil {
			return err
		}
		_ = out.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails only for a test's writer without deadlines
		if err := track.WriteRTP(&rtp.Packet{Header: rtp.Header{SSRC: 1}, Payload: packet}); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
		s.update(func() { s.sent = n + 1 })
	}
	if err := waitPlayed(n, 0); err != nil {
		return err
	}
	return ogg.Close()
}
