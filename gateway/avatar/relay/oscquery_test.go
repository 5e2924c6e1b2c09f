package relay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/gateway/httpserver/httpservertest"
	"perch/gateway/mdns"
	"perch/must"
	"perch/waittest"
)

// offersOf waits until the relays announce services, and returns the ports of these services.
func (h *harness) offersOf(t testing.TB) (http, osc int) {
	t.Helper()
	var offers []mdns.Offer
	h.eventually("OSCQuery is offered", func() bool { offers = h.relays.Offers(); return len(offers) == 2 })
	if offers[0].Type != mdns.OSCQuery || offers[1].Type != mdns.OSC || offers[0].Instance != "perch-c0ffee" || offers[1].Instance != "perch-c0ffee" {
		t.Errorf("it offers %+v", offers)
	}
	return offers[0].Port, offers[1].Port
}

// TestOSCQuery tests that the server describes the messages that the relay sends and receives, without values.
func TestOSCQuery(t *testing.T) {
	l := newListener(t, "")
	h := newConnected(t, Target{Kind: "vrchat", URL: "udp://" + l.address, Words: map[string]string{"state.thinking": "Busy", "parameter.face": ""}})
	port, osc := h.offersOf(t)
	at := fmt.Sprintf("http://127.0.0.1:%d", port)
	ask := func(method, path string) (int, string) {
		t.Helper()
		answer, text := httpservertest.Ask(t, method, at+path, "")
		return answer.StatusCode, strings.TrimSpace(text)
	}
	var leaves []string
	var walk func(n oscNode, path string)
	walk = func(n oscNode, path string) {
		if n.Path != path {
			t.Errorf("FULL_PATH of %s is %s", path, n.Path)
		}
		if n.Type != "" {
			leaves = append(leaves, fmt.Sprint(n.Path, " ", n.Type, " ", n.Access))
		}
		for name, below := range n.Contents {
			walk(*below, strings.TrimSuffix(path, "/")+"/"+name)
		}
	}
	status, text := ask(http.MethodGet, "/")
	var root oscNode
	if err := json.Unmarshal([]byte(text), &root); status != http.StatusOK || err != nil {
		t.Fatalf("%d, %v: %s", status, err, text)
	}
	walk(root, "/")
	slices.Sort(leaves)
	want := []string{"/avatar/change s 2", "/avatar/parameters/Busy T 1", "/avatar/parameters/Stackchan/Celebration f 1",
		"/avatar/parameters/Stackchan/Concern f 1", "/avatar/parameters/Stackchan/Curiosity f 1", "/avatar/parameters/Stackchan/Empathy f 1",
		"/avatar/parameters/Stackchan/Mouth f 1", "/avatar/parameters/Stackchan/Patience f 1", "/avatar/parameters/Stackchan/State i 1",
		"/avatar/parameters/Stackchan/Uncertain f 1", "/avatar/parameters/VRCEmote i 1", "/chatbox/input sTT 1", "/chatbox/typing T 1"}
	if !slices.Equal(leaves, want) {
		t.Errorf("it has %q, want %q", leaves, want)
	}
	for path, want := range map[string]string{
		"/?HOST_INFO":                 `{"NAME":"perch-c0ffee","OSC_IP":"127.0.0.1","OSC_PORT":` + strconv.Itoa(osc) + `,"OSC_TRANSPORT":"UDP","EXTENSIONS":{"ACCESS":true,"DESCRIPTION":true,"VALUE":false}}`,
		"/chatbox/typing":             `{"FULL_PATH":"/chatbox/typing","DESCRIPTION":"The agent works.","ACCESS":1,"TYPE":"T"}`,
		"/avatar/change?TYPE":         `{"TYPE":"s"}`,
		"/chatbox/typing?DESCRIPTION": `{"DESCRIPTION":"The agent works."}`,
	} {
		if status, text := ask(http.MethodGet, path); status != http.StatusOK || text != want {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	for request, want := range map[string]int{"GET /nowhere": 404, "GET /avatar/change/more": 404, "GET /chatbox/typing?VALUE": 204,
		"GET /?x": 204, "POST /": 405, "PUT /chatbox/input": 405} {
		method, path, _ := strings.Cut(request, " ")
		if status, text := ask(method, path); status != want || text != "" {
			t.Errorf("%s: %d %s, want %d", request, status, text, want)
		}
	}
	must.Succeed(t, h.relays.Apply(nil))
	h.eventually("it is not offered any more", func() bool { return len(h.relays.Offers()) == 0 })
	h.eventually("it is not served any more", func() bool {
		conn, err := net.Dial("tcp", at[len("http://"):])
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

// TestOSCQuerySlowClient tests that a client that never ends its request is disconnected.
func TestOSCQuerySlowClient(t *testing.T) {
	t.Parallel()
	l := newListener(t, "")
	h := newConnected(t, Target{Kind: "vrchat", URL: "udp://" + l.address})
	port, _ := h.offersOf(t)
	conn := must.Value(net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)))(t)
	defer conn.Close()
	must.Succeed(t, conn.SetDeadline(time.Now().Add(3*oscTimeout)))
	must.Value(conn.Write([]byte("GET / HTTP/1.1\r\nX: ")))(t)
	if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("it is still connected")
	}
}

// TestOSCQueryWithoutVRChat tests that relays of other kinds announce no services, and that nothing is served if the
// appliance announces nothing.
func TestOSCQueryWithoutVRChat(t *testing.T) {
	l := newListener(t, "")
	h := newConnected(t, Target{Kind: "vmc", URL: "udp://" + l.address})
	if offers := h.relays.Offers(); len(offers) > 0 {
		t.Errorf("it offers %+v", offers)
	}
	p := must.Value(newVRChat(&programConfig{words: wordsOf(t, vrchatKind(), nil), network: unannounced{}, log: h.relays.o.Log}))(t)
	p.(background).serve(t.Context())
	if offers := p.(background).offers(); len(offers) > 0 {
		t.Errorf("it offers %+v", offers)
	}
}

// unannounced is the network of an appliance that announces nothing.
type unannounced struct{ network }

func (unannounced) Instance() (name, host string, announced bool) { return "perch-c0ffee", "", false }

// TestVRChatAnswers tests that a message from VRChat's machine removes the note that delivery is uncertain.
func TestVRChatAnswers(t *testing.T) {
	l := newListener(t, "")
	h := newConnected(t, Target{Kind: "vrchat", URL: "udp://" + l.address})
	_, osc := h.offersOf(t)
	if note := h.note(); !strings.Contains(note, "has no responses") {
		t.Errorf("at first its note is %q", note)
	}
	vrchat := must.Value(net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", osc)))(t)
	defer vrchat.Close()
	h.eventually("no note", func() bool {
		_, err := vrchat.Write([]byte(oscMessage("/avatar/parameters/Viseme", oscInt(1))))
		return err == nil && h.note() == ""
	})
}

// packetConn records packets.
type packetConn struct {
	net.Conn
	packets []string
}

func (c *packetConn) Write(packet []byte) (int, error) {
	c.packets = append(c.packets, string(packet))
	return len(packet), nil
}

func (*packetConn) SetWriteDeadline(time.Time) error { return nil }

// TestChangedAvatar tests that everything is sent again when the user changes the avatar.
func TestChangedAvatar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, q := &packetConn{}, &oscQuery{received: vrchatAvatar}
		q.expect(netip.MustParseAddr("192.168.1.20"))
		l := &vrchatLink{datagrams: &datagrams{conn: c}, words: wordsOf(t, vrchatKind(), nil), query: q, note: func(error) {}, sent: map[string]oscValue{}}
		scene := Scene{State: agent.Thinking}
		must.Succeed(t, l.update(t.Context(), scene, Scene{}))
		must.Succeed(t, l.refresh(t.Context(), scene))
		all := slices.Clone(c.packets)
		for _, sender := range []string{"192.168.1.9", "192.168.1.20"} {
			c.packets = nil
			time.Sleep(vrchatTick)
			q.record(netip.MustParseAddr(sender), true)
			must.Succeed(t, l.refresh(t.Context(), scene))
			isAll := len(c.packets) > 8 && slices.Contains(all, c.packets[0])
			if want := sender == "192.168.1.20"; isAll != want {
				t.Errorf("after a message from %s it is told %q", sender, c.packets)
			}
		}
	})
}

