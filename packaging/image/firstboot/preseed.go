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

// preseed is the content of rpi-preseed.toml, in the format of Raspberry Pi Imager 2.0.11 and
// later. A setting that the user did not choose is empty. Keys of the file that have no field in
// this type are ignored.
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
		SSIDHex  string `toml:"ssid_hex"` // replaces SSID if the name is not UTF-8
		Password string `toml:"password"` // 8 to 63 characters, or 64 hexadecimal digits; empty is an open network
		Hidden   bool   `toml:"hidden"`
		Country  string `toml:"country"` // ISO 3166-1, two letters
	} `toml:"wlan"`
	Locale struct {
		Keymap   string `toml:"keymap"`
		Timezone string `toml:"timezone"`
	} `toml:"locale"`
}

// readPreseed reads and validates the file.
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
		return nil, fmt.Errorf("the file has more than %d bytes", limit.Body)
	}
	return parsePreseed(text)
}

// parsePreseed parses and validates the content of the file.
func parsePreseed(text []byte) (*preseed, error) {
	p := &preseed{}
	if err := toml.Unmarshal(text, p); err != nil {
		var decodeErr *toml.DecodeError
		if errors.As(err, &decodeErr) {
			line, column := decodeErr.Position()
			return nil, fmt.Errorf("line %d, column %d: invalid TOML", line, column) // leaves out the text of the line, which may contain a password
		}
		return nil, errors.New("the file is not valid TOML")
	}
	return p, p.check()
}

// Patterns of valid values. The values end up in files and in the arguments of programs.
var (
	users   = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)
	hashes  = regexp.MustCompile(`^\$[a-zA-Z0-9./$=,_-]{8,255}$`)
	keys    = regexp.MustCompile(`^(ssh|ecdsa|sk)-[a-zA-Z0-9@.-]{3,60} [A-Za-z0-9+/=]{16,}( [\x20-\x7e]{0,256})?$`)
	keymaps = regexp.MustCompile(`^[a-z]{2,8}$`)
	zones   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$`)
)

// maxKeys is the maximum number of SSH keys.
const maxKeys = 50

// reserved are names of users that already exist in the image.
var reserved = []string{"root", "perch", "daemon", "nobody"}

// check returns an error for the first invalid field. The error contains the name of the field,
// but not its value.
func (p *preseed) check() error {
	invalid := func(field, want string) error { return fmt.Errorf("%s must be %s", field, want) }
	ssid, err := p.ssid()
	for _, c := range []struct {
		field, value string
		isValid      func(string) bool
		want         string
	}{
		{"system.hostname", p.System.Hostname, board.IsHostname, "at most 63 letters, digits and hyphens"},
		{"user.name", p.User.Name, users.MatchString, "at most 32 lower-case letters, digits, _ and -"},
		{"wlan.country", p.WLAN.Country, board.IsCountry, "two capital letters, such as DE"},
		{"locale.keymap", p.Locale.Keymap, keymaps.MatchString, "a layout such as de"},
		{"locale.timezone", p.Locale.Timezone, zones.MatchString, "a name such as Europe/Berlin"},
	} {
		if c.value != "" && !c.isValid(c.value) {
			return invalid(c.field, c.want)
		}
	}
	switch {
	case p.Version != "" && !strings.HasPrefix(p.Version, "1."):
		return invalid("config_version", "1.0; this image is older than the program that wrote the file")
	case slices.Contains(reserved, p.User.Name):
		return invalid("user.name", "different from the names of existing users")
	case p.User.Name == "" && (p.User.Password != "" || len(p.SSH.Keys) > 0):
		return invalid("user.name", "set if there is a password or a key")
	case p.User.Encrypted && p.User.Password != "" && !hashes.MatchString(p.User.Password):
		return invalid("user.password", "a hash such as $6$…, because password_encrypted is set")
	case !p.User.Encrypted && (len(p.User.Password) > 256 || strings.ContainsAny(p.User.Password, "\n\r\x00")):
		return invalid("user.password", "one line of at most 256 bytes")
	case len(p.SSH.Keys) > maxKeys:
		return invalid("ssh.authorized_keys", fmt.Sprintf("at most %d keys", maxKeys))
	case err != nil:
		return err
	case len(ssid) > board.MaxSSID:
		return invalid("wlan.ssid", "at most 32 bytes")
	case ssid == "" && p.WLAN.Password != "":
		return invalid("wlan.ssid", "set if there is a password")
	case p.WLAN.Password != "" && !board.IsKey(p.WLAN.Password):
		return invalid("wlan.password", "8 to 63 printable ASCII characters, or 64 hexadecimal digits")
	}
	for _, group := range p.User.Groups {
		if !users.MatchString(group) {
			return invalid("user.groups", "names of groups")
		}
	}
	for _, key := range p.SSH.Keys {
		if !keys.MatchString(strings.TrimSpace(key)) {
			return invalid("ssh.authorized_keys", "public keys as written by ssh-keygen, without options")
		}
	}
	return nil
}

// ssid returns the name of the Wi-Fi network, or "" if no network was chosen.
func (p *preseed) ssid() (string, error) {
	if p.WLAN.SSIDHex == "" {
		return p.WLAN.SSID, nil
	}
	name, err := hex.DecodeString(p.WLAN.SSIDHex)
	if err != nil {
		return "", errors.New("wlan.ssid_hex must be hexadecimal digits")
	}
	return string(name), nil
}
