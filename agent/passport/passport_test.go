package passport

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"perch/limit"
	"perch/must"
)

const account1 = "0x742d35Cc6634C0532925a3b844Bc9e7595f0bEb7"

func change(t *testing.T, p Passport, body string) Passport {
	t.Helper()
	next, err := p.Change("leo", []byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return next
}

func shown(t *testing.T, p Passport, own Own) string {
	t.Helper()
	data := must.Value(json.Marshal(p.Shown(own)))(t)
	return string(data)
}

var leo = Own{ID: "leo", Name: "Coach Leo", Description: "A coach.", Skills: []string{"greet"}, Created: time.UnixMilli(1_700_000_000_000)}

// TestAPassportIsTheOwnersOverTheCharacters checks that a change keeps the fields that it does not
// contain, that null restores the character's own value, and that unknown fields are stored unchanged.
func TestAPassportIsTheOwnersOverTheCharacters(t *testing.T) {
	p := Passport(nil)
	const made = `{"avatarId":null,"chainId":null,"createdAt":1700000000000,"description":"A coach.","homeUrl":null,"id":"leo","isRegistered":false,` +
		`"meta":{},"name":"Coach Leo","skills":["greet"],"walletAddress":null}`
	if got := shown(t, p, leo); got != made {
		t.Errorf("made: %s", got)
	}
	p = change(t, p, `{"id":"leo","name":"Leo","wallet_address":"`+account1+`","chain_id":8453,"x":[1.50,{"y":null}]}`)
	before := p
	p = change(t, p, `{"meta":{"erc8004":{"agentId":22}},"avatar_id":"a1","is_registered":true}`)
	const want = `{"avatarId":"a1","chainId":8453,"createdAt":1700000000000,"description":"A coach.","homeUrl":null,"id":"leo","isRegistered":true,` +
		`"meta":{"erc8004":{"agentId":22}},"name":"Leo","skills":["greet"],"walletAddress":"` + account1 + `","x":[1.50,{"y":null}]}`
	if got := shown(t, p, leo); got != want {
		t.Errorf("written: %s", got)
	}
	if _, is := before["avatarId"]; is {
		t.Error("a passport is changed in place")
	}
	if got := shown(t, change(t, p, `{"name":null,"wallet_address":null,"chainId":null,"x":null,"meta":null,"avatarId":null,"isRegistered":null}`), leo); got != made {
		t.Errorf("given back: %s", got)
	}
}

func TestInvalidPassports(t *testing.T) {
	full := Passport{}
	for i := range maxFields {
		full[strings.Repeat("f", i+1)] = json.RawMessage("1")
	}
	for body, want := range map[string]error{
		`[]`: Err, `null`: Err, `"x"`: Err, `{`: Err, ``: Err,
		`{"id":"aria"}`: ErrOther, `{"id":7}`: ErrOther, `{"id":null}`: ErrOther,
		`{"name":""}`: Err, `{"name":7}`: Err, `{"name":"a\u0000b"}`: Err, `{"name":"` + strings.Repeat("x", maxNameRunes+1) + `"}`: Err,
		`{"description":"` + strings.Repeat("x", limit.Said+1) + `"}`: Err,
		`{"homeUrl":"javascript:alert(1)"}`:                           Err, `{"homeUrl":"https://me:secret@x.example/"}`: Err, `{"homeUrl":"x"}`: Err,
		`{"image":"file:///etc/passwd"}`: Err, `{"image":"data:text/html,x"}`: Err,
		`{"walletAddress":"0x12"}`: Err, `{"walletAddress":"0x` + strings.Repeat("ab", 32) + `"}`: Err, `{"walletAddress":{}}`: Err,
		`{"chainId":-1}`: Err, `{"chainId":1.5}`: Err, `{"chainId":1e300}`: Err, `{"chainId":"8453"}`: Err,
		`{"createdAt":"yesterday"}`: Err, `{"skills":"all"}`: Err, `{"skills":[1]}`: Err, `{"meta":[]}`: Err, `{"isRegistered":"yes"}`: Err,
		`{"chainId":1,"chain_id":2}`: Err, `{"\u0000":1}`: Err, `{"":1}`: Err,
		`{"services":[{"name":"web"}]}`: Err, `{"services":[{"name":"web","endpoint":"x","version":1}]}`: Err, `{"services":{}}`: Err,
		`{"registrations":[{"agentId":22}]}`: Err, `{"registrations":[{"agentId":-1,"agentRegistry":"eip155:1:0x1"}]}`: Err,
		`{"registrations":[{"agentId":1.5,"agentRegistry":"eip155:1:0x1"}]}`: Err, `{"supportedTrust":[""]}`: Err,
		`{"privateKey":"x"}`: ErrSecret, `{"private_key":null}`: ErrSecret, `{"Mnemonic":"x"}`: ErrSecret, `{"seedPhrase":"x"}`: ErrSecret,
		`{"meta":{"a":[{"encrypted_wallet_key":"x"}]}}`: ErrSecret, `{"meta":{"Secret Recovery Phrase":"x"}}`: ErrSecret,
		`{"x":"` + strings.Repeat("x", MaxBytes) + `"}`: Err,
	} {
		if p, err := full.Change("leo", []byte(body)); !errors.Is(err, want) {
			t.Errorf("%.80s: %v, %v", body, p, err)
		}
	}
	if _, err := full.Change("leo", []byte(`{"name":"Leo"}`)); !errors.Is(err, Err) {
		t.Errorf("%d fields: %v", maxFields+1, err)
	}
	if _, err := (Passport{}).Change("leo", []byte(strings.Repeat(`{"x":`, 9000)+"1"+strings.Repeat("}", 9000))); !errors.Is(err, Err) {
		t.Errorf("a deep one: %v", err)
	}
}

func TestWallets(t *testing.T) {
	got, err := Wallet([]byte(`{"wallet_address":"` + account1 + `","chain_id":8453,"erc8004_agent_id":22,"name":"x"}`))
	if want := `{"chainId":8453,"erc8004AgentId":22,"walletAddress":"` + account1 + `"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	for body, want := range map[string]error{`{}`: Err, `[]`: Err, `{"walletAddress":null}`: Err, `{"walletAddress":""}`: Err,
		`{"walletAddress":"` + account1 + `","privateKey":"x"}`: ErrSecret} {
		if got, err := Wallet([]byte(body)); !errors.Is(err, want) {
			t.Errorf("%s: %s, %v", body, got, err)
		}
	}
}

// TestCards checks cards against the format in the text of ERC-8004.
func TestCards(t *testing.T) {
	text := func(p Passport, own Own) (string, int) {
		card, remarks := p.Card(own)
		data := must.Value(json.Marshal(card))(t)
		return string(data), len(remarks)
	}
	const head = `{"type":"https://eips.ethereum.org/EIPS/eip-8004#registration-v1",`
	if got, n := text(nil, leo); got != head+`"name":"Coach Leo","description":"A coach.","services":[],"active":true}` || n != 3 {
		t.Errorf("of a character alone: %s, %d", got, n)
	}
	// A passport with the fields of the standard's example, here abbreviated, yields the same card.
	const example = `"name":"myAgentName","description":"What it does","image":"https://example.com/agentimage.png","services":[` +
		`{"endpoint":"https://web.agentxyz.com/","name":"web"},{"endpoint":"https://agent.example/card.json","name":"A2A","version":"0.3.0"},` +
		`{"domains":[],"endpoint":"ipfs://{cid}","name":"OASF","skills":[],"version":"0.8"}],"x402Support":false,"active":true,"registrations":[` +
		`{"agentId":22,"agentRegistry":"eip155:1:` + account1 + `"}],"supportedTrust":["reputation","crypto-economic","tee-attestation"]}`
	if got, n := text(change(t, nil, "{"+example), leo); got != head+example || n != 0 {
		t.Errorf("the example: %s, %d", got, n)
	}
	registered := leo
	registered.Image, registered.Registration = "ipfs://bafy/poster.webp", NewRegistration("base", account1, "42")
	got, n := text(change(t, nil, `{"homeUrl":"https://leo.example/","active":false,"wallet_address":"`+account1+`"}`), registered)
	if want := head + `"name":"Coach Leo","description":"A coach.","image":"ipfs://bafy/poster.webp","services":[{"endpoint":"https://leo.example/",` +
		`"name":"web"}],"active":false,"registrations":[{"agentId":42,"agentRegistry":"eip155:8453:` + account1 + `"}]}`; got != want || n != 0 {
		t.Errorf("with a manifest that is registered: %s, %d", got, n)
	}
	got, _ = text(change(t, nil, `{"chainId":84532,"erc8004AgentId":"7","erc8004Registry":"`+account1+`"}`), registered)
	if !strings.Contains(got, `{"agentId":7,"agentRegistry":"eip155:84532:`+account1+`"}`) {
		t.Errorf("with the passport's own registration: %s", got)
	}
	for _, r := range []*Registration{NewRegistration("base", "0x...", "42"), NewRegistration("base", account1, "x"),
		NewRegistration("", account1, "1"),
		NewRegistration("mars", account1, ""), NewRegistration("base", account1, "007")} {
		if r != nil {
			t.Errorf("filled in is %v", *r)
		}
	}
}
