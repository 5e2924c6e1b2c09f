package appliance

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"perch/gateway/admin"
	"perch/gateway/mdns"
)

// announcement publishes the appliance on the network.
type announcement struct {
	of     basics
	id     string
	doors  *doors
	also   []mdns.Offer    // besides the robots' door
	mdns   *mdns.Announcer // nil where nothing is announced
	silent string          // why not
}

// open makes the announcer, where there is something to announce.
func (a *announcement) open() error {
	port, reachable := a.doors.announced()
	switch {
	case !a.of.Config.MDNS.Enabled:
		a.silent = "turned off by mdns.enabled"
		return nil
	case !reachable:
		a.silent = "only this machine can reach the addresses in listen"
		return nil
	}
	var err error
	a.mdns, err = mdns.New(mdns.Options{
		Name: a.of.Config.Name, ID: a.id, Version: a.of.version, Port: port, Also: a.also, Interfaces: a.of.Config.MDNS.Interfaces, Log: a.of.Log,
	})
	return err
}

// run announces until ctx ends.
func (a *announcement) run(ctx context.Context) error {
	if a.mdns == nil {
		return nil
	}
	return a.mdns.Run(ctx)
}

// findWyoming looks for Wyoming servers on the network that are not this one.
func (a *announcement) findWyoming(ctx context.Context) ([]string, error) {
	own := mdns.Options{Name: a.of.Config.Name, ID: a.id}.Instance()
	return mdns.Search{Type: mdns.Wyoming, Except: []string{own}, Interfaces: a.of.Config.MDNS.Interfaces}.Targets(ctx)
}

// host is the name the appliance goes by on the network, and the one it was to
// have where another machine has that.
func (a *announcement) host() (host, taken string) {
	if a.mdns == nil {
		return "", ""
	}
	s := a.mdns.Status()
	if s.By != mdns.ByNobody {
		host = s.Host
	}
	if s.Renamed() {
		taken = s.Wanted
	}
	return host, taken
}

// address is where a browser on the owner's network finds this appliance, and
// empty where none can.
func (a *announcement) address() string {
	if a.of.Config.PublicURL != "" {
		return a.of.Config.PublicURL
	}
	port, reachable := a.doors.announced()
	if !reachable || !a.of.Config.MDNS.Enabled {
		return ""
	}
	host := a.of.Config.Name + ".local"
	if found, _ := a.host(); found != "" {
		host = found
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(port))
}

// NotAnnounced begins the note of an appliance that is not to be found.
const NotAnnounced = "not announced: "

// condition is the condition of the name.
func (a *announcement) condition() admin.Part {
	if a.mdns == nil {
		return admin.Part{Name: "mdns", OK: true, Note: NotAnnounced + a.silent}
	}
	return nameOf(a.mdns.Status())
}

// nameOf is the condition of a name. A name that another machine has does
// not work: robots that know it connect to that machine.
func nameOf(s mdns.Status) admin.Part {
	part := admin.Part{Name: "mdns", Note: fmt.Sprintf("%s, answered by %s", s.Host, s.By)}
	switch {
	case s.By == mdns.ByNobody:
		part.Note = s.Reason
	case s.Renamed():
		part.Note += ": " + TakenBy(s.Wanted, s.Rival)
	default:
		part.OK = true
	}
	return part
}

// TakenBy is a sentence: another machine has a name, and the cure.
func TakenBy(name string, rival netip.Addr) string {
	at := ""
	if rival.IsValid() {
		at = " (" + rival.String() + ")"
	}
	return fmt.Sprintf(
		"another machine%s has %s, and robots that were told that name go there; give one of the two another name (name in the configuration) and restart it",
		at, name)
}

// reachable reports whether robots can come to an address.
func reachable(a net.Addr) (port int, ok bool) {
	ap, err := netip.ParseAddrPort(a.String())
	return int(ap.Port()), err == nil && !ap.Addr().IsLoopback()
}
