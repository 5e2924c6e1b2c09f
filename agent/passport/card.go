package passport

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"sync"

	"perch/limit"
)

const cardType = "https://eips.ethereum.org/EIPS/eip-8004#registration-v1"

// Card is the registration file of ERC-8004 ("Agent URI and Agent Registration File"),
// which an agentURI in a registry refers to.
type Card struct {
	Type        string    `json:"type"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Image       string    `json:"image,omitempty"`
	Services    []Service `json:"services"`

	X402Support    *bool          `json:"x402Support,omitempty"`
	Active         bool           `json:"active"`
	Registrations  []Registration `json:"registrations,omitempty"`
	SupportedTrust []string       `json:"supportedTrust,omitempty"`
}

// Service is an endpoint of an agent. Additional fields are preserved, such as the
// skills and domains of an OASF service.
type Service map[string]json.RawMessage

// Registration is an entry of a registry.
type Registration struct {
	AgentID       json.Number `json:"agentId"`       // assigned by the registry
	AgentRegistry string      `json:"agentRegistry"` // namespace:chain:contract
}

var (
	registry = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-z0-9]{1,16}:[A-Za-z0-9_-]{1,64}:[A-Za-z0-9._-]{1,128}$`)
	})
	number = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(0|[1-9][0-9]{0,77})$`) }) // a uint256
)

// NewRegistration returns a registration with an agent id of decimal digits, or nil if a
// part is missing or invalid.
func NewRegistration(chain, contract, agentID string) *Registration {
	if named, is := map[string]string{"ethereum": "1", "base": "8453", "base-sepolia": "84532"}[chain]; is {
		chain = "eip155:" + named // as manifests call chains
	} else if n, err := strconv.ParseUint(chain, 10, 53); err == nil && n > 0 {
		chain = "eip155:" + chain
	}
	r := Registration{json.Number(agentID), chain + ":" + contract}
	if !account().MatchString(contract) || !r.filledIn() {
		return nil
	}
	return &r
}

func (r Registration) filledIn() bool {
	return number().MatchString(string(r.AgentID)) && registry().MatchString(r.AgentRegistry)
}

// Card returns the registration file, and a sentence for each field that a registry
// would miss. It contains only what the owner or the character states.
func (p Passport) Card(own Own) (card Card, remarks []string) {
	card = Card{Type: cardType, Name: own.Name, Description: own.Description, Image: own.Image, Services: []Service{}, Active: true}
	home := ""
	for field, into := range map[string]any{"name": &card.Name, "description": &card.Description, "image": &card.Image, "homeUrl": &home,
		"services": &card.Services, "active": &card.Active, "x402Support": &card.X402Support, "registrations": &card.Registrations,
		"supportedTrust": &card.SupportedTrust} {
		if raw, has := p[field]; has {
			_ = json.Unmarshal(raw, into) // checked when it was written
		}
	}
	if len(card.Services) == 0 && len(home) > 1 && home[0] != '/' {
		at, _ := json.Marshal(home) // cannot fail for a string
		card.Services = []Service{{"name": json.RawMessage(`"web"`), "endpoint": at}}
	}
	if len(card.Registrations) == 0 {
		if r := p.registration(own); r != nil {
			card.Registrations = []Registration{*r}
		}
	}
	missing := []struct {
		is    bool
		field string
		why   string
	}{
		{card.Description == "", "description", ""},
		{card.Image == "", "image", ", the address of a picture"},
		{len(card.Services) == 0, "services", " or homeUrl: others find no address of the character"},
		{len(card.Registrations) == 0, "registrations", " once a registry has given the character a number"},
	}
	for _, m := range missing {
		if m.is {
			remarks = append(remarks, fmt.Sprintf("The file has no %s. Write %[1]s into the passport%s.", m.field, m.why))
		}
	}
	return card, remarks
}

// registration returns the passport's own registration, or else the manifest's.
func (p Passport) registration(own Own) *Registration {
	var chain, agentID json.Number
	var contract string
	for field, into := range map[string]any{"chainId": &chain, "erc8004AgentId": &agentID, "erc8004Registry": &contract} {
		_ = json.Unmarshal(p[field], into) // invalid values count as missing
	}
	if r := NewRegistration(string(chain), contract, string(agentID)); r != nil {
		return r
	}
	return own.Registration
}

func services(_ string, raw json.RawMessage) error {
	var all []Service
	if json.Unmarshal(raw, &all) != nil || len(all) > mostList {
		return fault("services is a list of at most %d objects with name, endpoint and version", mostList)
	}
	for i, one := range all {
		for _, field := range []string{"name", "endpoint", "version"} {
			if field == "version" && one[field] == nil {
				continue // recommended, but optional
			}
			var s string
			if json.Unmarshal(one[field], &s) != nil || s == "" || !line(s, limit.Line) {
				return fault("services.%d.%s is a line of 1 to %d bytes", i, field, limit.Line)
			}
		}
	}
	return nil
}
