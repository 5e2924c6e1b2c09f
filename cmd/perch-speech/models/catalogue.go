// Package models manages the models of perch-speech: the catalogue of models that can be downloaded, their download,
// and the folder of models that are on this machine. It does not run models.
package models

import "slices"

// The jobs of a model.
const (
	Hears   = "hears"   // speech recognition
	Speaks  = "speaks"  // speech synthesis
	Detects = "detects" // whether somebody speaks, in any language
	Judges  = "judges"  // whether a person has finished speaking, in any language
)

// Model is a model of the catalogue.
type Model struct {
	Name     string `json:"name"`
	Job      string `json:"job"`      // Hears, Speaks, Detects or Judges
	Language string `json:"language"` // BCP 47 tag; empty for Detects and Judges
	Licence  string `json:"licence"`
	Source   string `json:"source"` // page about the model and its data
	Files    []File `json:"files"`
}

// File is a file of a model.
type File struct {
	Name   string `json:"name"`
	URL    string `json:"url"`
	Size   int64  `json:"size"` // in bytes
	SHA256 string `json:"sha256"`
}

// Size returns the size of all files in bytes.
func (m Model) Size() (size int64) {
	for _, f := range m.Files {
		size += f.Size
	}
	return size
}

// Catalogue returns the models that can be downloaded. All but en_GB-alan-medium were tried with the version of
// sherpa-onnx that Perch uses.
func Catalogue() []Model {
	return []Model{
		moonshineBase(),
		{"silero-vad", Detects, "", "MIT", "https://github.com/snakers4/silero-vad", []File{{detectorFile,
			"https://raw.githubusercontent.com/snakers4/silero-vad/v5.1.2/src/silero_vad/data/" + detectorFile, 2327524,
			"2623a2953f6ff3d2c1e61740c6cdb7168133479b267dfef114a4a3cc5bdd788f"}}},
		{"smart-turn", Judges, "", "BSD-2-Clause", "https://github.com/pipecat-ai/smart-turn", []File{{turnFile,
			"https://huggingface.co/pipecat-ai/smart-turn-v3/resolve/f766f81d3cfdf7737ac64aad813d91bbfd56bf93/" + turnFile, 8679182,
			"2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f"}}},
		piper("en_US-joe-medium", "en-US", "en/en_US/joe/medium", "CC0-1.0", "https://github.com/NabuCasa/voice-datasets",
			"58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06", 4794, "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33"),
		piper("en_GB-jenny_dioco-medium", "en-GB", "en/en_GB/jenny_dioco/medium", "see its source", "https://github.com/dioco-group/jenny-tts-dataset",
			"469c630d209e139dd392a66bf4abde4ab86390a0269c1e47b4e5d7ce81526b01", 4895, "a9a7a93a317c9a3cb6563e37eb057df9ef09c06188a8a4341b0fcb58cba54dd4"),
		piper("en_GB-alan-medium", "en-GB", "en/en_GB/alan/medium", "see its source", "https://github.com/MycroftAI/mimic3-voices/tree/master/voices/en_UK/apope_low",
			"0a309668932205e762801f1efc2736cd4b0120329622adf62be09e56339d3330", 4888, "c0f0d124e5895c00e7c03b35dcc8287f319a6998a365b182deb5c8e752ee8c1e"),
	}
}

// Find returns the model of the catalogue with a name.
func Find(name string) (m Model, ok bool) {
	all := Catalogue()
	i := slices.IndexFunc(all, func(m Model) bool { return m.Name == name })
	if i < 0 {
		return Model{}, false
	}
	return all[i], true
}

// moonshineBase returns Moonshine's English model. https://huggingface.co/UsefulSensors/moonshine names its licence.
func moonshineBase() Model {
	const at = "https://huggingface.co/UsefulSensors/moonshine/resolve/48b4e427b587bcf67797a5be706d6ddc4a298149/onnx/merged/base/quantized/"
	return Model{"moonshine-base-en", Hears, "en", "MIT", "https://huggingface.co/UsefulSensors/moonshine", []File{
		{tokenizerFile, at + tokenizerFile, 241639, "04670d78994d030185c3dd843c60591788fed0a56cc6750747bd326825f13ca9"},
		{encoderFile, at + encoderFile, 20661976, "9d1a19e044cbf89a207723d1adb667de89a5671a1e3e611b8ebe721b2c31219c"},
		{decoderFile, at + decoderFile, 42703232, "370e0c1f161d68dc1c2264c1a82024fb123380da3b73f47f05531d1e8d3308c3"},
	}}
}

// piper returns a Piper voice of medium quality; the .onnx files of all such voices have the same size. path is the
// folder of the voice in Piper's repository of voices.
func piper(name, language, path, licence, source, voiceSum string, settingsSize int64, settingsSum string) Model {
	at := "https://huggingface.co/rhasspy/piper-voices/resolve/v1.0.0/" + path + "/" + name
	return Model{name, Speaks, language, licence, source, []File{
		{name + settingsEnd, at + settingsEnd, settingsSize, settingsSum}, // before the voice, because finish needs the settings for the voice
		{name + voiceEnd, at + voiceEnd, 63201294, voiceSum},
	}}
}
