package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"perch/must"
	"perch/packaging/image/board"
)

// written is the file that Raspberry Pi Imager writes for a user who has made all settings.
const written = `config_version = "1.0"

[system]
hostname = "kitchen"

[user]
name = "ann"
password = "$6$abcdefgh$0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ./01234567890"
password_encrypted = true
groups = ["sudo"]
passwordless_sudo = true

[ssh]
enabled = true
password_authentication = false
authorized_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZvb2JhcmJhemZvb2JhcmJhemZvb2JhcmJhem ann@desk"]

[wlan]
ssid = "Kaffee & Tee; 5"
password = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
password_encrypted = true
hidden = true
country = "DE"

[locale]
keymap = "de"
timezone = "Europe/Berlin"
`

// card is a machine whose programs are only recorded in runs, and its first partition.
type card struct {
	t    *testing.T
	root string
	boot string
	runs []string
	fail string // name of a program that fails
}

func newCard(t *testing.T) *card {
	c := &card{t: t, root: t.TempDir(), boot: t.TempDir()}
	c.put("etc/perch/perch.yaml", "# comments\n")
	c.put("usr/share/zoneinfo/Europe/Berlin", "TZif")
	return c
}

func (c *card) put(file, text string) {
	c.t.Helper()
	at := filepath.Join(c.root, file)
	must.Succeed(c.t, errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o660)))
}

func (c *card) read(file string) (text string, mode fs.FileMode) {
	c.t.Helper()
	at := filepath.Join(c.root, file)
	data, err := os.ReadFile(at)
	if err != nil {
		c.t.Error(err)
		return "", 0
	}
	info, err := os.Stat(at)
	must.Succeed(c.t, err)
	return string(data), info.Mode().Perm()
}

func (c *card) run(stdin, name string, args ...string) error {
	line := strings.Join(append([]string{name}, args...), " ")
	c.runs = append(c.runs, strings.TrimSpace(line+" <"+stdin))
	switch name {
	case c.fail:
		return errors.New("it failed")
	case "id":
		return errors.New("no such user")
	}
	return nil
}

// boots writes a preseed to the card and boots the machine.
func (c *card) boots(preseed string) error {
	c.t.Helper()
	must.Succeed(c.t, os.WriteFile(filepath.Join(c.boot, preseedFile), []byte(preseed), 0o600))
	return boot(machine{board.Machine{Root: c.root, Run: c.run}}, c.boot)
}

func (c *card) has(file string) bool {
	_, err := os.Stat(filepath.Join(c.boot, file))
	return err == nil
}

func TestWholePreseedIsApplied(t *testing.T) {
	c := newCard(t)
	must.Succeed(t, c.boots(written))
	for file, want := range map[string]struct {
		text string
		mode fs.FileMode
	}{
		"etc/hostname":                      {"kitchen\n", 0o644},
		"etc/hosts":                         {"127.0.1.1\tkitchen\n", 0o644},
		"etc/perch/perch.yaml":              {"# comments\nname: \"kitchen\"\n", 0o640},
		"etc/sudoers.d/010_ann":             {"ann ALL=(ALL) NOPASSWD: ALL\n", 0o440},
		"home/ann/.ssh/authorized_keys":     {"ssh-ed25519 AAAA", 0o600},
		"etc/ssh/sshd_config.d/perch.conf":  {"PasswordAuthentication no\n", 0o644},
		"etc/modprobe.d/perch-country.conf": {"ieee80211_regdom=DE\n", 0o644},
		"etc/default/keyboard":              {"XKBLAYOUT=de\n", 0o644},
		"etc/timezone":                      {"Europe/Berlin\n", 0o644},
		"etc/NetworkManager/system-connections/preseed.nmconnection": {
			"ssid=75;97;102;102;101;101;32;38;32;84;101;101;59;32;53;\nhidden=true\n\n[wifi-security]\nkey-mgmt=wpa-psk\npmf=1\npsk=0123", 0o600},
	} {
		if text, mode := c.read(file); !strings.Contains(text, want.text) || mode != want.mode && file != "etc/perch/perch.yaml" {
			t.Errorf("%s (%o) is\n%s", file, mode, text)
		}
	}
	if to, err := os.Readlink(filepath.Join(c.root, "etc/localtime")); to != "/usr/share/zoneinfo/Europe/Berlin" {
		t.Errorf("the time zone is %s, %v", to, err)
	}
	want := []string{"hostname kitchen <", "id ann <", "useradd --create-home --shell /bin/bash ann <", "usermod --append --groups sudo ann <",
		"chpasswd --encrypted <ann:$6$abcdefgh$0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ./01234567890",
		"chown -R ann: /home/ann/.ssh <", "systemctl enable ssh.service <", "systemctl start --no-block ssh.service <"}
	if !slices.Equal(c.runs, want) {
		t.Errorf("it ran\n%s", strings.Join(c.runs, "\n"))
	}
	if c.has(preseedFile) || c.has(reportFile) {
		t.Error("the file stays")
	}
}

