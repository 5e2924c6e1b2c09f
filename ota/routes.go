package ota

import (
	"cmp"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"perch/language"
	"perch/limit"
)

// bodyTimeout is the time limit for receiving the body of a check-in.
const bodyTimeout = 30 * time.Second

// Routes adds the routes for robots. They need no API key: a robot sends its ID in the headers
// or the query, and only the client that the robot is bound to gets a token.
func (s *Service) Routes(r gin.IRouter) {
	for _, path := range []string{"/xiaozhi/ota/", "/xiaozhi/ota"} {
		r.POST(path, s.checkIn)
		r.GET(path, s.checkIn)
	}
	r.POST("/xiaozhi/ota/activate", s.activate)
	if s.o.Firmware == nil {
		return
	}
	f := s.o.Firmware
	for path, download := range map[string]func(http.ResponseWriter, *http.Request, string, string) error{imagePath: f.download,
		assetPath: f.downloadAsset} {
		handle := func(c *gin.Context) {
			err := download(c.Writer, c.Request, c.Param("name"), c.Query("r"))
			if err != nil && c.Request.Context().Err() == nil { // a robot may disconnect while it waits
				_ = c.Error(err)
			}
		}
		r.GET(path+":name", handle)
		r.HEAD(path+":name", handle)
	}
}

// checkIn handles the request of a check-in.
func (s *Service) checkIn(c *gin.Context) {
	id, client := identity(c.Request)
	isRobot := id != "" || c.Request.Method == http.MethodPost
	if !isRobot && (isBrowser(c.Request.UserAgent()) || strings.Contains(c.GetHeader("Accept"), "text/html")) {
		c.Header("Cache-Control", "no-store")
		c.Header("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		c.Data(http.StatusOK, "text/html; charset=utf-8", s.pageForPeople(c.Request))
		return
	}
	reply, err := s.readCheckIn(c, id, client)
	if err != nil {
		if isRobot && !errors.Is(err, errNoOrigin) { // requests without an ID come from browsers and programs that preview links
			s.addRefusal(err, hostOf(c.Request.RemoteAddr), id, time.Now())
		}
		_ = c.Error(err)
		return
	}
	c.Header("Cache-Control", "no-store") // the reply contains a token and the time
	c.JSON(http.StatusOK, reply)
}

// pageForPeople returns the page that a browser gets at the robots' address.
func (s *Service) pageForPeople(r *http.Request) []byte {
	words := s.words.In(append(language.Accepted(r.Header.Get("Accept-Language")), s.o.Language())...)
	base, err := s.baseURL(r.Host, r.TLS != nil)
	if err != nil {
		base = "http://" + r.Host // the page does not show the error
	}
	say := func(name string) string { return html.EscapeString(words.Message("people." + name)) }
	return fmt.Appendf(nil, `<!doctype html><html lang="%s"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>%s</title>
<h1>%[2]s</h1>
<p>%s
<p><code>%s/xiaozhi/ota/</code>
<p><a href="/">%s</a>
`, words.Tag, say("title"), say("text"), html.EscapeString(base), say("page"))
}

// readCheckIn reads a check-in and returns the reply.
func (s *Service) readCheckIn(c *gin.Context, id, client string) (Reply, error) {
	// The deadline is set for this request only, because WebSockets on the same server have no deadline.
	_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(bodyTimeout))
	body, _ := io.ReadAll(io.LimitReader(c.Request.Body, limit.Body+1))
	if len(body) > limit.Body {
		_, _ = io.CopyN(io.Discard, c.Request.Body, limit.Drained) // a robot that is still sending would see a reset connection instead of the error
		return Reply{}, refuse("body_too_large", http.StatusRequestEntityTooLarge,
			"the check-in is larger than 64 kB, which no robot sends")
	}
	// Without this check, any web page could fill the registry by image or script tags with this address. A
	// browser sends no Origin header for such a tag. It sends an Origin header for the requests of
	// scripts, which are allowed only to pages in allowed_origins.
	if id != c.GetHeader("Device-Id") && c.GetHeader("Origin") == "" && isBrowser(c.Request.UserAgent()) {
		return Reply{}, errNoOrigin
	}
	return s.CheckIn(Request{
		Host:     c.Request.Host,
		TLS:      c.Request.TLS != nil,
		DeviceID: id, ClientID: client,
		UserAgent: c.GetHeader("User-Agent"), Language: c.GetHeader("Accept-Language"),
		Address: hostOf(c.Request.RemoteAddr), Body: body,
	}, time.Now())
}

// identity returns the IDs of the robot and the client that send a request. The firmware sends
// the IDs in headers. Web pages send them in the query, because a browser cannot set the headers
// of a WebSocket, and pages use the same query for check-ins and WebSockets.
func identity(r *http.Request) (id, client string) {
	query := r.URL.Query()
	return cmp.Or(r.Header.Get("Device-Id"), query.Get("device-id")), cmp.Or(r.Header.Get("Client-Id"), query.Get("client-id"))
}

var errNoOrigin = refuse("no_origin", http.StatusForbidden,
	"in a browser, only scripts of pages in allowed_origins may check in a robot; other programs may send device-id in the query")

// activate handles the request of a robot that waits for its adoption. The status is 200 if the
// robot may connect now, and 202 if it has to wait: it then repeats the request after 3 s.
func (s *Service) activate(c *gin.Context) {
	adopted, err := s.Activate(identity(c.Request))
	switch {
	case err != nil:
		_ = c.Error(err)
	case adopted:
		c.JSON(http.StatusOK, gin.H{"adopted": true})
	default:
		c.JSON(http.StatusAccepted, gin.H{"adopted": false})
	}
}

// hostOf returns the host of an address with a port, or an address without a port unchanged.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
