package wyoming

// The event types needed for speech, from the README of OHF-Voice/wyoming.
const (
	TypeDescribe = "describe" // what do you serve?
	TypeInfo     = "info"     // Info
	TypeError    = "error"    // Failure
	TypePing     = "ping"
	TypePong     = "pong"

	TypeAudioStart = "audio-start" // Format
	TypeAudioChunk = "audio-chunk" // Format, and sound as payload
	TypeAudioStop  = "audio-stop"

	TypeTranscribe      = "transcribe"       // Transcribe, before the sound
	TypeTranscript      = "transcript"       // Text, after it
	TypeTranscriptChunk = "transcript-chunk" // Text, a part; the whole still comes as a transcript
	TypeTranscriptStop  = "transcript-stop"

	TypeSynthesize        = "synthesize"       // Synthesize
	TypeSynthesizeStart   = "synthesize-start" // Synthesize without its text
	TypeSynthesizeChunk   = "synthesize-chunk" // Text, a part
	TypeSynthesizeStop    = "synthesize-stop"  // no more text
	TypeSynthesizeStopped = "synthesize-stopped"
)

// Format describes sound.
type Format struct {
	Rate     int `json:"rate"`     // samples per second
	Width    int `json:"width"`    // bytes per sample
	Channels int `json:"channels"` // 1 is mono
}

// Text is the data of every event with only text.
type Text struct {
	Text     string `json:"text"`
	Language string `json:"language,omitempty"` // as recognized
}

// Failure is a server's error.
type Failure struct {
	Text string `json:"text"`
	Code string `json:"code,omitempty"`
}

// Transcribe requests the text of the sound that follows.
type Transcribe struct {
	Name     string `json:"name,omitempty"`     // of a model
	Language string `json:"language,omitempty"` // as the server spells it
}

// Synthesize requests the sound of a text.
type Synthesize struct {
	Text  string `json:"text,omitempty"`
	Voice *Voice `json:"voice,omitempty"`
}

// Voice is a choice of voice. A name takes precedence over a language.
type Voice struct {
	Name     string `json:"name,omitempty"`
	Language string `json:"language,omitempty"`
}

// Info is what a server serves, by kind. Kinds that it does not serve are empty.
type Info struct {
	ASR    []Program `json:"asr,omitempty"`    // speech to text
	TTS    []Program `json:"tts,omitempty"`    // text to speech
	Handle []Program `json:"handle,omitempty"` // text to answer
	Intent []Program `json:"intent,omitempty"` // text to intent
	Wake   []Program `json:"wake,omitempty"`   // wake words
}

// Attribution names an author; the reference requires it.
type Attribution struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// Program is one service. It can be used only if installed.
type Program struct {
	Name        string      `json:"name"`
	Attribution Attribution `json:"attribution"`
	Installed   bool        `json:"installed"`
	Description string      `json:"description"`
	Version     string      `json:"version"`

	Models []Model `json:"models,omitempty"`
	// Voices are the models of text to speech: models in the README, voices in the
	// reference and Home Assistant.
	Voices []Model `json:"voices,omitempty"`

	SynthesizeStreaming bool `json:"supports_synthesize_streaming,omitempty"`
	HandledStreaming    bool `json:"supports_handled_streaming,omitempty"`
}

// Model is a model or a voice.
type Model struct {
	Name        string      `json:"name"`
	Attribution Attribution `json:"attribution"`
	Installed   bool        `json:"installed"`
	Description string      `json:"description"`
	Version     string      `json:"version"`
	Languages   []string    `json:"languages"`
}
