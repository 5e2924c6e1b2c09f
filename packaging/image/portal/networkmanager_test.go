package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/must"
	"perch/packaging/image/board"
)

// answers returns a handler whose responses are the results of a function.
func answers(f func(method, path, body string) (int, string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		status, text := f(r.Method, r.URL.Path, string(body))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	})
}

// fakeNmcli is a program in place of nmcli. It records its arguments after the options in the file asked, one in a
// line. It runs each file answer.NAME whose NAME is a part of the arguments joined by hyphens.
const fakeNmcli = `#!/bin/sh
cd "$(dirname "$0")"
shift 5
{ for one; do printf '%s\n' "$one"; done; echo; } >>asked
name=$(printf '%s-' "$@")
for answer in answer.*; do
	case $name in *"${answer#answer.}"*) . "./$answer" ;; esac
done
exit 0
`

type nmcli struct {
	t   *testing.T
	dir string
	*networkManager
}

func newNmcli(t *testing.T) *nmcli {
	t.Helper()
	n := &nmcli{t: t, dir: t.TempDir()}
	n.put("nmcli", fakeNmcli)
	n.networkManager = &networkManager{program: filepath.Join(n.dir, "nmcli"), iface: "wlan0",
		Machine: board.Machine{Root: t.TempDir(), Run: func(string, string, ...string) error { return nil }}}
	return n
}

func (n *nmcli) put(file, text string) {
	n.t.Helper()
	must.Succeed(n.t, os.WriteFile(filepath.Join(n.dir, file), []byte(text), 0o755))
}

// answers makes nmcli print text and the error wrong, and end with the exit code code, if its arguments contain
// args.
func (n *nmcli) answers(args, text, wrong, code string) {
	n.put("answer."+strings.ReplaceAll(args, " ", "-"), "cat <<'END'\n"+text+"END\necho '"+wrong+"' >&2\nexit "+code+"\n")
}

func (n *nmcli) asked() string {
	text, _ := os.ReadFile(filepath.Join(n.dir, "asked"))
	_ = os.Remove(filepath.Join(n.dir, "asked"))
	return string(text)
}

func TestPollFindsConnectedNetworks(t *testing.T) {
	const shown = "11111111-1111-4111-8111-111111111111:802-11-wireless:"
	for name, c := range map[string]struct {
		devices, connections  string
		network, known, there bool
		raised                bool
	}{
		"nothing": {"", "", false, false, false, false},
		"its own": {"lo:loopback:connected (externally):x\ndocker0:bridge:connected (externally):y\n", "", false, false, false, false},
		"a cable": {"end0:ethernet:connected:x\nwlan0:wifi:disconnected:\n", "", true, false, true, false},
		"the access point": {"wlan0:wifi:connected:" + apUUID + "\nend0:ethernet:unavailable:\np2p-dev-wlan0:wifi-p2p:disconnected:\n",
			apUUID + ":802-11-wireless:no\n", false, false, true, true},
		"a network on the way": {"wlan0:wifi:connecting (getting IP configuration):x\n", shown + "yes\n", false, true, true, false},
		"not to be joined":     {"wlan0:wifi:disconnected:\n", shown + "no\n", false, false, true, false},
		"not NetworkManager's": {"wlan0:wifi:unmanaged:\n", "", false, false, false, false},
		"odd lines":            {"a:b\n:::\n\\:\\\n", "x\n::\n", false, false, false, false},
	} {
		n := newNmcli(t)
		n.answers("device status", c.devices, "", "0")
		n.answers("connection show", c.connections, "", "0")
		network, raised, err := n.poll(t.Context())
		known, err2 := n.hasSavedNetworks(t.Context())
		if network != c.network || known != c.known || n.hasRadio() != c.there || raised != c.raised || errors.Join(err, err2) != nil {
			t.Errorf("%s: %t %t %t %t, %v, %v", name, network, known, n.hasRadio(), raised, err, err2)
		}
	}
	n := newNmcli(t)
	n.answers("device status", "", "Error: NetworkManager is not running.", "8")
	if _, _, err := n.poll(t.Context()); err == nil || !strings.Contains(err.Error(), "is not running") {
		t.Errorf("without NetworkManager: %v", err)
	}
}

func TestScanListsEachNetworkOnce(t *testing.T) {
	n := newNmcli(t)
	n.answers("device wifi list", "486F6D65:40:WPA2\n486F6D65:70:WPA1 WPA2\n:90:WPA2\n0000:90:\n4F70656E:50:\nFF0A3A:30:WPA2 WPA3\n"+
		"576F726B:60:WPA2 802.1X\n4E6577:55:WPA3\n4F6C64:54:WEP\nzz:1:\n486F6D65\n"+strings.Repeat("41", 40)+":99:\n", "", "0")
	want := []scanned{{"Home", 70, true, false}, {"Work", 60, true, true}, {"New", 55, true, true}, {"Old", 54, true, true}, {"Open", 50, false, false},
		{"\xff\n:", 30, true, false}}
	if got, err := n.scan(t.Context()); !slices.Equal(got, want) || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	var many strings.Builder
	for i := range 20_000 {
		many.WriteString("4141" + string("0123456789abcdef"[i%16]) + string("0123456789abcdef"[i/16%16]) + ":50:WPA2\n")
	}
	n.answers("device wifi list", many.String(), "", "0")
	if got, err := n.scan(t.Context()); len(got) != maxScanned || err != nil {
		t.Errorf("of very many: %d, %v", len(got), err)
	}
}

