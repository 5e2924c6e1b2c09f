package openclaw

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"perch/socket"
)

// Supported versions of the protocol.
const (
	minProtocol = 3
	maxProtocol = 4
)

// connectParams are the parameters of the connect request, which must be a client's first.
type connectParams struct {
	Min    int `json:"minProtocol"`
	Max    int `json:"maxProtocol"`
	Client struct {
		ID       string `json:"id"`
		Mode     string `json:"mode"`
		Platform string `json:"platform"`
		Family   string `json:"deviceFamily"`
		Instance string `json:"instanceId"`
	} `json:"client"`
	Role   string    `json:"role"`
	Scopes []string  `json:"scopes"`
	Device *identity `json:"device"`
	Auth   struct {
		Token     *string `json:"token"`
		Password  string  `json:"password"`
		Device    *string `json:"deviceToken"`
		Bootstrap *string `json:"bootstrapToken"`
	} `json:"auth"`
}

// identity is the identity of a device, with a signature that proves it.
type identity struct {
	ID        string `json:"id"`        // SHA-256 of the public key, in hex
	PublicKey string `json:"publicKey"` // Ed25519 key, 32 bytes in base64url
	Signature string `json:"signature"` // signature of one of the texts that payloads returns, in base64url
	SignedAt  int64  `json:"signedAt"`  // Unix milliseconds
	Nonce     string `json:"nonce"`     // nonce of the challenge; empty if it is not a part of the signed text
}

// handshake is the result of a successful connect request.
type handshake struct {
	protocol int
	scopes   scopes
}

// operator is the role of programs that show the agents and chat. Perch does not support the
// other role, node, which is for programs that offer the use of their machine.
const operator = "operator"

// maxScopes is the maximum number of scopes that a client may request.
const maxScopes = 32

// refusal is an error after which the connection is closed.
type refusal struct {
	*failure
	closeCode int // of the WebSocket protocol
}

// check validates the parameters. If needsToken is true, as at an address that other machines can
// reach, checkToken must accept the client's token, and a device that identifies itself must have
// signed the nonce.
func (p *connectParams) check(nonce string, now time.Time, needsToken bool, checkToken func(string) error) (handshake, *refusal) {
	if p.Max < minProtocol || p.Min > maxProtocol || p.Min > p.Max {
		return handshake{}, &refusal{invalid("protocol mismatch: the supported versions are %d and %d", minProtocol, maxProtocol).
			with(failureDetails{Code: "PROTOCOL_MISMATCH", Expected: maxProtocol}), socket.BadProtocol}
	}
	if p.Role == "" {
		p.Role = operator
	}
	if p.Role != operator {
		return handshake{}, violation(invalid("invalid role: only operator is supported"))
	}
	if len(p.Scopes) > maxScopes {
		return handshake{}, violation(invalid("invalid connect params: scopes has %d entries, more than %d", len(p.Scopes), maxScopes))
	}
	if needsToken {
		if err := checkToken(p.token()); err != nil {
			return handshake{}, violation(unauthorized(p.token(), err))
		}
	}
	if p.Device != nil {
		if bad := p.verify(nonce, now, needsToken); bad != nil {
			return handshake{}, violation(bad)
		}
	}
	return handshake{min(p.Max, maxProtocol), grant(p.Scopes)}, nil
}

// violation returns a refusal with the close code for policy violations.
func violation(f *failure) *refusal { return &refusal{f, socket.Violation} }

// token returns the client's token or, if that is empty, its password.
func (p *connectParams) token() string {
	if p.Auth.Token != nil && *p.Auth.Token != "" {
		return *p.Auth.Token
	}
	return p.Auth.Password
}

// unauthorized converts the error for a client's token to the gateway's format.
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

// maxClockSkew is the maximum difference between the clocks of a device and of this machine.
const maxClockSkew = 2 * time.Minute

// verify checks the identity of a device. If needsNonce is true, the signed text must include the
// nonce of the challenge: a signature without the nonce could be replayed.
func (p *connectParams) verify(nonce string, now time.Time, needsNonce bool) *failure {
	d := p.Device
	refuse := func(detail, reason, sentence string) *failure {
		return invalid("%s", sentence).with(failureDetails{Code: "DEVICE_AUTH_" + detail, Reason: reason})
	}
	key, err := decodeBase64(d.PublicKey)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return refuse("PUBLIC_KEY_INVALID", "device-public-key", "device public key invalid")
	}
	if id := sha256.Sum256(key); hex.EncodeToString(id[:]) != d.ID {
		return refuse("DEVICE_ID_MISMATCH", "device-id-mismatch", "device identity mismatch")
	}
	if at := time.UnixMilli(d.SignedAt); at.Before(now.Add(-maxClockSkew)) || at.After(now.Add(maxClockSkew)) {
		return refuse("SIGNATURE_EXPIRED", "device-signature-stale", "device signature expired")
	}
	switch signed := strings.TrimSpace(d.Nonce); {
	case signed == "" && needsNonce:
		return refuse("NONCE_REQUIRED", "device-nonce-missing", "device nonce required")
	case signed != "" && signed != nonce:
		return refuse("NONCE_MISMATCH", "device-nonce-mismatch", "device nonce mismatch")
	}
	signature, err := decodeBase64(d.Signature)
	if err != nil || !slices.ContainsFunc(p.payloads(), func(payload string) bool { return ed25519.Verify(key, []byte(payload), signature) }) {
		return refuse("SIGNATURE_INVALID", "device-signature", "device signature invalid")
	}
	return nil
}

// payloads returns the texts that a device may have signed. Versions 2 to 4 of the text include the
// nonce; version 1 does not, and is valid only if the device has sent no nonce. Sources:
// packages/gateway-client/src/device-auth.ts of the gateway, and src/main/device-identity.ts of
// Flawed Avatar.
func (p *connectParams) payloads() []string {
	token := ""
	for _, t := range []*string{p.Auth.Bootstrap, p.Auth.Device, p.Auth.Token} {
		if t != nil {
			token = *t
		}
	}
	base := []string{p.Device.ID, p.Client.ID, p.Client.Mode, p.Role, strings.Join(p.Scopes, ","),
		strconv.FormatInt(p.Device.SignedAt, 10), token}
	payload := func(version string, fields ...string) string {
		return strings.Join(slices.Concat([]string{version}, base, fields), "|")
	}
	nonce := strings.TrimSpace(p.Device.Nonce)
	if nonce == "" {
		return []string{payload("v1")}
	}
	machine := []string{nonce, normalize(p.Client.Platform), normalize(p.Client.Family)}
	return []string{payload("v3", machine...), payload("v2", nonce), payload("v4", append(machine, strings.TrimSpace(p.Client.Instance))...)}
}

// normalize trims a platform or device family, and converts ASCII letters to lower case, as the
// gateway does.
func normalize(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}, strings.TrimSpace(s))
}

// decodeBase64 decodes base64url with or without padding.
func decodeBase64(s string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
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