func TestEmptyPreseedChangesNothing(t *testing.T) {
	c := newCard(t)
	must.Succeed(t, boot(machine{board.Machine{Root: c.root, Run: c.run}}, c.boot))
	if err := c.boots("config_version = \"1.0\"\n[future]\nkey = 7\n"); err != nil || c.has(preseedFile) {
		t.Errorf("a file that chooses nothing: %v", err)
	}
	if text, _ := c.read("etc/perch/perch.yaml"); len(c.runs) > 0 || text != "# comments\n" {
		t.Errorf("it ran %q, and the configuration is %s", c.runs, text)
	}
}

func TestOwnNameOfTheApplianceStays(t *testing.T) {
	c := newCard(t)
	c.put("etc/perch/perch.yaml", "name: desk\n")
	must.Succeed(t, c.boots("[system]\nhostname = \"kitchen\"\n"))
	if text, _ := c.read("etc/perch/perch.yaml"); text != "name: desk\n" {
		t.Errorf("the configuration is %s", text)
	}
}

func TestPreseedIsAppliedAgainAfterPowerCut(t *testing.T) {
	for _, program := range []string{"hostname", "useradd", "usermod", "chpasswd", "chown", "systemctl"} {
		c := newCard(t)
		c.fail = program
		if err := c.boots(written); err == nil || !c.has(preseedFile) || !c.has(reportFile) {
			t.Errorf("%s failed: %v; the file is there: %t", program, err, c.has(preseedFile))
		}
		c.fail = ""
		if err := boot(machine{board.Machine{Root: c.root, Run: c.run}}, c.boot); err != nil || c.has(preseedFile) || c.has(reportFile) {
			t.Errorf("again after %s: %v", program, err)
		}
	}
}

