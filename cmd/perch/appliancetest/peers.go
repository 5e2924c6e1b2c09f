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

// Peers is a recognizer, a language model and a synthesizer on loopback, which speak the true
// protocols and answer at once. The recognizer understands "what time is it" in every utterance.
type Peers struct {
	Words []string // of the model's answer
	Calls string   // the tools that the model calls first, as deltas hold them; may be empty
	// Decides returns the tools that the model calls after a message, instead of Calls; may be nil.
	Decides func(role, content string) (calls string)
	Every   time.Duration // between two words
	Rest    chan struct{} // if not nil, closed for the words after the first sentence
	// Holds returns a stage that does not end by itself: "recognizing", "first token", "in a tool" or
	// "speaking".
	Holds   func() string
	Reached chan string // stages that are held

	recognizer         net.Listener
	brain, synthesizer *httptest.Server
	conns              sync.WaitGroup
	busy               atomic.Int64 // requests under way
	mu                 sync.Mutex
	ills               map[Peer]*illness
	at                 moments
	prompts            []string // system prompts of the model
	spoken             []Spoken
}

// moments holds the times of the latest turn.
type moments struct {
	heardAll, understood time.Time
	asked                time.Time // of the request to the model
	sentence             time.Time // of the end of its first sentence
	spoken, said         time.Time // of the request to the synthesizer, and of its sound
}

// Peer names one of the peers.
type Peer string

// The peers.
const (
	Recognizer  Peer = "recognizer"
	Brain       Peer = "brain"
	Synthesizer Peer = "synthesizer"
)

// Illness is how a peer fails.
type Illness string

// How a peer fails.
const (
	Well    Illness = ""
	Silent  Illness = "accepts and never answers"
	Garbled Illness = "answers garbage"
	Dying   Illness = "dies in the middle"
)

// illness is the present Illness of a peer.
type illness struct {
	kind   Illness
	over   chan struct{}   // closed when another begins
	served map[Illness]int // the number of requests with each
}

// Fall makes a peer fail from now on, or be Well. Requests that a Silent peer holds end without an
// answer.
func (p *Peers) Fall(peer Peer, ill Illness) {
	p.mu.Lock()
	defer p.mu.Unlock()
	had := p.ills[peer]
	close(had.over)
	had.kind, had.over = ill, make(chan struct{})
}

// Served returns the number of requests that a peer had while it failed that way.
func (p *Peers) Served(peer Peer, ill Illness) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ills[peer].served[ill]
}

// condition counts a request and returns how it fails. over is closed when that ends.
func (p *Peers) condition(peer Peer) (ill Illness, over <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.ills[peer]
	i.served[i.kind]++
	return i.kind, i.over
}

// ailing returns a handler that fails as its peer does.
func (p *Peers) ailing(peer Peer, handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") { // always answered
			handle(w, r)
			return
		}
		body, err := io.ReadAll(r.Body) // else its context does not end when the client leaves
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch ill, over := p.condition(peer); ill {
		case Silent:
			select {
			case <-r.Context().Done():
			case <-over:
			}
			panic(http.ErrAbortHandler)
		case Garbled:
			_, _ = io.WriteString(w, "<html>\x00\xff{]} data: nothing of the kind\n\n")
		case Dying:
			handle(&half{ResponseWriter: w}, r)
			panic(http.ErrAbortHandler) // which closes the connection
		default:
			handle(w, r)
		}
	}
}

// half sends only the first part of an answer.
type half struct {
	http.ResponseWriter
	writes int
}

func (h *half) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func (h *half) Write(p []byte) (int, error) {
	if h.writes++; h.writes > 2 {
		return len(p), nil
	}
	written, err := h.ResponseWriter.Write(p[:min(len(p)/2+1, len(p))])
	_ = http.NewResponseController(h.ResponseWriter).Flush() // fails if the client has left
	if err != nil {
		return written, err
	}
	return len(p), nil
}

// NewPeers starts the peers, which end with the test.
func NewPeers(t testing.TB) *Peers {
	t.Helper()
	p := &Peers{Words: []string{"😊", " It", " is", " three."}, Reached: make(chan string, 64),
		Holds: func() string { return "" }, ills: map[Peer]*illness{}}
	for _, peer := range []Peer{Recognizer, Brain, Synthesizer} {
		p.ills[peer] = &illness{over: make(chan struct{}), served: map[Illness]int{}}
	}
	l := must.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	p.recognizer = l
	p.brain = httptest.NewServer(p.ailing(Brain, p.think))
	p.synthesizer = httptest.NewServer(p.ailing(Synthesizer, p.speak))
	p.conns.Go(p.listen)
	t.Cleanup(func() {
		_ = l.Close()
		p.brain.Close()
		p.synthesizer.Close()
		p.conns.Wait()
	})
	return p
}

// Use makes a configuration use these engines only.
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

// under counts a request until done is called.
func (p *Peers) under() (done func()) {
	p.busy.Add(1)
	return func() { p.busy.Add(-1) }
}

// UnderWay returns the number of requests under way.
func (p *Peers) UnderWay() int { return int(p.busy.Load()) }

// HangUp closes the idle connections.
func (p *Peers) HangUp() {
	p.brain.CloseClientConnections()
	p.synthesizer.CloseClientConnections()
}

// recordTime stores the current time.
func (p *Peers) recordTime(at *time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*at = time.Now()
}

