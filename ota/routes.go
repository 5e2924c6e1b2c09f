package ota

import (
	"io"
	"net"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// Limits of a check-in.
const (
	mostBody     = 64 << 10 // bytes; the firmware's are under 4 kB
	mostDrained  = 32 << 20 // of a body that is larger, so that its sender can read the answer
	arriveWithin = 30 * time.Second
)

// Routes mounts the robots' bootstrap. It has no lock: who a robot is, is what
// it says in its headers, and a token is given only to the client it is bound
// to.
func (s *Service) Routes(r gin.IRouter) {
	for _, path := range []string{"/xiaozhi/ota/", "/xiaozhi/ota"} {
		r.POST(path, s.checkIn)
		r.GET(path, s.checkIn)
	}
	r.POST("/xiaozhi/ota/activate", s.activate)
}

// readBody reads what of a check-in arrives. One that is too large is read on
// for a while, or its sender, busy writing, would see a reset instead of the
// answer.
func readBody(r io.Reader) (body []byte, tooLarge bool) {
	body, _ = io.ReadAll(io.LimitReader(r, mostBody+1))
	if len(body) <= mostBody {
		return body, false
	}
	_, _ = io.CopyN(io.Discard, r, mostDrained)
	return nil, true
}

func (s *Service) checkIn(c *gin.Context) {
	// The read deadline is this request's: a WebSocket has none.
	_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(arriveWithin))
	body, tooLarge := readBody(c.Request.Body)
	if tooLarge {
		_ = c.Error(&fault{"body_too_large", http.StatusRequestEntityTooLarge, "the check-in is larger than 64 kB; no robot sends that"})
		return
	}
	// A body that did not arrive whole is a body that cannot be read: the
	// headers are enough.
	reply, err := s.CheckIn(Request{
		Host:     c.Request.Host,
		DeviceID: c.GetHeader("Device-Id"), ClientID: c.GetHeader("Client-Id"),
		UserAgent: c.GetHeader("User-Agent"), Language: c.GetHeader("Accept-Language"),
		Address: address(c.Request.RemoteAddr), Body: body,
	}, time.Now())
	if err != nil {
		_ = c.Error(err)
		return
	}
	c.JSON(http.StatusOK, reply)
}

// activate answers a robot that shows a code: 200 ends its waiting, 202 has it
// ask again in three seconds.
func (s *Service) activate(c *gin.Context) {
	adopted, err := s.Activate(c.GetHeader("Device-Id"), c.GetHeader("Client-Id"))
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
