package models

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Names of the files of a model.
const (
	voiceEnd    = ".onnx"      // a Piper voice
	settingsEnd = ".onnx.json" // the settings of a Piper voice

	encoderFile   = "encoder_model.ort" // Moonshine
	decoderFile   = "decoder_model_merged.ort"
	tokenizerFile = "tokenizer.bin"

	detectorFile = "silero_vad.onnx" // Silero's voice detector

	turnFile = "smart-turn-v3.2-cpu.onnx" // Smart Turn

	partEnd  = ".part" // a file that is not complete
	fileMode = 0o644

	tokensFile = "tokens.txt" // the symbols of a model, which sherpa-onnx reads; written by writeTokens
)

// settings is the part of a Piper voice's settings that is used here.
type settings struct {
	Audio struct {
		Rate int `json:"sample_rate"`
	} `json:"audio"`
	Espeak struct {
		Voice string `json:"voice"`
	} `json:"espeak"`
	Language struct {
		Code string `json:"code"`
	} `json:"language"`
	Inference struct {
		Noise  float32 `json:"noise_scale"`
		Length float32 `json:"length_scale"`
		NoiseW float32 `json:"noise_w"`
	} `json:"inference"`
	Type     string           `json:"phoneme_type"`
	Speakers int              `json:"num_speakers"`
	Phonemes map[string][]int `json:"phoneme_id_map"`
}

// maxSettings is the maximum size of a voice's settings in bytes; Piper's have 5 kB.
const maxSettings = 1 << 20

func readSettings(path string) (s settings, err error) {
	text, err := readSmall(path, maxSettings)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	switch {
	case err != nil:
		return s, fmt.Errorf("read the settings of a Piper voice: %w", err)
	case s.Type != "" && s.Type != "espeak":
		return s, fmt.Errorf("the voice needs phonemes of the kind %q, and only those of espeak-ng can be made", s.Type)
	case s.Audio.Rate < 8000 || s.Audio.Rate > 48000 || s.Espeak.Voice == "" || len(s.Phonemes) == 0:
		return s, fmt.Errorf("%s lacks sample_rate, espeak.voice or phoneme_id_map", path)
	}
	return s, nil
}

// metadata returns the metadata that sherpa-onnx requires in the file of a Piper voice. When these bytes are appended
// to an ONNX file, which is a Protocol Buffers message, they become part of the message: field 14 of ModelProto,
// metadata_props.
func (s settings) metadata() (b []byte) {
	text := func(b []byte, field byte, text string) []byte {
		b = append(b, field<<3|2)
		b = binary.AppendUvarint(b, uint64(len(text)))
		return append(b, text...)
	}
	for _, entry := range [][2]string{{"model_type", "vits"}, {"comment", "piper"}, {"language", s.Language.Code}, {"voice", s.Espeak.Voice},
		{"has_espeak", "1"}, {"n_speakers", strconv.Itoa(max(s.Speakers, 1))}, {"sample_rate", strconv.Itoa(s.Audio.Rate)}} {
		b = text(b, 14, string(text(text(nil, 1, entry[0]), 2, entry[1])))
	}
	return b
}

// tokens returns the text of tokensFile: a line for each symbol, with its first ID.
func (s settings) tokens() []byte {
	var lines []string
	for symbol, ids := range s.Phonemes {
		if len(ids) > 0 {
			lines = append(lines, fmt.Sprintf("%s %d\n", symbol, ids[0]))
		}
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, ""))
}

// preparePiper makes the voice at path, without its extension, readable by sherpa-onnx.
func preparePiper(path string) (settings, error) {
	s, err := readSettings(path + settingsEnd)
	if err != nil {
		return s, err
	}
	if err := appendMetadata(path+voiceEnd, s.metadata()); err != nil {
		return s, fmt.Errorf("prepare a Piper voice: %w", err)
	}
	return s, writeTokens(filepath.Dir(path), s.tokens())
}

// appendMetadata appends metadata to a file, unless the file ends with it already. It writes a new file and renames it,
// so that the file at path is always complete.
func appendMetadata(path string, metadata []byte) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if ends, err := endsWith(f, metadata); ends || err != nil {
		return err
	}
	to, err := os.OpenFile(path+partEnd, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, io.MultiReader(f, bytes.NewReader(metadata)))
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		return errors.Join(err, os.Remove(path+partEnd))
	}
	return os.Rename(path+partEnd, path)
}

// endsWith reports whether a file ends with these bytes. It does not change the offset of f.
func endsWith(f *os.File, end []byte) (bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() < int64(len(end)) {
		return false, err
	}
	last := make([]byte, len(end))
	_, err = f.ReadAt(last, info.Size()-int64(len(end)))
	return bytes.Equal(last, end), err
}

// prepareMoonshine makes a Moonshine model readable by sherpa-onnx.
func prepareMoonshine(dir string) error {
	const maxTokenizer = 8 << 20
	b, err := readSmall(filepath.Join(dir, tokenizerFile), maxTokenizer)
	if err != nil {
		return fmt.Errorf("read the words of a Moonshine model: %w", err)
	}
	text, err := moonshineTokens(b)
	if err != nil {
		return err
	}
	return writeTokens(dir, text)
}

// moonshineTokens returns the text of tokensFile for b, the content of Moonshine's tokenizer.bin. In b, each symbol
// follows its length in bytes. A length below 128 is one byte. Another length is two bytes: the length modulo 128, plus
// 128, and the length divided by 128.
func moonshineTokens(b []byte) ([]byte, error) {
	var text []byte
	for id := 0; len(b) > 0; id++ {
		size := int(b[0])
		b = b[1:]
		if size >= 128 && len(b) > 0 {
			size += int(b[0])*128 - 128
			b = b[1:]
		}
		if size > len(b) {
			return nil, fmt.Errorf("%s is not Moonshine's: symbol %d is longer than the rest of the file", tokenizerFile, id)
		}
		text = fmt.Appendf(text, "%s %d\n", base64.StdEncoding.EncodeToString(b[:size]), id)
		b = b[size:]
	}
	return text, nil
}

// writeTokens writes tokensFile, unless it has this text. All users can read the file, because root downloads models
// for a service that has another user.
func writeTokens(dir string, text []byte) error {
	path := filepath.Join(dir, tokensFile)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return nil
	}
	to, err := os.CreateTemp(dir, tokensFile+"*"+partEnd) // a download and the loading of its model may both prepare it
	if err != nil {
		return fmt.Errorf("prepare a model: %w; sudo perch-speech models check prepares it", err)
	}
	_, err = to.Write(text)
	if err = errors.Join(err, to.Chmod(fileMode), to.Close()); err == nil {
		err = os.Rename(to.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(to.Name()))
	}
	return nil
}

// readSmall reads a file. It returns an error if the file has more than size bytes.
func readSmall(path string, size int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, size+1))
	if err == nil && int64(len(b)) > size {
		return nil, fmt.Errorf("%s has more than %d bytes", path, size)
	}
	return b, err
}
