package network

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/gateway/httpserver/httpservertest"
	"perch/gateway/mdns"
	"perch/gateway/owner/admin"
	"perch/must"
	"perch/remote"
	"perch/voice/wyoming"
)

func tags(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/tags" {
			_, _ = io.WriteString(w, text)
		}
	}
}

// announces returns a function for search.browse that always finds the same servers.
func announces(of map[string][]mdns.Found, err error) func(context.Context, string) ([]mdns.Found, error) {
	return func(_ context.Context, kind string) ([]mdns.Found, error) { return of[kind], err }
}

// server returns a server that announces itself at an address, with the keys and values txt.
func server(name, address string, txt ...string) mdns.Found {
	at := netip.MustParseAddrPort(address)
	f := mdns.Found{Instance: name, Port: int(at.Port()), Addrs: []netip.Addr{at.Addr()}, TXT: map[string]string{}}
	for i := 0; i < len(txt); i += 2 {
		f.TXT[txt[i]] = txt[i+1]
	}
	return f
}

// testSearch returns a search that reaches servers, which are given by their addresses, over pipes, so that the
// test runs in virtual time. asked returns the addresses to which the search has connected.
func testSearch(t *testing.T, servers map[string]http.HandlerFunc, browse func(context.Context, string) ([]mdns.Found, error)) (
	f search, asked func() []string) {
	var mu sync.Mutex
	var all []string
	transport := remote.NewTransport()
	transport.Proxy, transport.DisableKeepAlives = nil, true
	transport.DialContext = func(_ context.Context, _, address string) (net.Conn, error) {
		mu.Lock()
		all = append(all, address)
		mu.Unlock()
		if answer, is := servers[address]; is {
			return httpservertest.Serve(t, answer), nil
		}
		return nil, errors.New("nobody is there")
	}
	asked = func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Sorted(slices.Values(all))
	}
	return search{browse: browse, networks: networks, http: remote.NewHTTP(transport),
		jobs: func(_ context.Context, url string) (hears, speaks bool) {
			return strings.HasSuffix(url, ":10300"), false
		},
		log: slog.New(slog.DiscardHandler)}, asked
}

// TestFound: a search finds announced servers, and models on this machine and on the machines that were found.
// Hostile names and addresses are left out or made safe.
func TestFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const port = ":" + ollamaPort
		f, asked := testSearch(t, map[string]http.HandlerFunc{
			"127.0.0.1" + port: tags(`{"models":[{"name":"qwen3:4b"},{"name":"<img src=x onerror=alert(1)>"},{"name":"a\u0000b"},{"name":""},{}]}`),
			"127.0.0.2" + port: tags(`{"models":[]}`),
			"127.0.0.3" + port: tags(`<html>`),
			"127.0.0.4" + port: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://127.0.0.5"+port+"/api/tags", http.StatusFound)
			},
		}, announces(map[string][]mdns.Found{
			mdns.Wyoming: {
				server("faster-whisper", "127.0.0.2:10300"),
				server("<b>bold</b>\x1b[2J"+strings.Repeat("x", 300), "127.0.0.3:10200"),
				server("of another network", "203.0.113.7:10300"),
				server("of another interface", "[fe80::1%eth0]:10300"),
				server("in six", "[fd00::7]:10300"),
			},
			mdns.HomeAssistant: {
				server("x", "127.0.0.4:8123", "location_name", "Our house", "internal_url", "http://house.local:8123/"),
				server("script", "127.0.0.4:8124", "internal_url", "javascript:alert(1)", "base_url", "http://me:secret@house.local"),
			},
		}, nil))
		got := f.run(t.Context())
		want := admin.Found{
			Wyoming: []admin.FoundServer{{Name: "faster-whisper", URL: "tcp://127.0.0.2:10300", Hears: true},
				{Name: "<b>bold</b>[2J" + strings.Repeat("x", 86), URL: "tcp://127.0.0.3:10200"}, {Name: "in six", URL: "tcp://[fd00::7]:10300", Hears: true}},
			Ollama: []admin.FoundModels{{URL: "http://127.0.0.1" + port, Models: []string{"qwen3:4b", "<img src=x onerror=alert(1)>"}},
				{URL: "http://127.0.0.2" + port, Models: []string{}}},
			HomeAssistant: []admin.FoundServer{{Name: "Our house", URL: "http://127.0.0.4:8123"}, {Name: "script", URL: "http://127.0.0.4:8124"}},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("found is\n%+v\nwant\n%+v", got, want)
		}
		reached := []string{"127.0.0.1" + port, "127.0.0.2" + port, "127.0.0.3" + port, "127.0.0.4" + port, "[fd00::7]" + port}
		if all := asked(); !slices.Equal(all, reached) {
			t.Errorf("asked are %q, want %q", all, reached)
		}
	})
}

