package wyoming

// Types of events, as in the README and the code of OHF-Voice/wyoming. The comments name the
// type of the data.
const (
	TypeDescribe = "describe" // no data; requests TypeInfo
	TypeInfo     = "info"     // Info
	TypeError    = "error"    // Failure
	TypePing     = "ping"     // Text, or no data; requests TypePong
	TypePong     = "pong"     // the data of the ping

	TypeAudioStart = "audio-start" // Format
	TypeAudioChunk = "audio-chunk" // Format; the payload is sound
	TypeAudioStop  = "audio-stop"  // no data

	TypeTranscribe      = "transcribe"       // Transcribe; audio events follow
	TypeTranscript      = "transcript"       // Text: the whole transcript
	TypeTranscriptChunk = "transcript-chunk" // Text: a part of the transcript, before TypeTranscript
	TypeTranscriptStop  = "transcript-stop"  // no data; ends the chunks

	// TypeTurn is Perch's own, not the README's. It asks whether the person has finished in the sound that follows; audio
	// events follow. The response has the data Turn.
	TypeTurn = "perch-turn"

	TypeSynthesize        = "synthesize"         // Synthesize
	TypeSynthesizeStart   = "synthesize-start"   // Synthesize without text; chunks follow
	TypeSynthesizeChunk   = "synthesize-chunk"   // Text: a part of the text
	TypeSynthesizeStop    = "synthesize-stop"    // no data; ends the chunks
	TypeSynthesizeStopped = "synthesize-stopped" // no data; the server has sent all sound
)

// Format is the format of PCM sound.
type Format struct {
	Rate     int `json:"rate"`     // samples per second
	Width    int `json:"width"`    // bytes per sample
	Channels int `json:"channels"` // 1 for mono
}

// Text is the data of events with text.
type Text struct {
	Text     string `json:"text"`
	Language string `json:"language,omitempty"` // recognized language; "" means unknown
}

// Failure is the data of an error event.
type Failure struct {
	Text string `json:"text"`
	Code string `json:"code,omitempty"`
}

// Transcribe requests the transcript of the sound that follows.
type Transcribe struct {
	Name     string `json:"name,omitempty"`     // name of a model; "" means the server's default
	Language string `json:"language,omitempty"` // as in Model.Languages; "" means the server's default
}

// Turn is the data of the response to TypeTurn.
type Turn struct {
	Complete float64 `json:"complete"` // probability that the person has finished, 0 to 1
}

// Synthesize requests the sound of a text.
type Synthesize struct {
	Text  string `json:"text,omitempty"`
	Voice *Voice `json:"voice,omitempty"` // nil means the server's default
}

// Voice selects a voice by its name or, without a name, by its language.
type Voice struct {
	Name     string `json:"name,omitempty"`
	Language string `json:"language,omitempty"`
}

// Info lists the services of a server.
type Info struct {
	ASR    []Program `json:"asr,omitempty"`    // speech to text
	TTS    []Program `json:"tts,omitempty"`    // text to speech
	Handle []Program `json:"handle,omitempty"` // text to answer
	Intent []Program `json:"intent,omitempty"` // text to intent
	Wake   []Program `json:"wake,omitempty"`   // wake words
	// Turn lists the programs that respond to TypeTurn. Other clients ignore this field.
	Turn []Program `json:"perch-turn,omitempty"`
}

// Attribution names an author. The reference implementation requires it.
type Attribution struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// Program is a service of a server. It can be used only if it is installed.
type Program struct {
	Name        string      `json:"name"`
	Attribution Attribution `json:"attribution"`
	Installed   bool        `json:"installed"`
	Description string      `json:"description"`
	Version     string      `json:"version"`

	Models []Model `json:"models,omitempty"`
	// Voices holds the voices for text to speech. The reference implementation and Home
	// Assistant use it, but according to the README voices are in Models.
	Voices []Model `json:"voices,omitempty"`

	SynthesizeStreaming bool `json:"supports_synthesize_streaming,omitempty"` // accepts text in pieces
	HandledStreaming    bool `json:"supports_handled_streaming,omitempty"`    // sends answers in pieces
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
