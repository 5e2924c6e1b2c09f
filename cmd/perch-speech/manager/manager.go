// Package manager lists, downloads and removes the models of perch-speech for programs on the same machine, such as Perch.
package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"sync"

	"perch/cmd/perch-speech/models"
	"perch/gateway/wyoming"
	wire "perch/voice/wyoming"
)

// Manager manages the models in a folder. It downloads one model at a time.
type Manager struct {
	folder    models.Folder
	catalogue []models.Model
	transport http.RoundTripper

	mu      sync.Mutex
	getting string // name of the model that is being downloaded, or ""
}

// New returns a manager of the models in folder. It can download those in the catalogue.
func New(folder models.Folder, catalogue []models.Model, transport http.RoundTripper) *Manager {
	return &Manager{folder: folder, catalogue: catalogue, transport: transport}
}

// Handlers returns the handlers of the requests, for Options.Local of a server.
func (m *Manager) Handlers() map[string]wyoming.Handler {
	return map[string]wyoming.Handler{wire.TypeModels: m.list, wire.TypeGetModel: m.get, wire.TypeRemoveModel: m.remove}
}

// list sends all models.
func (m *Manager) list(_ context.Context, _ wire.Event, send func(string, any) error) error {
	all, err := m.folder.All(m.catalogue)
	if err != nil {
		return refuse(send, err)
	}
	m.mu.Lock()
	getting := m.getting
	m.mu.Unlock()
	list := wire.ModelList{Models: []wire.SpeechModel{}}
	for _, l := range all {
		shown := wire.SpeechModel{Name: l.Name, Does: l.Job, Language: l.Language, Bytes: l.Size(), Licence: l.Licence, Source: l.Source,
			Installed: l.Installed, Getting: l.Name == getting}
		if !l.Installed {
			shown.Progress = l.Received
		}
		list.Models = append(list.Models, shown)
	}
	return send(wire.TypeModels, list)
}

// get downloads a model.
func (m *Manager) get(ctx context.Context, e wire.Event, send func(string, any) error) error {
	model, err := m.begin(e)
	if err != nil {
		return refuse(send, err)
	}
	g := models.Getter{Folder: m.folder, Transport: m.transport, Progress: func(models.File, int64) (io.Writer, func()) { return io.Discard, func() {} }}
	err = g.Get(ctx, model)
	m.mu.Lock()
	m.getting = ""
	m.mu.Unlock()
	if err != nil {
		return refuse(send, err)
	}
	return send(wire.TypeModelDone, nil)
}

// begin marks the model that the event names as being downloaded. It returns an error if one is being downloaded already.
func (m *Manager) begin(e wire.Event) (models.Model, error) {
	var wanted wire.ModelName
	if err := e.Decode(&wanted); err != nil {
		return models.Model{}, err
	}
	i := slices.IndexFunc(m.catalogue, func(model models.Model) bool { return model.Name == wanted.Name })
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case i < 0:
		return models.Model{}, fmt.Errorf("there is no model %q to download", wanted.Name)
	case m.getting != "":
		return models.Model{}, fmt.Errorf("%s is being downloaded; wait for its end, or stop it", m.getting)
	}
	m.getting = wanted.Name
	return m.catalogue[i], nil
}

// remove removes a model.
func (m *Manager) remove(_ context.Context, e wire.Event, send func(string, any) error) error {
	var name wire.ModelName
	err := e.Decode(&name)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err != nil:
	case name.Name == m.getting:
		err = fmt.Errorf("%s is being downloaded; stop that first", name.Name)
	default:
		err = m.folder.Remove(name.Name)
	}
	if err != nil {
		return refuse(send, err)
	}
	return send(wire.TypeModelDone, nil)
}

// refuse sends an error. The connection stays open.
func refuse(send func(string, any) error, err error) error {
	text := err.Error()
	if errors.Is(err, fs.ErrPermission) {
		text += "; perch-speech may not change what was put there by root: use sudo perch-speech models"
	}
	return send(wire.TypeError, wire.Failure{Text: text})
}