// TestWhereHomeAssistantIs: the URL of a Home Assistant has an announced address in this machine's networks, and
// no other host that the announcement contains.
func TestWhereHomeAssistantIs(t *testing.T) {
	networks := []netip.Prefix{netip.MustParsePrefix("192.168.1.7/24"), netip.MustParsePrefix("fd00::7/64")}
	for _, c := range []struct {
		name, host, addresses string
		txt                   []string
		want                  string
	}{
		{"nothing named", "", "192.168.1.9", nil, "http://192.168.1.9:8123"},
		{"its own address", "", "192.168.1.9", []string{"internal_url", "https://192.168.1.9:443"}, "https://192.168.1.9:443"},
		{"its own host", "house.local", "192.168.1.9", []string{"internal_url", "http://HOUSE.local:8123/"}, "http://HOUSE.local:8123"},
		{"an address of the internet", "", "192.168.1.9", []string{"internal_url", "http://203.0.113.7:8123"}, "http://192.168.1.9:8123"},
		{"a name of the internet", "", "192.168.1.9", []string{"internal_url", "https://evil.example", "base_url", "http://evil.example:8123"},
			"http://192.168.1.9:8123"},
		{"a name of the internet as its own host", "evil.example", "192.168.1.9", []string{"internal_url", "https://evil.example"},
			"http://192.168.1.9:8123"},
		{"another's name", "house.local", "192.168.1.9", []string{"internal_url", "http://other.local:8123"}, "http://192.168.1.9:8123"},
		{"another address of this network", "", "192.168.1.9", []string{"internal_url", "http://192.168.1.66:8123"}, "http://192.168.1.9:8123"},
		{"a name with a user", "house.local", "192.168.1.9", []string{"base_url", "http://house.local@evil.example:8123"}, "http://192.168.1.9:8123"},
		{"an address of another network besides", "", "10.9.9.9 192.168.1.9", []string{"internal_url", "http://10.9.9.9:8123"},
			"http://192.168.1.9:8123"},
		{"in six", "", "fd00::9", []string{"internal_url", "http://[fd00::9]:8123"}, "http://[fd00::9]:8123"},
		{"an address of another network", "", "10.9.9.9", []string{"internal_url", "http://10.9.9.9:8123"}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			one := server("x", "192.0.2.1:8123", c.txt...)
			one.Host, one.Addrs = c.host, nil
			for _, a := range strings.Fields(c.addresses) {
				one.Addrs = append(one.Addrs, netip.MustParseAddr(a))
			}
			f, _ := testSearch(t, nil, announces(map[string][]mdns.Found{mdns.HomeAssistant: {one}}, nil))
			f.networks = func() []netip.Prefix { return networks }
			got := ""
			for _, s := range f.run(t.Context()).HomeAssistant {
				got += s.URL
			}
			if got != c.want {
				t.Errorf("%s: it is offered at %q, want %q", c.name, got, c.want)
			}
		})
	}
}

// TestNothingFound: a search that finds nothing returns empty lists. A server that hangs or sends an endless
// response, and a network that cannot be searched, do not exceed the time limit.
func TestNothingFound(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"hangs": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"ends never": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
					return
				}
			}
		},
		"fails": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"models":[]}`)
		},
	} {
		for _, within := range []time.Duration{modelsTimeout / 2, 3 * modelsTimeout} {
			synctest.Test(t, func(t *testing.T) {
				here := map[string]http.HandlerFunc{"127.0.0.1:" + ollamaPort: answer}
				f, _ := testSearch(t, here, announces(nil, errors.New("no interface is up")))
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				began := time.Now()
				got, err := json.Marshal(f.run(ctx))
				took := time.Since(began)
				if err != nil || string(got) != `{"wyoming":[],"ollama":[],"homeassistant":[]}` || took > min(within, modelsTimeout) {
					t.Errorf("%s: after %s %s, %v", name, took, got, err)
				}
			})
		}
	}
}

// TestWyomingJobs: wyomingJobs returns the abilities of a server, and none for a server that does not respond.
func TestWyomingJobs(t *testing.T) {
	l := must.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			info := must.Value(wyoming.NewEvent(wyoming.TypeInfo, wyoming.Info{ASR: []wyoming.Program{{Name: "whisper", Installed: true,
				Models: []wyoming.Model{{Name: "base", Installed: true, Languages: []string{"en"}}}}}}, nil))(t)
			if _, err := wyoming.NewReader(conn, wyoming.Limits{}).Read(); err == nil {
				_ = wyoming.NewWriter(conn).Write(info)
			}
			_ = conn.Close()
		}
	})
	url := "tcp://" + l.Addr().String()
	if hears, speaks := wyomingJobs(t.Context(), url); !hears || speaks {
		t.Errorf("it hears: %t, and speaks: %t", hears, speaks)
	}
	must.Succeed(t, l.Close())
	serving.Wait()
	if hears, speaks := wyomingJobs(t.Context(), url); hears || speaks {
		t.Errorf("what is not there hears: %t, and speaks: %t", hears, speaks)
	}
}
