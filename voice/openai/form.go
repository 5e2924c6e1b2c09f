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

// form is the body of a transcription request around its sound. The fields precede the
// file, so that a server knows them when sound arrives.
type form struct {
	kind         string // its media type
	before, past []byte
}

func newForm(model, language, format string) form {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	field := func(name, value string) {
		if value != "" {
			_ = w.WriteField(name, value) // a buffer does not fail
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
	return form{kind: w.FormDataContentType(), before: b.Bytes()[:n:n], past: b.Bytes()[n:]}
}

// whole returns the body for a finished utterance.
func (f form) whole(ctx context.Context, u *voice.Utterance) ([]byte, error) {
	pcm := make([]int16, int(u.Duration()*voice.MicRate/1e9))
	for n := 0; n < len(pcm); {
		read, err := u.Read(ctx, pcm[n:], n)
		if err != nil {
			return nil, err
		}
		n += read
	}
	var b bytes.Buffer
	b.Grow(len(f.before) + 44 + 2*len(pcm) + len(f.past))
	b.Write(f.before)
	if err := voice.WriteWAV(&b, voice.MicRate, pcm); err != nil {
		return nil, err
	}
	b.Write(f.past)
	return b.Bytes(), nil
}

// stream returns the body for an utterance that is still being spoken.
func (f form) stream(u *voice.Utterance) func(context.Context) io.Reader {
	return func(ctx context.Context) io.Reader {
		return io.MultiReader(
			bytes.NewReader(f.before), bytes.NewReader(endlessWAV()),
			&samples{ctx: ctx, u: u}, bytes.NewReader(f.past))
	}
}

// endlessWAV returns the header of a WAV of unknown length, with the sizes that ffmpeg
// writes to a pipe.
func endlessWAV() []byte {
	var b bytes.Buffer
	_ = voice.WriteWAV(&b, voice.MicRate, nil) // a buffer does not fail
	head := b.Bytes()
	binary.LittleEndian.PutUint32(head[4:], math.MaxUint32)
	binary.LittleEndian.PutUint32(head[40:], math.MaxUint32)
	return head
}

// samples reads an utterance as bytes while it is spoken.
type samples struct {
	ctx context.Context // io.Reader does not pass one
	u   *voice.Utterance
	at  int
	pcm [1024]int16
}

func (s *samples) Read(p []byte) (int, error) {
	if len(p) < 2 {
		return 0, io.ErrShortBuffer
	}
	n, err := s.u.Read(s.ctx, s.pcm[:min(len(s.pcm), len(p)/2)], s.at)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, io.EOF
	}
	for i, v := range s.pcm[:n] {
		binary.LittleEndian.PutUint16(p[2*i:], uint16(v))
	}
	s.at += n
	return 2 * n, nil
}
