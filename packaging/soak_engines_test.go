package packaging_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// sickness is what ails an engine.
type sickness string

const (
	well    sickness = ""
	silent  sickness = "accepts and never answers"
	garbled sickness = "answers garbage"
	dying   sickness = "dies in the middle"
)

// What the engines say while they are well. The answer is three sentences long,
// and the sound of each is eight tenths of a second.
const (
	soakSentence = "what time is it"
	soakSound    = 800 * time.Millisecond
	soakRate     = 24000
)

func soakAnswer() []string {
	return []string{"😊 It", " is", " late.", " All", " is", " well", " here.", " Ask", " me", " again."}
}

// soakEngine is a listener behind which there is an engine, well or not.
type soakEngine struct {
	listener net.Listener
	mu       sync.Mutex
	ails     sickness
	conns    map[net.Conn]bool // whether nothing goes on there
	served   map[sickness]int  // requests
	wg       sync.WaitGroup
}

// soakEngines are a recognizer that speaks the Wyoming protocol, and a brain and a synthesizer
// behind OpenAI's API.
type soakEngines struct {
	recognizer, brain, synthesizer *soakEngine
	timers                         *soakTimers
}

func newSoakEngines(timers *soakTimers) (*soakEngines, error) {
	e := &soakEngines{timers: timers}
	for _, one := range []struct {
		at    **soakEngine
		serve func(*soakEngine)
	}{
		{&e.recognizer, (*soakEngine).listen},
		{&e.brain, func(s *soakEngine) { s.http(e.think) }},
		{&e.synthesizer, func(s *soakEngine) { s.http(e.speak) }},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			e.close()
			return nil, err
		}
		s := &soakEngine{listener: l, conns: map[net.Conn]bool{}, served: map[sickness]int{}}
		*one.at = s
		s.wg.Go(func() { one.serve(s) })
	}
	return e, nil
}

func (e *soakEngines) each() map[string]*soakEngine {
	return map[string]*soakEngine{"recognizer": e.recognizer, "brain": e.brain, "synthesizer": e.synthesizer}
}

func (e *soakEngines) close() {
	for _, s := range e.each() {
		if s != nil {
			_ = s.listener.Close()
			s.hangUp(true)
			s.wg.Wait()
		}
	}
}

// hangUp closes the connections that are idle: they keep goroutines of the
// appliance's, which are not to be counted.
func (e *soakEngines) hangUp() {
	for _, s := range e.each() {
		s.hangUp(false)
	}
}

func (s *soakEngine) address() string { return s.listener.Addr().String() }

func (s *soakEngine) fall(ill sickness) {
	s.mu.Lock()
	s.ails = ill
	s.mu.Unlock()
	if ill == well {
		s.hangUp(true) // who was kept waiting need wait no longer
	}
}

func (s *soakEngine) condition() sickness {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served[s.ails]++
	return s.ails
}

func (s *soakEngine) hangUp(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, idle := range s.conns {
		if all || idle {
			_ = c.Close() // whoever reads it is told
		}
	}
}

// keep takes note of a connection's state.
func (s *soakEngine) keep(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state == http.StateClosed {
		delete(s.conns, c)
	} else {
		s.conns[c] = state == http.StateIdle || state == http.StateNew
	}
}

// http serves requests, as long as the engine is well.
func (s *soakEngine) http(handle http.HandlerFunc) {
	var requests sync.WaitGroup
	server := http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			defer requests.Done()
			s.ailing(w, r, handle)
		}),
		ConnState: s.keep,
	}
	_ = server.Serve(s.listener) // until the listener is closed
	_ = server.Close()
	requests.Wait()
}

