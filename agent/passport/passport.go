// Package passport implements the passport of a character: its identity in the three.ws agent
// system, such as the name, the home page and the address of a wallet. A passport contains the
// fields that the owner has set; they override the character's own data. Perch never signs anything
// on a blockchain and needs no key of a wallet: fields with names of such secrets are refused.
package passport

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"perch/agent"
	"perch/limit"
)

// MaxBytes is the largest size of a passport and of a change, in bytes of JSON.
const MaxBytes = 64 << 10

// Limits of a passport.
const (
	maxFields    = 100
	maxNameRunes = 100
	maxList      = 100     // elements of a list
	maxDepth     = 30      // levels of objects and lists
	maxInteger   = 1 << 53 // largest integer that is exact in every implementation of JSON
)

// Errors of Change and Wallet. They are wrapped in an error that describes the fault.
var (
	Err       = errors.New("not a passport")
	ErrOther  = errors.New("it is the passport of another character")
	ErrSecret = errors.New("a wallet's secrets are not stored here")
)

// Passport contains the fields that the owner has set, by name. Methods never modify it.
type Passport map[string]json.RawMessage

// Own contains the character's own data.
type Own struct {
	ID, Name, Description string
	Avatar                string // address of the character's model; may be empty
	Image                 string // address of the character's picture; may be empty
	Skills                []string
	Created               time.Time
	Registration          *Registration // from the character's manifest; may be nil
}

// fieldAliases maps names of fields in the agent system's server to the names in this
// package.
var fieldAliases = map[string]string{"avatar_id": "avatarId", "home_url": "homeUrl", "wallet_address": "walletAddress", "chain_id": "chainId",
	"is_registered": "isRegistered", "created_at": "createdAt", "erc8004_agent_id": "erc8004AgentId", "erc8004_registry": "erc8004Registry",
	"registration_cid": "registrationCid"}

// check returns an error if the JSON of a field is invalid.
type check func(field string, raw json.RawMessage) error

// fieldChecks contains the checks of the fields that this package uses. Other fields are
// stored without a check.
var fieldChecks = map[string]check{
	"name": mustBe("a line of 1 to 100 letters", func(s string) bool {
		return isLine(s, 4*maxNameRunes) && s != "" && utf8.RuneCountInString(s) <= maxNameRunes
	}),
	"description":    mustBe("a text of at most 4000 bytes", func(s string) bool { return len(s) <= limit.Said }),
	"avatarId":       mustBe("a line of at most 1000 bytes", func(s string) bool { return isLine(s, limit.Line) }),
	"homeUrl":        mustBe("an address that begins with https://, http:// or /, without a password", isPage),
	"image":          mustBe("an address that begins with https://, http://, ipfs:// or data:", isPicture),
	"walletAddress":  mustBe("the address of a wallet: 0x and 40 hex digits", func(s string) bool { return s == "" || accountFormat().MatchString(s) }),
	"chainId":        mustBe("the number of a chain, such as 8453", isWholeNumber),
	"createdAt":      mustBe("a number of milliseconds since 1970", isWholeNumber),
	"skills":         listOf("names", func(s string) bool { return isLine(s, limit.Name) }),
	"meta":           mustBe("a JSON object", func(map[string]json.RawMessage) bool { return true }),
	"isRegistered":   anyBool,
	"active":         anyBool,
	"x402Support":    anyBool,
	"services":       checkServices,
	"registrations":  listOf("objects with agentId, a whole number, and agentRegistry, such as eip155:8453:0x…", Registration.isValid),
	"supportedTrust": listOf("names, such as reputation", func(s string) bool { return s != "" && isLine(s, limit.Name) }),
}

// anyBool checks that a field is true or false.
var anyBool = mustBe("true or false", func(bool) bool { return true })

// Change returns p with the changes in body, a JSON object: its fields replace the fields
// of p. A field with the value null is removed: the character's own value applies again. id
// is the ID of the character. Errors wrap Err, ErrOther or ErrSecret.
func (p Passport) Change(id string, body []byte) (Passport, error) {
	if len(body) > MaxBytes {
		return nil, invalid("it has more than %d bytes", MaxBytes)
	}
	var changes map[string]json.RawMessage
	if err := json.Unmarshal(body, &changes); err != nil || changes == nil {
		return nil, invalid("a JSON object with fields such as name and description is needed")
	}
	if err := checkNoSecret(body); err != nil {
		return nil, err
	}
	next := Passport{}
	maps.Copy(next, p)
	for _, field := range slices.Sorted(maps.Keys(changes)) {
		raw := changes[field]
		if name, isAlias := fieldAliases[field]; isAlias {
			if _, both := changes[name]; both {
				return nil, invalid("%s and %s are the same field: send one of them", name, field)
			}
			field = name
		}
		switch check, hasCheck := fieldChecks[field]; {
		case field == "id":
			var bodyID string
			if json.Unmarshal(raw, &bodyID) != nil || bodyID != id {
				return nil, fmt.Errorf("%w: id is %.80s, but the request is for %s", ErrOther, raw, id)
			}
		case string(raw) == "null":
			delete(next, field)
		case hasCheck:
			if err := check(field, raw); err != nil {
				return nil, err
			}
			next[field] = raw
		case !isLine(field, limit.Name) || field == "":
			return nil, invalid("the name of a field has 1 to %d bytes", limit.Name)
		default:
			next[field] = raw
		}
	}
	if stored, err := json.Marshal(next); err != nil || len(stored) > MaxBytes || len(next) > maxFields {
		return nil, invalid("with the stored fields it has more than %d bytes or %d fields; send null for fields that are no longer needed", MaxBytes, maxFields)
	}
	return next, nil
}

