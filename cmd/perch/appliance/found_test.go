package appliance

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
	"time"

	"perch/gateway/admin"
	"perch/gateway/mdns"
	"perch/remote"
)

// ollama answers at an address, which port 0 chooses, and returns its port.
func ollama(t *testing.T, address string, answer http.HandlerFunc) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: answer}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-served })
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

func tags(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/tags" {
			_, _ = io.WriteString(w, text)
		}
	}
}

// announces is a search that finds the same each time.
func announces(of map[string][]mdns.Found, err error) func(context.Context, string) ([]mdns.Found, error) {
	return func(_ context.Context, kind string) ([]mdns.Found, error) { return of[kind], err }
}

// server is one that announces itself at an address.
func server(name, address string, txt ...string) mdns.Found {
	at := netip.MustParseAddrPort(address)
	f := mdns.Found{Instance: name, Port: int(at.Port()), Addrs: []netip.Addr{at.Addr()}, TXT: map[string]string{}}
	for i := 0; i < len(txt); i += 2 {
		f.TXT[txt[i]] = txt[i+1]
	}
	return f
}

func testFinder(port string, dialled func(address string), search func(context.Context, string) ([]mdns.Found, error)) finder {
	transport := remote.NewTransport()
	transport.Proxy, transport.DisableKeepAlives = nil, true
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled(address)
		if !strings.HasPrefix(address, "127.") {
			return nil, errors.New("this is a test")
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	return finder{search: search, own: "http://127.0.0.1:" + port, port: port, http: remote.NewHTTP(transport), log: slog.New(slog.DiscardHandler)}
}

// TestFound: what announces itself, and models on this machine and on those found, which
// hostile names and addresses cannot turn into anything else.
func TestFound(t *testing.T) {
	port := ollama(t, "127.0.0.1:0", tags(`{"models":[{"name":"qwen3:4b"},{"name":"<img src=x onerror=alert(1)>"},{"name":"a\u0000b"},{"name":""},{}]}`))
	ollama(t, "127.0.0.2:"+port, tags(`{"models":[]}`))
	ollama(t, "127.0.0.3:"+port, tags(`<html>`))
	ollama(t, "127.0.0.4:"+port, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.5:"+port+"/api/tags", http.StatusFound)
	})
	var mu sync.Mutex
	var asked []string
	f := testFinder(port, func(address string) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, address)
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
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	got := f.find(ctx)
	want := admin.Found{
		Wyoming: []admin.FoundServer{{Name: "faster-whisper", URL: "tcp://127.0.0.2:10300"},
			{Name: "<b>bold</b>[2J" + strings.Repeat("x", 86), URL: "tcp://127.0.0.3:10200"}, {Name: "in six", URL: "tcp://[fd00::7]:10300"}},
		Ollama: []admin.FoundModels{{URL: "http://127.0.0.1:" + port, Models: []string{"qwen3:4b", "<img src=x onerror=alert(1)>"}},
			{URL: "http://127.0.0.2:" + port, Models: []string{}}},
		HomeAssistant: []admin.FoundServer{{Name: "Our house", URL: "http://house.local:8123"}, {Name: "script", URL: "http://127.0.0.4:8124"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("found is\n%+v\nwant\n%+v", got, want)
	}
	slices.Sort(asked)
	reached := []string{"127.0.0.1:" + port, "127.0.0.2:" + port, "127.0.0.3:" + port, "127.0.0.4:" + port, "[fd00::7]:" + port}
	if !slices.Equal(asked, reached) {
		t.Errorf("asked are %q, want %q", asked, reached)
	}
}

// TestNothingFound: none is lists without anything, and a server that hangs, one that
// never ends, and a network that cannot be searched cost no more than the time there is.
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
		f := testFinder(ollama(t, "127.0.0.1:0", answer), func(string) {}, announces(nil, errors.New("no interface is up")))
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		got, err := json.Marshal(f.find(ctx))
		cancel()
		if took := time.Since(began); err != nil || string(got) != `{"wyoming":[],"ollama":[],"homeassistant":[]}` || took > 3*time.Second {
			t.Errorf("%s: after %s %s, %v", name, took, got, err)
		}
	}
}
