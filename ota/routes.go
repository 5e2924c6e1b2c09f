package ota

import (
	"cmp"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"perch/limit"
)

// arriveWithin bounds the time for a check-in's body.
const arriveWithin = 30 * time.Second

// Routes mounts the robots' check-in. It needs no key: a robot names itself in its headers
// or its query, and only the client it is bound to gets a token.
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
	for path, download := range map[string]func(http.ResponseWriter, *http.Request, string, string) error{downloads: f.download,
		assetFiles: f.downloadAsset} {
		handle := func(c *gin.Context) {
			err := download(c.Writer, c.Request, c.Param("name"), c.Query("r"))
			if err != nil && c.Request.Context().Err() == nil { // a robot that disconnects while it waits is no failure
				_ = c.Error(err)
			}
		}
		r.GET(path+":name", handle)
		r.HEAD(path+":name", handle)
	}
}

func (s *Service) checkIn(c *gin.Context) {
	id, client := identity(c.Request)
	if c.Request.Method == http.MethodGet && strings.Contains(c.GetHeader("Accept"), "text/html") && c.GetHeader("Device-Id") == "" {
		c.Data(http.StatusOK, "text/html; charset=utf-8", []byte(forPeople))
		return
	}
	reply, err := s.answer(c, id, client)
	if err != nil {
		s.refused(err, address(c.Request.RemoteAddr), id, time.Now())
		_ = c.Error(err)
		return
	}
	c.Header("Cache-Control", "no-store") // a browser would cache the answer with the token and the time
	c.JSON(http.StatusOK, reply)
}

// forPeople is what a browser shows at the robots' address.
const forPeople = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Perch: the robots' address</title>
<p>This is the address that robots check in at. Type it into the robot's Wi-Fi page, as its <em>OTA URL</em>.
<p>For people there is <a href="/">the page of Perch</a>.
`

func (s *Service) answer(c *gin.Context, id, client string) (Reply, error) {
	// The deadline is for this request only: a WebSocket has none.
	_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(arriveWithin))
	body, _ := io.ReadAll(io.LimitReader(c.Request.Body, limit.Body+1))
	if len(body) > limit.Body {
		_, _ = io.CopyN(io.Discard, c.Request.Body, limit.Drained) // its sender still writes, and would see a reset instead of the answer
		return Reply{}, &fault{"body_too_large", http.StatusRequestEntityTooLarge,
			errors.New("the check-in is larger than 64 kB; no robot sends that")}
	}
	// An incomplete body is not parsed: the headers are enough.
	// A browser sends no Origin for an image or script tag, with which any page of the internet
	// could fill the registry; an allowed page's script sends one.
	if id != c.GetHeader("Device-Id") && c.GetHeader("Origin") == "" && isBrowser(c.Request.UserAgent()) {
		return Reply{}, errTag
	}
	return s.CheckIn(Request{
		Host:     c.Request.Host,
		TLS:      c.Request.TLS != nil,
		DeviceID: id, ClientID: client,
		UserAgent: c.GetHeader("User-Agent"), Language: c.GetHeader("Accept-Language"),
		Address: address(c.Request.RemoteAddr), Body: body,
	}, time.Now())
}

// identity returns the robot and client of a request: from headers as the firmware sends
// them, or from the query, for pages that use one address for this and for the WebSocket,
// on which a browser cannot set headers.
func identity(r *http.Request) (id, client string) {
	query := r.URL.Query()
	return cmp.Or(r.Header.Get("Device-Id"), query.Get("device-id")), cmp.Or(r.Header.Get("Client-Id"), query.Get("client-id"))
}

var errTag = &fault{"no_origin", http.StatusForbidden,
	errors.New("a browser checks a robot in from the script of a page in allowed_origins only; programs may send device-id in the query, too")}

// activate answers a waiting robot: 200 if it is adopted; 202 makes it ask again in 3 s.
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

func address(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}
