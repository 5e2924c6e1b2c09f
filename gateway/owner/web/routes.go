package web

import (
	"bufio"
	"context"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/gin-gonic/gin"

	"perch/gateway/httpserver"
	"perch/limit"
)

// Recognize is a handler before all others: it finds out whether the owner sends a
// request, for Or and Unless. Once all sessions end, so do the requests of theirs
// that are being answered, such as streams of events, and their WebSockets. Somebody who
// comes through a proxy and is not the owner is refused.
func (d *Server) Recognize() gin.HandlerFunc {
	return func(c *gin.Context) { serveOwner(c, d.recognize) }
}

// serveOwner serves a request by whoever let finds to send it.
func serveOwner(c *gin.Context, let func(*http.Request) (known *http.Request, stop func(), err error)) {
	known, stop, err := let(c.Request)
	if err != nil {
		turnAway(c, err)
		return
	}
	defer stop()
	if wait := entryOf(known).wait; wait != nil && known != c.Request { // or an earlier handler has wrapped it
		c.Writer = &ownedWriter{c.Writer, wait}
	}
	c.Request = known
	c.Next()
}

// ownedWriter answers a request of an owner whose access may end.
type ownedWriter struct {
	gin.ResponseWriter
	wait func(context.Context)
}

// Unwrap is for http.ResponseController, which sets deadlines.
func (w *ownedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack implements http.Hijacker: the connection is a WebSocket of the owner.
func (w *ownedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := w.ResponseWriter.Hijack()
	if err != nil {
		return nil, nil, err
	}
	return closeAfter(conn, w.wait), buffered, nil
}

// turnAway answers somebody whom admit has refused: a browser with a page, and a program as
// every door does. Somebody who has left gets no answer.
func turnAway(c *gin.Context, err error) {
	c.Abort()
	if c.Request.Context().Err() != nil {
		return
	}
	refusal, known := err.(*httpserver.Fault) //nolint:errorlint // it is check's own, and nothing is wrapped around it
	if !known || c.Request.Method != http.MethodGet || !strings.Contains(c.GetHeader("Accept"), "text/html") {
		_ = c.Error(err)
		return
	}
	title := "Perch is for administrators"
	if refusal.HTTP != http.StatusForbidden {
		title = "Perch cannot be shown yet"
	}
	c.Header("Content-Security-Policy", "default-src 'none'; frame-ancestors 'self'")
	c.Header("X-Content-Type-Options", "nosniff")
	c.Header("Cache-Control", "no-store")
	c.Data(refusal.HTTP, "text/html; charset=utf-8", fmt.Appendf(nil, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Perch</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
</head>
<body><main><h1>%s</h1><p>%s.</p></main></body>
</html>
`, title, html.EscapeString(refusal.Sentence)))
}

// Here is a handler before those of programs and browsers of this machine, who may see
// what its owner does. Recognize may have found the owner's session.
func Here(c *gin.Context) {
	if HowOf(c.Request) == "" {
		c.Request = by(c.Request, entry{how: ByLocal})
	}
}

// ProxiesOnly is a handler before all others of a listener that is for proxies alone, which let
// in owners only. It refuses everybody else, whatever they say of themselves, and users of
// Home Assistant who are not its administrators.
func (d *Server) ProxiesOnly(proxies []netip.Addr) gin.HandlerFunc {
	return func(c *gin.Context) {
		if !byProxy(c.Request, proxies) {
			_ = c.Error(&httpserver.Fault{Word: "not_ingress", Sentence: "this address is for the ingress of Home Assistant alone",
				HTTP: http.StatusForbidden})
			c.Abort()
			return
		}
		serveOwner(c, d.admit)
	}
}

// Unless is a handler for all who have not come in by way of a proxy, behind which
// Host and Origin are those of the proxy.
func Unless(how How, handler gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if HowOf(c.Request) != how {
			handler(c)
		}
	}
}

// Card mounts the card for Home Assistant's dashboards, which loads it from a page
// of its own. It is in front of all locks: it holds nothing of this appliance.
func (d *Server) Card(r gin.IRouter) {
	r.GET("/perch-card.js", func(c *gin.Context) {
		c.Header("Access-Control-Allow-Origin", "*")
		c.Header("Cross-Origin-Resource-Policy", "cross-origin")
		d.send(c, "perch-card.js")
	})
}

// Routes mounts the page. It shows who has not come in how to; what it shows to
// its owner comes from the owner's API, which has locks of its own. paced is for
// what costs more than a file.
func (d *Server) Routes(r, paced gin.IRouter) {
	r.GET("/", d.page)
	r.GET("/robot", d.page)
	r.GET("/face", d.page)
	r.GET("/assets/:name", func(c *gin.Context) { d.send(c, c.Param("name")) })
	r.GET("/session", func(c *gin.Context) {
		how := HowOf(c.Request)
		c.Header("Cache-Control", "no-store")
		c.JSON(http.StatusOK, gin.H{"in": how != "", "how": how, "name": d.o.Name, "language": d.o.Language(), "version": d.o.Version})
	})
	paced.POST("/session", httpserver.Limit(limit.Data), func(c *gin.Context) {
		var b struct{ Token, Code string }
		body, err := httpserver.Body(c.Request)
		if err == nil {
			err = httpserver.Decode(body, &b)
		}
		var cookie *http.Cookie
		if err == nil {
			cookie, err = d.enter(c.Request, strings.TrimSpace(b.Token), strings.TrimSpace(b.Code))
		}
		if err != nil {
			_ = c.Error(err)
			return
		}
		http.SetCookie(c.Writer, cookie)
		c.Status(http.StatusNoContent)
	})
	paced.DELETE("/session", func(c *gin.Context) {
		if HowOf(c.Request) != ByCookie {
			_ = c.Error(&httpserver.Fault{Word: "no_session", Sentence: "there is no session to end", HTTP: http.StatusConflict})
			return
		}
		if err := d.endAll(); err != nil {
			_ = c.Error(err)
			return
		}
		http.SetCookie(c.Writer, &http.Cookie{Name: cookieName, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
		c.Status(http.StatusNoContent)
	})
}

// Owned mounts what the owner asks for to bring another device or robot here.
func (d *Server) Owned(r gin.IRouter) {
	r.POST("/api/v1/link", httpserver.Limit(limit.Data), func(c *gin.Context) {
		_, err := httpserver.Body(c.Request) // it may have none
		var link Link
		if err == nil {
			link, err = d.link()
		}
		if err != nil {
			_ = c.Error(err)
			return
		}
		c.Header("Cache-Control", "no-store")
		c.JSON(http.StatusCreated, link)
	})
	r.GET("/api/v1/qr", func(c *gin.Context) {
		rows, err := qrCode(c.Query("text"))
		if err != nil {
			_ = c.Error(err)
			return
		}
		c.JSON(http.StatusOK, gin.H{"rows": rows})
	})
	r.GET("/api/v1/address", func(c *gin.Context) { c.JSON(http.StatusOK, d.address()) })
}

// page answers with a page. Who has not come in is shown how to at "/".
func (d *Server) page(c *gin.Context) {
	p := pageAt(c.Request.URL.Path)
	if p.entry != "app" && HowOf(c.Request) == "" {
		c.Redirect(http.StatusSeeOther, d.base(c.Request)+"?next="+p.entry)
		return
	}
	c.Header("Content-Security-Policy", policy(p.connect, p.ancestors))
	c.Header("X-Content-Type-Options", "nosniff")
	c.Header("Referrer-Policy", "no-referrer")
	c.Header("Permissions-Policy", "microphone=(self), camera=(self)")
	c.Header("Cache-Control", "no-cache")
	c.Data(http.StatusOK, "text/html; charset=utf-8", []byte(d.render(p, d.base(c.Request))))
}

// send answers with a file of the bundle.
func (d *Server) send(c *gin.Context, name string) {
	f, known := d.bundle().files[name]
	if !known {
		_ = c.Error(&httpserver.Fault{Word: "unknown_file", Sentence: "the page has no such file; reload it", HTTP: http.StatusNotFound})
		return
	}
	c.Header("X-Content-Type-Options", "nosniff")
	c.Header("Vary", "Accept-Encoding")
	if f.hashed {
		c.Header("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		c.Header("Cache-Control", "no-cache")
	}
	if strings.Contains(c.GetHeader("Accept-Encoding"), "gzip") {
		zipped, size, err := f.open()
		if err != nil {
			_ = c.Error(err)
			return
		}
		c.Header("Content-Encoding", "gzip")
		c.DataFromReader(http.StatusOK, size, f.kind, zipped, nil)
		return
	}
	err := d.o.Pace(c.Request)
	var data []byte
	if err == nil {
		data, err = f.plain()
	}
	if err != nil {
		_ = c.Error(err)
		return
	}
	c.Data(http.StatusOK, f.kind, data)
}
