package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"perch/gateway/httpserver"
	"perch/gateway/mdns"
)

// oscQuery makes Perch known to OSC programs as the OSCQuery proposal describes
// (https://github.com/Vidvox/OSCQueryProposal): an HTTP server describes the messages that a relay
// sends and receives, and mDNS announces the server. Everybody on the network may read the description,
// so it does not change and contains no values. VRChat then sends Perch what happens to the avatar.
type oscQuery struct {
	tree     *oscNode // node of the address "/"
	received string   // address whose messages news reports

	mu       sync.Mutex
	offered  []mdns.Offer // the HTTP server and the UDP port for messages; nil while serve does not run
	peer     netip.Addr   // machine whose messages are recorded; the zero Addr while no program is connected
	hasHeard bool         // whether peer has sent any message
	isNew    bool         // whether peer has sent a message with the address q.received since the last call of news
}

// oscNode describes an OSC address and the addresses below it.
type oscNode struct {
	Path        string              `json:"FULL_PATH"`
	Description string              `json:"DESCRIPTION,omitempty"`
	Access      int                 `json:"ACCESS"`
	Type        string              `json:"TYPE,omitempty"` // type tags of the arguments
	Contents    map[string]*oscNode `json:"CONTENTS,omitempty"`
}

// Values of oscNode.Access.
const (
	oscContainer = 0 // there are no messages with this address
	oscSent      = 1 // Perch sends messages with this address
	oscReceived  = 2 // Perch receives messages with this address
)

// add adds an address below n, which is the node of "/".
func (n *oscNode) add(address, types string, access int, description string) {
	path := ""
	for part := range strings.SplitSeq(strings.Trim(address, "/"), "/") {
		path += "/" + part
		if n.Contents == nil {
			n.Contents = map[string]*oscNode{}
		}
		if n.Contents[part] == nil {
			n.Contents[part] = &oscNode{Path: path}
		}
		n = n.Contents[part]
	}
	n.Type, n.Access, n.Description = types, access, description
}

// findNode returns the node of an address, or nil. n is the node of "/".
func (n *oscNode) findNode(address string) *oscNode {
	for part := range strings.SplitSeq(strings.Trim(address, "/"), "/") {
		if part != "" && n != nil {
			n = n.Contents[part]
		}
	}
	return n
}

// oscHost is the response to a query for HOST_INFO.
type oscHost struct {
	Name       string          `json:"NAME"`
	IP         string          `json:"OSC_IP,omitempty"`
	Port       int             `json:"OSC_PORT"`
	Transport  string          `json:"OSC_TRANSPORT"`
	Extensions map[string]bool `json:"EXTENSIONS"`
}

// ServeHTTP responds to queries. The path of a request is an OSC address. The query of its URL, if there is
// one, is the name of an attribute of the address's node, or HOST_INFO.
func (q *oscQuery) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	attribute, _, _ := strings.Cut(r.URL.RawQuery, "=")
	node := q.tree.findNode(r.URL.Path)
	var response any = node
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case attribute == "HOST_INFO":
		response = q.host(r)
	case node == nil:
		w.WriteHeader(http.StatusNotFound)
		return
	case attribute != "":
		var attributes map[string]json.RawMessage
		value, isSet := json.RawMessage(nil), false
		if json.Unmarshal(httpserver.Encode(node), &attributes) == nil {
			value, isSet = attributes[attribute]
		}
		if !isSet {
			w.WriteHeader(http.StatusNoContent) // the proposal's status for an attribute that a server does not support
			return
		}
		response = map[string]json.RawMessage{attribute: value}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(httpserver.Encode(response)) // fails only if the client has disconnected
}

// host returns the response to a query for HOST_INFO.
func (q *oscQuery) host(r *http.Request) oscHost {
	h := oscHost{Transport: "UDP", Extensions: map[string]bool{"ACCESS": true, "DESCRIPTION": true, "VALUE": false}}
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		h.IP = at.AddrPort().Addr().Unmap().WithZone("").String()
	}
	for _, o := range q.offers() {
		h.Name, h.Port = o.Instance, o.Port // the last offer is the one of the UDP port
	}
	return h
}

