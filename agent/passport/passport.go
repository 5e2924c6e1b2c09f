// Package passport is the identity of a character in the three.ws agent system: its
// name, home and wallet address. A passport contains what its owner wrote, which
// overrides the character's own data. Perch signs nothing on a chain and holds no wallet
// key: those fields are only stored, and fields named like secrets are refused.
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

// Most bounds a passport and a change to it, in bytes of JSON.
const Most = 64 << 10

// Bounds of a passport.
const (
	mostFields = 100
	mostName   = 100 // letters
	mostList   = 100
	mostDeep   = 30      // levels of objects and lists
	mostChain  = 1 << 53 // largest integer that JSON numbers represent exactly everywhere
)

// Errors of a change, wrapped with the field's name.
var (
	Err       = errors.New("not a passport")
	ErrOther  = errors.New("it is the passport of another character")
	ErrSecret = errors.New("no key of a wallet is kept here")
)

// Passport holds the owner's fields by name. It is never modified in place.
type Passport map[string]json.RawMessage

// Own is the character's own data.
type Own struct {
	ID, Name, Description string
	Avatar                string // the address of its model; may be empty
	Image                 string // the address of its picture; may be empty
	Skills                []string
	Created               time.Time
	Registration          *Registration // may be nil
}

// spellings maps the field names of the agent system's server to ours.
var spellings = map[string]string{"avatar_id": "avatarId", "home_url": "homeUrl", "wallet_address": "walletAddress", "chain_id": "chainId",
	"is_registered": "isRegistered", "created_at": "createdAt", "erc8004_agent_id": "erc8004AgentId", "erc8004_registry": "erc8004Registry",
	"registration_cid": "registrationCid"}

// check returns an error unless the JSON of a field is valid.
type check func(field string, raw json.RawMessage) error

// checks validates the fields known to this appliance. All others are stored unchecked.
var checks = map[string]check{
	"name": is("a line of 1 to 100 letters", func(s string) bool {
		return line(s, 4*mostName) && s != "" && utf8.RuneCountInString(s) <= mostName
	}),
	"description":    is("a text of at most 4000 bytes", func(s string) bool { return len(s) <= limit.Said }),
	"avatarId":       is("a line of at most 1000 bytes", func(s string) bool { return line(s, limit.Line) }),
	"homeUrl":        is("an address that begins with https://, http:// or /, without a password", page),
	"image":          is("an address that begins with https://, http://, ipfs:// or data:", picture),
	"walletAddress":  is("the address of a wallet: 0x and 40 hex digits", func(s string) bool { return s == "" || account().MatchString(s) }),
	"chainId":        is("the number of a chain, such as 8453", whole),
	"createdAt":      is("a number of milliseconds since 1970", whole),
	"skills":         listOf("names", func(s string) bool { return line(s, limit.Name) }),
	"meta":           is("a JSON object", func(map[string]json.RawMessage) bool { return true }),
	"isRegistered":   truth,
	"active":         truth,
	"x402Support":    truth,
	"services":       services,
	"registrations":  listOf("objects with agentId, a whole number, and agentRegistry, such as eip155:8453:0x…", Registration.filledIn),
	"supportedTrust": listOf("names, such as reputation", func(s string) bool { return s != "" && line(s, limit.Name) }),
}

var truth = is("true or false", func(bool) bool { return true })

