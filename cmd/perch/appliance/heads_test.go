package appliance_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/device"
	"perch/firmware-tools/simrobot"
	"perch/gateway/httpserver/httpservertest"
)

// TestSensingLeavesAMovedHeadAlone checks that a rule for a sensor event does not turn a head that a model, a client of
// the bridge API, Home Assistant or the owner has just turned.
func TestSensingLeavesAMovedHeadAlone(t *testing.T) {
	movers := map[string]func(h *appliancetest.Appliance, robot string){
		"nobody": nil,
		"the bridge": func(h *appliancetest.Appliance, robot string) {
			h.Admin(http.MethodPost, "/admin/set-head-angles", `{"yaw":-40,"device_id":"`+robot+`"}`, nil)
		},
		"the owner": func(h *appliancetest.Appliance, robot string) {
			h.Admin(http.MethodPost, "/api/v1/devices/"+robot+"/tools/self.robot.set_head_angles", `{"arguments":{"yaw":-40}}`, nil)
		},
		"Home Assistant": func(h *appliancetest.Appliance, robot string) { h.Publish("perch/"+robot+"/head_yaw/set", "-40") },
		"an LLM over MCP": func(h *appliancetest.Appliance, robot string) {
			session := posted(h, "",
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
			posted(h, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			posted(h, session,
				`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+robot+`_robot_set_head_angles","arguments":{"yaw":-40}}}`)
		},
	}
	c := appliancetest.WithBroker(t)
	c.Skins.Key = appliancetest.Key
	rules, robots, of := "rules:\n", map[string]string{}, 0
	for name := range movers {
		id := fmt.Sprintf("a0b1c2d3e4f%d", of)
		robots[name], of = id, of+1
		rules += fmt.Sprintf("  - {when: {event: knock, robot: %s}, do: [{head: {yaw: 30}}, {publish: {topic: house/%s, payload: knocked}}]}\n", id,
			id)
	}
	c.Rules = loaded(t, appliancetest.WriteConfig(t, rules)).Rules
	h := appliancetest.Start(t, c, t.TempDir())
	mqtt := h.Listen()
	for name, moves := range movers {
		t.Run(name, func(t *testing.T) {
			h := h.For(t)
			id := robots[name]
			mac := strings.ToUpper(device.ID(id).MAC())
			h.Adopt(mac)
			robot := h.StartCompanion(simrobot.Options{MAC: mac, Firmware: "dotty", Events: appliancetest.Idle()})
			h.WaitForTools(device.ID(id))
			turned := func(yaw string) func(simrobot.Observation) bool {
				return appliancetest.Match(func(c simrobot.Called) bool {
					return c.Name == "self.robot.set_head_angles" && strings.Contains(c.Arguments, `"yaw":`+yaw)
				})
			}
			if moves != nil {
				h.Eventually("Home Assistant knows it", func() bool { return mqtt.Has("perch/"+id+"/state", `"connected":true`) })
				moves(h, id)
				h.Await(robot, "its head is moved", turned("-40"))
			}
			robot.SendSensorEvent("knock", "{}")
			h.Eventually("its rule is done", func() bool { return mqtt.Has("house/"+id, "knocked") })
			if _, away := robot.LastTime(turned("30")); away != (moves == nil) {
				t.Errorf("a rule turned it away: %t", away)
			}
		})
	}
}

// posted posts an MCP message, and returns the ID of its session.
func posted(h *appliancetest.Appliance, session, body string) string {
	h.T.Helper()
	answer, text := httpservertest.Ask(h.T, http.MethodPost, h.URL("/mcp"), body, "Authorization", "Bearer "+appliancetest.Key,
		"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Mcp-Session-Id", session)
	if answer.StatusCode >= 300 || strings.Contains(text, `"isError":true`) {
		h.T.Fatalf("%d %s", answer.StatusCode, text)
	}
	return answer.Header.Get("Mcp-Session-Id")
}
