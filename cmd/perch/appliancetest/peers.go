package appliancetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perch/agent/anthropic"
	openaibrain "perch/agent/openai"
	"perch/agent/thinker"
	"perch/cmd/perch/config"
	"perch/must"
	"perch/voice"
	"perch/voice/openai"
	"perch/voice/wyoming"
)

// Peers is a fake recognizer, a fake language model and a fake synthesizer. They listen on loopback, speak
// the real protocols and respond at once. The recognizer understands "what time is it" in every utterance.
type Peers struct {
	Words []string // the words of the model's reply
	Calls string   // tool calls in JSON that the model answers a user with; empty for an answer in words
	// Decides replaces Calls: it returns the tool calls that answer a message, or "". It may be nil.
	Decides func(role, content string) (calls string)
	Every   time.Duration // the time between two words
	Rest    chan struct{} // if it is not nil, the model waits after its first sentence until Rest is closed
	// Holds returns the stage of a turn where a peer waits until its client has disconnected:
	// "recognizing", "first token", "in a tool", "speaking", or "" for none.
	Holds   func() string
	Reached chan string // receives each stage where a peer waits

	recognizer         net.Listener
	brain, synthesizer *httptest.Server
	conns              sync.WaitGroup
	active             atomic.Int64 // number of requests that have not ended
	mu                 sync.Mutex
	states             map[Peer]*peerState
	times              turnTimes
	prompts            []string // system prompts that the model has received
	spoken             []Spoken // requests that the synthesizer has received
}

// turnTimes holds when the stages of the latest turn happened.
type turnTimes struct {
	utteranceEnd, transcript time.Time
	modelRequest             time.Time
	sentenceEnd              time.Time // end of the model's first sentence
	speechRequest, speech    time.Time
}

// Peer is the name of one of the peers.
type Peer string

// The peers.
const (
	Recognizer  Peer = "recognizer"
	Brain       Peer = "brain"
	Synthesizer Peer = "synthesizer"
)

// Failure says how a peer fails.
type Failure string

// The failures. A Healthy peer works.
const (
	Healthy Failure = ""
	Silent  Failure = "accepts and never responds"
	Garbled Failure = "responds with garbage"
	Dying   Failure = "dies during the response"
)

// peerState is the current Failure of a peer, and the number of its requests.
type peerState struct {
	failure Failure
	changed chan struct{}   // closed when another Failure is set
	served  map[Failure]int // number of requests during each Failure
}

// SetFailure makes a peer fail from now on, or be Healthy. Requests that a Silent peer has already
// accepted end without a response.
func (p *Peers) SetFailure(peer Peer, failure Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.states[peer]
	close(state.changed)
	state.failure, state.changed = failure, make(chan struct{})
}

// Served returns the number of requests that a peer has received during a Failure. The recognizer counts an
// utterance twice: at its beginning and at its end.
func (p *Peers) Served(peer Peer, failure Failure) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.states[peer].served[failure]
}

// count counts a request and returns how it must fail. changed is closed when the peer's Failure changes.
func (p *Peers) count(peer Peer) (failure Failure, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.states[peer]
	state.served[state.failure]++
	return state.failure, state.changed
}

// failing returns a handler that fails in the way that SetFailure has set for peer. If peer is Healthy, it
// calls handle.
func (p *Peers) failing(peer Peer, handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") { // requests for the list of models never fail
			handle(w, r)
			return
		}
		body, err := io.ReadAll(r.Body) // with an unread body the server would not notice that the client has disconnected
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch failure, changed := p.count(peer); failure {
		case Silent:
			select {
			case <-r.Context().Done():
			case <-changed:
			}
			panic(http.ErrAbortHandler)
		case Garbled:
			_, _ = io.WriteString(w, "<html>\x00\xff{]} data: nothing of the kind\n\n")
		case Dying:
			handle(&truncatedWriter{ResponseWriter: w}, r)
			panic(http.ErrAbortHandler) // closes the connection
		default:
			handle(w, r)
		}
	}
}

// truncatedWriter sends only the beginning of a response.
type truncatedWriter struct {
	http.ResponseWriter
	writes int
}

