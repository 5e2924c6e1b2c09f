package homeassistant

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
	"perch/gateway/homeassistant/command"
	"perch/must"
)

// TestAdoptingOneOfTwoClients tests that a MAC address that two clients have claimed cannot be adopted alone, even long
// after the claims, that the response lists both clients, and that the owner can adopt one of them by its Client-Id.
func TestAdoptingOneOfTwoClients(t *testing.T) {
	inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
		const contested = device.ID("020000000001")
		comes := func(client, address string) {
			h.registry.CheckIn(device.CheckIn{ID: contested, Client: device.NewClient(client), Board: "m5stack-stack-chan", Firmware: "2.2.4",
				Address: address, BaseURL: "http://192.168.1.2:8003"}, time.Now())
		}
		comes("a-stranger", "192.168.1.66")
		comes("the-robot", "192.168.1.40")
		time.Sleep(11 * time.Minute)
		comes("a-stranger", "192.168.1.66")
		ask := func(body string) (answer command.Response) {
			s.take(incoming{Topic: "perch/bridge/request/adopt", Payload: []byte(body)})
			synctest.Wait()
			all := s.on("perch/bridge/response/adopt")
			must.Succeed(t, json.Unmarshal(all[len(all)-1].Payload, &answer))
			return answer
		}
		for _, body := range []string{`{"robot":"020000000001"}`, "020000000001", `{"robot":"020000000001","client":"neither"}`,
			`{"robot":"020000000001","client":"192.168.1.67"}`} {
			answer := ask(body)
			list, err := json.Marshal(answer.Data)
			if err != nil || answer.Status != "error" || h.registry.Trusts(contested) {
				t.Errorf("%s is answered %+v (%v), adopted: %t", body, answer, err, h.registry.Trusts(contested))
			}
			for _, part := range []string{`"client":"a-stranger"`, `"client":"the-robot"`, `"address":"192.168.1.66"`,
				`"address":"192.168.1.40"`, `"at":"2`} {
				if !strings.Contains(string(list), part) {
					t.Errorf("%s: the answer does not have %s: %s", body, part, list)
				}
			}
		}
		if answer := ask(`{"code":"123456","client":"the-robot"}`); answer.Status != "error" {
			t.Errorf("a client of a code: %+v", answer)
		}
		if answer := ask(`{"robot":"020000000001","client":"the-robot"}`); answer.Status != "ok" || !h.registry.Trusts(contested) {
			t.Errorf("the one that is named: %+v", answer)
		}
		if robot, err := h.registry.Get(contested); err != nil || robot.Client != device.NewClient("the-robot") ||
			robot.Address != "192.168.1.40" {
			t.Errorf("adopted is %+v (%v)", robot, err)
		}
	})
}
