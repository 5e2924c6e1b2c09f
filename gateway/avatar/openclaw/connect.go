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
	oldest = 3
	newest = 4
)

// connectParams are the parameters of the first request.
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
	Role   string   `json:"role"`
	Scopes []string `json:"scopes"`
	Device *proof   `json:"device"`
	Auth   struct {
		Token     *string `json:"token"`
		Password  string  `json:"password"`
		Device    *string `json:"deviceToken"`
		Bootstrap *string `json:"bootstrapToken"`
	} `json:"auth"`
}

// proof is a device's identity: a signature by its key.
type proof struct {
	ID        string `json:"id"`        // SHA-256 of the key, in hex
	PublicKey string `json:"publicKey"` // Ed25519, 32 bytes in base64url
	Signature string `json:"signature"` // of one of payloads, in base64url
	SignedAt  int64  `json:"signedAt"`  // Unix milliseconds
	Nonce     string `json:"nonce"`     // of the challenge; empty if signed without
}

// agreed is the result of the handshake.
type agreed struct {
	protocol int
	scopes   scopes
}

// operator is the role of programs that show the agents and chat. The other role, node,
// offers the use of its machine, which Perch has no use for.
const operator = "operator"

// mostScopes bounds the scopes that a client requests.
const mostScopes = 32

// refusal is a failure after which the connection is closed with a code.
type refusal struct {
	*failure
	close int
}

// agree validates the handshake. needsToken, for an address that anybody can reach, requires a
// token that the function token accepts, and that a device has signed the challenge.
func (p *connectParams) agree(nonce string, now time.Time, needsToken bool, token func(string) error) (agreed, *refusal) {
	if p.Max < oldest || p.Min > newest || p.Min > p.Max {
		return agreed{}, &refusal{invalid("protocol mismatch: versions %d and %d are spoken here", oldest, newest).
			with(failureDetails{Code: "PROTOCOL_MISMATCH", Expected: newest}), socket.BadProtocol}
	}
	if p.Role == "" {
		p.Role = operator
	}
	if p.Role != operator {
		return agreed{}, violation(invalid("invalid role: clients are operators here"))
	}
	if len(p.Scopes) > mostScopes {
		return agreed{}, violation(invalid("invalid connect params: scopes has %d entries, more than %d", len(p.Scopes), mostScopes))
	}
	if needsToken {
		if err := token(p.secret()); err != nil {
			return agreed{}, violation(unauthorized(p.secret(), err))
		}
	}
	if p.Device != nil {
		if bad := p.verify(nonce, now, needsToken); bad != nil {
			return agreed{}, violation(bad)
		}
	}
	return agreed{min(p.Max, newest), grant(p.Scopes)}, nil
}

func violation(f *failure) *refusal { return &refusal{f, socket.Violation} }

// secret returns the token, or the password, of a client.
func (p *connectParams) secret() string {
	if p.Auth.Token != nil && *p.Auth.Token != "" {
		return *p.Auth.Token
	}
	return p.Auth.Password
}

// unauthorized returns the error of a token's check in the gateway's shape.
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

// signedWithin is how far a device's clock may be from ours.
const signedWithin = 2 * time.Minute

// verify checks the identity of a device. challenged requires that it has signed the
// challenge: any other signature can be replayed.
func (p *connectParams) verify(nonce string, now time.Time, challenged bool) *failure {
	d := p.Device
	refuse := func(detail, reason, sentence string) *failure {
		return invalid("%s", sentence).with(failureDetails{Code: "DEVICE_AUTH_" + detail, Reason: reason})
	}
	key, err := unpadded(d.PublicKey)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return refuse("PUBLIC_KEY_INVALID", "device-public-key", "device public key invalid")
	}
	if id := sha256.Sum256(key); hex.EncodeToString(id[:]) != d.ID {
		return refuse("DEVICE_ID_MISMATCH", "device-id-mismatch", "device identity mismatch")
	}
	if at := time.UnixMilli(d.SignedAt); at.Before(now.Add(-signedWithin)) || at.After(now.Add(signedWithin)) {
		return refuse("SIGNATURE_EXPIRED", "device-signature-stale", "device signature expired")
	}
	switch sent := strings.TrimSpace(d.Nonce); {
	case sent == "" && challenged:
		return refuse("NONCE_REQUIRED", "device-nonce-missing", "device nonce required")
	case sent != "" && sent != nonce:
		return refuse("NONCE_MISMATCH", "device-nonce-mismatch", "device nonce mismatch")
	}
	signature, err := unpadded(d.Signature)
	if err != nil || !slices.ContainsFunc(p.payloads(), func(payload string) bool { return ed25519.Verify(key, []byte(payload), signature) }) {
		return refuse("SIGNATURE_INVALID", "device-signature", "device signature invalid")
	}
	return nil
}

// payloads returns the texts that a device may have signed: one of three versions with the
// challenge, or the first version without it (packages/gateway-client/src/device-auth.ts
// of the gateway, src/main/device-identity.ts of Flawed Avatar).
func (p *connectParams) payloads() []string {
	token := ""
	for _, one := range []*string{p.Auth.Bootstrap, p.Auth.Device, p.Auth.Token} {
		if one != nil {
			token = *one
		}
	}
	base := []string{p.Device.ID, p.Client.ID, p.Client.Mode, p.Role, strings.Join(p.Scopes, ","),
		strconv.FormatInt(p.Device.SignedAt, 10), token}
	of := func(version string, more ...string) string {
		return strings.Join(slices.Concat([]string{version}, base, more), "|")
	}
	nonce := strings.TrimSpace(p.Device.Nonce)
	if nonce == "" {
		return []string{of("v1")}
	}
	machine := []string{nonce, lower(p.Client.Platform), lower(p.Client.Family)}
	return []string{of("v3", machine...), of("v2", nonce), of("v4", append(machine, strings.TrimSpace(p.Client.Instance))...)}
}

// lower trims a platform or device family and converts its ASCII letters to lower case, as the
// gateway does.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}, strings.TrimSpace(s))
}

// unpadded decodes base64url with or without padding.
func unpadded(s string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
}

// scopes are the permissions of a client.
type scopes []string

// The scopes that have a meaning here. Write includes read, and admin includes both.
const (
	mayAdmin = "operator.admin"
	mayWrite = "operator.write"
	mayRead  = "operator.read"
)

// grant returns the requested scopes that have a meaning here.
func grant(asked []string) scopes {
	granted := scopes{}
	for _, one := range []string{mayAdmin, mayRead, mayWrite} {
		if slices.Contains(asked, one) {
			granted = append(granted, one)
		}
	}
	return granted
}

// lack returns the failure of a client without a scope, or nil.
func (s scopes) lack(scope string) *failure {
	if slices.Contains(s, scope) || slices.Contains(s, mayAdmin) || scope == mayRead && slices.Contains(s, mayWrite) {
		return nil
	}
	return &failure{Code: forbidden, Message: "missing scope: " + scope,
		Details: &failureDetails{Code: "MISSING_SCOPE", MissingScope: scope, RequiredScopes: []string{scope}}}
}
