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

// avatarPrefix begins the paths that avatar programs and chat clients use.
const avatarPrefix = "/v1/"

// NewEngine returns a gin engine for a listener. It does not trust forwarding headers, renders errors in one
// form and recovers from panics. It logs failures at a limited rate.
func NewEngine(log *slog.Logger) (*gin.Engine, error) {
	log = LimitLogger(log)
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	if err := e.SetTrustedProxies(nil); err != nil {
		return nil, fmt.Errorf("trust no proxies: %w", err)
	}
	e.HandleMethodNotAllowed = true
	e.RedirectTrailingSlash = false // robots do not follow redirects
	e.Use(limitBodyTime, noEmbedding, renderErrors(log))
	e.NoRoute(func(c *gin.Context) {
		// Some avatar programs append their path to a base URL that ends with a slash, so that the path begins
		// with two. This is corrected below avatarPrefix only: otherwise //xiaozhi/ would get past a proxy that
		// blocks /xiaozhi/. gin's own correction is not used, because it resolves ".." too.
		path := "/" + strings.TrimLeft(c.Request.URL.Path, "/")
		if strings.HasPrefix(c.Request.URL.Path, "//") && strings.HasPrefix(path, avatarPrefix) {
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
		header := c.Writer.Header()
		if isPreflight(header, c.Request) {
			setPreflightHeaders(header, c.Request, header.Get("Allow"))
			c.Status(http.StatusNoContent)
			return
		}
		if c.Request.Method == http.MethodHead && strings.Contains(header.Get("Allow"), http.MethodGet) {
			header.Del("Allow")
			ctx, cancel := context.WithCancel(c.Request.Context())
			defer cancel()
			r := c.Request.WithContext(ctx)
			r.Method = http.MethodGet
			e.ServeHTTP(headWriter{c.Writer, cancel}, r)
			return
		}
		_ = c.Error(&Fault{Word: "wrong_method", Sentence: "this address does not accept that method", HTTP: http.StatusMethodNotAllowed})
	})
	return e, nil
}

// headWriter is the http.ResponseWriter with which a handler of GET serves HEAD (RFC 9110 section 9.3.2). It
// discards the body, and ends the request when the body begins, so that a stream ends.
type headWriter struct {
	http.ResponseWriter
	end context.CancelFunc
}

// Write implements http.ResponseWriter.
func (w headWriter) Write(p []byte) (int, error) {
	w.end()
	return len(p), nil
}

// Flush implements http.Flusher. It does nothing.
func (w headWriter) Flush() {}

// renderErrors returns a handler that responds with the last error of the other handlers, if there is one. It
// also recovers from their panics.
func renderErrors(log *slog.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		defer func() {
			if p := recover(); p != nil {
				log.Error("a request panicked", "path", c.Request.URL.Path, "panic", p)
				if c.Writer.Written() {
					panic(http.ErrAbortHandler) // breaks the connection, so that the response does not look complete
				}
				c.AbortWithStatusJSON(render(fmt.Errorf("panic")))
			}
		}()
		c.Next()
		switch {
		case len(c.Errors) == 0:
			return
		case c.Writer.Written():
			log.Info("a response was broken off", "path", c.Request.URL.Path, "err", c.Errors.Last().Err)
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

// Challenge sets the header that must accompany a response with status 401 (RFC 9110 section 15.5.2). For
// any other status it does nothing.
func Challenge(header http.Header, status int) {
	if status == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", `Bearer realm="perch"`)
	}
}

// Guard returns a handler that refuses a request if one of the checks returns an error. Later checks do not
// run then.
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

// Admit returns a handler that refuses web pages of origins that are not allowed, and makes browsers show
// the responses to allowed pages. It must be used for a whole engine of NewEngine, not for a group, because
// preflights match no route. It must come before the other guards, so that an allowed page can read their
// errors. The engine's guards also apply to preflights; the guards of groups do not.
func (o Origins) Admit() gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := o.allowOrigin(c.Writer.Header(), c.Request); err != nil {
			_ = c.Error(err)
			c.Abort()
		}
	}
}

// Last returns a handler to put before the handlers that serve robots. It makes the connection linger after a
// request with Connection: close.
func (l *Lingering) Last() gin.HandlerFunc {
	return func(c *gin.Context) { l.markLast(c.Request) }
}

// noEmbedding makes browsers hide the response from pages of other origins, such as another port of this host,
// that load it by a tag such as <img>, or without CORS (Fetch standard, section 3.7).
func noEmbedding(c *gin.Context) { c.Header("Cross-Origin-Resource-Policy", "same-origin") }

// Below returns a handler that counts requests below the given path prefixes as downloads. After Finish it
// refuses them with status 503.
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

// bodyTimeout is how long the body of a request may take to arrive.
const bodyTimeout = 30 * time.Second

// limitBodyTime sets a deadline for the arrival of the body, even for requests that are refused: before
// net/http sends the response, it reads some of the body, and would wait forever for a body that never arrives.
// Handlers of longer uploads set another deadline.
func limitBodyTime(c *gin.Context) {
	// Without a body, net/http is reading already to notice when the client disconnects; at the deadline it
	// would treat the client as disconnected. With a body, net/http removes the deadline once the body has
	// arrived.
	if c.Request.ContentLength != 0 {
		// Fails only for a test's writer without deadlines.
		_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(bodyTimeout))
	}
}

// Limit returns a handler that limits the size of a request's body to maxBytes. A body whose Content-Length is
// larger is not read at all.
func Limit(maxBytes int64) gin.HandlerFunc {
	return func(c *gin.Context) {
		if c.Request.ContentLength > maxBytes {
			c.Request.Body = tooLargeBody{c.Request.Body, maxBytes}
			return
		}
		c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxBytes)
	}
}

// Unread makes net/http send the response without reading the rest of the request's body, and then close the
// connection. By default net/http first reads some of the rest. Reading takes long if the client is slow, but lets
// a client that reads only after sending the whole body see the response.
func Unread(w http.ResponseWriter) { w.Header().Set("Connection", "close") }

// tooLargeBody is the body of a request whose Content-Length is too large.
type tooLargeBody struct {
	io.Closer
	limit int64
}

// Read returns the same error as a read beyond the limit.
func (b tooLargeBody) Read([]byte) (int, error) { return 0, &http.MaxBytesError{Limit: b.limit} }
