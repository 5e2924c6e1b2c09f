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

// Positions in an Ogg Opus file are in samples at granuleRate (RFC 7845, section 4).
const (
	granuleRate = 48000
	granules    = granuleRate / voice.SpeakerRate // per sample at voice.SpeakerRate
)

// maxPadding is the maximum padding of the last packet, 120 ms, in samples.
const maxPadding = voice.SpeakerRate * 120 / 1000

var errDamaged = errors.New("it is damaged, or not an Ogg Opus file; copy it once more")

// decodeOgg returns the sound of an Ogg Opus file (RFC 7845), without pre-skip and padding.
// If several files are concatenated, it returns the sound of the first.
func decodeOgg(ctx context.Context, data []byte) ([]int16, error) {
	r, head, err := oggreader.NewWith(bytes.NewReader(data))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	case head.Version>>4 != 0:
		return nil, fmt.Errorf("its version %d is not supported", head.Version)
	case head.ChannelMap != 0:
		return nil, errors.New("it has more than two channels; save it with one or two")
	}
	if tags, _, err := r.ParseNextPacket(); err != nil || !bytes.HasPrefix(tags, []byte("OpusTags")) {
		return nil, errDamaged
	}
	s := stream{skip: int64(head.PreSkip) / granules}
	if s.decoder, err = voice.NewDecoder(voice.SpeakerRate); err != nil {
		return nil, err
	}
	if err := s.read(ctx, r); err != nil {
		return nil, err
	}
	return amplify(s.sound(), int16(head.OutputGain)), nil
}

// stream decodes the sound of a file. Positions are in samples at voice.SpeakerRate.
type stream struct {
	decoder *voice.Decoder
	skip    int64                   // number of samples before the sound begins
	pcm     []int16                 // the sound so far, including skip
	page    oggreader.OggPageHeader // latest page
	pages   int                     // number of pages with sound so far
	start   int64                   // position of the first sample
	end     int64                   // position of the end of the latest page; 0 means unknown
}

// read decodes all packets.
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
		s.setPage(page)
		pcm, err := s.decoder.Decode(packet)
		if err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		s.pcm = append(s.pcm, pcm...)
		if int64(len(s.pcm)) > int64(maxSamples(voice.SpeakerRate))+s.skip+maxPadding {
			return errTooLong
		}
	}
	return ctx.Err()
}

// setPage sets the page on which the next packet ends. After the first page it computes the
// position of the first sample, which is not 0 in a part of a longer recording.
func (s *stream) setPage(page *oggreader.OggPageHeader) {
	if s.pages > 0 && *page == s.page {
		return
	}
	if s.pages == 1 {
		s.start = max(0, endPosition(&s.page)-int64(len(s.pcm)))
	}
	s.page = *page
	s.pages++
	if end := endPosition(page); end > 0 {
		s.end = end
	}
}

// endPosition returns the position of the end of a page, or 0 if it is unknown.
func endPosition(page *oggreader.OggPageHeader) int64 {
	if page.GranulePosition > math.MaxInt64 { // no packet ends on this page
		return 0
	}
	return int64(page.GranulePosition) / granules
}

// sound returns the sound without pre-skip and padding.
func (s *stream) sound() []int16 {
	end := int64(len(s.pcm))
	if s.end > 0 {
		end = max(0, min(end, s.end-s.start))
	}
	return s.pcm[min(s.skip, end):end]
}

// amplify applies a gain in 1/256 dB.
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

// toPCM converts a sample from -1 to 1 to PCM. It limits greater values.
func toPCM(v float64) int16 {
	return int16(max(math.MinInt16, min(math.MaxInt16, math.Round(v*(1<<15)))))
}
