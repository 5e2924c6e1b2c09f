package appliance

import (
	"cmp"

	"perch/gateway/admin"
)

// connections are the programs that are connected now, besides robots.
func (a *Appliance) connections() admin.Connections {
	mqtt := a.mqttPart()
	c := admin.Connections{Skins: []admin.Skin{}, Agents: []admin.CodingAgent{}, Relays: []admin.Relay{},
		HomeAssistant: admin.HomeAssistant{OK: mqtt.OK, Note: mqtt.Note, Since: mqtt.Since}}
	for _, s := range a.skins.Skins() {
		c.Skins = append(c.Skins, admin.Skin{Kind: "skin", Address: s.Address, Since: s.Since})
	}
	for _, s := range a.vccp.Connected() {
		c.Skins = append(c.Skins, admin.Skin{Kind: "character", Address: s.Address, Since: s.Since})
	}
	for _, s := range a.hooks.Sessions() {
		c.Agents = append(c.Agents, admin.CodingAgent{Name: s.Agent, ID: s.ID, Session: s.Session, State: s.State, Since: s.Began, Seen: s.Seen})
	}
	for _, r := range a.relays.List() {
		c.Relays = append(c.Relays, admin.Relay{Name: r.Name, Title: r.Title, OK: r.OK, Note: cmp.Or(r.Note, r.URL), Since: r.Since})
	}
	return c
}
