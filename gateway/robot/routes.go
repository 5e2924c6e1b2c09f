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

// Routes adds the robots' routes: the WebSocket, the sound of notifications and the upload of pictures.
// For these, a robot authenticates with the token from its check-in, with the ticket in the path of the
// sound, and with a camera token, respectively.
func (s *Server) Routes(r gin.IRouter) {
	open := func(c *gin.Context) {
		if strings.Contains(c.GetHeader("Accept"), "text/html") && c.GetHeader("Upgrade") == "" && c.GetHeader("Device-Id") == "" {
			c.Redirect(http.StatusSeeOther, "/xiaozhi/ota/") // shows a page to a person who has opened this address in a browser
			return
		}
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
		response, err := s.vision.Receive(c.Writer, c.Request, id, token)
		if err != nil {
			_ = c.Error(err)
			return
		}
		c.JSON(http.StatusOK, response)
	})
}

// upgradeDelay is how long the response to an upgrade request is delayed for old firmware; see
// missesEarlyResponse.
const upgradeDelay = 20 * time.Millisecond

// missesEarlyResponse reports whether a firmware version may miss the response to an upgrade request:
// up to 2.4.2 it sends the request before it begins to listen for the response, and a robot that misses
// the response gives up after ten seconds. The result is true for an unknown version.
func missesEarlyResponse(firmware string) bool {
	var major, minor, patch int
	if n, _ := fmt.Sscanf(firmware, "%d.%d.%d", &major, &minor, &patch); n < 2 {
		return true
	}
	return slices.Compare([]int{major, minor, patch}, []int{2, 4, 2}) <= 0
}

// open admits a robot and serves a session on its WebSocket.
func (s *Server) open(w http.ResponseWriter, r *http.Request) error {
	arrived := time.Now()
	if err := s.checkAccepting(); err != nil {
		return err
	}
	admitted, client, err := admit(s.options.Robots, r)
	if err != nil {
		s.options.RecordRefusal(r, err)
		return err
	}
	leave, err := s.strangers.reserve(admitted.ID)
	if err != nil {
		return err
	}
	defer leave()
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		err := &httpserver.Fault{Word: "no_upgrade", HTTP: http.StatusUpgradeRequired,
			Sentence: "this is the robots' WebSocket, and the request has no Upgrade header; a proxy in front of Perch must pass " +
				"Upgrade and Connection on (nginx: proxy_http_version 1.1, and proxy_set_header for both)"}
		s.options.RecordRefusal(r, err)
		return err
	}
	if missesEarlyResponse(admitted.Firmware) {
		time.Sleep(time.Until(arrived.Add(upgradeDelay)))
	}
	conn, err := socket.Accept(w, r, socket.Options{MaxMessage: xiaozhi.MaxMessage + 1, PerSecond: maxMessagesPerSecond})
	if err != nil {
		return nil // Accept has already responded
	}
	s.options.Robots.RecordSeen(admitted.ID, time.Now())
	admitted.BaseURL = baseURL(r, s.current.Load().PublicURL, admitted.BaseURL)
	log, bad := s.strangers.logOf(admitted.ID).With("robot", admitted.ID), logOnce{}
	f := framing(r)
	t := transport.NewWebSocket(conn, f, func(err error) {
		bad.warn(log, "the robot sends frames that do not match its framing; such frames are dropped", err)
	})
	if err := s.serve(channel{Transport: t, id: newSessionID(), framing: f}, admitted, client); err != nil && !errors.Is(err, ErrStopping) {
		log.Error("a robot's session could not be started", "err", err)
	}
	return nil
}

// adviceToAdd ends the sentence that refuses an unknown robot.
const adviceToAdd = "; for a robot that makes no check-in, perch robot add NAME gives the address and the token to enter in it"

// admit returns the robot in the registry that sends a request, and its client. The error is a *httpserver.Fault.
func admit(robots robots, r *http.Request) (device.Robot, device.Client, error) {
	id, client, token := identity(r)
	if robot, ok := robots.AdmitByHand(token); ok {
		return robot, client, nil
	}
	robotID, err := device.ParseID(id)
	if err != nil {
		return device.Robot{}, client, &httpserver.Fault{Word: "no_device_id",
			Sentence: "the Device-Id header must hold the robot's MAC address: " + err.Error() + adviceToAdd, HTTP: http.StatusBadRequest}
	}
	known, getErr := robots.Get(robotID)
	if !client.Sent { // a token is valid for one Client-Id only, so it identifies the client
		client = known.Client
	}
	admitted, err := robots.Admit(robotID, client, token)
	if err != nil {
		why := "the token is missing or wrong; a robot gets one from this appliance when it boots"
		switch {
		case getErr != nil: // no such robot is registered
			why = "the token is missing or wrong, and no robot with this Device-Id has checked in" + adviceToAdd
		case known.Bound && client != known.Client && token != "":
			why = "the robot with this MAC address has another Client-Id than this request, and its token is valid for that one only; " +
				"check in with the Client-Id of this request, and then adopt the robot again"
		}
		err = &httpserver.Fault{Word: "wrong_token", Sentence: why, HTTP: http.StatusUnauthorized}
	}
	return admitted, client, err
}

// identity returns the device ID, the client (the installation of the firmware) and the token that a
// request holds. Robots send them as headers, browsers as query parameters.
func identity(r *http.Request) (id string, c device.Client, token string) {
	query := r.URL.Query()
	value := func(header, name string) string { return cmp.Or(r.Header.Get(header), query.Get(name)) }
	token = cmp.Or(value("Authorization", "authorization"), query.Get("token"), query.Get("access_token"))
	if scheme, bearer, found := strings.Cut(token, " "); found && strings.EqualFold(scheme, "bearer") {
		token = bearer
	}
	return value("Device-Id", "device-id"), device.NewClient(value("Client-Id", "client-id")), token
}

// framing returns the framing that a request asks for, or Framing1 if it names no valid framing.
func framing(r *http.Request) xiaozhi.Framing {
	n, err := strconv.Atoi(cmp.Or(r.Header.Get("Protocol-Version"), r.URL.Query().Get("protocol-version")))
	if f := xiaozhi.Framing(n); err == nil && f.Valid() {
		return f
	}
	return xiaozhi.Framing1
}

// baseURL returns the URL under which the robot that sends a request reaches the appliance: publicURL if
// it is set, otherwise a URL with the host of the request. The firmware leaves the port out of that
// host. The port then comes from checkedIn, the URL of the robot's check-in, or else from the listener.
// baseURL returns "" if no port is known, or if robots cannot use the host.
func baseURL(r *http.Request, publicURL, checkedIn string) string {
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

// portOf returns the port in a URL, or "".
func portOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	return u.Port()
}

// listenerPort returns the port of the listener that received a request, or "".
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
