package robot

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"perch/device"
	"perch/device/xiaozhi"
	"perch/gateway/httpserver"
	"perch/gateway/robot/notify"
	"perch/gateway/robot/transport"
	"perch/gateway/robot/vision"
	"perch/socket"
)

// Routes mounts the robots' WebSocket. Its only key is the check-in's token.
func (s *Server) Routes(r gin.IRouter) {
	open := func(c *gin.Context) {
		if err := s.open(c.Writer, c.Request); err != nil {
			_ = c.Error(err)
		}
	}
	r.GET("/xiaozhi/v1/", open)
	r.GET("/xiaozhi/v1", open)
	r.GET(notify.Path+":ticket", func(c *gin.Context) {
		if err := s.streams.Serve(c.Writer, c.Request, strings.TrimSuffix(c.Param("ticket"), ".ogg")); err != nil {
			_ = c.Error(err)
		}
	})
	r.POST(vision.Path, httpserver.Limit(vision.MaxUpload), func(c *gin.Context) {
		id, _, token := identity(c.Request)
		answer, err := s.vision.Receive(c.Writer, c.Request, id, token)
		if err != nil {
			_ = c.Error(err)
			return
		}
		c.JSON(http.StatusOK, answer)
	})
}

// upgradeAfter is how long after its request the WebSocket of a robot with old firmware is accepted.
const upgradeAfter = 20 * time.Millisecond

// losesEarlyAnswers reports whether a version of the firmware may lose the answer to an upgrade: up to
// 2.4.2 it begins to wait for the answer only after it has sent the request, and gives up ten seconds
// later. An unknown version may.
func losesEarlyAnswers(firmware string) bool {
	var major, minor, patch int
	if n, _ := fmt.Sscanf(firmware, "%d.%d.%d", &major, &minor, &patch); n < 2 {
		return true
	}
	return slices.Compare([]int{major, minor, patch}, []int{2, 4, 2}) <= 0
}

// open admits a robot and serves its session.
func (s *Server) open(w http.ResponseWriter, r *http.Request) error {
	arrived := time.Now()
	if err := s.accepting(); err != nil {
		return err
	}
	id, client, token := identity(r)
	robotID, err := device.ParseID(id)
	if err != nil {
		return &httpserver.Fault{Word: "no_device_id",
			Sentence: "the Device-Id header must hold the robot's MAC address: " + err.Error(), HTTP: http.StatusBadRequest}
	}
	bound, _ := s.options.Robots.Get(robotID)
	if !client.Sent { // the token is one client's, and says enough
		client = bound.Client
	}
	known, err := s.options.Robots.Admit(robotID, client, token)
	if err != nil {
		log := s.options.Log.Debug
		if s.strangers.refused.isNew(robotID, time.Now()) { // a robot that comes again and again does not fill the log
			log = s.strangers.log.Warn
		}
		log("a robot was turned away: its token is missing or wrong; it gets one when it boots, once it is adopted",
			"robot", robotID, "address", r.RemoteAddr)
		why := "the token is missing or wrong; a robot gets one from this appliance when it boots"
		if bound.Bound && client != bound.Client && token != "" {
			why = "this MAC address is that of a robot with another Client-Id than is sent here, and its token is good for that one only; " +
				"check in with the Client-Id that is used here, and have that adopted"
		}
		return &httpserver.Fault{Word: "wrong_token", Sentence: why, HTTP: http.StatusUnauthorized}
	}
	leave, err := s.strangers.reserve(robotID)
	if err != nil {
		return err
	}
	defer leave()
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		err := &httpserver.Fault{Word: "no_upgrade", HTTP: http.StatusUpgradeRequired,
			Sentence: "this is the robots' WebSocket, and the request has no Upgrade header; a proxy in front of Perch must pass " +
				"Upgrade and Connection on (nginx: proxy_http_version 1.1, and proxy_set_header for both)"}
		s.options.TurnAway(r, err)
		return err
	}
	if losesEarlyAnswers(known.Firmware) {
		time.Sleep(time.Until(arrived.Add(upgradeAfter)))
	}
	conn, err := socket.Accept(w, r, socket.Options{MaxMessage: xiaozhi.MaxMessage + 1, PerSecond: mostMessages})
	if err != nil {
		return nil // Accept has answered
	}
	s.options.Robots.RecordSeen(robotID, time.Now())
	known.BaseURL = base(r, s.current.Load().PublicURL, known.BaseURL) // of this channel, not of the check-in
	log, bad := s.strangers.logOf(robotID).With("robot", robotID), logOnce{}
	f := framing(r)
	t := transport.NewWebSocket(conn, f, func(err error) {
		bad.warn(log, "the robot sends frames that do not fit its framing; such frames are dropped", err)
	})
	if err := s.serve(channel{Transport: t, id: newSessionID(), framing: f}, known, client); err != nil && !errors.Is(err, ErrStopping) {
		log.Error("a robot's session could not be held", "err", err)
	}
	return nil
}

// identity returns the robot of a request: by header, or by query as from browsers.
func identity(r *http.Request) (id string, c device.Client, token string) {
	query := r.URL.Query()
	value := func(header, name string) string { return cmp.Or(r.Header.Get(header), query.Get(name)) }
	token = cmp.Or(value("Authorization", "authorization"), query.Get("token"), query.Get("access_token"))
	if scheme, bearer, found := strings.Cut(token, " "); found && strings.EqualFold(scheme, "bearer") {
		token = bearer
	}
	return value("Device-Id", "device-id"), device.NewClient(value("Client-Id", "client-id")), token
}

// framing returns the framing that the request names, or else plain packets.
func framing(r *http.Request) xiaozhi.Framing {
	n, err := strconv.Atoi(cmp.Or(r.Header.Get("Protocol-Version"), r.URL.Query().Get("protocol-version")))
	if f := xiaozhi.Framing(n); err == nil && f.Valid() {
		return f
	}
	return xiaozhi.Framing1
}

// base returns the address under which the robot of a request reaches us: that in the request. A
// check-in adds at most the port, which the firmware leaves out of the upgrade's Host. It is empty
// without a port, or if the Host cannot be given to a robot.
func base(r *http.Request, publicURL, checkedIn string) string {
	if publicURL != "" {
		return publicURL
	}
	name, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		name, port = r.Host, ""
	}
	port = cmp.Or(port, portOf(checkedIn), listenerPort(r))
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || !device.IsHost(name) {
		return ""
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(name, port)
}

func portOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Port()
}

// listenerPort returns the port at which the request has arrived.
func listenerPort(r *http.Request) string {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return ""
	}
	_, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return "" // a unix socket
	}
	return port
}
