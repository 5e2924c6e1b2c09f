package web

import (
	"fmt"
	"html"
	"net/http"
	"strings"
)

// policy returns the Content-Security-Policy (CSP Level 3) of a page, which allows only resources of this appliance.
// connect lists the servers that the page may connect to, and ancestors lists the pages that may frame it. The audio
// codec needs wasm-unsafe-eval. The library Lit sets styles by script, which does not need unsafe-inline.
func policy(connect, ancestors string) string {
	return "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; " +
		"worker-src 'self' blob:; manifest-src 'self'; base-uri 'self'; form-action 'self'; connect-src " + connect +
		"; frame-ancestors " + ancestors
}

// pageInfo describes one of the pages.
type pageInfo struct {
	entry     string // key in bundle.entries
	title     string
	connect   string // connect-src of the policy
	ancestors string // frame-ancestors of the policy
}

// pageAt returns the page at a path.
func pageAt(path string) pageInfo {
	switch path {
	case "/robot":
		// The user of this page may enter the address of another server.
		return pageInfo{"robot", "Robot · Perch", "'self' ws: wss: http: https:", "'self'"}
	case "/face":
		return pageInfo{"face", "Face · Perch", "'self'", "*"}
	}
	return pageInfo{"app", "Perch", "'self'", "'self'"}
}

// unbundled is the body of the page if the program was built without the bundle.
const unbundled = `<main><h1>Perch</h1><p>This program was built without its page. <code>make build</code> bundles the page and rebuilds
the program; it needs npm, which <code>make deps</code> installs.</p><p>Robots and everything else work without it:
<code>perch status</code>, <code>perch robot list</code>, <code>perch doctor</code>.</p></main>`

// render returns the HTML of a page. base is the path that all URLs of the page are relative to.
func (s *Server) render(p pageInfo, base string) string {
	script, bundled := s.bundle().entries[p.entry]
	head, body := "", unbundled
	if bundled && p.entry == "app" {
		head = `<link rel="manifest" href="manifest.webmanifest"><link rel="apple-touch-icon" href="assets/icon-180.png">
<meta name="theme-color" content="#f4f2ec" media="(prefers-color-scheme: light)"><meta name="theme-color" content="#0f1214" media="(prefers-color-scheme: dark)">
`
	}
	if bundled {
		head += fmt.Sprintf(`<script type="module" src="assets/%s"></script>`, html.EscapeString(script))
		for _, name := range s.bundle().imports[p.entry] {
			head += fmt.Sprintf(`
<link rel="modulepreload" href="assets/%s">`, html.EscapeString(name)) // a browser finds it in the script otherwise, one request later
		}
		body = `<noscript>Perch's page needs JavaScript.</noscript>`
	}
	return fmt.Sprintf(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<base href="%s">
<title>%s</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="assets/icon.svg" type="image/svg+xml">
%s
</head>
<body>%s</body>
</html>
`, html.EscapeString(base), html.EscapeString(p.title), head, body)
}

// manifest returns the Web App Manifest, with which a phone installs the page.
func (s *Server) manifest() map[string]any {
	icon := func(size int, purpose string) map[string]any {
		return map[string]any{"src": fmt.Sprintf("assets/icon-%d.png", size), "sizes": fmt.Sprintf("%dx%d", size, size), "type": "image/png", "purpose": purpose}
	}
	return map[string]any{"id": "./", "name": s.o.Name, "short_name": s.o.Name, "start_url": "./", "scope": "./", "display": "standalone",
		"background_color": "#f4f2ec", "theme_color": "#08706a", "icons": []any{icon(192, "any"), icon(512, "any"), icon(512, "maskable")}}
}

// base returns the path that the URLs of a page are relative to. It is "/" unless a proxy serves the page below
// another path.
func base(r *http.Request) string {
	path := strings.Trim(r.Header.Get(ingressHeader), "/")
	if AuthMethodOf(r) != ByIngress || path == "" {
		return "/"
	}
	return "/" + path + "/"
}
