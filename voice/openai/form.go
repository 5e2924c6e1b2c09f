package openai

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"mime/multipart"
	"net/textproto"

	"perch/voice"
)

// form is the body of a transcription request without its sound. The fields are before the sound,
// so that the server has read the fields when the sound arrives.
type form struct {
	mediaType string
	prefix    []byte // body before the sound
	suffix    []byte // body after the sound
}

// newForm returns a form with these fields. An empty field is left out.
func newForm(model, language, format string) form {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	field := func(name, value string) {
		if value != "" {
			_ = w.WriteField(name, value) // writing to a buffer cannot fail
		}
	}
	field("model", model)
	field("language", language)
	field("response_format", format)
	_, _ = w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="file"; filename="utterance.wav"`},
		"Content-Type":        {"audio/wav"},
	})
	n := b.Len()
	_ = w.Close()
	return form{mediaType: w.FormDataContentType(), prefix: b.Bytes()[:n:n], suffix: b.Bytes()[n:]}
}

// finishedBody returns the whole body for an utterance that is finished.
func (f form) finishedBody(ctx context.Context, u *voice.Utterance) ([]byte, error) {
	pcm := make([]int16, int(u.Duration()*voice.MicRate/1e9))
	for n := 0; n < len(pcm); {
		read, err := u.Read(ctx, pcm[n:], n)
		if err != nil {
			return nil, err
		}
		n += read
	}
	var b bytes.Buffer
	b.Grow(len(f.prefix) + 44 + 2*len(pcm) + len(f.suffix)) // a WAV header has 44 bytes
	b.Write(f.prefix)
	if err := voice.WriteWAV(&b, voice.MicRate, pcm); err != nil {
		return nil, err
	}
	b.Write(f.suffix)
	return b.Bytes(), nil
}

// liveBody returns a function that opens the body for an utterance that is still being spoken.
func (f form) liveBody(u *voice.Utterance) func(context.Context) io.Reader {
	return func(ctx context.Context) io.Reader {
		return io.MultiReader(
			bytes.NewReader(f.prefix), bytes.NewReader(endlessWAV()),
			&utteranceReader{ctx: ctx, u: u}, bytes.NewReader(f.suffix))
	}
}

// endlessWAV returns the header of a WAV of unknown length, with the same sizes as ffmpeg
// writes when its output is a pipe.
func endlessWAV() []byte {
	var b bytes.Buffer
	_ = voice.WriteWAV(&b, voice.MicRate, nil) // writing to a buffer cannot fail
	head := b.Bytes()
	binary.LittleEndian.PutUint32(head[4:], math.MaxUint32)
	binary.LittleEndian.PutUint32(head[40:], math.MaxUint32)
	return head
}

// utteranceReader reads the samples of an utterance, which may still be spoken, as bytes.
type utteranceReader struct {
	ctx    context.Context // a field, because io.Reader's Read has no argument for a context
	u      *voice.Utterance
	offset int // number of samples read so far
	pcm    [1024]int16
}

// Read implements io.Reader. It waits for samples until the utterance is finished.
func (s *utteranceReader) Read(p []byte) (int, error) {
	if len(p) < 2 {
		return 0, io.ErrShortBuffer
	}
	n, err := s.u.Read(s.ctx, s.pcm[:min(len(s.pcm), len(p)/2)], s.offset)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, io.EOF
	}
	for i, v := range s.pcm[:n] {
		binary.LittleEndian.PutUint16(p[2*i:], uint16(v))
	}
	s.offset += n
	return 2 * n, nil
}
