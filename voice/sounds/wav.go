package sounds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"perch/voice"
)

// decodeWAV returns the sound of a WAV file at voice.SpeakerRate. It fails if ctx ends.
func decodeWAV(ctx context.Context, data []byte) ([]int16, error) {
	w, err := voice.NewWAVReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("it is %w; save it as WAV with 16 bits at 48000 Hz", err)
	}
	w.StopAfterData()
	r := voice.NewResampler(w.Rate, voice.SpeakerRate)
	var pcm []int16
	part := make([]int16, w.Rate/10)
	for read := 0; ctx.Err() == nil; {
		n, err := w.Read(part)
		pcm = append(pcm, r.Resample(part[:n])...)
		switch read += n; {
		case read > maxSamples(w.Rate):
			return nil, errTooLong
		case errors.Is(err, io.EOF) && read > 0 && w.Rate != voice.SpeakerRate:
			clear(part)
			return append(pcm, r.Resample(part[:w.Rate/100])...), nil // silence to get the sound that the filter has delayed
		case errors.Is(err, io.EOF):
			return pcm, nil
		case err != nil:
			return nil, err
		}
	}
	return nil, ctx.Err()
}
