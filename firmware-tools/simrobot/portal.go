package simrobot

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
)

// PortalOptions describe a portal.
type PortalOptions struct {
	Networks map[string]string // passwords by SSID, of the networks in range
	Saved    []string          // SSIDs that it knows already
	OTA      string            // the address it has; "" is none

	// Old portals, of older versions of the component, are left by /reboot
	// alone.
	Old bool
	// Crash is called when a real robot would crash; its connection is cut.
	Crash func(why string)
}

// Portal is the page that a robot in configuration mode serves at
// http://192.168.4.1, as 78/esp-wifi-connect 3 has it: the settings of its
// Advanced tab, the networks that it knows, and how it leaves that mode.
type Portal struct {
	o   PortalOptions
	mux *http.ServeMux

	mu    sync.Mutex
	ota   string
	saved []string
	left  bool
}

// NewPortal returns a portal.
func NewPortal(o PortalOptions) *Portal {
	p := &Portal{o: o, mux: http.NewServeMux(), ota: o.OTA, saved: append([]string{}, o.Saved...)}
	p.mux.HandleFunc("GET /advanced/config", p.config)
	p.mux.HandleFunc("POST /advanced/submit", p.advanced)
	p.mux.HandleFunc("GET /saved/list", p.list)
	p.mux.HandleFunc("POST /submit", p.submit)
	p.mux.HandleFunc("POST /reboot", p.leave)
	if !o.Old {
		p.mux.HandleFunc("POST /exit", p.leave)
	}
	return p
}

// OTA returns wifi/ota_url of its NVS: the address of its check-ins after it has
// left the portal. "" is the firmware's default.
func (p *Portal) OTA() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ota
}

// Saved returns the networks that it knows.
func (p *Portal) Saved() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.saved)
}

// Left reports whether it has left configuration mode.
func (p *Portal) Left() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

// ServeHTTP implements http.Handler. As on a robot, one request is answered at a
// time. A portal that was left does not answer.
func (p *Portal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		panic(http.ErrAbortHandler)
	}
	p.mux.ServeHTTP(w, r)
}

// mostForm is the firmware's limit for a form, in bytes.
const mostForm = 1024

// form reads a JSON body as the firmware does, and answers an invalid one.
func form(w http.ResponseWriter, r *http.Request) (map[string]any, bool) {
	text, err := io.ReadAll(io.LimitReader(r.Body, mostForm+1))
	why := ""
	var f map[string]any
	switch {
	case err != nil:
		why = "Failed to receive request"
	case len(text) > mostForm:
		why = "Payload too large"
	case json.Unmarshal(text, &f) != nil:
		why = "Invalid JSON"
	default:
		return f, true
	}
	http.Error(w, why, http.StatusBadRequest)
	return nil, false
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

func (p *Portal) config(w http.ResponseWriter, _ *http.Request) {
	c := map[string]any{"max_tx_power": 0, "remember_bssid": false, "sleep_mode": true}
	if p.ota != "" {
		c["ota_url"] = p.ota
	}
	reply(w, c)
}

// advanced stores the address if it is a text, and reports success in any case.
func (p *Portal) advanced(w http.ResponseWriter, r *http.Request) {
	f, ok := form(w, r)
	if !ok {
		return
	}
	if ota, isText := f["ota_url"].(string); isText {
		p.ota = ota
	}
	reply(w, map[string]any{"success": true})
}

func (p *Portal) list(w http.ResponseWriter, _ *http.Request) { reply(w, p.saved) }

// Space for a network's name and its password in wifi_config_t, in bytes.
const (
	roomSSID     = 32
	roomPassword = 64
)

// submit tries a network, and keeps it if it could join.
func (p *Portal) submit(w http.ResponseWriter, r *http.Request) {
	f, ok := form(w, r)
	if !ok {
		return
	}
	ssid, isText := f["ssid"].(string)
	password, _ := f["password"].(string)
	if !isText {
		reply(w, map[string]any{"success": false, "error": "无效的 SSID"})
		return
	}
	if len(password) > roomPassword {
		if p.o.Crash != nil {
			p.o.Crash(fmt.Sprintf("a password of %d bytes is copied into room for %d", len(password), roomPassword))
		}
		panic(http.ErrAbortHandler)
	}
	if right, there := p.o.Networks[ssid]; !there || right != password || ssid == "" || len(ssid) > roomSSID {
		reply(w, map[string]any{"success": false, "error": "无法连接到 WiFi"})
		return
	}
	p.saved = append(p.saved, ssid)
	reply(w, map[string]any{"success": true})
}

// leave ends configuration mode, after the answer.
func (p *Portal) leave(w http.ResponseWriter, _ *http.Request) {
	reply(w, map[string]any{"success": true})
	p.left = true
}
