package httpserver

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
)

// ofSkins begins the paths of skins and of chats.
const ofSkins = "/v1/"

// NewEngine returns a gin engine for a listener: it does not trust forwarding headers,
// renders errors in one form, and answers panics. It logs failures at a limited rate.
func NewEngine(log *slog.Logger) (*gin.Engine, error) {
	log = LimitLogger(log)
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	if err := e.SetTrustedProxies(nil); err != nil {
		return nil, fmt.Errorf("trust no proxies: %w", err)
	}
	e.HandleMethodNotAllowed = true
	e.RedirectTrailingSlash = false // a robot follows no redirect
	e.Use(arrive, noEmbedding, answer(log))
	e.NoRoute(func(c *gin.Context) {
		// Some skins add their path to an address that ends with a slash. Only their paths
		// are corrected, and not by gin, which resolves ".." as well: a proxy that does
		// not pass on /xiaozhi/ may pass on //xiaozhi/.
		path := "/" + strings.TrimLeft(c.Request.URL.Path, "/")
		if strings.HasPrefix(c.Request.URL.Path, "//") && strings.HasPrefix(path, ofSkins) {
			r := *c.Request
			u := *r.URL
			u.Path, u.RawPath = path, ""
			r.URL = &u
			e.ServeHTTP(c.Writer, &r)
			return
		}
		_ = c.Error(&Fault{Word: "not_found", Sentence: "there is nothing at this address", HTTP: http.StatusNotFound})
	})
	e.NoMethod(func(c *gin.Context) {
		answer := c.Writer.Header()
		if isPreflight(answer, c.Request) {
			permit(answer, c.Request, answer.Get("Allow"))
			c.Status(http.StatusNoContent)
			return
		}
		if c.Request.Method == http.MethodHead && strings.Contains(answer.Get("Allow"), http.MethodGet) {
			answer.Del("Allow")
			ctx, cancel := context.WithCancel(c.Request.Context())
			defer cancel()
			r := c.Request.WithContext(ctx)
			r.Method = http.MethodGet
			e.ServeHTTP(headWriter{c.Writer, cancel}, r)
			return
		}
		_ = c.Error(&Fault{Word: "wrong_method", Sentence: "this address does not take that method", HTTP: http.StatusMethodNotAllowed})
	})
	return e, nil
}

// headWriter lets a handler of GET answer HEAD (RFC 9110 section 9.3.2): it discards the body,
// and ends the request when the body begins, so that a stream ends.
type headWriter struct {
	http.ResponseWriter
	end context.CancelFunc
}

// Write implements http.ResponseWriter.
func (w headWriter) Write(p []byte) (int, error) {
	w.end()
	return len(p), nil
}

// Flush implements http.Flusher.
func (w headWriter) Flush() {}

// answer renders the last error a handler has left.
func answer(log *slog.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		defer func() {
			if p := recover(); p != nil {
				// One request must not end the others.
				log.Error("a request panicked", "path", c.Request.URL.Path, "panic", p)
				if c.Writer.Written() {
					panic(http.ErrAbortHandler) // or half an answer would pass for a whole one
				}
				c.AbortWithStatusJSON(render(fmt.Errorf("panic")))
			}
		}()
		c.Next()
		switch {
		case len(c.Errors) == 0:
			return
		case c.Writer.Written():
			log.Info("an answer broke off", "path", c.Request.URL.Path, "err", c.Errors.Last().Err)
			return
		}
		status, b := render(c.Errors.Last().Err)
		if status == http.StatusInternalServerError {
			log.Error("a request failed", "path", c.Request.URL.Path, "err", c.Errors.Last().Err)
		}
		Challenge(c.Writer.Header(), status)
		c.JSON(status, b)
	}
}

// Challenge adds to the header of status 401 how to send a key (RFC 9110 section 15.5.2).
func Challenge(answer http.Header, status int) {
	if status == http.StatusUnauthorized {
		answer.Set("WWW-Authenticate", `Bearer realm="perch"`)
	}
}

// Guard refuses a request with the first error of the checks.
func Guard(checks ...func(*http.Request) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		for _, check := range checks {
			if err := check(c.Request); err != nil {
				_ = c.Error(err)
				c.Abort()
				return
			}
		}
	}
}

// Admit refuses web pages of other origins, and has the browsers of allowed pages show them
// the answers. It is for a whole engine of NewEngine: a preflight has no route,
// so it reaches no handler of a group. Admit runs before the other guards, so that
// an allowed page can read their refusals; they run before the answer to a
// preflight.
func (o Origins) Admit() gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := o.share(c.Writer.Header(), c.Request); err != nil {
			_ = c.Error(err)
			c.Abort()
		}
	}
}

// Last is a handler before the ones for robots: after a request with
// Connection: close the other side closes the connection.
func (l *Lingering) Last() gin.HandlerFunc {
	return func(c *gin.Context) { l.last(c.Request) }
}

// noEmbedding has browsers show no answer to a page of another origin that asks by a tag
// such as <img>, or without CORS (Fetch standard, section 3.7). Another port of this host,
// which gets the same cookies, may serve such a page.
func noEmbedding(c *gin.Context) { c.Header("Cross-Origin-Resource-Policy", "same-origin") }

// Below returns a handler that counts requests whose path begins with one of the
// prefixes. After Finish it refuses them with status 503.
func (d *Downloads) Below(prefixes ...string) gin.HandlerFunc {
	return func(c *gin.Context) {
		if !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(c.Request.URL.Path, prefix) }) {
			return
		}
		if !d.start() {
			_ = c.Error(&Fault{Word: "stopping", Sentence: GoingAway, HTTP: http.StatusServiceUnavailable})
			c.Abort()
			return
		}
		defer d.finish()
		c.Next()
	}
}

// bodyWithin is how long the body of a request may take to arrive.
const bodyWithin = 30 * time.Second

// arrive bounds the time until a body has arrived, even if it is not used:
// before the server answers a refused request, it reads on for a while, and would
// wait for a body that never comes. A handler of longer uploads sets another deadline.
func arrive(c *gin.Context) {
	// Without a body, the server reads already to notice a client
	// that leaves, and would take the deadline for that. When a body has arrived,
	// the server lifts the deadline.
	if c.Request.ContentLength != 0 {
		// A ResponseWriter of a test may have no deadlines.
		_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(bodyWithin))
	}
}

// Limit bounds the body of a request, in bytes. A body with a larger
// Content-Length is not read. NewEngine bounds it in time.
func Limit(most int64) gin.HandlerFunc {
	return func(c *gin.Context) {
		if c.Request.ContentLength > most {
			c.Request.Body = tooLong{c.Request.Body, most}
			return
		}
		c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, most)
	}
}

// Unread has the server answer at once, without reading the body, and close the connection. Otherwise
// the server reads some of the body first, and waits for a slow one; a client that
// reads only after it has sent all needs that to see the answer.
func Unread(w http.ResponseWriter) { w.Header().Set("Connection", "close") }

// tooLong is a body with too large a Content-Length.
type tooLong struct {
	io.Closer
	most int64
}

// Read fails like a read beyond the limit.
func (b tooLong) Read([]byte) (int, error) { return 0, &http.MaxBytesError{Limit: b.most} }
