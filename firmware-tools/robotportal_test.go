package main

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"
)

// robotPortal is the page that a robot in configuration mode serves at
// http://192.168.4.1, as 78/esp-wifi-connect 3 has it: the settings of its
// Advanced tab, the networks that it knows, and how it leaves that mode. In range
// are Home, with a password, and Open.
type robotPortal struct {
	t   *testing.T
	mux *http.ServeMux
	old bool // of an older version of the component, which is left by /reboot alone

	mu    sync.Mutex
	ota   string   // wifi/ota_url of its NVS; "" is the firmware's default
	saved []string // SSIDs that it knows
	left  bool     // configuration mode
}

// newRobotPortal returns a portal that knows these networks.
func newRobotPortal(t *testing.T, old bool, saved ...string) *robotPortal {
	p := &robotPortal{t: t, mux: http.NewServeMux(), old: old, saved: append([]string{}, saved...)}
	p.mux.HandleFunc("GET /advanced/config", p.config)
	p.mux.HandleFunc("POST /advanced/submit", p.advanced)
	p.mux.HandleFunc("GET /saved/list", p.list)
	p.mux.HandleFunc("POST /submit", p.submit)
	p.mux.HandleFunc("POST /reboot", p.leave)
	if !old {
		p.mux.HandleFunc("POST /exit", p.leave)
	}
	return p
}

// ServeHTTP implements http.Handler. As on a robot, one request is answered at a
// time. A portal that was left does not answer.
func (p *robotPortal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		panic(http.ErrAbortHandler)
	}
	p.mux.ServeHTTP(w, r)
}

// robotForm reads a JSON body as the firmware does, and answers an invalid one.
func robotForm(w http.ResponseWriter, r *http.Request) (map[string]any, bool) {
	text, err := io.ReadAll(io.LimitReader(r.Body, maxForm+1))
	why := ""
	var f map[string]any
	switch {
	case err != nil:
		why = "Failed to receive request"
	case len(text) > maxForm:
		why = "Payload too large"
	case json.Unmarshal(text, &f) != nil:
		why = "Invalid JSON"
	default:
		return f, true
	}
	http.Error(w, why, http.StatusBadRequest)
	return nil, false
}

func robotReply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

func (p *robotPortal) config(w http.ResponseWriter, _ *http.Request) {
	c := map[string]any{"max_tx_power": 0, "remember_bssid": false, "sleep_mode": true}
	if p.ota != "" {
		c["ota_url"] = p.ota
	}
	robotReply(w, c)
}

// advanced stores the address if it is a text, and reports success in any case.
func (p *robotPortal) advanced(w http.ResponseWriter, r *http.Request) {
	f, ok := robotForm(w, r)
	if !ok {
		return
	}
	if ota, isText := f["ota_url"].(string); isText {
		p.ota = ota
	}
	robotReply(w, map[string]any{"success": true})
}

func (p *robotPortal) list(w http.ResponseWriter, _ *http.Request) { robotReply(w, p.saved) }

// Space for a network's name and its password in wifi_config_t, in bytes.
const (
	roomSSID     = 32
	roomPassword = 64
)

// submit tries a network, and keeps it if it could join.
func (p *robotPortal) submit(w http.ResponseWriter, r *http.Request) {
	f, ok := robotForm(w, r)
	if !ok {
		return
	}
	ssid, isText := f["ssid"].(string)
	password, _ := f["password"].(string)
	if !isText {
		robotReply(w, map[string]any{"success": false, "error": "无效的 SSID"})
		return
	}
	if len(password) > roomPassword {
		p.t.Errorf("a real robot would crash: a password of %d bytes is copied into room for %d", len(password), roomPassword)
		panic(http.ErrAbortHandler)
	}
	if right, there := map[string]string{"Home": "correct horse", "Open": ""}[ssid]; !there || right != password || ssid == "" || len(ssid) > roomSSID {
		robotReply(w, map[string]any{"success": false, "error": "无法连接到 WiFi"})
		return
	}
	p.saved = append(p.saved, ssid)
	robotReply(w, map[string]any{"success": true})
}

// leave ends configuration mode, after the answer.
func (p *robotPortal) leave(w http.ResponseWriter, _ *http.Request) {
	robotReply(w, map[string]any{"success": true})
	p.left = true
}