// Name returns the name that the owner has set, or "".
func (p Passport) Name() (name string) {
	_ = json.Unmarshal(p["name"], &name) // fails only if the owner has set no name
	return name
}

// Wallet returns a body for Change that links a wallet. It contains the fields walletAddress,
// chainId and erc8004AgentId of body; only walletAddress is required. Other fields are
// ignored, except that a field with the name of a secret is an error. Errors wrap Err or ErrSecret.
func Wallet(body []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return nil, invalid("a JSON object with walletAddress is needed")
	}
	if err := checkNoSecret(body); err != nil {
		return nil, err
	}
	change := map[string]json.RawMessage{}
	for field, raw := range fields {
		name := cmp.Or(fieldAliases[field], field)
		if slices.Contains([]string{"walletAddress", "chainId", "erc8004AgentId"}, name) {
			change[name] = raw
		}
	}
	var address string
	if json.Unmarshal(change["walletAddress"], &address) != nil || address == "" {
		return nil, invalid("walletAddress is needed; use DELETE to remove the wallet from the passport")
	}
	return json.Marshal(change)
}

// Shown returns the whole passport: all fields that the owner has set, and the values in
// own for the other fields of the agent system.
func (p Passport) Shown(own Own) map[string]any {
	shown := map[string]any{"id": own.ID, "name": own.Name, "description": own.Description, "avatarId": nil, "homeUrl": nil,
		"walletAddress": nil, "chainId": nil, "skills": append([]string{}, own.Skills...), "meta": map[string]any{},
		"isRegistered": own.Registration != nil, "createdAt": own.Created.UnixMilli()}
	if own.Avatar != "" {
		shown["avatarId"] = own.Avatar
	}
	if own.Image != "" {
		shown["image"] = own.Image
	}
	for field, raw := range p {
		shown[field] = raw
	}
	return shown
}

// secrets are parts of the names of fields that contain a wallet's secrets, in lower case
// without - and _.
var secrets = []string{"privatekey", "secretkey", "walletkey", "signingkey", "keystore", "mnemonic", "seedphrase", "recoveryphrase", "secretphrase",
	"walletseed", "seedword", "passphrase", "xprv"}

// checkNoSecret returns an error if a field at any depth has the name of a wallet's secret.
func checkNoSecret(body []byte) error {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return invalid("it is no JSON")
	}
	return checkNames("", v, maxDepth)
}

// checkNames returns an error if a field in v has the name of a secret, or if v has more than
// levels levels of objects and lists. path is the path of v in the JSON, for the error.
func checkNames(path string, v any, levels int) error {
	if levels == 0 {
		return invalid("%.200s has more than %d levels", path, maxDepth)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(v)) {
			fieldPath := strings.TrimPrefix(path+"."+field, ".")
			normalized := strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(field))
			if slices.ContainsFunc(secrets, func(name string) bool { return strings.Contains(normalized, name) }) {
				return fmt.Errorf("%w: remove %.80q and keep it only in the wallet; Perch signs nothing on a chain", ErrSecret, fieldPath)
			}
			if err := checkNames(fieldPath, v[field], levels-1); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range v {
			if err := checkNames(path, element, levels-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// accountFormat matches the address of an Ethereum account.
var accountFormat = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^0x[0-9a-fA-F]{40}$`) })

// isLine reports whether s is one line of at most maxLen bytes.
func isLine(s string, maxLen int) bool { return len(s) <= maxLen && agent.Speakable(s) == s }

// isPage reports whether s is an http or https address or a path on this server, or empty.
func isPage(s string) bool {
	u, err := url.Parse(s)
	return err == nil && isLine(s, limit.Line) && u.User == nil &&
		(s == "" || (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" || strings.HasPrefix(s, "/"))
}

// Picture returns address if it is a valid address of a picture, and otherwise "".
func Picture(address string) string {
	if !isPicture(address) {
		return ""
	}
	return address
}

// isPicture reports whether s is the address of a picture (https, http, ipfs or data), or empty.
func isPicture(s string) bool {
	u, err := url.Parse(s)
	return err == nil && agent.Speakable(s) == s && u.User == nil &&
		(s == "" || strings.HasPrefix(s, "data:image/") ||
			len(s) <= limit.Line && slices.Contains([]string{"https", "http", "ipfs"}, u.Scheme) && u.Host != "")
}

// mustBe returns a check that a field is the JSON of a T that isValid accepts. The
// description completes "the field is ..." in errors.
func mustBe[T any](description string, isValid func(T) bool) check {
	return func(field string, raw json.RawMessage) error {
		var v T
		if json.Unmarshal(raw, &v) != nil || !isValid(v) {
			return invalid("%s is %s", field, description)
		}
		return nil
	}
}

// listOf returns a check that a field is a list of at most maxList elements, all of them
// accepted by isValid.
func listOf[T any](description string, isValid func(T) bool) check {
	return mustBe(fmt.Sprintf("a list of at most %d %s", maxList, description), func(list []T) bool {
		return len(list) <= maxList && !slices.ContainsFunc(list, func(v T) bool { return !isValid(v) })
	})
}

// isWholeNumber reports whether n is an integer from 0 to maxInteger.
func isWholeNumber(n float64) bool { return n >= 0 && n <= maxInteger && n == math.Trunc(n) }

// invalid returns an error that wraps Err.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", Err, fmt.Sprintf(format, args...))
}
