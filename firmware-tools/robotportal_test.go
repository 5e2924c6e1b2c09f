package main

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"
)

// robotPortal is a fake of the page that a robot in configuration mode serves at
// http://192.168.4.1. It behaves like version 3 of the component 78/esp-wifi-connect. Two networks are
// in range: Home, with a password, and Open.
type robotPortal struct {
	t   *testing.T
	mux *http.ServeMux
	old bool // simulate an older version, which has no path /exit

	mu    sync.Mutex
	ota   string   // wifi/ota_url in the robot's NVS; "" for the firmware's default
	saved []string // names of the stored networks
	left  bool     // the robot has left configuration mode
}

// newRobotPortal returns a portal of a robot that has stored the networks saved.
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

// ServeHTTP implements http.Handler. Like a robot it handles one request at a time. After the robot
// has left configuration mode, it aborts all requests.
func (p *robotPortal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		panic(http.ErrAbortHandler)
	}
	p.mux.ServeHTTP(w, r)
}

// robotForm parses the JSON body of a request like the firmware. If the body is invalid, robotForm
// sends an error response and returns false.
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

// advanced stores ota_url if it is a string. It reports success even if it has stored nothing.
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

// Sizes of the fields for the name and the password of a network in wifi_config_t, in bytes.
const (
	roomSSID     = 32
	roomPassword = 64
)

// submit stores a network if it is in range and the password is right. The error messages are the
// firmware's: "invalid SSID" and "cannot connect to the Wi-Fi".
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

// leave sends a response, and ends configuration mode.
func (p *robotPortal) leave(w http.ResponseWriter, _ *http.Request) {
	robotReply(w, map[string]any{"success": true})
	p.left = true
}
