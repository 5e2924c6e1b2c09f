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
	Avatar                string // the address of its model; empty is none
	Image                 string // the address of its picture; empty is none
	Skills                []string
	Created               time.Time
	Registration          *Registration // nil is none
}

// spellings maps the field names of the agent system's server to ours.
var spellings = map[string]string{"avatar_id": "avatarId", "home_url": "homeUrl", "wallet_address": "walletAddress", "chain_id": "chainId",
	"is_registered": "isRegistered", "created_at": "createdAt", "erc8004_agent_id": "erc8004AgentId", "erc8004_registry": "erc8004Registry",
	"registration_cid": "registrationCid"}

// checks validates the fields known to this appliance. All others are stored unchecked.
var checks = map[string]func(field string, raw json.RawMessage) error{
	"name": func(field string, raw json.RawMessage) error {
		return text(field, raw, "a line of 1 to 100 letters", func(s string) bool {
			return line(s, 4*mostName) && s != "" && utf8.RuneCountInString(s) <= mostName
		})
	},
	"description": func(field string, raw json.RawMessage) error {
		return text(field, raw, "a text of at most 4000 bytes", func(s string) bool { return len(s) <= limit.Said })
	},
	"avatarId": func(field string, raw json.RawMessage) error {
		return text(field, raw, "a line of at most 1000 bytes", func(s string) bool { return line(s, limit.Line) })
	},
	"homeUrl": func(field string, raw json.RawMessage) error {
		return text(field, raw, "an address that begins with https://, http:// or /, without a password", page)
	},
	"image": func(field string, raw json.RawMessage) error {
		return text(field, raw, "an address that begins with https://, http://, ipfs:// or data:", picture)
	},
	"walletAddress": func(field string, raw json.RawMessage) error {
		return text(field, raw, "the address of a wallet: 0x and 40 hex digits", func(s string) bool { return s == "" || account().MatchString(s) })
	},
	"chainId": func(field string, raw json.RawMessage) error {
		return whole(field, raw, "the number of a chain, such as 8453")
	},
	"createdAt": func(field string, raw json.RawMessage) error {
		return whole(field, raw, "a number of milliseconds since 1970")
	},
	"skills": func(field string, raw json.RawMessage) error {
		var list []string
		if json.Unmarshal(raw, &list) != nil || len(list) > mostList || slices.ContainsFunc(list, func(s string) bool { return !line(s, limit.Name) }) {
			return fault("%s is a list of at most %d names", field, mostList)
		}
		return nil
	},
	"meta":         func(field string, raw json.RawMessage) error { return object(field, raw) },
	"isRegistered": truth, "active": truth, "x402Support": truth,
	"services": func(_ string, raw json.RawMessage) error { _, err := services(raw); return err },
	"registrations": func(_ string, raw json.RawMessage) error {
		_, err := registrations(raw)
		return err
	},
	"supportedTrust": func(_ string, raw json.RawMessage) error { _, err := trust(raw); return err },
}

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
	next := maps.Clone(p)
	if next == nil {
		next = Passport{}
	}
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
	if kept, err := json.Marshal(next); err != nil || len(kept) > Most || len(next) > mostFields {
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
	orNull := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	shown := map[string]any{"id": own.ID, "name": own.Name, "description": own.Description, "avatarId": orNull(own.Avatar), "homeUrl": nil,
		"walletAddress": nil, "chainId": nil, "skills": append([]string{}, own.Skills...), "meta": map[string]any{},
		"isRegistered": own.Registration != nil, "createdAt": own.Created.UnixMilli()}
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

// Picture returns an address if it may be that of a picture, and otherwise "".
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

func text(field string, raw json.RawMessage, is string, fits func(string) bool) error {
	var s string
	if json.Unmarshal(raw, &s) != nil || !fits(s) {
		return fault("%s is %s", field, is)
	}
	return nil
}

func whole(field string, raw json.RawMessage, is string) error {
	var n float64
	if json.Unmarshal(raw, &n) != nil || n < 0 || n > mostChain || n != math.Trunc(n) {
		return fault("%s is %s", field, is)
	}
	return nil
}

func truth(field string, raw json.RawMessage) error {
	var b bool
	if json.Unmarshal(raw, &b) != nil {
		return fault("%s is true or false", field)
	}
	return nil
}

func object(field string, raw json.RawMessage) error {
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil {
		return fault("%s is a JSON object", field)
	}
	return nil
}

func fault(format string, args ...any) error {
	return fmt.Errorf("%w: %s", Err, fmt.Sprintf(format, args...))
}
