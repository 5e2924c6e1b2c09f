package openclaw

import (
	"cmp"
	"errors"
	"slices"

	"perch/socket"
)

// Supported versions of the protocol.
const (
	minProtocol = 3
	maxProtocol = 4
)

// connectParams are the parameters of the connect request, which must be the first request of a client.
// A client may also send the signed identity of its device, which Perch ignores.
type connectParams struct {
	Min    int      `json:"minProtocol"`
	Max    int      `json:"maxProtocol"`
	Role   string   `json:"role"`
	Scopes []string `json:"scopes"`
	Auth   struct {
		Token    string `json:"token"`
		Password string `json:"password"` // used if Token is empty
	} `json:"auth"`
}

// handshake is the result of a successful connect request.
type handshake struct {
	protocol int // version of the protocol
	scopes   scopes
}

// operator is the role of programs that show the agents and chat with them. Perch does not support the
// other role, node, for programs through which an agent uses their machine.
const operator = "operator"

// maxScopes is the maximum number of scopes that a client may request.
const maxScopes = 32

// refusal is an error after which the connection is closed.
type refusal struct {
	*failure
	closeCode int // WebSocket close code
}

// check validates the parameters. checkToken must accept the client's token; it is nil if clients need
// no token.
func (p *connectParams) check(checkToken func(string) error) (handshake, *refusal) {
	if p.Max < minProtocol || p.Min > maxProtocol || p.Min > p.Max {
		return handshake{}, &refusal{invalid("protocol mismatch: the supported versions are %d and %d", minProtocol, maxProtocol).
			with(failureDetails{Code: "PROTOCOL_MISMATCH", Expected: maxProtocol}), socket.BadProtocol}
	}
	if cmp.Or(p.Role, operator) != operator {
		return handshake{}, violation(invalid("invalid role: only operator is supported"))
	}
	if len(p.Scopes) > maxScopes {
		return handshake{}, violation(invalid("invalid connect params: scopes has %d entries, more than %d", len(p.Scopes), maxScopes))
	}
	if checkToken != nil {
		token := cmp.Or(p.Auth.Token, p.Auth.Password)
		if err := checkToken(token); err != nil {
			return handshake{}, violation(unauthorized(token, err))
		}
	}
	return handshake{min(p.Max, maxProtocol), grant(p.Scopes)}, nil
}

// violation returns a refusal with the close code for policy violations.
func violation(f *failure) *refusal { return &refusal{f, socket.Violation} }

// unauthorized converts err, the error of Options.Token for a client's token, to the gateway's format.
func unauthorized(token string, err error) *failure {
	detail := "AUTH_TOKEN_MISMATCH"
	if token == "" {
		detail = "AUTH_TOKEN_MISSING"
	}
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		switch coded.Code() {
		case "too_many_tries":
			detail = "AUTH_RATE_LIMITED"
		case "no_key_set":
			detail = "AUTH_TOKEN_NOT_CONFIGURED"
		}
	}
	return invalid("unauthorized: %s", err).with(failureDetails{Code: detail})
}

// scopes are the permissions of a client.
type scopes []string

// Supported scopes. scopeWrite includes scopeRead, and scopeAdmin includes both.
const (
	scopeAdmin = "operator.admin"
	scopeWrite = "operator.write"
	scopeRead  = "operator.read"
)

// grant returns the requested scopes that are supported.
func grant(requested []string) scopes {
	granted := scopes{}
	for _, scope := range []string{scopeAdmin, scopeRead, scopeWrite} {
		if slices.Contains(requested, scope) {
			granted = append(granted, scope)
		}
	}
	return granted
}

// require returns nil if the client has a scope, and an error otherwise.
func (s scopes) require(scope string) *failure {
	if slices.Contains(s, scope) || slices.Contains(s, scopeAdmin) || scope == scopeRead && slices.Contains(s, scopeWrite) {
		return nil
	}
	return &failure{Code: forbidden, Message: "missing scope: " + scope,
		Details: &failureDetails{Code: "MISSING_SCOPE", MissingScope: scope, RequiredScopes: []string{scope}}}
}
