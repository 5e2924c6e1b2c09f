package appliance

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"perch/gateway/admin"
	"perch/gateway/mdns"
	"perch/plain"
	"perch/remote"
)

// finder looks on the network for what an appliance could use.
type finder struct {
	search func(ctx context.Context, kind string) ([]mdns.Found, error)
	// networks are those that this machine is on, with its own addresses.
	networks func() []netip.Prefix
	own      string // where Ollama is on this machine
	port     string // where it is on others
	http     *http.Client
	log      *slog.Logger
}

// Where Ollama listens unless it is told otherwise.
const (
	ollamaPort = "11434"
	ollamaHere = "http://127.0.0.1:" + ollamaPort
)

// Bounds of what is found: the time for announcements, so that some is left to ask
// those who were found, and what others say of themselves.
const (
	announcedWithin = 2500 * time.Millisecond
	modelsWithin    = 1400 * time.Millisecond
	mostFound       = 20        // servers of a kind
	mostModels      = 100       // of one server
	mostFoundName   = 100       // bytes
	mostFoundURL    = 200       // bytes
	mostTags        = 512 << 10 // bytes of a list of models
)

// newFinder returns the search of this appliance.
func (a *Appliance) newFinder() finder {
	transport := remote.NewTransport()
	transport.Proxy, transport.DisableKeepAlives = nil, true // it is this network alone
	transport.DialContext = (&net.Dialer{Timeout: modelsWithin}).DialContext
	own := mdns.Options{Name: a.Config().Name, ID: a.ID}.Instance()
	return finder{networks: networks, own: ollamaHere, port: ollamaPort, http: remote.NewHTTP(transport), log: a.Log,
		search: func(ctx context.Context, kind string) ([]mdns.Found, error) {
			return mdns.Search{Type: kind, Except: own, Interfaces: a.Config().MDNS.Interfaces}.All(ctx)
		}}
}

// find returns what it has found when ctx ends, or before.
func (f finder) find(ctx context.Context) admin.Found {
	found := admin.Found{Wyoming: []admin.FoundServer{}, Ollama: []admin.FoundModels{}, HomeAssistant: []admin.FoundServer{}}
	var asking sync.WaitGroup
	var here []admin.FoundModels
	asking.Go(func() { here = f.models(ctx, f.own) })
	announced, cancel := context.WithTimeout(ctx, announcedWithin)
	defer cancel()
	var wyoming, homeAssistants []mdns.Found
	var searching sync.WaitGroup
	searching.Go(func() { wyoming = f.announced(announced, mdns.Wyoming) })
	searching.Go(func() { homeAssistants = f.announced(announced, mdns.HomeAssistant) })
	searching.Wait()
	var hosts []string
	for _, one := range wyoming {
		if at, ok := target(one); ok {
			found.Wyoming = append(found.Wyoming, admin.FoundServer{Name: shownName(one), URL: "tcp://" + at.String()})
			hosts = append(hosts, at.Addr().String())
		}
	}
	near := f.networks()
	for _, one := range homeAssistants {
		one.Addrs = slices.DeleteFunc(one.Addrs, func(a netip.Addr) bool {
			return !slices.ContainsFunc(near, func(n netip.Prefix) bool { return n.Contains(a.Unmap()) })
		})
		if at, ok := target(one); ok {
			found.HomeAssistant = append(found.HomeAssistant, admin.FoundServer{Name: shownName(one), URL: homeAssistantURL(one, at)})
			hosts = append(hosts, at.Addr().String())
		}
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	there := make([][]admin.FoundModels, len(hosts))
	for i, host := range hosts {
		if at := "http://" + net.JoinHostPort(host, f.port); at != f.own {
			asking.Go(func() { there[i] = f.models(ctx, at) })
		}
	}
	asking.Wait()
	for _, models := range append([][]admin.FoundModels{here}, there...) {
		found.Ollama = append(found.Ollama, models...)
	}
	return found
}

// announced are the servers of a kind, the first mostFound by their name.
func (f finder) announced(ctx context.Context, kind string) []mdns.Found {
	all, err := f.search(ctx, kind)
	if err != nil {
		f.log.Info("the network cannot be searched", "kind", kind, "err", err)
	}
	return all[:min(len(all), mostFound)]
}

// target is the first address of a server that is one of a home network, and may be
// written in a URL. Anybody on the network announces what he likes: this machine asks
// no other network for him.
func target(f mdns.Found) (netip.AddrPort, bool) {
	for _, a := range f.Addrs {
		if a = a.Unmap(); a.Zone() == "" && (a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsLoopback()) {
			return netip.AddrPortFrom(a, uint16(f.Port)), f.Port > 0 && f.Port < 1<<16
		}
	}
	return netip.AddrPort{}, false
}

// shownName is what a server calls itself.
func shownName(f mdns.Found) string {
	name := f.TXT["location_name"]
	if name == "" {
		name = f.Instance
	}
	return plain.Clip(plain.Text(name), mostFoundName)
}

// homeAssistantURL is where Home Assistant says it is, where that is an address or the host
// of the announcement itself, or else where it answers. The owner gives that address a
// token: what else an announcement names may be anywhere.
func homeAssistantURL(f mdns.Found, at netip.AddrPort) string {
	for _, key := range []string{"internal_url", "base_url"} {
		u, err := url.Parse(f.TXT[key])
		if err == nil && announcedHost(f, u.Hostname()) && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && u.RawQuery == "" &&
			u.Fragment == "" && len(u.String()) <= mostFoundURL {
			return strings.TrimRight(u.String(), "/")
		}
	}
	return "http://" + net.JoinHostPort(at.Addr().String(), strconv.Itoa(int(at.Port())))
}

// announcedHost reports whether a host is one that an announcement has an address record
// for: its address, or its name, which is looked up on this network alone.
func announcedHost(f mdns.Found, host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return slices.Contains(f.Addrs, a)
	}
	return strings.EqualFold(host, f.Host) && strings.HasSuffix(strings.ToLower(host), ".local")
}

// models are those of an Ollama, and nothing where none answers.
func (f finder) models(ctx context.Context, at string) []admin.FoundModels {
	ctx, cancel := context.WithTimeout(ctx, modelsWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/api/tags", nil)
	if err != nil {
		return nil
	}
	answer, err := f.http.Do(request)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	var tags struct {
		Models *[]struct{ Name string }
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostTags))
	if err != nil || answer.StatusCode != http.StatusOK || json.Unmarshal(body, &tags) != nil || tags.Models == nil {
		return nil // it is something else
	}
	found := admin.FoundModels{URL: at, Models: []string{}}
	for _, m := range *tags.Models {
		// A name that is changed would be another model's.
		if m.Name != "" && m.Name == plain.Clip(plain.Text(m.Name), mostFoundName) && len(found.Models) < mostModels {
			found.Models = append(found.Models, m.Name)
		}
	}
	return []admin.FoundModels{found}
}

// networks are those that this machine is on, with its own addresses.
func networks() (all []netip.Prefix) {
	own, _ := net.InterfaceAddrs() // without them it is on none
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, p)
		}
	}
	return all
}