// Change returns p with the fields of body, a JSON object, replaced. Other fields stay,
// and null restores the character's own value. Errors wrap Err, ErrOther or ErrSecret
// and name the field.
func (p Passport) Change(id string, body []byte) (Passport, error) {
	if len(body) > Most {
		return nil, fault("it has more than %d bytes", Most)
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(body, &given); err != nil || given == nil {
		return nil, fault("a JSON object with fields such as name and description is needed")
	}
	if err := noSecret(body); err != nil {
		return nil, err
	}
	next := Passport{}
	maps.Copy(next, p)
	for _, field := range slices.Sorted(maps.Keys(given)) {
		raw := given[field]
		if own, is := spellings[field]; is {
			if _, both := given[own]; both {
				return nil, fault("%s and %s are the same field: send one of them", own, field)
			}
			field = own
		}
		switch check, known := checks[field]; {
		case field == "id":
			var named string
			if json.Unmarshal(raw, &named) != nil || named != id {
				return nil, fmt.Errorf("%w: id is %.80s, and this address is that of %s", ErrOther, raw, id)
			}
		case string(raw) == "null":
			delete(next, field)
		case known:
			if err := check(field, raw); err != nil {
				return nil, err
			}
			next[field] = raw
		case !line(field, limit.Name) || field == "":
			return nil, fault("a field has a name of 1 to %d bytes", limit.Name)
		default:
			next[field] = raw
		}
	}
	if stored, err := json.Marshal(next); err != nil || len(stored) > Most || len(next) > mostFields {
		return nil, fault("with what is kept already it has more than %d bytes or %d fields; send null for fields that may go", Most, mostFields)
	}
	return next, nil
}

// Wallet returns the change that links the wallet in body: walletAddress, and optionally
// chainId and erc8004AgentId. Other fields are ignored.
func Wallet(body []byte) ([]byte, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(body, &given); err != nil || given == nil {
		return nil, fault("a JSON object with walletAddress is needed")
	}
	if err := noSecret(body); err != nil {
		return nil, err
	}
	change := map[string]json.RawMessage{}
	for field, raw := range given {
		own := cmp.Or(spellings[field], field)
		if slices.Contains([]string{"walletAddress", "chainId", "erc8004AgentId"}, own) {
			change[own] = raw
		}
	}
	var address string
	if json.Unmarshal(change["walletAddress"], &address) != nil || address == "" {
		return nil, fault("walletAddress is needed; DELETE takes a wallet out of the passport")
	}
	return json.Marshal(change)
}

// Shown returns the whole passport: the fields of the agent system, from the owner or
// else from the character, and all other fields of the owner.
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

// secrets are names of fields that contain wallet secrets, in lower case without - and _.
var secrets = []string{"privatekey", "secretkey", "walletkey", "signingkey", "keystore", "mnemonic", "seedphrase", "recoveryphrase", "secretphrase",
	"walletseed", "seedword", "passphrase", "xprv"}

// noSecret refuses fields at any depth whose names are those of wallet secrets.
func noSecret(body []byte) error {
	var all any
	if err := json.Unmarshal(body, &all); err != nil {
		return fault("it is no JSON")
	}
	return search("", all, mostDeep)
}

// search checks v, which is at path, at that depth.
func search(path string, v any, levels int) error {
	if levels == 0 {
		return fault("%.200s has more than %d levels", path, mostDeep)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(v)) {
			at := strings.TrimPrefix(path+"."+field, ".")
			plain := strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(field))
			if slices.ContainsFunc(secrets, func(name string) bool { return strings.Contains(plain, name) }) {
				return fmt.Errorf("%w: leave %.80q out, and keep it in the wallet alone; Perch signs nothing on a chain", ErrSecret, at)
			}
			if err := search(at, v[field], levels-1); err != nil {
				return err
			}
		}
	case []any:
		for _, one := range v {
			if err := search(path, one, levels-1); err != nil {
				return err
			}
		}
	}
	return nil
}

var account = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^0x[0-9a-fA-F]{40}$`) })

func line(s string, most int) bool { return len(s) <= most && agent.Speakable(s) == s }

func page(s string) bool {
	u, err := url.Parse(s)
	return err == nil && line(s, limit.Line) && u.User == nil &&
		(s == "" || (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" || strings.HasPrefix(s, "/"))
}

// Picture returns an address if a picture may have it, and otherwise "".
func Picture(address string) string {
	if !picture(address) {
		return ""
	}
	return address
}

// picture also accepts a small picture as a data: address.
func picture(s string) bool {
	u, err := url.Parse(s)
	return err == nil && agent.Speakable(s) == s && u.User == nil &&
		(s == "" || strings.HasPrefix(s, "data:image/") ||
			len(s) <= limit.Line && slices.Contains([]string{"https", "http", "ipfs"}, u.Scheme) && u.Host != "")
}

// is returns a check for the JSON of a T that fits. what completes "the field is".
func is[T any](what string, fits func(T) bool) check {
	return func(field string, raw json.RawMessage) error {
		var v T
		if json.Unmarshal(raw, &v) != nil || !fits(v) {
			return fault("%s is %s", field, what)
		}
		return nil
	}
}

// listOf returns a check for a list of elements that fit.
func listOf[T any](what string, fits func(T) bool) check {
	return is(fmt.Sprintf("a list of at most %d %s", mostList, what), func(all []T) bool {
		return len(all) <= mostList && !slices.ContainsFunc(all, func(v T) bool { return !fits(v) })
	})
}

func whole(n float64) bool { return n >= 0 && n <= mostChain && n == math.Trunc(n) }

func fault(format string, args ...any) error {
	return fmt.Errorf("%w: %s", Err, fmt.Sprintf(format, args...))
}