// waitIfHeld waits until the client has left, and returns true, if a stage is held.
func (p *Peers) waitIfHeld(stage string, gone <-chan struct{}) bool {
	if p.Holds() != stage {
		return false
	}
	p.Reached <- stage
	<-gone
	return true
}

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
			defer p.under()()
			if ill, _ := p.condition(Recognizer); ill == Dying {
				return
			}
		case wyoming.TypeAudioStop:
			p.recordTime(&p.at.heardAll)
			gone := make(chan struct{})
			p.conns.Go(func() {
				defer close(gone)
				_, _ = r.Read() // until the client leaves
			})
			switch ill, over := p.condition(Recognizer); {
			case ill == Silent:
				select {
				case <-gone:
				case <-over:
				}
				return
			case ill == Garbled:
				_, _ = io.WriteString(conn, "\x00\xff{\"type\":transcript}\n{{{{\n")
				return
			case ill == Dying, p.waitIfHeld("recognizing", gone):
				return
			}
			if !send(wyoming.TypeTranscript, wyoming.Text{Text: "what time is it"}) {
				return
			}
			p.recordTime(&p.at.understood)
			<-gone
			return
		}
	}
}

// think serves the models m and deep.
func (p *Peers) think(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Model    string
		Messages []struct {
			Role    string
			Content any
		}
	}
	if r.URL.Path != "/v1/chat/completions" || json.NewDecoder(r.Body).Decode(&ask) != nil {
		http.NotFound(w, r)
		return
	}
	defer p.under()()
	p.recordTime(&p.at.asked)
	if ask.Model == "m" {
		p.mu.Lock()
		p.prompts = append(p.prompts, fmt.Sprint(ask.Messages[0].Content))
		p.mu.Unlock()
	}
	if ask.Model == "deep" && p.waitIfHeld("in a tool", r.Context().Done()) || ask.Model == "m" && p.waitIfHeld("first token", r.Context().Done()) {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	say := func(delta string) {
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
		_ = out.Flush() // fails if the client has left
	}
	done := func() { fmt.Fprint(w, "data: [DONE]\n\n") }
	if p.Holds() == "in a tool" {
		say(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"think_hard","arguments":"{\"question\":\"why\"}"}}]}`)
		done()
		return
	}
	calls, last := "", ask.Messages[len(ask.Messages)-1]
	if p.Decides != nil {
		calls = p.Decides(last.Role, fmt.Sprint(last.Content))
	} else if last.Role == "user" {
		calls = p.Calls
	}
	if calls != "" {
		say(`{"tool_calls":` + calls + `}`)
		done()
		return
	}
	whole := false
	for i, word := range p.Words {
		if i > 0 && p.Every > 0 {
			select {
			case <-time.After(p.Every):
			case <-r.Context().Done():
				return
			}
		}
		text, _ := json.Marshal(word) // a string
		say(`{"content":` + string(text) + `}`)
		// The end of a sentence is known when the next begins.
		if ended := i > 0 && strings.HasSuffix(p.Words[i-1], "."); ended && !whole {
			whole = true
			p.recordTime(&p.at.sentence)
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
	if !whole {
		p.recordTime(&p.at.sentence)
	}
}

// speak serves synthesized speech: half a second of a tone.
func (p *Peers) speak(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/audio/speech" {
		http.NotFound(w, r)
		return
	}
	defer p.under()()
	var order Spoken
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	p.spoken = append(p.spoken, order)
	first := p.at.spoken.Before(p.at.asked)
	p.mu.Unlock()
	if first {
		p.recordTime(&p.at.spoken)
	}
	pcm := make([]byte, voice.SpeakerRate)
	for i := range len(pcm) / 2 {
		sample := int16(8000 * math.Sin(2*math.Pi*440*float64(i)/voice.SpeakerRate))
		pcm[2*i], pcm[2*i+1] = byte(sample), byte(uint16(sample)>>8)
	}
	w.Header().Set("Content-Type", "audio/pcm")
	_, err := w.Write(pcm)
	_ = http.NewResponseController(w).Flush()
	if first {
		p.recordTime(&p.at.said)
	}
	if err == nil {
		p.waitIfHeld("speaking", r.Context().Done())
	}
}

// Spoken is a sentence that was synthesized.
type Spoken struct {
	Text  string `json:"input"`
	Voice string `json:"voice"`
}

// Asked returns the system prompts of the model and the sentences of the synthesizer so far.
func (p *Peers) Asked() (prompts []string, spoken []Spoken) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.prompts), slices.Clone(p.spoken)
}

// Own returns the time that the peers took in the latest turn until the sound of its first sentence.
func (p *Peers) Own() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at.understood.Sub(p.at.heardAll) + p.at.sentence.Sub(p.at.asked) + p.at.said.Sub(p.at.spoken)
}

// OpenAI returns a brain of kind openai.
func OpenAI(o openaibrain.Options, servers ...thinker.ToolServer) config.Engine {
	return config.Engine{Kind: "openai", Options: &thinker.BrainKeys[openaibrain.Options]{MCP: servers, Model: o}}
}

// Anthropic returns a brain of kind anthropic.
func Anthropic(o anthropic.Options) config.Engine {
	return config.Engine{Kind: "anthropic", Options: &thinker.BrainKeys[anthropic.Options]{Model: o}}
}
