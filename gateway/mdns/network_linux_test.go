package mdns

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"perch/must"
)

// askLegacy sends a legacy query from the client, checks the response and returns its answers.
func (l *lab) askLegacy(host string, qtype uint16) []dns.RR {
	l.t.Helper()
	out := l.output(l.client, python, "testdata/ask.py", clientAddr, host, strconv.Itoa(int(qtype)))
	raw, err := hex.DecodeString(strings.TrimSpace(out))
	msg := parse(raw)
	if err != nil || msg == nil {
		l.t.Fatalf("asked for %s: no reply, or an unreadable one: %q", host, out)
	}
	if msg.Id != 0x1234 || len(msg.Question) != 1 || msg.Question[0] != (dns.Question{Name: host + ".", Qtype: qtype, Qclass: dns.ClassINET}) {
		l.t.Errorf("asked for %s: the reply does not repeat id and question: %v", host, msg)
	}
	for _, rr := range msg.Answer {
		if h := rr.Header(); h.Ttl > legacyTTL || h.Class != dns.ClassINET {
			l.t.Errorf("asked for %s: TTL %d, class %#x in a legacy reply", host, h.Ttl, h.Class)
		}
	}
	return msg.Answer
}

func (l *lab) wantAddress(host string, qtype uint16, want string) {
	l.t.Helper()
	got := addressesFor(l.askLegacy(host, qtype), host+".")
	if !slices.Equal(got, addrs(want)) {
		l.t.Errorf("%s leads to %v, want %s", host, got, want)
	}
}