// TestOSCQueryPeers tests that only messages from the connected program's machine are recorded, however many
// messages other machines send.
func TestOSCQueryPeers(t *testing.T) {
	q := &oscQuery{received: vrchatAvatar}
	conn := must.Value(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	ended := make(chan struct{})
	go func() { q.receive(conn); close(ended) }()
	defer func() { conn.Close(); <-ended }()
	sender := must.Value(net.Dial("udp", conn.LocalAddr().String()))(t)
	defer sender.Close()
	send := func(packets ...string) {
		for _, p := range packets {
			_, err := sender.Write([]byte(p))
			must.Succeed(t, err)
		}
	}
	change := oscMessage(vrchatAvatar, oscText("avtr_1"))
	news := func() string { heard, isNew := q.news(); return fmt.Sprint(heard, " ", isNew) }
	for _, other := range []netip.Addr{{}, netip.MustParseAddr("192.0.2.1")} {
		q.expect(other)
		send(change, "x", change)
		q.record(netip.MustParseAddr("192.0.2.9"), true)
		if got := news(); got != "false false" {
			t.Errorf("from a stranger while %v is expected: %s", other, got)
		}
	}
	q.expect(netip.MustParseAddr("127.0.0.1"))
	send("x", oscMessage("/avatar/changes", oscText("x")), oscMessage("/avatar/parameters/Mouth", oscFloat(1)))
	if !waittest.Until(time.Minute, func() bool { heard, isNew := q.news(); return heard && !isNew }) {
		t.Error("a message is not heard")
	}
	send(change)
	if !waittest.Until(time.Minute, func() bool { _, isNew := q.news(); return isNew }) {
		t.Error("a change of the avatar is not heard")
	}
	if got := news(); got != "true false" {
		t.Errorf("after the change: %s", got)
	}
}

// TestVRChatIsFound tests that with the URL "find", Perch connects to the machine that announces VRChat.
func TestVRChatIsFound(t *testing.T) {
	l := newListener(t, "")
	at := netip.MustParseAddrPort(l.address)
	mine := mdns.Found{Instance: "VRChat-Client-ABC123", Port: int(at.Port()), Sender: at.Addr(), Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.7")}}
	h := newHarness(t, Target{Kind: "vrchat", URL: "find"})
	h.eventually("none is there", func() bool { return strings.Contains(h.note(), "no VRChat announces itself") })
	abroad, chataigne := mine, mine
	abroad.Sender, chataigne.Instance = netip.MustParseAddr("203.0.113.5"), "Chataigne"
	h.announce(abroad, chataigne, mine)
	h.eventually("it is connected", func() bool { return h.relays.List()[0].OK })
	if note := h.note(); !strings.HasPrefix(note, "found at udp://"+l.address) {
		t.Errorf("its note is %q", note)
	}
	h.happens(robotA, "s", turn()[:4]...)
	h.eventually("a state", func() bool { return l.has("/avatar/parameters/Stackchan/State 2") })
}

// TestWhichVRChat tests that findAddress returns an error if several VRChats are announced, unless one of them was
// found before.
func TestWhichVRChat(t *testing.T) {
	h := &harness{}
	p := &vrchat{programConfig: &programConfig{network: h}}
	announced := func(instance, sender string, port int) mdns.Found {
		return mdns.Found{Instance: instance, Sender: netip.MustParseAddr(sender), Port: port}
	}
	mine, other := announced("VRChat-Client-A", "192.168.1.20", 9000), announced("VRChat-Client-B", "192.168.1.9", 9000)
	for _, c := range []struct {
		others    []mdns.Found
		want, err string
	}{
		{nil, "", "no VRChat announces itself"},
		{[]mdns.Found{announced("VRChat-Client-A", "8.8.8.8", 9000), announced("VRChat-Client-A", "192.168.1.20", 80),
			announced("VRChat-Client-A", "fe80::1%eth0", 9000), announced("Other", "192.168.1.20", 9000)}, "", "no VRChat announces itself"},
		{[]mdns.Found{mine, other}, "", "several VRChats announce themselves on this network: udp://192.168.1.20:9000, udp://192.168.1.9:9000; set url"},
		{[]mdns.Found{mine, mine}, "udp://192.168.1.20:9000", ""},
		{[]mdns.Found{other, mine}, "udp://192.168.1.20:9000", ""},
		{[]mdns.Found{other}, "udp://192.168.1.9:9000", ""},
	} {
		h.announce(c.others...)
		got, err := p.findAddress(t.Context())
		if got != c.want || !strings.Contains(text(err), c.err) || (err == nil) != (c.err == "") {
			t.Errorf("%v: %q, %v", c.others, got, err)
		}
	}
}

// TestVRChatElsewhere tests that a VRChat on another machine is named if none listens at the default address, and
// that Perch browses only once in vrchatHintEvery.
func TestVRChatElsewhere(t *testing.T) {
	h := &harness{}
	h.announce(mdns.Found{Instance: "VRChat-Client-A", Sender: netip.MustParseAddr("192.168.1.20"), Port: 9000})
	p := &vrchat{programConfig: &programConfig{Target: Target{URL: vrchatURL}, network: h}}
	if note := text(p.findElsewhere(t.Context())); !strings.HasSuffix(note, "if that machine is yours, set url: udp://192.168.1.20:9000") {
		t.Errorf("its note is %q", note)
	}
	h.announce()
	if p.findElsewhere(t.Context()) == nil {
		t.Error("it is looked for each time")
	}
	p.hintUntil = time.Time{}
	if err := p.findElsewhere(t.Context()); err != nil {
		t.Error(err)
	}
	p.URL = "udp://192.168.1.7:9000"
	h.announce(mdns.Found{Instance: "VRChat-Client-A", Sender: netip.MustParseAddr("192.168.1.20"), Port: 9000})
	if err := p.findElsewhere(t.Context()); err != nil {
		t.Errorf("with an address of the owner: %v", err)
	}
	for url, valid := range map[string]bool{"find": true, "search": false, "udp://find": false} {
		if err := Check(Target{Kind: "vrchat", URL: url}, nil); (err == nil) != valid {
			t.Errorf("%s: %v", url, err)
		}
	}
	if Check(Target{Kind: "vmc", URL: "find"}, nil) == nil {
		t.Error("a VMC program is looked for")
	}
}

func TestInstanceName(t *testing.T) {
	appliance := strings.Repeat("p", 50) + "-c0ffee12"
	for name, want := range map[string]string{"vrchat": appliance, "at work": appliance + "-at-", "é": appliance + "--"} {
		if got := instanceName(appliance, Target{Kind: "vrchat", Name: name}); got != want || len(got) > 63 {
			t.Errorf("%s: %s", name, got)
		}
	}
}
