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

// openAnnouncer makes the announcer, where there is something to announce.
func (a *Appliance) openAnnouncer() error {
	port, reachable := a.Doors.announced()
	switch {
	case !a.Config().MDNS.Enabled:
		a.silent = "not announced: turned off by mdns.enabled"
	case !reachable:
		a.silent = "not announced: only this machine can reach the addresses in listen"
	default:
		a.announcer = mdns.New(mdns.Options{Name: a.Config().Name, ID: a.ID, Version: a.Version, Port: port, Wyoming: a.wyomingPort,
			Interfaces: a.Config().MDNS.Interfaces, Log: a.Log})
	}
	return nil
}

// announce publishes the appliance on the network until ctx ends.
func (a *Appliance) announce(ctx context.Context) error {
	if a.announcer == nil {
		return nil
	}
	return a.announcer.Run(ctx)
}

// findWyoming looks for Wyoming servers on the network that are not this one.
func (a *Appliance) findWyoming(ctx context.Context) ([]string, error) {
	own := mdns.Options{Name: a.Config().Name, ID: a.ID}.Instance()
	return mdns.Search{Type: mdns.Wyoming, Except: own, Interfaces: a.Config().MDNS.Interfaces}.Targets(ctx)
}

// host is the name the appliance goes by on the network, and the one it was to
// have where another machine has that.
func (a *Appliance) host() (host, taken string) {
	if a.announcer == nil {
		return "", ""
	}
	s := a.announcer.Status()
	if s.By != "" {
		host = s.Host
	}
	if s.Renamed() {
		taken = s.Wanted
	}
	return host, taken
}

// address is where a browser on the owner's network finds this appliance, and
// empty where none can.
func (a *Appliance) address() string {
	if a.Config().PublicURL != "" {
		return a.Config().PublicURL
	}
	port, reachable := a.Doors.announced()
	if !reachable || !a.Config().MDNS.Enabled {
		return ""
	}
	host := a.Config().Name + ".local"
	if found, _ := a.host(); found != "" {
		host = found
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(port))
}

// NotAnnounced begins the note of an appliance that is not to be found.
const NotAnnounced = "not announced: "

// announced is the condition of the name.
func (a *Appliance) announced() admin.Part {
	if a.announcer == nil {
		return admin.Part{Name: "mdns", OK: true}.Saying(a.silent)
	}
	return nameOf(a.announcer.Status())
}

// nameOf is the condition of a name. A name that another machine has does
// not work: robots that know it connect to that machine.
func nameOf(s mdns.Status) admin.Part {
	part := admin.Part{Name: "mdns"}
	switch {
	case s.By == "":
		return part.Saying(s.Reason.Error())
	case s.Renamed():
		return part.Saying(fmt.Sprintf("%s, answered by %s: %v", s.Host, s.By, TakenBy(s.Wanted, s.Rival)))
	}
	part.OK = true
	return part.Saying(fmt.Sprintf("%s, answered by %s", s.Host, s.By))
}

// TakenBy is a sentence: another machine has a name, and the cure.
func TakenBy(name string, rival netip.Addr) string {
	if !rival.IsValid() {
		return fmt.Sprintf("another machine has %s, and robots that were told that name go there; "+
			"give one of the two another name (name in the configuration) and restart it", name)
	}
	return fmt.Sprintf("another machine (%s) has %s, and robots that were told that name go there; "+
		"give one of the two another name (name in the configuration) and restart it", rival, name)
}

// reachable reports whether robots can come to an address.
func reachable(a net.Addr) (port int, ok bool) {
	ap, err := netip.ParseAddrPort(a.String())
	return int(ap.Port()), err == nil && !ap.Addr().IsLoopback()
}