func TestPythonBrowsesResolvesAndHearsGoodbye(t *testing.T) {
	l := newLab(t)
	browser := l.python(l.client, "browse.py", clientAddr)
	browser.await("event", "browsing")
	appliance := l.self(l.server, "appliance")
	got := browser.await("event", "added")
	want := map[string]any{
		"event": "added", "name": "perch-c0ffee._xiaozhi._tcp.local.", "server": "perch.local.", "port": 8003.0,
		"addresses": []any{serverAddr},
		"txt":       map[string]any{"ota": "/xiaozhi/ota/", "ws": "/xiaozhi/v1/", "version": "1.2.3", "id": "c0ffee"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("python resolved\n%v, want\n%v", got, want)
	}
	if code := appliance.stop(); code != 0 {
		t.Errorf("appliance ended with %d", code)
	}
	browser.await("event", "removed")
}

// TestFurtherServicesComeAndGo checks that the Wyoming service is announced under the same instance name as the first
// service, that its address is updated when the machine's address changes, and that it is withdrawn at the end.
func TestFurtherServicesComeAndGo(t *testing.T) {
	l := newLab(t)
	browser := l.python(l.client, "browse.py", clientAddr, Wyoming)
	browser.await("event", "browsing")
	appliance := l.self(l.server, "appliance")
	want := map[string]any{
		"event": "added", "name": "perch-c0ffee._wyoming._tcp.local.", "server": "perch.local.", "port": 10300.0,
		"addresses": []any{serverAddr}, "txt": map[string]any{},
	}
	if got := browser.await("event", "added"); !reflect.DeepEqual(got, want) {
		t.Errorf("python resolved\n%v, want\n%v", got, want)
	}
	l.ip(l.server, "addr flush dev eth0")
	browser.await("event", "removed")
	l.ip(l.server, "addr add 10.77.0.9/24 dev eth0")
	if got := browser.await("event", "added"); !reflect.DeepEqual(got["addresses"], []any{"10.77.0.9"}) {
		t.Errorf("after the address changed: %v", got)
	}
	if code := appliance.stop(); code != 0 {
		t.Errorf("appliance ended with %d", code)
	}
	browser.await("event", "removed")
}

// TestOffersComeAndGo checks that services of Options.Offers are announced and withdrawn while the other announcements
// remain unchanged.
func TestOffersComeAndGo(t *testing.T) {
	l := newLab(t)
	offers := filepath.Join(t.TempDir(), "offers")
	browser := l.python(l.client, "browse.py", clientAddr, OSCQuery)
	browser.await("event", "browsing")
	first := l.python(l.client, "browse.py", clientAddr)
	appliance := l.self(l.server, "appliance", offers)
	appliance.await("msg", "mdns announced")
	first.await("event", "added")
	must.Succeed(t, os.WriteFile(offers, nil, 0o600))
	want := map[string]any{
		"event": "added", "name": "perch-c0ffee._oscjson._tcp.local.", "server": "perch.local.", "port": 41001.0,
		"addresses": []any{serverAddr}, "txt": map[string]any{},
	}
	if got := browser.await("event", "added"); !reflect.DeepEqual(got, want) {
		t.Errorf("python resolved\n%v, want\n%v", got, want)
	}
	if own := l.self(l.client, "osc browser").await("Instance", "perch-c0ffee"); own["Port"] != 41002.0 || own["Sender"] != serverAddr {
		t.Errorf("found %v", own)
	}
	must.Succeed(t, os.Remove(offers))
	browser.await("event", "removed")
	if code := appliance.stop(); code != 0 {
		t.Errorf("appliance ended with %d", code)
	}
	first.await("event", "removed")
	for line := range appliance.lines {
		if line["msg"] == "mdns announced" {
			t.Error("the appliance was announced anew")
		}
	}
}

// TestSearchFindsWyomingServers checks that an appliance finds Wyoming servers but not its own, which responds first.
func TestSearchFindsWyomingServers(t *testing.T) {
	l := newLab(t)
	l.self(l.server, "appliance").await("msg", "mdns announced")
	alone := l.self(l.server, "finder of none", "PERCH-c0ffee")
	if line := alone.await("found", "0"); line["targets"] != nil {
		t.Errorf("with none but its own: %v", line)
	}
	l.python(l.client, "wyoming.py", clientAddr, "piper (attic)", "10200").await("event", "announced")
	l.python(l.client, "wyoming.py", clientAddr, "faster-whisper", "10301").await("event", "announced")
	finder := l.self(l.server, "finder", "perch-c0ffee")
	whisper := finder.await("Instance", "faster-whisper")
	if whisper["Host"] != "faster-whisper._wyoming._tcp.local" || whisper["Port"] != 10301.0 ||
		!reflect.DeepEqual(whisper["Addrs"], []any{clientAddr}) {
		t.Errorf("found %v", whisper)
	}
	finder.await("Instance", "piper (attic)")
	line := finder.await("found", "2")
	if !reflect.DeepEqual(line["targets"], []any{clientAddr + ":10301", clientAddr + ":10200"}) {
		t.Errorf("targets %v", line["targets"])
	}
	t.Logf("found within %v ms", line["ms"])
	stranger := l.self(l.client, "finder")
	if own := stranger.await("Instance", "perch-c0ffee"); own["Port"] != 10300.0 ||
		!reflect.DeepEqual(own["TXT"], map[string]any{}) {
		t.Errorf("a stranger found %v", own)
	}
}

// TestSearchFindsLateServer checks that a search finds a server that starts after the search.
func TestSearchFindsLateServer(t *testing.T) {
	l := newLab(t)
	l.ip(l.client, "link set eth0 down")
	finder := l.self(l.server, "finder")
	l.ip(l.client, "link set eth0 up")
	l.python(l.client, "wyoming.py", clientAddr, "piper", "10200")
	finder.await("Instance", "piper")
}

func TestLegacyQueryIPv4Only(t *testing.T) {
	l := newLab(t)
	l.self(l.server, "appliance").await("msg", "mdns announced")
	l.wantAddress("perch.local", dns.TypeA, serverAddr)
	l.wantAddress("Perch.LOCAL", dns.TypeA, serverAddr)
	answers := l.askLegacy("perch.local", dns.TypeAAAA)
	if len(answers) != 1 {
		t.Fatalf("AAAA answers: %v, want one NSEC", answers)
	}
	nsec, ok := answers[0].(*dns.NSEC)
	if !ok || nsec.NextDomain != "perch.local." || !slices.Equal(nsec.TypeBitMap, []uint16{dns.TypeA}) {
		t.Errorf("AAAA answer: %v, want an NSEC that leaves A", answers[0])
	}
}

func TestLegacyQueryIPv6(t *testing.T) {
	for name, address := range map[string]string{"routable": serverV6, "link-local": "fe80::77"} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.ip(l.server, "addr add "+address+"/64 dev eth0 nodad")
			l.self(l.server, "appliance").await("msg", "mdns announced")
			l.wantAddress("perch.local", dns.TypeA, serverAddr)
			l.wantAddress("perch.local", dns.TypeAAAA, address)
		})
	}
}