// Limits of oscQuery, for other machines on the network.
const (
	maxOSCHeader = 4 << 10         // bytes of the header of an HTTP request
	oscTimeout   = 5 * time.Second // for each part of a request and its response
	maxOSCRate   = 100             // messages per second that are examined
)

// serve serves OSCQuery over HTTP and receives messages over UDP, on free ports of a host, until ctx ends. If
// it cannot listen, it logs the error and returns. instance is the name to announce.
func (q *oscQuery) serve(ctx context.Context, instance, host string, log *slog.Logger) {
	at := net.JoinHostPort(host, "0")
	var listen net.ListenConfig
	tcp, err := listen.Listen(ctx, "tcp", at)
	if err != nil {
		log.Warn("OSC programs cannot find Perch by OSCQuery", "err", err)
		return
	}
	udp, err := listen.ListenPacket(ctx, "udp", at)
	if err != nil {
		_ = tcp.Close()
		log.Warn("OSC programs cannot find Perch by OSCQuery", "err", err)
		return
	}
	q.setOffers(mdns.Offer{Instance: instance, Type: mdns.OSCQuery, Port: portOf(tcp.Addr())},
		mdns.Offer{Instance: instance, Type: mdns.OSC, Port: portOf(udp.LocalAddr())})
	defer q.setOffers()
	server := &http.Server{Handler: q, ReadHeaderTimeout: oscTimeout, ReadTimeout: oscTimeout, WriteTimeout: oscTimeout, IdleTimeout: oscTimeout,
		MaxHeaderBytes: maxOSCHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(httpserver.LimitListener(tcp, log)) })
	running.Go(func() { q.receive(udp) })
	<-ctx.Done()
	_ = server.Close()
	_ = udp.Close()
	running.Wait()
}

func portOf(a net.Addr) int {
	at, _ := netip.ParseAddrPort(a.String())
	return int(at.Port())
}

func (q *oscQuery) setOffers(offers ...mdns.Offer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.offered = offers
}

func (q *oscQuery) offers() []mdns.Offer {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.offered
}

// receive receives messages until conn is closed.
func (q *oscQuery) receive(conn net.PacketConn) {
	limiter, packet, address := rate.NewLimiter(maxOSCRate, maxOSCRate), make([]byte, maxPacket), []byte(oscString(q.received))
	for {
		n, from, err := conn.ReadFrom(packet)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		isNew := bytes.HasPrefix(packet[:n], address)
		if sender, ok := from.(*net.UDPAddr); err == nil && ok && n > 0 && q.changesNews(isNew) && limiter.Allow() {
			q.record(sender.AddrPort().Addr().Unmap(), isNew)
		}
	}
}

// changesNews reports whether a message can change the result of news. isNew reports whether the
// message has the address q.received.
func (q *oscQuery) changesNews(isNew bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.peer.IsValid() && (!q.hasHeard || isNew && !q.isNew)
}

// record records a message if it is from q.peer. A program on this machine may send from any of this
// machine's addresses. isNew is as in changesNews.
func (q *oscQuery) record(sender netip.Addr, isNew bool) {
	isOwn := sender.IsLoopback() || isThisMachine(sender.AsSlice())
	q.mu.Lock()
	defer q.mu.Unlock()
	if sender == q.peer || q.peer.IsLoopback() && isOwn {
		q.hasHeard, q.isNew = true, q.isNew || isNew
	}
}

// expect sets the machine whose messages are recorded. With the zero Addr, none are recorded.
func (q *oscQuery) expect(peer netip.Addr) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.peer, q.hasHeard, q.isNew = peer, false, false
}

// news reports whether the peer has sent any message, and whether it has sent a message with the
// address q.received since the last call of news.
func (q *oscQuery) news() (hasHeard, isNew bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	isNew, q.isNew = q.isNew, false
	return q.hasHeard, isNew
}

// instanceName returns the name under which a relay announces its services. appliance is the instance name of
// the appliance.
func instanceName(appliance string, t Target) string {
	if t.Name == t.Kind {
		return appliance
	}
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '-'
	}, t.Name)
	return appliance + "-" + name[:min(len(name), maxLabel-1-len(appliance))]
}

// maxLabel is the maximum length of an instance name in bytes.
const maxLabel = 63
