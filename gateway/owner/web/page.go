package web

import (
	"fmt"
	"html"
	"net/http"
	"strings"
)

// policy returns a Content-Security-Policy that lets a page load from this appliance only
// (CSP Level 3). Lit and uPlot set styles by script, which needs no unsafe-inline;
// the audio codec is WebAssembly.
func policy(connect, ancestors string) string {
	return "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; " +
		"worker-src 'self' blob:; manifest-src 'self'; base-uri 'self'; form-action 'self'; connect-src " + connect +
		"; frame-ancestors " + ancestors
}

// shown is one of the pages.
type shown struct {
	entry, title string
	connect      string // besides this appliance
	ancestors    string // the pages that may frame it
}

// pageAt returns the page at a path.
func pageAt(path string) shown {
	switch path {
	case "/robot":
		// Its user may enter the address of another server.
		return shown{"robot", "Robot · Perch", "'self' ws: wss: http: https:", "'self'"}
	case "/face":
		return shown{"face", "Face · Perch", "'self'", "*"}
	}
	return shown{"app", "Perch", "'self'", "'self'"}
}

// unbundled is the page of a program without a bundle.
const unbundled = `<main><h1>Perch</h1><p>This program was built without its page. <code>make build</code> bundles the page and builds
the program anew; it needs npm, which <code>make deps</code> installs.</p><p>Robots and everything else work without it:
<code>perch status</code>, <code>perch robot list</code>, <code>perch doctor</code>.</p></main>`

// render returns the HTML of a page. All its addresses are relative to its base, which a
// proxy may put below a path.
func (s *Server) render(p shown, base string) string {
	script, bundled := s.bundle().entries[p.entry]
	head, body := "", unbundled
	if bundled {
		head = fmt.Sprintf(`<script type="module" src="assets/%s"></script>`, html.EscapeString(script))
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

// base returns the path that a page's addresses begin with.
func base(r *http.Request) string {
	path := strings.Trim(r.Header.Get(ingressHeader), "/")
	if HowOf(r) != ByIngress || path == "" {
		return "/"
	}
	return "/" + path + "/"
}