// TestLinkWithoutIPv4 checks that the host name is resolved over IPv6 on a link without IPv4 addresses.
func TestLinkWithoutIPv4(t *testing.T) {
	l := newLab(t)
	for ns, address := range map[string]string{l.server: "fe80::77", l.client: "fe80::78"} {
		l.ip(ns, "addr flush dev eth0")
		l.ip(ns, "addr add "+address+"/64 dev eth0 nodad")
	}
	l.self(l.server, "appliance").await("msg", "mdns announced")
	l.self(l.client, "asker over IPv6", "perch.local").await("addresses", "[fe80::77]")
}

func TestResolveAndSearch(t *testing.T) {
	l := newLab(t)
	l.self(l.server, "appliance").await("msg", "mdns announced")
	l.self(l.client, "robot", "perch.local").await("address", serverAddr)
	found := l.self(l.client, "browser").await("Instance", "perch-c0ffee")
	if found["Host"] != "perch.local" || found["Port"] != 8003.0 || !reflect.DeepEqual(found["Addrs"], []any{serverAddr}) {
		t.Errorf("found %v", found)
	}
	l.self(l.client, "robot", "nobody.local").await("error", `ask for "nobody.local": no answer`)
}

func TestTakenName(t *testing.T) {
	l := newLab(t)
	l.python(l.client, "own.py", clientAddr, "perch.local", clientAddr).await("event", "owning")
	l.self(l.server, "appliance").await("host", "perch-2.local")
	l.wantAddress("perch-2.local", dns.TypeA, serverAddr)
}

func TestSystemResponder(t *testing.T) {
	l := newLab(t)
	responder := l.python(l.server, "own.py", serverAddr, "perch.local", serverAddr)
	responder.await("event", "owning")
	appliance := l.self(l.server, "appliance")
	if line := appliance.await("msg", "mdns announced"); line["by"] != "system" || line["host"] != "perch.local" {
		t.Errorf("announced %v, want perch.local by the system", line)
	}
	responder.stop()
	appliance.await("by", "perch")
	l.wantAddress("perch.local", dns.TypeA, serverAddr)
}

func TestFollowsAddresses(t *testing.T) {
	l := newLab(t)
	l.ip(l.server, "addr flush dev eth0")
	appliance := l.self(l.server, "appliance")
	appliance.await("err", "no network interface carries multicast: none is up with an address")
	for _, address := range []string{serverAddr, "10.77.0.9"} {
		l.ip(l.server, "addr flush dev eth0")
		l.ip(l.server, "addr add "+address+"/24 dev eth0")
		for {
			line := appliance.await("msg", "mdns announced")
			if reflect.DeepEqual(line["addresses"], []any{address}) {
				break
			}
		}
		l.wantAddress("perch.local", dns.TypeA, address)
	}
}

func TestTwoInterfacesEachHearTheirOwnAddress(t *testing.T) {
	l := newLab(t)
	l.ip("", "link add eth1 netns "+l.server+" type veth peer name eth1 netns "+l.client)
	l.ip(l.client, "link set eth1 up")
	l.ip(l.server, "link set eth1 up")
	l.ip(l.server, "addr add 10.79.0.1/24 dev eth1")
	l.self(l.server, "appliance").await("msg", "mdns announced")
	l.wantAddress("perch.local", dns.TypeA, serverAddr)
	browser := l.python(l.client, "browse.py", clientAddr)
	if got := browser.await("event", "added"); !reflect.DeepEqual(got["addresses"], []any{serverAddr}) {
		t.Errorf("the service leads to %v on eth0, want %s alone", got["addresses"], serverAddr)
	}
}

func TestNoMulticast(t *testing.T) {
	l := newLab(t)
	l.ip(l.client, "link set eth0 down")
	for _, as := range []string{"browser", "robot", "finder"} {
		p := l.self(l.client, as, "perch.local")
		if line := p.await("error", "no network interface carries multicast: none is up with an address"); line["no_multicast"] != true {
			t.Errorf("%s: the error is not ErrNoMulticast", as)
		}
	}
}

func TestNothingLeaksOverRegistrations(t *testing.T) {
	l := newLab(t)
	p := l.self(l.server, "leaks")
	line := p.await("leaks", "none")
	t.Logf("files open before %v, while announcing %v", line["fds_before"], line["fds_first"])
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
