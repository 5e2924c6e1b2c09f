package sounds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/pion/opus/pkg/oggreader"

	"perch/voice"
)

// granuleRate is the rate at which an Ogg Opus file counts samples (RFC 7845 section 4),
// and perOurs how many of them are one of ours.
const (
	granuleRate = 48000
	perOurs     = granuleRate / voice.SpeakerRate
)

// padding is the most that fills up the last packet, 120 ms.
const padding = voice.SpeakerRate * 120 / 1000

var errDamaged = errors.New("it is damaged, or no Ogg Opus file; copy it once more")

// decodeOgg returns the sound of an Ogg Opus file (RFC 7845), without its pre-skip and end
// padding. Of concatenated files it returns the first.
func decodeOgg(ctx context.Context, data []byte) ([]int16, error) {
	r, head, err := oggreader.NewWith(bytes.NewReader(data))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	case head.Version>>4 != 0:
		return nil, fmt.Errorf("its version %d is not known here", head.Version)
	case head.ChannelMap != 0:
		return nil, errors.New("it has more than two channels; save it with one or two")
	}
	if tags, _, err := r.ParseNextPacket(); err != nil || !bytes.HasPrefix(tags, []byte("OpusTags")) {
		return nil, errDamaged
	}
	s := stream{skip: int64(head.PreSkip) / perOurs}
	if s.decoder, err = voice.NewDecoder(voice.SpeakerRate); err != nil {
		return nil, err
	}
	if err := s.read(ctx, r); err != nil {
		return nil, err
	}
	return amplify(s.sound(), int16(head.OutputGain)), nil
}

// stream is the sound of a file as it is read. Positions are in our samples.
type stream struct {
	decoder *voice.Decoder
	skip    int64 // samples before the sound begins
	pcm     []int16
	page    oggreader.OggPageHeader // the latest
	pages   int                     // pages with sound
	begins  int64                   // position of the first sample
	ends    int64                   // position of the latest page's end; 0 is unknown
}

// read decodes every packet.
func (s *stream) read(ctx context.Context, r *oggreader.OggReader) error {
	for ctx.Err() == nil {
		packet, page, err := r.ParseNextPacket()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", errDamaged, err)
		case bytes.HasPrefix(packet, []byte("OpusHead")):
			return nil
		}
		s.turn(page)
		pcm, err := s.decoder.Decode(packet)
		if err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		s.pcm = append(s.pcm, pcm...)
		if int64(len(s.pcm)) > int64(samples(voice.SpeakerRate))+s.skip+padding {
			return errTooLong
		}
	}
	return ctx.Err()
}

// turn records the page that the next packet ends on. A cut from a longer recording may
// begin late: its first page then has a higher position than its sound.
func (s *stream) turn(page *oggreader.OggPageHeader) {
	if s.pages > 0 && *page == s.page {
		return
	}
	if s.pages == 1 {
		s.begins = max(0, position(&s.page)-int64(len(s.pcm)))
	}
	s.page = *page
	s.pages++
	if at := position(page); at > 0 {
		s.ends = at
	}
}

// position returns where a page ends, or 0 if unknown.
func position(page *oggreader.OggPageHeader) int64 {
	if page.GranulePosition > math.MaxInt64 { // no packet ends on this page
		return 0
	}
	return int64(page.GranulePosition) / perOurs
}

// sound returns the audible part.
func (s *stream) sound() []int16 {
	end := int64(len(s.pcm))
	if s.ends > 0 {
		end = max(0, min(end, s.ends-s.begins))
	}
	return s.pcm[min(s.skip, end):end]
}

// amplify applies a file's gain, in 256ths of a decibel.
func amplify(pcm []int16, gain int16) []int16 {
	if gain == 0 {
		return pcm
	}
	factor := math.Pow(10, float64(gain)/(20*256))
	for i, v := range pcm {
		pcm[i] = toPCM(float64(v) / (1 << 15) * factor)
	}
	return pcm
}
