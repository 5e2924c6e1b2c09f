package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
)

// passports starts an appliance with a robot and a skins' key. owner and skin are the headers with their keys.
func passports(t *testing.T, data string) (h *running, owner, skin []string) {
	t.Helper()
	c := appliancetest.Config()
	c.Skins.Key = "key-of-the-skins-0123"
	h = open(t, c, data)
	h.Token("/xiaozhi/ota/", "Device-Id", "A0:B1:C2:D3:E4:F5")
	return h, bearer(h.OwnerToken()), bearer(c.Skins.Key)
}

const someWallet = "0x742d35Cc6634C0532925a3b844Bc9e7595f0bEb7"

// TestPassports: each character has a passport, which has the values of the character until the owner changes them.
// The passport survives a restart and a restore, and is deleted with its character.
func TestPassports(t *testing.T) {
	data := t.TempDir()
	h, owner, skin := passports(t, data)
	h.command("character import ../../../agent/manifest/testdata/leo.json", 0)
	h.command("character use a0b1c2d3e4f5 coach-leo", 0)
	h.Expect(200, `"id":"default"`, "GET", "/api/agents/me", "", skin...)
	h.Expect(200, `"id":"coach-leo"`, "GET", "/api/agents/me?robot=a0:b1:c2:d3:e4:f5", "", skin...)
	h.Expect(400, `bad_robot_id`, "GET", "/api/agents/me?robot=garage", "", skin...)
	h.Request("POST", "/v1/chat/completions", `{"model":"coach-leo","messages":[{"role":"user","content":"Hello."}]}`,
		append(skin, "X-Session-Id", "vtb_talk")...)
	h.Expect(200, `"id":"coach-leo"`, "GET", "/api/agents/me", "", append(skin, "X-Session-Id", "vtb_talk")...)
	_, text := h.Request("GET", "/api/agents/coach-leo", "", skin...)
	var got struct {
		Agent struct {
			ID, Name, AvatarID string
			Skills             []string
			CreatedAt          int64
			WalletAddress      *string
		} `json:"agent"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || got.Agent.Name != "Coach Leo" || got.Agent.AvatarID != "ipfs://bafy.../leo.glb" ||
		got.Agent.CreatedAt < 1e12 || got.Agent.WalletAddress != nil || len(got.Agent.Skills) == 0 {
		t.Errorf("made of the character: %s, %v", text, err)
	}
	h.Expect(200, `"walletAddress":"`+someWallet+`"`, "PUT", "/api/agents/coach-leo", `{"id":"coach-leo","description":"Football.","homeUrl":`+
		`"https://leo.example/","walletAddress":"`+someWallet+`","chainId":8453,"x":{"y":[1.0]},"meta":{"erc8004":{"agentId":22}}}`, owner...)
	h.Expect(200, `"name":"Leo"`, "PUT", "/api/agents/me?robot=a0b1c2d3e4f5", `{"name":"Leo","avatar_id":null}`, owner...)
	h.Expect(200, `"name":"House"`, "PUT", "/api/agents/me", `{"name":"House"}`, owner...)
	h.command("character list", 0, "House", "Leo") // the names have changed everywhere
	here, _ := httpservertest.Ask(t, http.MethodPut, h.LocalURL()+"api/agents/me", `{"name":"House"}`, owner...)
	if here.StatusCode != http.StatusOK {
		t.Errorf("of a program on this machine: %s", here.Status)
	}
	const leos = `"x":{"y":[1.0]}`
	h.Expect(200, leos, "GET", "/api/agents/coach-leo", "", skin...)
	file := filepath.Join(t.TempDir(), "perch.tar")
	h.command("backup "+file, 0)
	h.Expect(200, `"chainId":1,`, "POST", "/api/agents/coach-leo/wallet", `{"wallet_address":"`+someWallet+`","chain_id":1}`, owner...)
	h.Expect(200, `"walletAddress":null`, "DELETE", "/api/agents/coach-leo/wallet", "", owner...)
	h.Stop()

	h, _, skin = passports(t, data)
	h.Expect(200, `"walletAddress":null,"x":{"y":[1.0]}`, "GET", "/api/agents/coach-leo", "", skin...)
	h.Stop()
	h.command("restore "+file, exitDone)
	h, _, skin = passports(t, data)
	h.Expect(200, `"walletAddress":"`+someWallet+`"`, "GET", "/api/agents/me?robot=a0b1c2d3e4f5", "", skin...)
	h.Expect(200, `"name":"House"`, "GET", "/api/agents/default", "", skin...)

	h.command("character card coach-leo", 0, `"type": "https://eips.ethereum.org/EIPS/eip-8004#registration-v1"`, `"name": "Leo"`,
		`"description": "Football."`, `"endpoint": "https://leo.example/"`, "The file has no image", "The file has no registrations")
	h.command("character card nobody", 1, "no character")
	h.command("character use a0b1c2d3e4f5 default", 0)
	h.command("character remove coach-leo", 0)
	h.Expect(404, "unknown_character", "GET", "/api/agents/coach-leo", "", skin...)
	h.command("character import ../../../agent/manifest/testdata/leo.json", 0)
	h.Expect(200, `"name":"Coach Leo"`, "GET", "/api/agents/coach-leo", "", skin...)
}

// TestPassportsOfStrangers: only the owner can change passports. Invalid passports are refused with an error, and
// change nothing.
func TestPassportsOfStrangers(t *testing.T) {
	data := t.TempDir()
	h, owner, skin := passports(t, data)
	_, before := h.Request("GET", "/api/agents/default", "", skin...)
	robot := bearer(h.Token("/xiaozhi/ota/", "Device-Id", "A0:B1:C2:D3:E4:F6"))
	const mine = `{"name":"Mine","walletAddress":"` + someWallet + `"}`
	for who, key := range map[string][]string{"nobody": nil, "a skin": skin, "a robot": append(robot, "Device-Id", "a0b1c2d3e4f6")} {
		for _, route := range []string{"PUT /api/agents/default", "PUT /api/agents/me", "POST /api/agents/default/wallet",
			"DELETE /api/agents/default/wallet"} {
			method, path, _ := strings.Cut(route, " ")
			if status, text := h.Request(method, path, mine, key...); status != http.StatusUnauthorized {
				t.Errorf("%s of %s: %d %s", route, who, status, text)
			}
		}
	}
	if status, text := h.Request("GET", "/api/agents/me", ""); status != http.StatusUnauthorized {
		t.Errorf("read without a key: %d %s", status, text)
	}
	secret := filepath.Join(data, "characters", "..", "secret.json")
	must.Succeed(t, os.WriteFile(secret, []byte(`{"spec":"agent-manifest/0.2","name":"Secret","brain":{"provider":"none"}}`), 0o600))
	for id, want := range map[string]int{"nobody": 404, "..%2fsecret": 404, "..%252fsecret": 400, "%2e%2e": 400, "a.b": 400, "..": 400,
		strings.Repeat("x", 65): 400, "perch%00": 400, "DEFAULT": 404, "%20": 400} {
		for _, method := range []string{"GET", "PUT"} {
			if status, text := h.Request(method, "/api/agents/"+id, mine, owner...); status != want || strings.Contains(text, "Secret") {
				t.Errorf("%s %s: %d %s", method, id, status, text)
			}
		}
	}
	for body, says := range map[string]string{
		`{"name":"` + strings.Repeat("x", 10<<20) + `"}`:         "too_large",
		`{"x":"` + strings.Repeat("x", 60<<10) + `","name":7}`:   "name is a line",
		`{"id":"coach-leo","name":"Leo"}`:                        "passport of another character",
		`{"privateKey":"0x` + strings.Repeat("ab", 32) + `"}`:    "signs nothing on a chain",
		`{"meta":{"wallet":{"mnemonic":"abandon abandon"}}}`:     "meta.wallet.mnemonic",
		`{"walletAddress":"0x` + strings.Repeat("ab", 32) + `"}`: "walletAddress is",
		`{"homeUrl":"javascript:alert(1)"}`:                      "homeUrl is",
		`[`:                                                      "JSON object",
	} {
		if status, text := h.Request("PUT", "/api/agents/default", body, owner...); status < 400 || status >= 500 || !strings.Contains(text, says) ||
			strings.Contains(text, "abandon") || strings.Contains(text, "abab") {
			t.Errorf("%.60s: %d %s", body, status, text)
		}
	}
	h.Expect(400, "signs nothing on a chain", "POST", "/api/agents/default/wallet", `{"walletAddress":"`+someWallet+`","seed_phrase":"x"}`, owner...)
	h.Expect(400, "walletAddress is needed", "POST", "/api/agents/default/wallet", `{}`, owner...)
	if _, after := h.Request("GET", "/api/agents/default", "", skin...); after != before {
		t.Errorf("it was %s and is %s", before, after)
	}
	h.command("character import ../../../agent/manifest/testdata/leo.json --name me", 1, "choose another")
}
