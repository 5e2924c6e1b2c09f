package network

import (
	"cmp"
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

	"perch/gateway/mdns"
	"perch/gateway/owner/admin"
	"perch/plain"
	"perch/remote"
)

// search looks on the network for servers that an appliance could use.
type search struct {
	browse   func(ctx context.Context, kind string) ([]mdns.Found, error)
	networks func() []netip.Prefix // of this machine, with its own addresses
	http     *http.Client
	log      *slog.Logger
}

// Where Ollama listens by default.
const (
	ollamaPort = "11434"
	ollamaURL  = "http://127.0.0.1:" + ollamaPort
)

// Bounds of what is found: the time for announcements, so that some is left to ask the servers
// found, and what servers say of themselves.
const (
	browseWithin = 2500 * time.Millisecond
	modelsWithin = 1400 * time.Millisecond
	maxServers   = 20        // of a kind
	maxModels    = 100       // of one server
	maxName      = 100       // bytes
	maxURL       = 200       // bytes
	maxTags      = 512 << 10 // bytes of a list of models
)

// Search returns the servers that are found on the network when ctx ends, or before.
func (n *Network) Search(ctx context.Context) admin.Found {
	transport := remote.NewTransport()
	transport.Proxy, transport.DisableKeepAlives = nil, true // it is this network alone
	transport.DialContext = (&net.Dialer{Timeout: modelsWithin}).DialContext
	s := search{networks: networks, http: remote.NewHTTP(transport), log: n.o.Log,
		browse: func(ctx context.Context, kind string) ([]mdns.Found, error) { return n.others(kind).All(ctx) }}
	return s.run(ctx)
}

// WyomingServers returns the addresses of the Wyoming servers on the network that are not this
// appliance.
func (n *Network) WyomingServers(ctx context.Context) ([]string, error) {
	return n.others(mdns.Wyoming).Targets(ctx)
}

// others is the search for servers of a kind that are not this appliance.
func (n *Network) others(kind string) mdns.Search {
	own := mdns.Options{Name: n.o.Name, ID: n.o.ID}.Instance()
	return mdns.Search{Type: kind, Except: own, Interfaces: n.o.Interfaces}
}

// run returns what is found when ctx ends, or before.
func (s search) run(ctx context.Context) admin.Found {
	found := admin.Found{Wyoming: []admin.FoundServer{}, Ollama: []admin.FoundModels{}, HomeAssistant: []admin.FoundServer{}}
	var asking, browsing sync.WaitGroup
	var here []admin.FoundModels
	asking.Go(func() { here = s.models(ctx, ollamaURL) })
	limited, cancel := context.WithTimeout(ctx, browseWithin)
	defer cancel()
	var wyoming, homeAssistants []mdns.Found
	browsing.Go(func() { wyoming = s.announced(limited, mdns.Wyoming) })
	browsing.Go(func() { homeAssistants = s.announced(limited, mdns.HomeAssistant) })
	browsing.Wait()
	var hosts []string
	for _, one := range wyoming {
		if at, ok := target(one); ok {
			found.Wyoming = append(found.Wyoming, admin.FoundServer{Name: shownName(one), URL: "tcp://" + at.String()})
			hosts = append(hosts, at.Addr().String())
		}
	}
	near := s.networks()
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
		if at := "http://" + net.JoinHostPort(host, ollamaPort); at != ollamaURL {
			asking.Go(func() { there[i] = s.models(ctx, at) })
		}
	}
	asking.Wait()
	for _, models := range append([][]admin.FoundModels{here}, there...) {
		found.Ollama = append(found.Ollama, models...)
	}
	return found
}

// announced returns the servers of a kind, the first maxServers by their name.
func (s search) announced(ctx context.Context, kind string) []mdns.Found {
	all, err := s.browse(ctx, kind)
	if err != nil {
		s.log.Info("the network cannot be searched", "kind", kind, "err", err)
	}
	return all[:min(len(all), maxServers)]
}

// target returns the first address of a server that belongs to a home network and can be
// written in a URL. Anybody on the network can announce anything: this machine connects to
// no other network for that.
func target(f mdns.Found) (netip.AddrPort, bool) {
	for _, a := range f.Addrs {
		if a = a.Unmap(); a.Zone() == "" && (a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsLoopback()) {
			return netip.AddrPortFrom(a, uint16(f.Port)), f.Port > 0 && f.Port < 1<<16
		}
	}
	return netip.AddrPort{}, false
}

// shownName returns what a server calls itself.
func shownName(f mdns.Found) string {
	return plain.Clip(plain.Text(cmp.Or(f.TXT["location_name"], f.Instance)), maxName)
}

// homeAssistantURL returns where Home Assistant says it is, where that is an address or the
// host of the announcement itself, or else where it answers. The owner gives that address a
// token, and any other name in an announcement may be anywhere.
func homeAssistantURL(f mdns.Found, at netip.AddrPort) string {
	for _, key := range []string{"internal_url", "base_url"} {
		u, err := url.Parse(f.TXT[key])
		if err == nil && announcedHost(f, u.Hostname()) && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && u.RawQuery == "" &&
			u.Fragment == "" && len(u.String()) <= maxURL {
			return strings.TrimRight(u.String(), "/")
		}
	}
	return "http://" + net.JoinHostPort(at.Addr().String(), strconv.Itoa(int(at.Port())))
}

// announcedHost reports whether an announcement has an address record for a host: it is its
// address, or its name, which is looked up on this network alone.
func announcedHost(f mdns.Found, host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return slices.Contains(f.Addrs, a)
	}
	return strings.EqualFold(host, f.Host) && strings.HasSuffix(strings.ToLower(host), ".local")
}

// models returns those of an Ollama, and nothing where none answers.
func (s search) models(ctx context.Context, at string) []admin.FoundModels {
	ctx, cancel := context.WithTimeout(ctx, modelsWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/api/tags", nil)
	if err != nil {
		return nil
	}
	answer, err := s.http.Do(request)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	var tags struct {
		Models *[]struct{ Name string }
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxTags))
	if err != nil || answer.StatusCode != http.StatusOK || json.Unmarshal(body, &tags) != nil || tags.Models == nil {
		return nil // it is something else
	}
	found := admin.FoundModels{URL: at, Models: []string{}}
	for _, m := range *tags.Models {
		// A name that is changed would be another model's.
		if m.Name != "" && m.Name == plain.Clip(plain.Text(m.Name), maxName) && len(found.Models) < maxModels {
			found.Models = append(found.Models, m.Name)
		}
	}
	return []admin.FoundModels{found}
}

// networks returns the networks that this machine is on, with its own addresses.
func networks() (all []netip.Prefix) {
	own, _ := net.InterfaceAddrs() // without them it is on none
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, p)
		}
	}
	return all
}
