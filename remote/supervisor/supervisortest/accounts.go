package supervisortest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"perch/socket"
)

// Groups of Home Assistant's accounts.
const (
	Administrators = "system-admin"
	OrdinaryUsers  = "system-users"
)

// Account is the account of a user of Home Assistant.
type Account struct {
	ID       string
	Name     string
	Owner    bool // whether this is the user who set up Home Assistant
	Inactive bool
	Groups   []string
}

// SetAccounts replaces the accounts of Home Assistant.
func (s *Supervisor) SetAccounts(accounts ...Account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accounts = slices.Clone(accounts)
}

// AuthListed returns the number of calls of AuthList.
func (s *Supervisor) AuthListed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed
}

// AuthList returns Home Assistant's response to the command config/auth/list, in the format of
// homeassistant/components/config/auth.py. id is the ID of the command. Apps send commands as the
// Supervisor's own user, who is an administrator.
func (s *Supervisor) AuthList(id int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed++
	result := []map[string]any{{"id": "5e", "username": nil, "name": "Supervisor", "is_owner": false, "is_active": true, "local_only": false,
		"system_generated": true, "group_ids": []string{Administrators}, "credentials": []any{}}}
	for _, a := range s.accounts {
		result = append(result, map[string]any{"id": a.ID, "username": a.Name, "name": a.Name, "is_owner": a.Owner, "is_active": !a.Inactive,
			"local_only": false, "system_generated": false, "group_ids": a.Groups,
			"credentials": []map[string]any{{"type": "homeassistant"}}})
	}
	text, err := json.Marshal(map[string]any{"id": id, "type": "result", "success": true, "result": result})
	if err != nil {
		s.t.Error(err)
	}
	return text
}

// Home returns the handler of a fake Home Assistant. It serves only the WebSocket API with the single
// command config/auth/list.
func (s *Supervisor) Home() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/websocket" {
			http.NotFound(w, r)
			return
		}
		c, err := socket.Accept(w, r, socket.Options{MaxMessage: 1 << 20})
		if err != nil {
			s.t.Error(err)
			return
		}
		defer c.Drop()
		send := func(format string, args ...any) { _ = c.SendText(fmt.Appendf(nil, format, args...)) } // fails if the client has disconnected
		send(`{"type":"auth_required","ha_version":"2026.11.0"}`)
		for authenticated := false; ; {
			_, data, err := c.Receive()
			var m struct {
				ID    int
				Type  string
				Token string `json:"access_token"`
			}
			switch {
			case err != nil || json.Unmarshal(data, &m) != nil:
				return
			case !authenticated && (m.Type != "auth" || m.Token != Token):
				send(`{"type":"auth_invalid","message":"Invalid access"}`)
				return
			case !authenticated:
				authenticated = true
				send(`{"type":"auth_ok","ha_version":"2026.11.0"}`)
			case m.Type == "config/auth/list":
				_ = c.SendText(s.AuthList(m.ID))
			default:
				send(`{"id":%d,"type":"result","success":false,"error":{"code":"unknown_command","message":"Unknown command."}}`, m.ID)
			}
		}
	})
}
