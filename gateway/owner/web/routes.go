package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"perch/gateway/httpserver"
	"perch/limit"
	"perch/packaging/homeassistant"
)

// Authenticate returns a handler that authenticates the owner. It must come before all handlers that use OrOwner,
// OwnerOnly or UnlessBy. When the owner loses access, the requests under way, such as streams of events, are cancelled,
// and WebSockets are closed. A user of a proxy who is not an owner is refused.
func (s *Server) Authenticate() gin.HandlerFunc {
	return func(c *gin.Context) { serveOwner(c, s.authenticate) }
}

// serveOwner authenticates a request and calls the next handlers.
func serveOwner(c *gin.Context, authenticate func(*http.Request) (authenticated *http.Request, stop func(), err error)) {
	authenticated, stop, err := authenticate(c.Request)
	if err != nil {
		respondRefused(c, err)
		return
	}
	defer stop()
	// If the request is unchanged, an earlier handler has wrapped the writer already.
	if wait := authenticationOf(authenticated).wait; wait != nil && authenticated != c.Request {
		c.Writer = &ownedWriter{c.Writer, wait}
	}
	c.Request = authenticated
	c.Next()
}

// ownedWriter writes the response for an owner who may lose access.
type ownedWriter struct {
	gin.ResponseWriter
	wait func(context.Context) // see authentication.wait
}

