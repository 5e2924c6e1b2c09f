package access

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"

	"github.com/gin-gonic/gin"

	"perch/cmd/perch/config"
	"perch/cmd/perch/listener"
	"perch/gateway/httpserver"
	"perch/gateway/owner/web"
)

// Mount adds the routes of one part of the appliance to a router.
type Mount func(gin.IRouter)

// Parts holds the routes of the appliance, grouped by who may use them.
type Parts struct {
	Open        Mount   // for everybody
	Owner       []Mount // for the owner
	Robots      []Mount // for robots; the handlers check each robot's token
	Bridge      Mount   // for programs with the bridge's key
	BridgeAdmin Mount   // for the owner, but not on the Unix socket that perch's commands use
	Talks       Mount   // for coding agents; the handlers check the token of the conversation
	// RecordRefusal records a robot's request that was refused with err because of its Host header.
	RecordRefusal func(r *http.Request, err error)
	// Skin mounts the stream for skins, which are programs that show the agent. The handlers of the
	// stream call locks themselves.
	Skin     func(r gin.IRouter, locks ...func(*http.Request) error)
	Skins    []Mount // for programs with the skins' key
	Upgrades []Mount // WebSockets for programs with the skins' key, which they send in the handshake
	// Character mounts routes for the owner and for programs with the skins' key. owns reports
	// whether the owner sent a request.
	Character  func(r gin.IRouter, owns func(*http.Request) bool)
	OpenClaw   Mount       // for programs made for OpenClaw, which send the skins' key in a message; nil if it is off
	VCCP       []Mount     // for models and characters that use VCCP (see package vccp); also in Skins and Upgrades
	Web        *web.Server // the owner's page; nil if it is off
	QueryToken bool        // whether Upgrades also accept the skins' key as ?token=
}

// Handle mounts the parts on the listeners, behind the access checks that each kind of address needs.
func Handle(s *listener.Set, l *Locks, p Parts, c *config.Config) error {
	var proxies []netip.Addr
	if p.Web != nil {
		var err error
		if proxies, err = c.Web.Proxies(); err != nil {
			return err
		}
	}
	r := routes{l, p, s}
	return errors.Join(
		s.Handle(listener.Network, func(e *gin.Engine) { r.network(e, &s.Lingering) }),
		s.Handle(listener.OpenClaw, func(e *gin.Engine) { r.openClaw(e, config.Loopback(c.Skins.OpenClaw)) }),
		s.Handle(listener.Debug, listener.DebugRoutes),
		s.Handle(listener.VCCP, func(e *gin.Engine) {
			e.Use(httpserver.Guard(l.origins.Local), l.origins.Admit())
			mountAll(e, p.VCCP...)
		}),
		s.Handle(listener.Local, r.local),
		s.Handle(listener.TLS, func(e *gin.Engine) { r.network(e, nil) }),
		s.Handle(listener.Ingress, func(e *gin.Engine) {
			e.Use(p.Web.ProxiesOnly(proxies))
			r.network(e, nil)
		}),
		s.Handle(listener.Socket, func(e *gin.Engine) {
			p.Open(e)
			mountAll(e, p.Owner...)
		}))
}

// routes mounts the parts behind access checks, with a method for each kind of address.
type routes struct {
	locks     *Locks
	parts     Parts
	listeners *listener.Set
}

// mountAll calls each of the mounts with r.
func mountAll(r gin.IRouter, mounts ...Mount) {
	for _, mount := range mounts {
		mount(r)
	}
}

