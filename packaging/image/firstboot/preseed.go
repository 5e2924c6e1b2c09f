package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"perch/limit"
	"perch/packaging/image/board"
)

// preseed has the settings chosen for a card before its first boot, as Raspberry Pi Imager
// 2.0.11 and later writes them to rpi-preseed.toml. Empty fields were not chosen. Keys that are
// missing here are for other systems and are ignored.
type preseed struct {
	Version string `toml:"config_version"`
	System  struct {
		Hostname string `toml:"hostname"`
	} `toml:"system"`
	User struct {
		Name         string   `toml:"name"`
		Password     string   `toml:"password"`
		Encrypted    bool     `toml:"password_encrypted"` // Password is a hash as in /etc/shadow
		Groups       []string `toml:"groups"`
		Passwordless bool     `toml:"passwordless_sudo"`
	} `toml:"user"`
	SSH struct {
		Enabled  bool     `toml:"enabled"`
		Password bool     `toml:"password_authentication"`
		Keys     []string `toml:"authorized_keys"`
	} `toml:"ssh"`
	WLAN struct {
		SSID     string `toml:"ssid"`
		SSIDHex  string `toml:"ssid_hex"` // if it is not UTF-8
		Password string `toml:"password"` // 8 to 63 characters, or 64 hexadecimal digits; empty is an open network
		Hidden   bool   `toml:"hidden"`
		Country  string `toml:"country"` // ISO 3166-1, two letters
	} `toml:"wlan"`
	Locale struct {
		Keymap   string `toml:"keymap"`
		Timezone string `toml:"timezone"`
	} `toml:"locale"`
}

// readPreseed reads and checks the file.
func readPreseed(path string) (*preseed, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit.Body+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > limit.Body:
		return nil, fmt.Errorf("it has more than %d bytes", limit.Body)
	}
	return parsePreseed(text)
}

func parsePreseed(text []byte) (*preseed, error) {
	p := &preseed{}
	if err := toml.Unmarshal(text, p); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, column := at.Position()
			return nil, fmt.Errorf("line %d, column %d: it is no valid TOML there", line, column) // the line may contain a password
		}
		return nil, errors.New("it is no valid TOML")
	}
	return p, p.check()
}

// Valid values of fields that end up in a file or in the arguments of a program.
var (
	users   = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)
	hashes  = regexp.MustCompile(`^\$[a-zA-Z0-9./$=,_-]{8,255}$`)
	keys    = regexp.MustCompile(`^(ssh|ecdsa|sk)-[a-zA-Z0-9@.-]{3,60} [A-Za-z0-9+/=]{16,}( [\x20-\x7e]{0,256})?$`)
	keymaps = regexp.MustCompile(`^[a-z]{2,8}$`)
	zones   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$`)
)

const mostKeys = 50

// reserved are the users that the system has already.
var reserved = []string{"root", "perch", "daemon", "nobody"}

// check reports the first invalid field by its name, without its value.
func (p *preseed) check() error {
	bad := func(field, want string) error { return fmt.Errorf("%s is to be %s", field, want) }
	ssid, err := p.ssid()
	for _, c := range []struct {
		field, value string
		is           func(string) bool
		want         string
	}{
		{"system.hostname", p.System.Hostname, board.IsHostname, "letters, digits and hyphens, 63 at most"},
		{"user.name", p.User.Name, users.MatchString, "small letters, digits, _ and -, 32 at most"},
		{"wlan.country", p.WLAN.Country, board.IsCountry, "two capital letters, such as DE"},
		{"locale.keymap", p.Locale.Keymap, keymaps.MatchString, "a layout such as de"},
		{"locale.timezone", p.Locale.Timezone, zones.MatchString, "a name such as Europe/Berlin"},
	} {
		if c.value != "" && !c.is(c.value) {
			return bad(c.field, c.want)
		}
	}
	switch {
	case p.Version != "" && !strings.HasPrefix(p.Version, "1."):
		return bad("config_version", "1.0; this card is older than what wrote it")
	case slices.Contains(reserved, p.User.Name):
		return bad("user.name", "another than one of the system's own")
	case p.User.Name == "" && (p.User.Password != "" || len(p.SSH.Keys) > 0):
		return bad("user.name", "set where there is a password or a key")
	case p.User.Encrypted && p.User.Password != "" && !hashes.MatchString(p.User.Password):
		return bad("user.password", "a hash such as $6$…, for it is said to be encrypted")
	case !p.User.Encrypted && (len(p.User.Password) > 256 || strings.ContainsAny(p.User.Password, "\n\r\x00")):
		return bad("user.password", "one line, 256 bytes at most")
	case len(p.SSH.Keys) > mostKeys:
		return bad("ssh.authorized_keys", fmt.Sprintf("%d keys at most", mostKeys))
	case err != nil:
		return err
	case len(ssid) > board.MostSSID:
		return bad("wlan.ssid", "32 bytes at most")
	case ssid == "" && p.WLAN.Password != "":
		return bad("wlan.ssid", "set where there is a password")
	case p.WLAN.Password != "" && !board.IsKey(p.WLAN.Password):
		return bad("wlan.password", "8 to 63 plain characters, or 64 hexadecimal digits")
	}
	for _, group := range p.User.Groups {
		if !users.MatchString(group) {
			return bad("user.groups", "names of groups")
		}
	}
	for _, key := range p.SSH.Keys {
		if !keys.MatchString(strings.TrimSpace(key)) {
			return bad("ssh.authorized_keys", "public keys, each as ssh-keygen writes it, without options")
		}
	}
	return nil
}

// ssid returns the bytes of the network's name, or "".
func (p *preseed) ssid() (string, error) {
	if p.WLAN.SSIDHex == "" {
		return p.WLAN.SSID, nil
	}
	name, err := hex.DecodeString(p.WLAN.SSIDHex)
	if err != nil {
		return "", errors.New("wlan.ssid_hex is to be hexadecimal digits")
	}
	return string(name), nil
}