// Unwrap returns the underlying writer, on which http.ResponseController sets deadlines.
func (w *ownedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack implements http.Hijacker. The connection becomes a WebSocket, which is closed when the owner loses access.
func (w *ownedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := w.ResponseWriter.Hijack()
	if err != nil {
		return nil, nil, err
	}
	return &ownedConn{conn, callAfter(context.Background(), w.wait, func() { _ = conn.Close() })}, buffered, nil
}

// respondRefused ends a request that was refused. It responds with a page to a browser, and with an error to a program,
// and does nothing if the client has disconnected.
func respondRefused(c *gin.Context, err error) {
	c.Abort()
	if c.Request.Context().Err() != nil {
		return
	}
	refusal, known := errors.AsType[*httpserver.Fault](err)
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

// AuthenticateLocal is a handler for routes that only this machine can reach. To the handlers after it, every program and
// browser of this machine is an authenticated owner (ByLocal). It leaves a request unchanged that Authenticate has
// authenticated.
func AuthenticateLocal(c *gin.Context) {
	if AuthMethodOf(c.Request) == "" {
		c.Request = withAuthentication(c.Request, authentication{how: ByLocal})
	}
}

// ProxiesOnly returns the first handler of a listener for proxies that authenticate their users. It refuses all other
// clients, and users of Home Assistant who are not administrators.
func (s *Server) ProxiesOnly(proxies []netip.Addr) gin.HandlerFunc {
	return func(c *gin.Context) {
		if !isFromProxy(c.Request, proxies) {
			_ = c.Error(&httpserver.Fault{Word: "not_ingress", Sentence: "this address is only for the ingress of Home Assistant",
				HTTP: http.StatusForbidden})
			c.Abort()
			return
		}
		serveOwner(c, s.authenticateIngress)
	}
}

// UnlessBy returns a handler that calls the given handler, except for requests that were authenticated by the given
// method. With ByIngress, for example, the headers Host and Origin are the proxy's and cannot be checked.
func UnlessBy(how AuthMethod, handler gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if AuthMethodOf(c.Request) != how {
			handler(c)
		}
	}
}

// HomeAssistantRoutes mounts the script of the card for Home Assistant's dashboards, which are pages of another origin,
// and the blueprints that Home Assistant imports. They need no authentication, because they contain no data of this
// appliance.
func (s *Server) HomeAssistantRoutes(r gin.IRouter) {
	r.GET("/blueprints/:name", func(c *gin.Context) {
		text, err := homeassistant.Blueprint(c.Param("name"))
		if err != nil {
			_ = c.Error(&httpserver.Fault{Word: "unknown_file", Sentence: "there is no such blueprint", HTTP: http.StatusNotFound})
			return
		}
		c.Data(http.StatusOK, "text/yaml; charset=utf-8", text)
	})
	r.GET("/perch-card.js", func(c *gin.Context) {
		c.Header("Access-Control-Allow-Origin", "*")
		c.Header("Cross-Origin-Resource-Policy", "cross-origin")
		s.serveFile(c, "perch-card.js")
	})
}

// Routes mounts the pages and the routes of sessions. The page / needs no authentication: it loads all private data from
// the owner's API, which authenticates each request. Without authentication, /robot and /face redirect to it. The router
// paced must limit the rate of requests.
func (s *Server) Routes(r, paced gin.IRouter) {
	r.GET("/", s.servePage)
	r.GET("/robot", s.servePage)
	r.GET("/face", s.servePage)
	r.GET("/assets/:name", func(c *gin.Context) { s.serveFile(c, c.Param("name")) })
	for _, name := range []string{"perch-authority.crt", "perch-authority.mobileconfig"} {
		r.GET("/"+name, func(c *gin.Context) {
			file, mediaType, err := s.authorityFile(name)
			if err != nil {
				_ = c.Error(err)
				return
			}
			c.Header("Cache-Control", "no-store")
			c.Header("X-Content-Type-Options", "nosniff")
			c.Header("Content-Disposition", `attachment; filename="`+name+`"`)
			c.Data(http.StatusOK, mediaType, file)
		})
	}
	r.GET("/sw.js", func(c *gin.Context) { s.serveFile(c, "sw.js") })
	r.GET("/manifest.webmanifest", func(c *gin.Context) {
		c.Header("Content-Type", "application/manifest+json")
		c.Header("Cache-Control", "no-cache")
		c.JSON(http.StatusOK, s.manifest())
	})
	r.GET("/session", func(c *gin.Context) {
		how := AuthMethodOf(c.Request)
		c.Header("Cache-Control", "no-store")
		c.JSON(http.StatusOK, gin.H{"in": how != "", "how": how, "name": s.o.Name, "language": s.o.Language(), "version": s.o.Version,
			"says": s.canSayCode()})
	})
	paced.POST("/session/code", httpserver.Limit(limit.Data), func(c *gin.Context) {
		_, err := httpserver.Body(c.Request) // the body may be empty
		if err == nil {
			err = s.sayCode(c.Request.Context())
		}
		if err != nil {
			_ = c.Error(err)
			return
		}
		c.Status(http.StatusNoContent)
	})
	paced.POST("/session", httpserver.Limit(limit.Data), func(c *gin.Context) {
		var b struct{ Token, Code string }
		body, err := httpserver.Body(c.Request)
		if err == nil {
			err = httpserver.Decode(body, &b)
		}
		var cookie *http.Cookie
		if err == nil {
			cookie, err = s.logIn(c.Request, strings.TrimSpace(b.Token), strings.TrimSpace(b.Code))
		}
		if err != nil {
			_ = c.Error(err)
			return
		}
		http.SetCookie(c.Writer, cookie)
		c.Status(http.StatusNoContent)
	})
	paced.DELETE("/session", func(c *gin.Context) {
		s.handleLogout(c, func(open openSession) error { return s.logOut(open.id) })
	})
	paced.DELETE("/sessions", func(c *gin.Context) {
		s.handleLogout(c, func(openSession) error { return s.endSessions() })
	})
}

// handleLogout calls end with the request's session, and deletes the cookie. It responds 409 if the request has no session.
func (s *Server) handleLogout(c *gin.Context, end func(openSession) error) {
	open, ok := s.session(c.Request)
	if !ok || AuthMethodOf(c.Request) != ByCookie {
		_ = c.Error(&httpserver.Fault{Word: "no_session", Sentence: "there is no session to end", HTTP: http.StatusConflict})
		return
	}
	if err := end(open); err != nil {
		_ = c.Error(err)
		return
	}
	http.SetCookie(c.Writer, sessionCookie(c.Request.TLS != nil, "", -time.Second))
	c.Status(http.StatusNoContent)
}

// OwnerRoutes mounts the routes for connecting another device or robot. The router must admit only the owner.
func (s *Server) OwnerRoutes(r gin.IRouter) {
	r.POST("/api/v1/link", httpserver.Limit(limit.Data), func(c *gin.Context) {
		_, err := httpserver.Body(c.Request) // the body may be empty
		var link Link
		if err == nil {
			link, err = s.makeLink()
		}
		if err != nil {
			_ = c.Error(err)
			return
		}
		c.Header("Cache-Control", "no-store")
		c.JSON(http.StatusCreated, link)
	})
	r.POST("/api/v1/https", httpserver.Limit(limit.Data), func(c *gin.Context) {
		var address HTTPSAddress
		_, err := httpserver.Body(c.Request) // the body may be empty
		if err == nil {
			address, err = s.openHTTPS()
		}
		if err != nil {
			_ = c.Error(err)
			return
		}
		c.JSON(http.StatusOK, address)
	})
	r.GET("/api/v1/qr", func(c *gin.Context) {
		rows, err := qrCode(c.Query("text"))
		if err != nil {
			_ = c.Error(err)
			return
		}
		c.JSON(http.StatusOK, gin.H{"rows": rows})
	})
	r.GET("/api/v1/address", func(c *gin.Context) { c.JSON(http.StatusOK, s.urls()) })
}

// servePage responds with a page. If the owner was not authenticated, pages other than "/" redirect to "/", which shows
// how to log in.
func (s *Server) servePage(c *gin.Context) {
	p := pageAt(c.Request.URL.Path)
	if p.entry != "app" && AuthMethodOf(c.Request) == "" {
		c.Redirect(http.StatusSeeOther, base(c.Request)+"?next="+p.entry)
		return
	}
	c.Header("Content-Security-Policy", policy(p.connect, p.ancestors))
	c.Header("X-Content-Type-Options", "nosniff")
	c.Header("Referrer-Policy", "no-referrer")
	c.Header("Permissions-Policy", "microphone=(self), camera=(self)")
	c.Header("Cache-Control", "no-cache")
	c.Data(http.StatusOK, "text/html; charset=utf-8", []byte(s.render(p, base(c.Request))))
}

// serveFile responds with a file of the bundle.
func (s *Server) serveFile(c *gin.Context, name string) {
	f, known := s.bundle().files[name]
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
	err := s.o.Pace(c.Request)
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