// network mounts the routes of an address on the owner's network. If robots connect to the address,
// lingering lets them close their connections before the server does. Otherwise lingering is nil,
// and the robots' routes serve only the simulated robot on the owner's page; without the page they are
// not mounted. Robots do not connect over TLS, because they cannot check a self-signed certificate.
func (r routes) network(e *gin.Engine, lingering *httpserver.Lingering) {
	l, p := r.locks, r.parts
	owner, skins, viewers := l.refused.OnRefusal(l.Owner.Check), l.refused.OnRefusal(l.skins.Check), l.refused.OnRefusal(l.Owner.Or(l.skins))
	if p.Web != nil {
		p.Web.HomeAssistantRoutes(e.Group("", httpserver.Guard(l.refused.CheckSlowly)))
		e.Use(p.Web.Authenticate(), web.UnlessBy(web.ByIngress, l.origins.Admit()), web.UnlessBy(web.ByIngress, httpserver.Guard(r.checkHost)))
		p.Web.Routes(e.Group("", httpserver.Guard(web.OrOwner(l.refused.CheckSlowly))), e.Group("", httpserver.Guard(l.Pace.Check)))
		owner, skins, viewers = web.OrOwner(owner), web.OrOwner(skins), web.OrOwner(viewers) // a logged-in owner needs no key
	} else {
		e.Use(l.origins.Admit(), httpserver.Guard(r.checkHost))
	}
	e.Use(unknownPath(httpserver.Guard(web.OrOwner(l.refused.CheckSlowly))))
	open := e.Group("", httpserver.Guard(l.Pace.Check))
	robots := httpserver.Guard(web.OwnerOnly)
	if lingering != nil {
		robots = lingering.Last()
	}
	if lingering != nil || p.Web != nil {
		downloads := r.listeners.Downloads.Below("/xiaozhi/ota/firmware/", "/xiaozhi/ota/assets/", "/xiaozhi/notify/")
		mountAll(open.Group("", robots, downloads), p.Robots...)
	}
	p.Open(open)
	r.owner(e.Group("", httpserver.Guard(owner)))
	p.Bridge(e.Group("", l.bridge.Binds, httpserver.Guard(l.refused.OnRefusal(l.bridge.Check))))
	p.Talks(open)
	bound := e.Group("", l.skins.Binds)
	r.skins(bound, skins)
	p.Character(bound.Group("", httpserver.Guard(viewers)), l.owns)
}

// checkHost refuses a request with the wrong Host header, and records the request if a robot has sent
// it, so that the owner can find that robot.
func (r routes) checkHost(request *http.Request) error {
	err := r.locks.hosts.Check(request)
	if err != nil && strings.HasPrefix(request.URL.Path, "/xiaozhi/") && request.Header.Get("Device-Id") != "" {
		r.parts.RecordRefusal(request, err)
	}
	return err
}

// owner mounts the owner's routes on a TCP address.
func (r routes) owner(e gin.IRouter) {
	mountAll(e, r.parts.Owner...)
	r.parts.BridgeAdmin(e)
}

// unknownPath returns a middleware that calls handler for requests that match no route.
func unknownPath(handler gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if c.FullPath() == "" {
			handler(c)
		}
	}
}

// local mounts the routes for programs on this machine, and for web pages from allowed_origins in
// browsers on this machine. The owner's API is not for these pages, but for programs and Perch's own page.
func (r routes) local(e *gin.Engine) {
	l, p := r.locks, r.parts
	e.Use(httpserver.Guard(l.origins.Local), l.origins.Admit())
	if p.Web != nil {
		e.Use(p.Web.Authenticate())
	}
	p.Open(e)
	r.owner(e.Group("", l.local))
	if p.Web != nil { // browsers on this machine need no key
		here := e.Group("", httpserver.Guard(httpserver.Local), web.AuthenticateLocal)
		p.Web.Routes(here, here)
		mountAll(here, p.Robots...)
	}
	p.Bridge(e)
	p.Talks(e)
	r.skins(e)
	p.Character(e, func(r *http.Request) bool { return httpserver.Local(r) == nil })
}

// skins mounts the routes for programs that show the agent. Without locks everybody may use these
// routes.
func (r routes) skins(e gin.IRouter, locks ...func(*http.Request) error) {
	p := r.parts
	p.Skin(e, locks...)
	mountAll(e.Group("", httpserver.Guard(locks...)), p.Skins...)
	upgrades := make([]func(*http.Request) error, 0, len(locks))
	for _, lock := range locks {
		upgrades = append(upgrades, httpserver.InUpgrade(p.QueryToken, lock))
	}
	mountAll(e.Group("", httpserver.Guard(upgrades...)), p.Upgrades...)
}

// openClaw mounts the routes of programs made for OpenClaw's gateway, which connect to the root
// path and so need an address to themselves. On a loopback address they need no key; elsewhere
// they send the skins' key as their token.
func (r routes) openClaw(e *gin.Engine, loopback bool) {
	l := r.locks
	if loopback {
		e.Use(httpserver.Guard(l.origins.Local))
	} else {
		e.Use(l.origins.Admit(), httpserver.Guard(l.hosts.Check), l.skins.Binds)
	}
	r.parts.OpenClaw(e)
}
