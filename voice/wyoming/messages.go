package wyoming

// The types of event that speech needs, as the README of OHF-Voice/wyoming
// lists them.
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

// Format is the form of sound.
type Format struct {
	Rate     int `json:"rate"`     // samples a second
	Width    int `json:"width"`    // bytes a sample
	Channels int `json:"channels"` // 1 is mono
}

// Text is the data of every event that carries nothing but words.
type Text struct {
	Text     string `json:"text"`
	Language string `json:"language,omitempty"` // that was heard
}

// Failure is what a server says of a request it could not serve.
type Failure struct {
	Text string `json:"text"`
	Code string `json:"code,omitempty"`
}

// Transcribe asks for the text of the sound that follows.
type Transcribe struct {
	Name     string `json:"name,omitempty"`     // of a model
	Language string `json:"language,omitempty"` // as the server spells it
}

// Synthesize asks for the sound of a text.
type Synthesize struct {
	Text  string `json:"text,omitempty"`
	Voice *Voice `json:"voice,omitempty"`
}

// Voice is a choice of voice. A name takes precedence over a language.
type Voice struct {
	Name     string `json:"name,omitempty"`
	Language string `json:"language,omitempty"`
}

// Info is what a server serves, by kind. A kind it does not serve is empty.
type Info struct {
	ASR    []Program `json:"asr,omitempty"`    // speech to text
	TTS    []Program `json:"tts,omitempty"`    // text to speech
	Handle []Program `json:"handle,omitempty"` // text to answer
	Intent []Program `json:"intent,omitempty"` // text to intent
	Wake   []Program `json:"wake,omitempty"`   // wake words
}

// Attribution names an author; the reference insists on it.
type Attribution struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// Program is one service. Only one that is installed can be used.
type Program struct {
	Name        string      `json:"name"`
	Attribution Attribution `json:"attribution"`
	Installed   bool        `json:"installed"`
	Description string      `json:"description"`
	Version     string      `json:"version"`

	Models []Model `json:"models,omitempty"`
	// Voices are the models of text to speech; the README calls them models,
	// the reference and Home Assistant voices.
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