// Unwrap returns the writer of the whole response, for http.ResponseController.
func (w *truncatedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write sends half of p in each of the first two calls, and then nothing.
func (w *truncatedWriter) Write(p []byte) (int, error) {
	if w.writes++; w.writes > 2 {
		return len(p), nil
	}
	written, err := w.ResponseWriter.Write(p[:min(len(p)/2+1, len(p))])
	_ = http.NewResponseController(w.ResponseWriter).Flush() // fails if the client has disconnected
	if err != nil {
		return written, err
	}
	return len(p), nil
}

// NewPeers starts the peers, which end with the test.
func NewPeers(t testing.TB) *Peers {
	t.Helper()
	p := &Peers{Words: []string{"😊", " It", " is", " three."}, Reached: make(chan string, 64),
		Holds: func() string { return "" }, states: map[Peer]*peerState{}}
	for _, peer := range []Peer{Recognizer, Brain, Synthesizer} {
		p.states[peer] = &peerState{changed: make(chan struct{}), served: map[Failure]int{}}
	}
	l := must.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	p.recognizer = l
	p.brain = httptest.NewServer(p.failing(Brain, p.think))
	p.synthesizer = httptest.NewServer(p.failing(Synthesizer, p.speak))
	p.conns.Go(p.listen)
	t.Cleanup(func() {
		_ = l.Close()
		p.brain.Close()
		p.synthesizer.Close()
		p.conns.Wait()
	})
	return p
}

// Use makes a configuration use only these engines.
func (p *Peers) Use(c *config.Config) {
	recognizer, brain, synthesizer := p.URLs()
	c.Speech.Recognizers = []config.Engine{{Kind: "wyoming", Options: &wyoming.RecognizerKeys{URL: recognizer}}}
	c.Speech.Synthesizers = []config.Engine{{Kind: "openai", Options: &openai.SynthesizerKeys{URL: synthesizer}}}
	c.Brains = []config.Engine{OpenAI(openaibrain.Options{URL: brain, Model: "m"})}
	c.BrainDeep = []config.Engine{{Kind: "openai", Options: &openaibrain.Options{URL: brain, Model: "deep"}}}
}

// URLs returns the URLs of the peers for a configuration.
func (p *Peers) URLs() (recognizer, brain, synthesizer string) {
	return "tcp://" + p.recognizer.Addr().String(), p.brain.URL + "/v1", p.synthesizer.URL + "/v1"
}

// startRequest counts a request in Active until end is called.
func (p *Peers) startRequest() (end func()) {
	p.active.Add(1)
	return func() { p.active.Add(-1) }
}

// Active returns the number of requests that have not ended.
func (p *Peers) Active() int { return int(p.active.Load()) }

// CloseConnections closes the connections of clients to the model and the synthesizer.
func (p *Peers) CloseConnections() {
	p.brain.CloseClientConnections()
	p.synthesizer.CloseClientConnections()
}

// recordTime sets t, a field of p.times, to the current time.
func (p *Peers) recordTime(t *time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*t = time.Now()
}

// waitIfHeld reports whether Holds returns stage. If so, it first waits until the channel disconnected is
// closed, which means that the client has disconnected.
func (p *Peers) waitIfHeld(stage string, disconnected <-chan struct{}) bool {
	if p.Holds() != stage {
		return false
	}
	p.Reached <- stage
	<-disconnected
	return true
}

// listen serves the recognizer's connections until its listener is closed.
func (p *Peers) listen() {
	for {
		conn, err := p.recognizer.Accept()
		if err != nil {
			return
		}
		p.conns.Go(func() {
			defer conn.Close()
			p.serveWyoming(conn)
		})
	}
}

// serveWyoming serves a connection of a Wyoming client.
func (p *Peers) serveWyoming(conn net.Conn) {
	r, w := wyoming.NewReader(conn, wyoming.Limits{}), wyoming.NewWriter(conn)
	send := func(name string, v any) bool {
		e, err := wyoming.NewEvent(name, v, nil)
		return err == nil && w.Write(e) == nil
	}
	for {
		e, err := r.Read()
		if err != nil {
			return
		}
		switch e.Type {
		case wyoming.TypeDescribe:
			if !send(wyoming.TypeInfo, wyoming.Info{ASR: []wyoming.Program{{Name: "peer", Installed: true,
				Models: []wyoming.Model{{Name: "m", Installed: true, Languages: []string{"en"}}}}}}) {
				return
			}
		case wyoming.TypeAudioStart:
			defer p.startRequest()()
			if failure, _ := p.count(Recognizer); failure == Dying {
				return
			}
		case wyoming.TypeAudioStop:
			p.recordTime(&p.times.utteranceEnd)
			disconnected := make(chan struct{})
			p.conns.Go(func() {
				defer close(disconnected)
				_, _ = r.Read() // returns when the client disconnects
			})
			switch failure, changed := p.count(Recognizer); {
			case failure == Silent:
				select {
				case <-disconnected:
				case <-changed:
				}
				return
			case failure == Garbled:
				_, _ = io.WriteString(conn, "\x00\xff{\"type\":transcript}\n{{{{\n")
				return
			case failure == Dying, p.waitIfHeld("recognizing", disconnected):
				return
			}
			if !send(wyoming.TypeTranscript, wyoming.Text{Text: "what time is it"}) {
				return
			}
			p.recordTime(&p.times.transcript)
			<-disconnected
			return
		}
	}
}

// think serves the models "m" and "deep".
func (p *Peers) think(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Model    string
		Messages []struct {
			Role    string
			Content any
		}
	}
	if r.URL.Path != "/v1/chat/completions" || json.NewDecoder(r.Body).Decode(&request) != nil {
		http.NotFound(w, r)
		return
	}
	defer p.startRequest()()
	p.recordTime(&p.times.modelRequest)
	if request.Model == "m" {
		p.mu.Lock()
		p.prompts = append(p.prompts, fmt.Sprint(request.Messages[0].Content))
		p.mu.Unlock()
	}
	if request.Model == "deep" && p.waitIfHeld("in a tool", r.Context().Done()) || request.Model == "m" && p.waitIfHeld("first token", r.Context().Done()) {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	send := func(delta string) {
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
		_ = out.Flush() // fails if the client has disconnected
	}
	done := func() { fmt.Fprint(w, "data: [DONE]\n\n") }
	if p.Holds() == "in a tool" {
		send(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"think_hard","arguments":"{\"question\":\"why\"}"}}]}`)
		done()
		return
	}
	calls, last := "", request.Messages[len(request.Messages)-1]
	if p.Decides != nil {
		calls = p.Decides(last.Role, fmt.Sprint(last.Content))
	} else if last.Role == "user" {
		calls = p.Calls
	}
	if calls != "" {
		send(`{"tool_calls":` + calls + `}`)
		done()
		return
	}
	sentenceEnded := false
	for i, word := range p.Words {
		if i > 0 && p.Every > 0 {
			select {
			case <-time.After(p.Every):
			case <-r.Context().Done():
				return
			}
		}
		text, _ := json.Marshal(word) // encoding a string cannot fail
		send(`{"content":` + string(text) + `}`)
		// The appliance recognizes the end of a sentence by the next word.
		if afterSentence := i > 0 && strings.HasSuffix(p.Words[i-1], "."); afterSentence && !sentenceEnded {
			sentenceEnded = true
			p.recordTime(&p.times.sentenceEnd)
			if p.Rest != nil {
				select {
				case <-p.Rest:
				case <-r.Context().Done():
					return
				}
			}
		}
	}
	done()
	if !sentenceEnded {
		p.recordTime(&p.times.sentenceEnd)
	}
}

// speak serves the synthesizer. It turns each sentence into a tone of half a second.
func (p *Peers) speak(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/audio/speech" {
		http.NotFound(w, r)
		return
	}
	defer p.startRequest()()
	var request Spoken
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	p.spoken = append(p.spoken, request)
	isFirst := p.times.speechRequest.Before(p.times.modelRequest)
	p.mu.Unlock()
	if isFirst {
		p.recordTime(&p.times.speechRequest)
	}
	pcm := make([]byte, voice.SpeakerRate) // half a second: a sample has two bytes
	for i := range len(pcm) / 2 {
		sample := int16(8000 * math.Sin(2*math.Pi*440*float64(i)/voice.SpeakerRate))
		pcm[2*i], pcm[2*i+1] = byte(sample), byte(uint16(sample)>>8)
	}
	w.Header().Set("Content-Type", "audio/pcm")
	_, err := w.Write(pcm)
	_ = http.NewResponseController(w).Flush()
	if isFirst {
		p.recordTime(&p.times.speech)
	}
	if err == nil {
		p.waitIfHeld("speaking", r.Context().Done())
	}
}

// Spoken is a sentence that the synthesizer has received.
type Spoken struct {
	Text  string `json:"input"`
	Voice string `json:"voice"`
}

// Requests returns the system prompts that the model has received, and the sentences that the synthesizer
// has received.
func (p *Peers) Requests() (prompts []string, spoken []Spoken) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.prompts), slices.Clone(p.spoken)
}

// Latency returns the part of the latest turn that the peers took, from the end of the utterance to the
// sound of the first sentence.
func (p *Peers) Latency() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.times.transcript.Sub(p.times.utteranceEnd) + p.times.sentenceEnd.Sub(p.times.modelRequest) +
		p.times.speech.Sub(p.times.speechRequest)
}

// OpenAI returns a brain of kind openai.
func OpenAI(o openaibrain.Options, servers ...thinker.ToolServer) config.Engine {
	return config.Engine{Kind: "openai", Options: &thinker.BrainKeys[openaibrain.Options]{MCP: servers, Model: o}}
}

// Anthropic returns a brain of kind anthropic.
func Anthropic(o anthropic.Options) config.Engine {
	return config.Engine{Kind: "anthropic", Options: &thinker.BrainKeys[anthropic.Options]{Model: o}}
}