func TestAccessPointIsOpenAndNotSaved(t *testing.T) {
	n := newNmcli(t)
	must.Succeed(t, n.raise(t.Context(), "Perch-1A2B"))
	asked := n.asked()
	for _, want := range []string{"save\nno\n", "\nssid\nPerch-1A2B\n", "802-11-wireless.mode\nap\n", "ipv4.method\nshared\n", "autoconnect\nno\n",
		"connection\nup\nuuid\n" + apUUID + "\n"} {
		if !strings.Contains(asked, want) {
			t.Errorf("%q is not in\n%s", want, asked)
		}
	}
	if strings.Contains(asked, "security") || strings.Contains(asked, "psk") {
		t.Errorf("it is not open:\n%s", asked)
	}
	n.answers("connection up", "", "Error: Connection activation failed: 802.1X supplicant took too long to authenticate", "4")
	if err := n.raise(t.Context(), "Perch-1A2B"); err == nil {
		t.Error("it is up though nmcli says otherwise")
	}
	text, err := os.ReadFile("../root/etc/NetworkManager/dnsmasq-shared.d/perch.conf")
	if err != nil || !strings.Contains(string(text), "address=/#/"+apAddress+"\n") {
		t.Errorf("names lead elsewhere: %s, %v", text, err)
	}
}

func (n *nmcli) files() (all []string) {
	for _, file := range n.ownConnections("") {
		all = append(all, filepath.Base(file))
	}
	return all
}

// TestJoinKeepsEarlierNetworkOnFailure also checks that no key is passed in the arguments of a program.
func TestJoinKeepsEarlierNetworkOnFailure(t *testing.T) {
	home := board.Network{SSID: "Home", Key: "a good password"}
	n := newNmcli(t)
	must.Succeed(t, n.join(t.Context(), home))
	first, asked := n.files(), n.asked()
	if len(first) != 1 || !strings.HasPrefix(first[0], connectionPrefix("Home")) || strings.Contains(asked, "good password") ||
		!strings.Contains(asked, "connection.autoconnect\nyes\n") {
		t.Errorf("%q\n%s", first, asked)
	}
	for want, c := range map[error][2]string{
		errWrongKey:  {"Error: Connection activation failed: Secrets were required, but not provided", "4"},
		errNotFound:  {"Error: Connection activation failed: The Wi-Fi network could not be found", "4"},
		errNoAddress: {"Error: Connection activation failed: IP configuration could not be reserved (no available address, timeout, etc.)", "4"},
		errNotJoined: {"Error: Timeout expired (60 seconds)", "3"},
	} {
		n.answers("connection up", "", c[0], c[1])
		if err := n.join(t.Context(), board.Network{SSID: "Home", Key: "another password"}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", c[0], err, want)
		}
		if got := n.files(); !slices.Equal(got, first) {
			t.Errorf("%s: it keeps %q", c[0], got)
		}
	}
	n.answers("connection up", "", "", "0")
	other := errors.Join(n.join(t.Context(), board.Network{SSID: "Cafe"}), n.join(t.Context(), home))
	if got := n.files(); other != nil || len(got) != 2 || slices.Contains(got, first[0]) {
		t.Errorf("after another and the same again it keeps %q, %v", got, other)
	}
}

func TestCleanForgetsHalfTriedNetworks(t *testing.T) {
	n := newNmcli(t)
	err := errors.Join(
		n.WriteConnection(board.Network{SSID: "Tried", Key: "12345678"}, connectionPrefix("Tried")+"01", "u1", false),
		n.WriteConnection(board.Network{SSID: "Joined", Key: "12345678"}, connectionPrefix("Joined")+"02", "u2", true),
		n.WriteConnection(board.Network{SSID: "Owners", Key: "12345678"}, "owners", "u3", false))
	must.Succeed(t, err)
	n.cleanUp(t.Context())
	got := n.files()
	if len(got) != 2 || slices.ContainsFunc(got, func(name string) bool { return strings.HasPrefix(name, connectionPrefix("Tried")) }) ||
		!strings.Contains(n.asked(), "connection\ndelete\nuuid\n"+apUUID+"\n") {
		t.Errorf("it keeps %q", got)
	}
}

func TestNmcliHasADeadline(t *testing.T) {
	n := newNmcli(t)
	n.put("nmcli", "#!/bin/sh\nexec sleep 60\n")
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if _, err := n.call(ctx, time.Minute, "device"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it hangs: %v", err)
	}
}

func TestSuffix(t *testing.T) {
	n := newNmcli(t)
	if got := n.suffix(); got != "0000" {
		t.Errorf("of nothing: %s", got)
	}
	if err := errors.Join(n.Write("etc/machine-id", 0o644, "0123456789abcdef\n"),
		n.Write("sys/class/net/wlan0/phy80211/macaddress", 0o644, "d8:3a:dd:01:1a:2b\n")); err != nil {
		t.Fatal(err)
	}
	if got := n.suffix(); got != "1A2B" {
		t.Errorf("of the radio: %s", got)
	}
	n.iface = "wlan1"
	if got := n.suffix(); got != "CDEF" {
		t.Errorf("of the machine: %s", got)
	}
}
