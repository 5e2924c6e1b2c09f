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
	"perch/voice"
	"perch/voice/wyoming"
)

// search searches the network for servers that an appliance could use.
type search struct {
	browse   func(ctx context.Context, kind string) ([]mdns.Found, error)
	networks func() []netip.Prefix // returns this machine's networks
	http     *http.Client
	// jobs reports whether a Wyoming server can recognize and synthesize speech.
	jobs func(ctx context.Context, url string) (hears, speaks bool)
	log  *slog.Logger
}

// Default address of Ollama.
const (
	ollamaPort = "11434"
	ollamaURL  = "http://127.0.0.1:" + ollamaPort
)

// Limits of a search. The caller allows about four seconds, so that after browseTimeout there is time to
// request the models of the servers that were found.
const (
	browseTimeout = 2500 * time.Millisecond
	modelsTimeout = 1400 * time.Millisecond
	maxServers    = 20        // of each kind
	maxModels     = 100       // of one server
	maxName       = 100       // bytes
	maxURL        = 200       // bytes
	maxTags       = 512 << 10 // bytes of the list of models
)

// Search returns the servers on the network that were found before ctx ended.
func (n *Network) Search(ctx context.Context) admin.Found {
	transport := remote.NewTransport()
	transport.Proxy, transport.DisableKeepAlives = nil, true // a proxy would search another network
	transport.DialContext = (&net.Dialer{Timeout: modelsTimeout}).DialContext
	s := search{networks: networks, http: remote.NewHTTP(transport), log: n.o.Log,
		browse: n.Browse, jobs: wyomingJobs}
	return s.run(ctx)
}

// WyomingServers returns the addresses of the Wyoming servers on the network, without this
// appliance.
func (n *Network) WyomingServers(ctx context.Context) ([]string, error) {
	return n.others(mdns.Wyoming).Targets(ctx)
}

// others returns a search for servers of a kind that leaves out this appliance.
func (n *Network) others(kind string) mdns.Search {
	return mdns.Search{Type: kind, Except: n.self(), Interfaces: n.o.Interfaces}
}

// run searches for announced servers, and for an Ollama on this machine and on each machine that it finds.
func (s search) run(ctx context.Context) admin.Found {
	found := admin.Found{Wyoming: []admin.FoundServer{}, Ollama: []admin.FoundModels{}, HomeAssistant: []admin.FoundServer{}}
	var requests, browsing sync.WaitGroup
	var localModels []admin.FoundModels
	requests.Go(func() { localModels = s.models(ctx, ollamaURL) })
	limited, cancel := context.WithTimeout(ctx, browseTimeout)
	defer cancel()
	var wyoming, homeAssistants []mdns.Found
	browsing.Go(func() { wyoming = s.announced(limited, mdns.Wyoming) })
	browsing.Go(func() { homeAssistants = s.announced(limited, mdns.HomeAssistant) })
	browsing.Wait()
	var hosts []string
	for _, server := range wyoming {
		if at, ok := target(server); ok {
			found.Wyoming = append(found.Wyoming, admin.FoundServer{Name: shownName(server), URL: "tcp://" + at.String()})
			hosts = append(hosts, at.Addr().String())
		}
	}
	networks := s.networks()
	for _, server := range homeAssistants {
		server.Addrs = slices.DeleteFunc(server.Addrs, func(a netip.Addr) bool {
			return !slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(a.Unmap()) })
		})
		if at, ok := target(server); ok {
			found.HomeAssistant = append(found.HomeAssistant, admin.FoundServer{Name: shownName(server), URL: homeAssistantURL(server, at)})
			hosts = append(hosts, at.Addr().String())
		}
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	hostModels := make([][]admin.FoundModels, len(hosts))
	for i, host := range hosts {
		if base := "http://" + net.JoinHostPort(host, ollamaPort); base != ollamaURL {
			requests.Go(func() { hostModels[i] = s.models(ctx, base) })
		}
	}
	for i := range found.Wyoming {
		requests.Go(func() {
			limited, cancel := context.WithTimeout(ctx, modelsTimeout)
			defer cancel()
			found.Wyoming[i].Hears, found.Wyoming[i].Speaks = s.jobs(limited, found.Wyoming[i].URL)
		})
	}
	requests.Wait()
	for _, models := range append([][]admin.FoundModels{localModels}, hostModels...) {
		found.Ollama = append(found.Ollama, models...)
	}
	return found
}

