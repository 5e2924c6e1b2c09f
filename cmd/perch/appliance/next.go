package appliance

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"perch/remote"
)

// nextSteps are what the owner does after the first start.
type nextSteps struct {
	name    string // base address by the appliance's name; empty where none can come by it
	numbers string // the same by this machine's address
	page    string // for a browser of this machine; empty where nothing answers
	named   string // flag that has the doctor look at the same appliance
}

const otaPath = "/xiaozhi/ota/"

func (n nextSteps) String() string {
	var b strings.Builder
	switch {
	case n.name == "" && n.numbers == "":
		b.WriteString("No robot can come: only this machine reaches the addresses in listen.\n")
	case n.name == "" || n.numbers == "":
		fmt.Fprintf(&b, "Tell a robot this address once, as its Custom OTA URL:\n    %s\n", n.name+n.numbers+otaPath)
	default:
		fmt.Fprintf(&b, "Tell a robot this address once, as its Custom OTA URL:\n    %s\n", n.name+otaPath)
		fmt.Fprintf(&b, "or, where names that end in .local are not known, this one:\n    %s\n", n.numbers+otaPath)
	}
	if n.page != "" {
		fmt.Fprintf(&b, "In a browser of this machine:\n    %s\n", n.page)
		if n.name+n.numbers != "" {
			fmt.Fprintf(&b, "or, in any other, by the link that this prints:\n    perch open%s\n", n.named)
		}
	}
	fmt.Fprintf(&b, "What works and what does not:\n    perch doctor%s\n", n.named)
	return b.String()
}

// namedWithin is how long the name is waited for, which is asked for on the
// network before it is taken.
const namedWithin = 5 * time.Second

// Next is where what to do next is written.
type Next struct {
	Out   io.Writer
	Flags string // flags that lead another command to the same appliance
}

// printNext writes what to do next, once the name is known.
func (a *Appliance) printNext(ctx context.Context) {
	wait, cancel := context.WithTimeout(ctx, namedWithin)
	defer cancel()
	for a.announcer != nil && a.announcer.Status().By == "" {
		if remote.Sleep(wait, 100*time.Millisecond) != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return
	}
	n := nextSteps{name: a.address(), named: a.Next.Flags}
	if port, ok := a.Doors.announced(); ok && a.Config().PublicURL == "" {
		n.numbers = byNumbers(a.Doors.Addresses(), port)
	}
	n.page = pageAt(ctx, append(a.Doors.At("local"), a.Doors.Addresses()...))
	fmt.Fprint(a.Next.Out, n) // an output that is closed loses it
}

// byNumbers is the base address of this machine on the network, without a name.
func byNumbers(listen []string, port int) string {
	for _, l := range listen {
		if at, err := netip.ParseAddrPort(l); err == nil && !at.Addr().IsUnspecified() && !at.Addr().IsLoopback() {
			return "http://" + at.String()
		}
	}
	// The address that a packet to elsewhere would have; none is sent. A machine
	// with containers has many that nothing on the network can reach.
	if c, err := net.Dial("udp4", "192.0.2.1:9"); err == nil {
		defer c.Close()
		if at, err := netip.ParseAddrPort(c.LocalAddr().String()); err == nil {
			return "http://" + net.JoinHostPort(at.Addr().String(), strconv.Itoa(port))
		}
	}
	own, _ := net.InterfaceAddrs() // without them there is the name
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast() {
			return "http://" + net.JoinHostPort(p.Addr().String(), strconv.Itoa(port))
		}
	}
	return ""
}

// pageAt is the address of the page for browsers of this machine, where one answers.
func pageAt(ctx context.Context, addresses []string) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for _, l := range addresses {
		host := dialable(l)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/", nil)
		if err != nil {
			continue
		}
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := client.Do(request)
		if err != nil {
			continue
		}
		_ = answer.Body.Close() // nothing of it is read
		if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
			continue
		}
		return "http://" + host + "/"
	}
	return ""
}
