package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/firmware-tools/simrobot"
	"perch/gateway/door/doortest"
)

// TestWhoeverMovesAHeadHoldsIt: what an LLM, a bridge's client, Home Assistant or
// the owner has turned is not turned away again by what the robot senses next.
func TestWhoeverMovesAHeadHoldsIt(t *testing.T) {
	movers := map[string]func(h *running, robot string){
		"nobody": nil,
		"the bridge": func(h *running, robot string) {
			h.Admin(http.MethodPost, "/admin/set-head-angles", `{"yaw":-40,"device_id":"`+robot+`"}`, nil)
		},
		"the owner": func(h *running, robot string) {
			h.Admin(http.MethodPost, "/api/v1/devices/"+robot+"/tools/self.robot.set_head_angles", `{"arguments":{"yaw":-40}}`, nil)
		},
		"Home Assistant": func(h *running, robot string) { h.publish("perch/"+robot+"/head_yaw/set", "-40") },
		"an LLM over MCP": func(h *running, robot string) {
			session := h.mcp("",
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
			h.mcp(session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			h.mcp(session,
				`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+robot+`_robot_set_head_angles","arguments":{"yaw":-40}}}`)
		},
	}
	c := withBroker(t)
	c.Skins.Key = skinsTestKey
	rules, robots, of := "rules:\n", map[string]string{}, 0
	for name := range movers {
		id := fmt.Sprintf("a0b1c2d3e4f%d", of)
		robots[name], of = id, of+1
		rules += fmt.Sprintf("  - {when: {event: knock, robot: %s}, do: [{head: {yaw: 30}}, {publish: {topic: house/%s, payload: knocked}}]}\n", id,
			id)
	}
	own, err := loadConfig(appliancetest.Written(t, rules), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Rules = own.Rules
	h := open(t, c, t.TempDir())
	mqtt := h.listen()
	for name, moves := range movers {
		t.Run(name, func(t *testing.T) {
			h := &running{h.For(t)}
			id := robots[name]
			var mac []string
			for i := 0; i < len(id); i += 2 {
				mac = append(mac, strings.ToUpper(id[i:i+2]))
			}
			h.adopt(strings.Join(mac, ":"))
			robot := h.companion(simrobot.Options{MAC: strings.Join(mac, ":"), Firmware: "dotty",
				Events: []xiaozhi.Event{{Name: "state_changed", Data: []byte(`{"state":"idle"}`)}}})
			h.knowsTools(device.ID(id))
			turned := func(yaw string) func(simrobot.Observation) bool {
				return func(e simrobot.Observation) bool {
					c, ok := e.(simrobot.Called)
					return ok && c.Name == "self.robot.set_head_angles" && strings.Contains(c.Arguments, `"yaw":`+yaw)
				}
			}
			if moves != nil {
				h.Eventually("Home Assistant knows it", func() bool { return mqtt.has("perch/"+id+"/state", `"connected":true`) })
				moves(h, id)
				h.await(robot, "its head is moved", turned("-40"))
			}
			sense(robot, "knock", "{}")
			h.Eventually("its rule is done", func() bool { return mqtt.has("house/"+id, "knocked") })
			if _, away := robot.When(turned("30")); away != (moves == nil) {
				t.Errorf("a rule turned it away: %t", away)
			}
		})
	}
}

// mcp posts a message, and returns the session it is of.
func (h *running) mcp(session, body string) string {
	h.T.Helper()
	answer, text := doortest.Ask(h.T, http.MethodPost, h.URL("/mcp"), body, "Authorization", "Bearer "+skinsTestKey,
		"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Mcp-Session-Id", session)
	if answer.StatusCode >= 300 || strings.Contains(text, `"isError":true`) {
		h.T.Fatalf("%d %s", answer.StatusCode, text)
	}
	return answer.Header.Get("Mcp-Session-Id")
}
