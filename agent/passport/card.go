package passport

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"sync"

	"perch/limit"
)

// cardType is the type of a registration file.
const cardType = "https://eips.ethereum.org/EIPS/eip-8004#registration-v1"

// Card is a registration file of ERC-8004, an Ethereum standard for registries of agents
// ("Agent URI and Agent Registration File"). The agentURI in a registry refers to the file.
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

// Service is an endpoint of an agent. Its fields are name, endpoint, version, and others that
// depend on the kind of service, such as skills and domains in OASF (Open Agentic Schema Framework).
type Service map[string]json.RawMessage

// Registration is an entry in a registry of agents.
type Registration struct {
	AgentID       json.Number `json:"agentId"`       // assigned by the registry
	AgentRegistry string      `json:"agentRegistry"` // namespace:chain:contract
}

var (
	registryFormat = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-z0-9]{1,16}:[A-Za-z0-9_-]{1,64}:[A-Za-z0-9._-]{1,128}$`)
	})
	numberFormat = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(0|[1-9][0-9]{0,77})$`) }) // at most the 78 digits of a uint256
)

// NewRegistration returns the registration of an agent in the registry that a contract
// implements, or nil if an argument is missing or invalid. chain is "ethereum", "base",
// "base-sepolia", the number of an Ethereum chain, or namespace:chain, such as "eip155:1".
// contract is the address of the contract, and agentID a decimal number.
func NewRegistration(chain, contract, agentID string) *Registration {
	if id, ok := map[string]string{"ethereum": "1", "base": "8453", "base-sepolia": "84532"}[chain]; ok {
		chain = "eip155:" + id
	} else if n, err := strconv.ParseUint(chain, 10, 53); err == nil && n > 0 {
		chain = "eip155:" + chain
	}
	r := Registration{json.Number(agentID), chain + ":" + contract}
	if !accountFormat().MatchString(contract) || !r.isValid() {
		return nil
	}
	return &r
}

// isValid reports whether both fields have the right format.
func (r Registration) isValid() bool {
	return numberFormat().MatchString(string(r.AgentID)) && registryFormat().MatchString(r.AgentRegistry)
}

// Card returns the registration file of a character. remarks has a sentence for each of the fields
// description, image, services and registrations that is missing. The file contains only data
// from the owner or the character.
func (p Passport) Card(own Own) (card Card, remarks []string) {
	card = Card{Type: cardType, Name: own.Name, Description: own.Description, Image: own.Image, Services: []Service{}, Active: true}
	home := ""
	for field, into := range map[string]any{"name": &card.Name, "description": &card.Description, "image": &card.Image, "homeUrl": &home,
		"services": &card.Services, "active": &card.Active, "x402Support": &card.X402Support, "registrations": &card.Registrations,
		"supportedTrust": &card.SupportedTrust} {
		if raw, ok := p[field]; ok {
			_ = json.Unmarshal(raw, into) // Change has checked the field
		}
	}
	if len(card.Services) == 0 && len(home) > 1 && home[0] != '/' {
		endpoint, _ := json.Marshal(home) // cannot fail for a string
		card.Services = []Service{{"name": json.RawMessage(`"web"`), "endpoint": endpoint}}
	}
	if len(card.Registrations) == 0 {
		if r := p.registration(own); r != nil {
			card.Registrations = []Registration{*r}
		}
	}
	for _, f := range []struct {
		missing bool
		name    string
		hint    string // end of the remark
	}{
		{card.Description == "", "description", ""},
		{card.Image == "", "image", ", the address of a picture"},
		{len(card.Services) == 0, "services", " or homeUrl: others find no address of the character"},
		{len(card.Registrations) == 0, "registrations", " once a registry has given the character a number"},
	} {
		if f.missing {
			remarks = append(remarks, fmt.Sprintf("The file has no %s. Write %[1]s into the passport%s.", f.name, f.hint))
		}
	}
	return card, remarks
}

// registration returns the registration that the passport's fields chainId, erc8004AgentId and
// erc8004Registry describe, or else the registration in own, which may be nil.
func (p Passport) registration(own Own) *Registration {
	var chain, agentID json.Number
	var contract string
	for field, into := range map[string]any{"chainId": &chain, "erc8004AgentId": &agentID, "erc8004Registry": &contract} {
		_ = json.Unmarshal(p[field], into) // an invalid value is treated as missing
	}
	if r := NewRegistration(string(chain), contract, string(agentID)); r != nil {
		return r
	}
	return own.Registration
}

// checkServices returns an error unless raw is a list of at most maxList services, each with a
// name and an endpoint.
func checkServices(_ string, raw json.RawMessage) error {
	var list []Service
	if json.Unmarshal(raw, &list) != nil || len(list) > maxList {
		return invalid("services is a list of at most %d objects with name, endpoint and version", maxList)
	}
	for i, service := range list {
		for _, field := range []string{"name", "endpoint", "version"} {
			if field == "version" && service[field] == nil {
				continue // optional
			}
			var s string
			if json.Unmarshal(service[field], &s) != nil || s == "" || !isLine(s, limit.Line) {
				return invalid("services.%d.%s is a line of 1 to %d bytes", i, field, limit.Line)
			}
		}
	}
	return nil
}
