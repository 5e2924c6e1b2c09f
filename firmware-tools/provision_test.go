package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"perch/firmware-tools/simrobot"
	"perch/gateway/mdns"
	"perch/must"
)

const lasting = "http://perch.local:8003/xiaozhi/ota/"

// configuring returns a robot in configuration mode and the URL of its page. saved are the names of
// the networks that the robot has stored. old selects the older firmware of robotPortal.
func configuring(t *testing.T, old bool, saved ...string) (*robotPortal, string) {
	t.Helper()
	p := newRobotPortal(t, old, saved...)
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return p, server.URL
}

func TestProvisionNewRobot(t *testing.T) {
	for _, old := range []bool{false, true} {
		a := newAppliance(t)
		ota := a.server.URL + "/xiaozhi/ota/"
		p, page := configuring(t, old)
		code, out, errs := tools("robot", "provision", "--portal", page, "--ota", ota, "--ssid", "Home", "--password-file",
			writeFile(t, "password", []byte("correct horse\n")))
		if code != 0 || errs != "" || !strings.Contains(out, "asks      the address it was built with") || !strings.Contains(out, "joins     Home") ||
			strings.Contains(out, "horse") {
			t.Fatalf("exit %d %s%s", code, out, errs)
		}
		if !p.left || !slices.Equal(p.saved, []string{"Home"}) {
			t.Errorf("left %v, knows %q", p.left, p.saved)
		}
		r := must.Value(simrobot.New(simrobot.Options{OTA: p.ota, MAC: "a0:b1:c2:d3:e4:f5"}))(t)
		must.Succeed(t, r.Boot(t.Context()))
	}
}

func TestProvisionRobotThatKnowsAWiFi(t *testing.T) {
	p, page := configuring(t, false, "Home")
	p.ota = "http://192.0.2.1:8000/xiaozhi/ota/"
	code, out, errs := tools("robot", "provision", "--portal", page, "--ota", lasting)
	if code != 0 || !strings.Contains(out, "asks      http://192.0.2.1:8000/xiaozhi/ota/") || p.ota != lasting || !p.left {
		t.Errorf("exit %d %s%s", code, out, errs)
	}
}