func TestInvalidPreseedNamesTheField(t *testing.T) {
	for text, want := range map[string]string{
		"[wlan]\nssid = \"a\"\npassword = \"hush hush\n":                               "line 3",
		"a = [" + strings.Repeat("[", 60<<10):                                          "TOML",
		strings.Repeat("# x\n", 1<<18):                                                 "more than 65536 bytes",
		"config_version = \"2.0\"":                                                     "config_version",
		"[system]\nhostname = \"$(reboot)\"":                                           "system.hostname",
		"[user]\nname = \"ann;reboot\"":                                                "user.name",
		"[user]\nname = \"root\"\npassword = \"x\"":                                    "user.name",
		"[user]\npassword = \"x\"":                                                     "user.name",
		"[user]\nname = \"ann\"\npassword = \"x\\nroot:y\"":                            "user.password",
		"[user]\nname = \"ann\"\npassword_encrypted = true\npassword = \"plain\"":      "user.password",
		"[user]\nname = \"ann\"\ngroups = [\"sudo ALL\"]":                              "user.groups",
		"[user]\nname = \"ann\"\n[ssh]\nauthorized_keys = [\"command=\\\"x\\\" ssh\"]": "ssh.authorized_keys",
		"[wlan]\nssid = \"" + strings.Repeat("x", 33) + "\"":                           "wlan.ssid",
		"[wlan]\nssid_hex = \"zz\"":                                                    "wlan.ssid_hex",
		"[wlan]\npassword = \"hush hush\"":                                             "wlan.ssid",
		"[wlan]\nssid = \"a\"\npassword = \"" + strings.Repeat("p", 200) + "\"":        "wlan.password",
		"[wlan]\nssid = \"a\"\npassword = \"pass\\nword=\"":                            "wlan.password",
		"[wlan]\ncountry = \"de\\noptions\"":                                           "wlan.country",
		"[locale]\ntimezone = \"../../etc/shadow\"":                                    "locale.timezone",
		"[locale]\ntimezone = \"Nowhere/Land\"":                                        "no time zone",
		"[locale]\nkeymap = \"de\\nX=1\"":                                              "locale.keymap",
		"[system]\nhostname = 7":                                                       "line 2",
	} {
		c := newCard(t)
		err := c.boots(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
		if report, _ := os.ReadFile(filepath.Join(c.boot, reportFile)); !strings.Contains(string(report), want) {
			t.Errorf("%.60q: the card says %q", text, report)
		}
		if len(c.runs) > 0 || !c.has(preseedFile) {
			t.Errorf("%.60q: it ran %q", text, c.runs)
		}
	}
}

func TestShellCharactersInEveryField(t *testing.T) {
	const shell = "$(reboot);`reboot`|reboot>/x&'"
	kept := map[string]string{ // fields that may contain such a value, and the text in which the value must be found
		"wlan.ssid":     "36;40;114;101;98;111;111;116;41;",
		"wlan.password": "\npsk=" + shell + "\n",
		"user.password": "chpasswd <ann:" + shell, // its standard input
	}
	fields := 0
	for _, section := range reflect.VisibleFields(reflect.TypeFor[preseed]()) {
		if section.Type.Kind() != reflect.Struct {
			continue
		}
		for _, field := range reflect.VisibleFields(section.Type) {
			name := section.Tag.Get("toml") + "." + field.Tag.Get("toml")
			value := map[reflect.Kind]string{reflect.String: shell, reflect.Slice: "[" + strconv.Quote(shell) + "]"}[field.Type.Kind()]
			if value == "" {
				continue // the field is a boolean
			}
			if fields++; field.Type.Kind() == reflect.String {
				value = strconv.Quote(shell)
			}
			c := newCard(t)
			all := map[string]string{"user.name": `"ann"`, "wlan.ssid": `"a"`, name: value}
			var text strings.Builder
			for key, value := range all {
				fmt.Fprintf(&text, "%s = %s\n", key, value)
			}
			err := c.boots(text.String())
			if where, is := kept[name]; is {
				connection, _ := os.ReadFile(filepath.Join(c.root, "etc/NetworkManager/system-connections/preseed.nmconnection"))
				if err != nil || !strings.Contains(string(connection)+strings.Join(c.runs, "\n"), where) {
					t.Errorf("%s: %v; %s", name, err, connection)
				}
			} else if err == nil || !strings.Contains(err.Error(), name+" must be") || strings.Contains(err.Error(), "reboot") || len(c.runs) > 0 {
				t.Errorf("%s: %v; it ran %q", name, err, c.runs)
			}
			if i := slices.IndexFunc(c.runs, func(run string) bool {
				before, _, _ := strings.Cut(run, "<")
				return strings.Contains(before, "reboot")
			}); i >= 0 {
				t.Errorf("%s: it ran %s", name, c.runs[i])
			}
		}
	}
	if fields != 11 {
		t.Errorf("%d fields hold text", fields)
	}
}

func TestNetworkNamesAndPasswordsAreEscaped(t *testing.T) {
	c := newCard(t)
	must.Succeed(t, c.boots("[wlan]\nssid_hex = \"ff0a3b\"\npassword = '  back\\slash; #'\n"))
	text, _ := c.read("etc/NetworkManager/system-connections/preseed.nmconnection")
	for _, want := range []string{"ssid=255;10;59;\n", `psk=\s\sback\\slash; #` + "\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
}

// FuzzPreseed applies arbitrary preseeds. A value must not become the name of another file or an option of a
// program.
func FuzzPreseed(f *testing.F) {
	f.Add(written)
	f.Add("[wlan]\nssid = \"a\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePreseed([]byte(text))
		if err != nil {
			return
		}
		var runs []string
		m := machine{board.Machine{Root: t.TempDir(), Run: func(stdin, name string, args ...string) error {
			runs = append(runs, fmt.Sprint(args))
			if strings.Count(stdin, "\n") > 1 || slices.ContainsFunc(args, func(a string) bool { return strings.ContainsAny(a, "\n\x00 ") }) {
				t.Errorf("%s %q is given %q", name, args, stdin)
			}
			return nil
		}}}
		_ = m.apply(p) // fails, because the machine has no folders
		_ = filepath.WalkDir(m.Root, func(path string, e fs.DirEntry, err error) error {
			at := strings.TrimPrefix(path, m.Root)
			if err == nil && !e.IsDir() && !strings.HasPrefix(at, "/etc/") && !strings.HasPrefix(at, "/home/") {
				t.Errorf("it writes %s", at)
			}
			return nil
		})
	})
}