// announced returns the announced servers of a kind, at most maxServers. It logs an error.
func (s search) announced(ctx context.Context, kind string) []mdns.Found {
	servers, err := s.browse(ctx, kind)
	if err != nil {
		s.log.Info("the network cannot be searched", "kind", kind, "err", err)
	}
	return servers[:min(len(servers), maxServers)]
}

// target returns the first address of a server that can be written in a URL and is private,
// link-local or loopback. Anybody on the network can announce any address, and an announcement must
// not make this machine connect to the internet.
func target(f mdns.Found) (netip.AddrPort, bool) {
	for _, a := range f.Addrs {
		if a = a.Unmap(); a.Zone() == "" && (a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsLoopback()) {
			return netip.AddrPortFrom(a, uint16(f.Port)), f.Port > 0 && f.Port < 1<<16
		}
	}
	return netip.AddrPort{}, false
}

// shownName returns the name that a server announces, made safe and short enough to display.
func shownName(f mdns.Found) string {
	return plain.Clip(plain.Text(cmp.Or(f.TXT["location_name"], f.Instance)), maxName)
}

// homeAssistantURL returns the URL that a Home Assistant announces, if announcedHost accepts its host and it is a plain
// http or https URL of at most maxURL bytes. Otherwise it returns a URL with the address at. The owner will send a
// token to the URL, so a host elsewhere is not accepted.
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

// announcedHost reports whether host is one of the announced addresses, or is the announced host name and ends in
// .local. Names in .local are looked up only on this network.
func announcedHost(f mdns.Found, host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return slices.Contains(f.Addrs, a)
	}
	return strings.EqualFold(host, f.Host) && strings.HasSuffix(strings.ToLower(host), ".local")
}

// models returns the models of the Ollama at a base URL, or nil if no Ollama responds there.
func (s search) models(ctx context.Context, base string) []admin.FoundModels {
	ctx, cancel := context.WithTimeout(ctx, modelsTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/tags", nil)
	if err != nil {
		return nil
	}
	response, err := s.http.Do(request)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	var tags struct {
		Models *[]struct{ Name string }
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxTags))
	if err != nil || response.StatusCode != http.StatusOK || json.Unmarshal(body, &tags) != nil || tags.Models == nil {
		return nil // not an Ollama
	}
	found := admin.FoundModels{URL: base, Models: []string{}}
	for _, m := range *tags.Models {
		// A name that was changed for display would not select the model, so unsafe names are left
		// out.
		if m.Name != "" && m.Name == plain.Clip(plain.Text(m.Name), maxName) && len(found.Models) < maxModels {
			found.Models = append(found.Models, m.Name)
		}
	}
	return []admin.FoundModels{found}
}

// wyomingJobs implements search.jobs. It returns false for a server that does not respond.
func wyomingJobs(ctx context.Context, url string) (hears, speaks bool) {
	server, err := wyoming.New(wyoming.Options{Address: url, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return false, false
	}
	return server.CheckRecognize(ctx, voice.Options{}) == nil, server.CheckSynthesize(ctx, voice.Options{}) == nil
}

// networks returns the networks of this machine's interfaces.
func networks() (prefixes []netip.Prefix) {
	addresses, _ := net.InterfaceAddrs() // none after an error
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			prefixes = append(prefixes, p)
		}
	}
	return prefixes
}