func TestProvisionRefused(t *testing.T) {
	page := func(status int, text string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				t.Errorf("what is no robot is sent %s %s", r.Method, r.URL)
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	deaf := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"max_tx_power":0,"success":true}`)) // reports success, but stores nothing
	}))
	t.Cleanup(deaf.Close)
	_, fresh := configuring(t, false)
	_, wrong := configuring(t, false)
	password := writeFile(t, "password", []byte("another one"))
	calls := []call{
		{[]string{"--portal", fresh}, 1, "knows no Wi-Fi"},
		{[]string{"--portal", wrong, "--ssid", "Home", "--password-file", password}, 1, `could not join "Home"`},
		{[]string{"--portal", wrong, "--ssid", "Nobody's"}, 1, "it stays in configuration mode"},
		{[]string{"--portal", deaf.URL}, 1, `but has stored ""`},
		{[]string{"--portal", page(200, "<html>")}, 1, "is not a robot in configuration mode"},
		{[]string{"--portal", page(200, `{}`)}, 1, "is not a robot in configuration mode"},
		{[]string{"--portal", page(302, "")}, 1, "responded with 302"},
		{[]string{"--portal", page(500, "\x1b[2Jno")}, 1, "responded with 500 Internal Server Error: [2Jno"},
		{[]string{"--portal", page(404, "Nothing matches the given URI")}, 1, "no such address"},
		{[]string{"--portal", "https://x"}, 2, "--portal"},
		{[]string{"--ota", "perch.local"}, 2, "cannot use --ota"},
		{[]string{"--ota", "http://u@perch.local/"}, 2, "cannot use --ota"},
		{[]string{"--password-file", password}, 2, "goes with --ssid"},
		{[]string{"--ssid", "Home", "--password-file", writeFile(t, "p", bytes.Repeat([]byte("x"), 65))}, 1, "8 to 63"},
		{[]string{"--ssid", strings.Repeat("x", 33)}, 2, "32 bytes"},
		{[]string{"--ap", "Xiaozhi-A1B2"}, 2, "goes with --wifi"},
		{[]string{"--wifi", "--ap", "-x"}, 2, "--ap is a name such as"},
		{[]string{"what"}, 2, `unexpected argument "what": the command takes none`},
		{[]string{"--help"}, 0, ""},
	}
	for n, c := range calls {
		if !slices.Contains(c.args, "--ota") {
			calls[n].args = append(c.args, "--ota", lasting)
		}
	}
	check(t, "robot provision", calls...)
}

func TestProvisionWithoutRobotNamesTheCure(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if code, _, errs := toolsUntil(ctx, "robot", "provision", "--portal", "http://127.0.0.1:1", "--ota", lasting); code != 1 ||
		!strings.Contains(errs, "in the robot's network, Xiaozhi-XXXX?") {
		t.Errorf("exit %d %s", code, errs)
	}
}

func TestOTAURL(t *testing.T) {
	four, six := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7")
	for _, c := range []struct {
		found mdns.Found
		want  string
	}{
		{mdns.Found{Port: 8003, Addrs: []netip.Addr{six, four}, TXT: map[string]string{"ota": "/xiaozhi/ota/"}},
			"http://192.0.2.7:8003/xiaozhi/ota/"},
		{mdns.Found{Port: 80, Addrs: []netip.Addr{four}}, "http://192.0.2.7:80/xiaozhi/ota/"},
		{mdns.Found{Port: 80, Addrs: []netip.Addr{four}, TXT: map[string]string{"ota": "@evil.example/"}}, "http://192.0.2.7:80/xiaozhi/ota/"},
		{mdns.Found{Port: 80, Addrs: []netip.Addr{six}}, ""},
		{mdns.Found{Port: 80}, ""},
	} {
		if got := otaURL(c.found); got != c.want {
			t.Errorf("%+v: %q, want %q", c.found, got, c.want)
		}
	}
}

func TestLastingURL(t *testing.T) {
	four := []netip.Addr{netip.MustParseAddr("192.0.2.7")}
	for host, want := range map[string]string{
		"perch.local":   lasting,
		"Perch-2.local": "http://Perch-2.local:8003/xiaozhi/ota/",
		"":              "http://192.0.2.7:8003/xiaozhi/ota/",
		".local":        "http://192.0.2.7:8003/xiaozhi/ota/",
		"evil.example":  "http://192.0.2.7:8003/xiaozhi/ota/",
		"a@b.local":     "http://192.0.2.7:8003/xiaozhi/ota/",
	} {
		if got := lastingURL(mdns.Found{Host: host, Port: 8003, Addrs: four}); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
	if got := lastingURL(mdns.Found{Host: "perch.local", Port: 8003}); got != "" {
		t.Errorf("without an address a robot can use: %q", got)
	}
}

// nmcliScript is a shell script that prints what nmcli 1.42 to 1.52 prints. The file $STATE/active
// contains the UUID of the active Wi-Fi connection, or "robot" in a robot's network. $STATE/fail
// selects the failure to simulate, $STATE/air contains the names of the networks in range, and
// $STATE/profile exists while the connection perch-provision exists.
const nmcliScript = `#!/bin/sh
echo "$*" >>"$STATE/log"
[ "$LC_ALL" = C ] || { echo "Fehler: falsche Sprache" >&2; exit 1; }
fail=$(cat "$STATE/fail")
case "$*" in
"-t -e no -f TYPE,STATE,DEVICE device status")
	[ "$fail" = running ] && { echo "Error: NetworkManager is not running." >&2; exit 8; }
	[ "$fail" = radio ] && { printf 'ethernet:connected:eth0\nwifi:unavailable:wlan0\nloopback:unmanaged:lo\n'; exit 0; }
	printf 'ethernet:connected:eth0\nwifi-p2p:disconnected:p2p-dev-wlan0\nwifi:connected:wlan0\nloopback:connected (externally):lo\n' ;;
"-t -e no -f UUID,DEVICE connection show --active")
	printf '6a1b9b3e-0000-4000-8000-000000000001:eth0\n%s:wlan0\n' "$(cat "$STATE/active")" ;;
"-t -e no -f SSID device wifi list ifname wlan0 --rescan yes")
	cat "$STATE/air" ;;
"connection delete id perch-provision")
	[ -e "$STATE/profile" ] || { echo "Error: unknown connection 'perch-provision'." >&2
		echo "Error: cannot delete unknown connection(s): id 'perch-provision'." >&2; exit 10; }
	rm "$STATE/profile"; : >"$STATE/active"
	echo "Connection 'perch-provision' (7c0a5f6e-0000-4000-8000-000000000003) successfully deleted." ;;
"connection add save no type wifi con-name perch-provision ifname wlan0 autoconnect no ssid Xiaozhi-"*" ipv4.never-default yes ipv6.method disabled")
	: >"$STATE/profile"
	echo "Connection 'perch-provision' (7c0a5f6e-0000-4000-8000-000000000003) successfully added." ;;
"--wait 30 connection up id perch-provision ifname wlan0")
	[ "$fail" = join ] && {
		echo "Error: Connection activation failed: (5) IP configuration could not be reserved (no available address, timeout, etc.)." >&2
		echo "Hint: use 'journalctl -xe NM_CONNECTION=7c0a5f6e-0000-4000-8000-000000000003 + NM_DEVICE=wlan0' to get more details." >&2; exit 4; }
	echo robot >"$STATE/active"
	echo "Connection successfully activated (D-Bus active path: /org/freedesktop/NetworkManager/ActiveConnection/7)" ;;
"--wait 30 connection up uuid 6a1b9b3e-0000-4000-8000-000000000002")
	[ "$fail" = back ] && { echo "Error: Timeout 30 sec expired." >&2; exit 3; }
	echo 6a1b9b3e-0000-4000-8000-000000000002 >"$STATE/active"
	echo "Connection successfully activated (D-Bus active path: /org/freedesktop/NetworkManager/ActiveConnection/8)" ;;