func (s *soakEngine) ailing(w http.ResponseWriter, r *http.Request, handle http.HandlerFunc) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if strings.HasSuffix(r.URL.Path, "/models") { // a look, which even an ill one answers
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"soak"}]}`)
		return
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	switch s.condition() {
	case silent:
		<-r.Context().Done()
	case garbled:
		_, _ = io.WriteString(w, "<html>\x00\xff{]} data: nothing of the kind\n\n")
	case dying:
		handle(&half{ResponseWriter: w}, r)
		panic(http.ErrAbortHandler) // the connection is cut
	default:
		handle(w, r)
	}
}

// half is an answer of which only the first part is sent.
type half struct {
	http.ResponseWriter
	writes int
}

func (h *half) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func (h *half) Write(p []byte) (int, error) {
	if h.writes++; h.writes > 2 {
		return len(p), nil
	}
	n := len(p)/2 + 1
	if n > len(p) {
		n = len(p)
	}
	written, err := h.ResponseWriter.Write(p[:n])
	_ = http.NewResponseController(h.ResponseWriter).Flush() // or whoever asked has gone
	if err != nil {
		return written, err
	}
	return len(p), nil
}

// think is a language model that says always the same, and calls the tools of
// timers where that is what the text asks for.
func (e *soakEngines) think(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Messages []struct {
			Role    string
			Content any
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || len(ask.Messages) == 0 {
		http.Error(w, `{"error":{"message":"no such request"}}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	say := func(delta string) {
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
		_ = out.Flush() // or whoever asked has gone
	}
	last := ask.Messages[len(ask.Messages)-1]
	text := fmt.Sprint(last.Content)
	if last.Role == "user" {
		if call := soakToolCall(text); call != "" {
			say(`{"tool_calls":` + call + `}`)
			fmt.Fprint(w, "data: [DONE]\n\n")
			return
		}
	}
	if last.Role == "tool" {
		e.timers.result(text)
	}
	for _, word := range soakAnswer() {
		quoted, _ := json.Marshal(word) // a string
		say(`{"content":` + string(quoted) + `}`)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// speak answers with a tone.
func (e *soakEngines) speak(w http.ResponseWriter, r *http.Request) {
	pcm := make([]byte, 2*int(soakSound.Seconds()*soakRate))
	for i := range len(pcm) / 2 {
		sample := int16(8000 * math.Sin(2*math.Pi*440*float64(i)/soakRate))
		pcm[2*i], pcm[2*i+1] = byte(sample), byte(uint16(sample)>>8)
	}
	w.Header().Set("Content-Type", "audio/pcm")
	_, _ = w.Write(pcm) // or whoever asked has gone
}

// listen serves the Wyoming protocol.
func (s *soakEngine) listen() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.keep(c, http.StateActive)
		s.wg.Go(func() {
			defer s.keep(c, http.StateClosed)
			defer c.Close()
			s.hear(bufio.NewReader(c), c)
		})
	}
}

// hear is one connection: whatever is said, it understands the same.
func (s *soakEngine) hear(r *bufio.Reader, w io.Writer) {
	for {
		kind, err := wyomingEvent(r)
		if err != nil {
			return
		}
		switch kind {
		case "describe":
			if send(w, "info", `{"asr":[{"name":"soak","installed":true,"models":[{"name":"m","installed":true,"languages":["en"]}]}]}`) != nil {
				return
			}
		case "audio-start":
			if s.condition() == dying {
				return
			}
		case "audio-stop":
			switch s.condition() {
			case silent:
				_, _ = io.Copy(io.Discard, r) // until the other side gives up
				return
			case garbled:
				_, _ = io.WriteString(w, "\x00\xff{\"type\":transcript}\n{{{{\n")
				return
			case dying:
				return
			}
			if send(w, "transcript", `{"text":"`+soakSentence+`"}`) != nil {
				return
			}
		}
	}
}

// wyomingEvent reads one event and returns its type. Lengths are bounded: what
// the appliance sends is small.
func wyomingEvent(r *bufio.Reader) (string, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return "", err
	}
	var head struct {
		Type    string
		Data    int `json:"data_length"`
		Payload int `json:"payload_length"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return "", err
	}
	if n := head.Data + head.Payload; n < 0 || n > 1<<20 {
		return "", fmt.Errorf("an event of %d bytes", n)
	}
	_, err = r.Discard(head.Data + head.Payload)
	return head.Type, err
}

func send(w io.Writer, kind, data string) error {
	_, err := fmt.Fprintf(w, "{\"type\":%q,\"data\":%s}\n", kind, data)
	return err
}

// soakTimers is what passes between the owner, who has a robot told to set a
// timer, and the brain, which calls the tool and sees its result.
type soakTimers struct {
	results chan string
}

func (t *soakTimers) result(text string) {
	select {
	case t.results <- text:
	default: // nobody waits for it
	}
}

// soakAsk is how the owner words it, so that the brain knows what to call.
var soakAsk = regexp.MustCompile(`soak (set|cancel) ([A-Za-z0-9]+)`)

func soakToolCall(text string) string {
	found := soakAsk.FindAllStringSubmatch(text, -1)
	if len(found) == 0 {
		return ""
	}
	name, arguments := "set_timer", map[string]any{"seconds": 80000, "text": "timer " + found[len(found)-1][2]}
	if found[len(found)-1][1] == "cancel" {
		name, arguments = "cancel_timer", map[string]any{"id": found[len(found)-1][2]}
	}
	text2, _ := json.Marshal(arguments)      // strings and numbers
	quoted, _ := json.Marshal(string(text2)) // a string
	return fmt.Sprintf(`[{"index":0,"id":"c1","type":"function","function":{"name":%q,"arguments":%s}}]`, name, quoted)
}
