package supervisortest

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	"perch/remote"
	"perch/socket"
)

// IngressPath is the path at which Home Assistant shows the app's page.
const IngressPath = "/api/hassio_ingress/Zk3JtQ-0vbXhTiWjZ2PW0A"

// maxMessage is the maximum size of a message on a proxied WebSocket, and of the body of a request, in
// bytes. The rest of a larger body is not forwarded.
const maxMessage = 16 << 20

// User is a user who visits the app's page.
type User struct{ ID, Name, DisplayName string }

// Ingress is a handler that proxies requests below IngressPath to an app, as Home Assistant and
// its Supervisor do together.
type Ingress struct {
	App    string // address of the app, such as "172.30.32.1:8005"
	User   User
	Cookie string // required value of the cookie ingress_session; empty if no cookie is required
}

// ServeHTTP implements http.Handler.
func (i Ingress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, found := strings.CutPrefix(r.URL.Path, IngressPath+"/")
	switch c, err := r.Cookie("ingress_session"); {
	case !found:
		http.NotFound(w, r)
		return
	case i.Cookie != "" && (err != nil || c.Value != i.Cookie):
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	target := url.URL{Scheme: "http", Host: i.App, Path: "/" + path, RawQuery: r.URL.RawQuery}
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		target.Scheme = "ws"
		i.tunnel(w, r, target.String())
		return
	}
	// The real proxy buffers bodies, too, unless the app sets ingress_stream.
	body, err := io.ReadAll(io.LimitReader(r.Body, maxMessage))
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	transport := remote.NewTransport()
	transport.Proxy, transport.DisableKeepAlives = nil, true
	proxy := httputil.ReverseProxy{Transport: transport, Rewrite: func(p *httputil.ProxyRequest) {
		p.Out.URL, p.Out.Host, p.Out.Header = &target, r.Host, i.header(r)
		p.Out.Body, p.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}}
	proxy.ServeHTTP(w, r) // flushes a response without a length after each write
}

// header returns the headers of the request to the app. Headers that describe the user come from
// i.User, never from the browser.
func (i Ingress) header(r *http.Request) http.Header {
	h := r.Header.Clone()
	for _, name := range []string{"Content-Length", "Content-Encoding", "Transfer-Encoding", "Sec-WebSocket-Extensions", "Sec-WebSocket-Protocol",
		"Sec-WebSocket-Version", "Sec-WebSocket-Key", "X-Supervisor-Token", "X-Hassio-Key", "X-Remote-User-Id", "X-Remote-User-Name",
		"X-Remote-User-Display-Name"} {
		h.Del(name)
	}
	for name, value := range map[string]string{"X-Remote-User-Id": i.User.ID, "X-Remote-User-Name": i.User.Name,
		"X-Remote-User-Display-Name": i.User.DisplayName} {
		if value != "" {
			h.Set(name, value)
		}
	}
	from, _, _ := net.SplitHostPort(r.RemoteAddr) // cannot fail: net/http sets RemoteAddr to host:port
	h.Set("X-Forwarded-For", strings.TrimPrefix(h.Get("X-Forwarded-For")+", "+from, ", "))
	if h.Get("X-Forwarded-Host") == "" {
		h.Set("X-Forwarded-Host", r.Host)
	}
	h.Set("X-Ingress-Path", IngressPath)
	return h
}

// tunnel proxies the messages of a WebSocket to the app at target, in both directions, until one of
// the two connections ends.
func (i Ingress) tunnel(w http.ResponseWriter, r *http.Request, target string) {
	header := i.header(r)
	header.Del("Connection")
	header.Del("Upgrade")
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	app, err := socket.Dial(ctx, target, socket.Options{MaxMessage: maxMessage, Header: header})
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer app.Drop()
	browser, err := socket.Accept(w, r, socket.Options{MaxMessage: maxMessage})
	if err != nil {
		return
	}
	defer browser.Drop()
	var wg sync.WaitGroup
	pass := func(from, to *socket.Conn) {
		defer to.Drop()
		defer from.Drop()
		for {
			text, data, err := from.Receive()
			if err == nil && text {
				err = to.SendText(data)
			} else if err == nil {
				err = to.SendBinary(data)
			}
			if err != nil {
				return
			}
		}
	}
	wg.Go(func() { pass(app, browser) })
	wg.Go(func() { pass(browser, app) })
	wg.Wait()
}