*)
	echo "Error: invalid command '$*'." >&2; exit 2 ;;
esac
`

const home = "6a1b9b3e-0000-4000-8000-000000000002"

// air installs nmcliScript as nmcli in PATH, with the networks ssids in range. fail is the failure to
// simulate, or "". air returns the folder that the script uses as $STATE.
func air(t *testing.T, fail string, ssids ...string) (state string) {
	t.Helper()
	dir, state := t.TempDir(), t.TempDir()
	for file, text := range map[string]string{
		filepath.Join(dir, "nmcli"): nmcliScript, filepath.Join(state, "fail"): fail, filepath.Join(state, "log"): "",
		filepath.Join(state, "active"): home, filepath.Join(state, "air"): strings.Join(ssids, "\n") + "\n",
	} {
		must.Succeed(t, os.WriteFile(file, []byte(text), 0o700))
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("STATE", state)
	t.Setenv("LC_ALL", "de_DE.UTF-8")
	return state
}

// inOwnNetwork fails the test if the machine is not in its own network, or if the connection to the
// robot's network still exists.
func inOwnNetwork(t *testing.T, state string) {
	t.Helper()
	if active := strings.TrimSpace(content(t, filepath.Join(state, "active"))); active != home {
		t.Errorf("the machine is in %q\n%s", active, content(t, filepath.Join(state, "log")))
	}
	if _, err := os.Stat(filepath.Join(state, "profile")); err == nil {
		t.Error("the connection to the robot is still there")
	}
}

// reached returns the URL of a robot's page. The test fails if the page is requested while the machine
// is not in the robot's network.
func reached(t *testing.T, state string, page http.Handler) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if active, err := os.ReadFile(filepath.Join(state, "active")); err != nil || string(active) != "robot\n" {
			t.Errorf("%s is asked for outside the robot's network", r.URL)
		}
		page.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestProvisionThroughWiFi(t *testing.T) {
	state := air(t, "", "Home", "", "Xiaozhi-A1B2", "Xiaozhi-A1B2", "Xiaozhi-guest", "-e", "x:y")
	p := newRobotPortal(t, false, "Home")
	code, out, errs := tools("robot", "provision", "--wifi", "--portal", reached(t, state, p), "--ota", lasting)
	if code != 0 || errs != "" || p.ota != lasting || !strings.Contains(out, "joins Xiaozhi-A1B2") ||
		!strings.HasSuffix(out, "this machine is back in its own network\n") {
		t.Errorf("exit %d %s%s", code, out, errs)
	}
	inOwnNetwork(t, state)
}

func TestProvisionReturnsToOwnNetworkAfterFailure(t *testing.T) {
	odd := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	for _, c := range []struct {
		fail   string
		ssids  []string
		args   []string
		stderr string
	}{
		{"", []string{"Xiaozhi-A1B2"}, nil, "is not a robot in configuration mode"},
		{"join", []string{"Xiaozhi-A1B2"}, nil, "join Xiaozhi-A1B2: nmcli: Connection activation failed: (5)"},
		{"running", []string{"Xiaozhi-A1B2"}, nil, "NetworkManager is not running"},
		{"radio", nil, nil, "nmcli radio wifi on"},
		{"", []string{"Home"}, nil, "no network Xiaozhi-XXXX is in range"},
		{"", []string{"Xiaozhi-A1B2", "Xiaozhi-00FF"}, nil, "choose one with --ap: Xiaozhi-00FF, Xiaozhi-A1B2"},
		{"", []string{"Xiaozhi-00FF"}, []string{"--ap", "Xiaozhi-A1B2"}, "networks of other robots: Xiaozhi-00FF"},
	} {
		t.Run(c.stderr, func(t *testing.T) {
			state := air(t, c.fail, c.ssids...)
			check(t, "robot provision --wifi --ota "+lasting+" --portal "+reached(t, state, odd), call{c.args, 1, c.stderr})
			inOwnNetwork(t, state)
		})
	}
}

func TestProvisionReturnsToOwnNetworkWhenStopped(t *testing.T) {
	state := air(t, "", "Xiaozhi-A1B2")
	ctx, cancel := context.WithCancel(t.Context())
	page := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil { // ends the test binary unless the command catches it
			t.Error(err)
		}
		cancel()
		<-r.Context().Done()
	})
	if code, _, errs := toolsUntil(ctx, "robot", "provision", "--wifi", "--portal", reached(t, state, page), "--ota", lasting); code != 1 {
		t.Errorf("exit %d %s", code, errs)
	}
	inOwnNetwork(t, state)
}

func TestProvisionCannotReturnToOwnNetwork(t *testing.T) {
	state := air(t, "back", "Xiaozhi-A1B2")
	p := newRobotPortal(t, false, "Home")
	check(t, "robot provision --wifi --ota "+lasting+" --portal", call{[]string{reached(t, state, p)}, 1,
		"Timeout 30 sec expired.; run nmcli connection up uuid " + home})
}

func TestProvisionWithoutNetworkManager(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	check(t, "robot provision --wifi --ota", call{[]string{lasting}, 1, "by hand"})
}
