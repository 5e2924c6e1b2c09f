package admin

import (
	"context"
	"net/http"
	"time"

	"perch/gateway/httpserver"
)

// Found is what was found on the network that the appliance could use. Names and
// models are what others say of themselves.
type Found struct {
	Wyoming       []FoundServer `json:"wyoming"` // tcp://host:port
	Ollama        []FoundModels `json:"ollama"`
	HomeAssistant []FoundServer `json:"homeassistant"`
}

// FoundServer is a server that announces itself.
type FoundServer struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// FoundModels is a server of models.
type FoundModels struct {
	URL    string   `json:"url"`
	Models []string `json:"models"`
}

// findWithin bounds a search.
const findWithin = 4 * time.Second

// scanNetwork looks on the network, once at a time: it asks everybody there.
func (d *API) scanNetwork(ctx context.Context) (Found, error) {
	if !d.finding.start(struct{}{}) {
		return Found{}, &httpserver.Fault{Word: "busy", HTTP: http.StatusConflict, Sentence: "a search is under way already; ask again in some seconds"}
	}
	defer d.finding.finish(struct{}{})
	ctx, cancel := context.WithTimeout(ctx, findWithin)
	defer cancel()
	return d.o.Find(ctx), nil
}
