package hass

import (
	"slices"
	"testing"
)

// TestUsers decodes Home Assistant's response to config/auth/list. An inactive owner cannot log in,
// and so is not an administrator.
func TestUsers(t *testing.T) {
	c := serve(t, func(p *peer) {
		p.greet()
		m := p.command()
		if m["type"] != "config/auth/list" {
			p.t.Errorf("%v", m)
		}
		p.text(`{"id":%v,"type":"result","success":true,"result":[`+
			`{"id":"0a","username":"olga","name":"Olga","is_owner":true,"is_active":true,"local_only":false,"system_generated":false,"group_ids":[],`+
			`"credentials":[{"type":"homeassistant"}]},`+
			`{"id":"1f","username":null,"name":"Ada","is_owner":false,"is_active":true,"group_ids":["system-users","system-admin"]},`+
			`{"id":"2b","name":"Bob","is_owner":false,"is_active":true,"group_ids":["system-users"]},`+
			`{"id":"3e","name":"Eve","is_owner":true,"is_active":false,"group_ids":["system-admin"]},`+
			`{"id":"4c","name":"Cid","is_owner":false,"is_active":true,"group_ids":null}]}`, m["id"])
		p.hangUp()
	})
	all, err := c.Users(t.Context())
	var admins []string
	for _, u := range all {
		if u.Administrator() {
			admins = append(admins, u.ID)
		}
	}
	if err != nil || len(all) != 5 || !slices.Equal(admins, []string{"0a", "1f"}) {
		t.Errorf("%v %v, %v", all, admins, err)
	}
}
