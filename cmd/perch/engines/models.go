package engines

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"

	"perch/cmd/perch/config"
	"perch/gateway/httpserver"
	"perch/gateway/owner/admin"
	"perch/voice/wyoming"
)

// defaultSpeech is where perch-speech serves by default.
const defaultSpeech = "tcp://" + wyoming.PerchSpeech

// Models manages the models of the perch-speech on this machine. It is safe for concurrent use.
type Models struct {
	config func() *config.Config
	ctx    context.Context // canceled by Close
	cancel context.CancelFunc

	mu     sync.Mutex
	latest download
}

// download is the latest download of a model.
type download struct {
	name    string
	running bool
	stop    context.CancelFunc
	ended   chan struct{} // closed at its end
	err     error         // why it has failed
}

// NewModels returns the models of the perch-speech among the engines in the configuration, or of one at the default address.
func NewModels(c func() *config.Config) *Models {
	m := &Models{config: c}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Close stops a download and waits for its end. The next download of the model continues it.
func (m *Models) Close() {
	m.mu.Lock()
	m.cancel()
	ended := m.latest.ended
	m.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// List returns the models.
func (m *Models) List(ctx context.Context) admin.SpeechModels {
	all := admin.SpeechModels{Models: []admin.SpeechModel{}}
	_, list, err := m.find(ctx)
	if err != nil {
		all.Missing = err.Error()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, model := range list {
		shown := admin.SpeechModel{SpeechModel: model}
		if m.latest.name == model.Name && !model.Installed {
			shown.Getting = shown.Getting || m.latest.running
			if m.latest.err != nil {
				shown.Error = m.latest.err.Error()
			}
		}
		all.Models = append(all.Models, shown)
	}
	return all
}

// find returns the perch-speech on this machine, and its models.
func (m *Models) find(ctx context.Context) (s *wyoming.Speech, list []wyoming.SpeechModel, err error) {
	for _, address := range append(localWyoming(m.config()), defaultSpeech) {
		if s, err = wyoming.NewSpeech(address); err == nil {
			list, err = s.Models(ctx)
		}
		if err == nil {
			return s, list, nil
		}
	}
	return nil, nil, &httpserver.Fault{Word: "no_perch_speech", HTTP: http.StatusServiceUnavailable, Err: err,
		Sentence: fmt.Sprintf("perch-speech does not answer on this machine (%v); docs/how-to/speech-on-this-machine.md says how to install and start it", err)}
}

// localWyoming returns the addresses on this machine of the Wyoming engines in the configuration.
func localWyoming(c *config.Config) (addresses []string) {
	for _, e := range slices.Concat(c.Speech.Recognizers, config.Recognizers(c.Speech.Synthesizers)) {
		var address string
		switch keys := e.Options.(type) {
		case *wyoming.RecognizerKeys:
			address = keys.URL
		case *wyoming.SynthesizerKeys:
			address = keys.URL
		}
		if u, err := url.Parse(address); err == nil && !slices.Contains(addresses, address) {
			if ip, err := netip.ParseAddr(u.Hostname()); u.Hostname() == "localhost" || err == nil && ip.IsLoopback() {
				addresses = append(addresses, address)
			}
		}
	}
	return addresses
}

// Get begins to download a model. It returns an error if another download is running.
func (m *Models) Get(ctx context.Context, name string) error {
	s, list, err := m.find(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(model wyoming.SpeechModel) bool { return model.Name == name }) {
		return &httpserver.Fault{Word: "unknown_model", HTTP: http.StatusNotFound, Sentence: "perch-speech knows no such model"}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.latest.running {
		return &httpserver.Fault{Word: "busy", HTTP: http.StatusConflict, Sentence: m.latest.name + " is being downloaded; wait for its end, or stop it"}
	}
	if err := m.ctx.Err(); err != nil {
		return err
	}
	getting, stop := context.WithCancel(m.ctx)
	ended := make(chan struct{})
	m.latest = download{name: name, running: true, stop: stop, ended: ended}
	go func() {
		defer stop()
		err := s.Get(getting, name)
		m.mu.Lock()
		defer m.mu.Unlock()
		defer close(ended)
		m.latest.running = false
		if !errors.Is(err, context.Canceled) {
			m.latest.err = err
		}
	}()
	return nil
}

// Remove removes a model. If it is being downloaded, Remove stops that instead, and keeps what has come.
func (m *Models) Remove(ctx context.Context, name string) error {
	m.mu.Lock()
	latest := m.latest
	m.mu.Unlock()
	if latest.running && latest.name == name {
		latest.stop()
		<-latest.ended
		return nil
	}
	s, _, err := m.find(ctx)
	if err != nil {
		return err
	}
	if err := s.Remove(ctx, name); err != nil {
		return &httpserver.Fault{Word: "speech_failed", HTTP: http.StatusBadGateway, Sentence: err.Error(), Err: err}
	}
	return nil
}
