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

// Mount mounts the routes of a part.
type Mount func(gin.IRouter)

// Parts are what is served, by who may use it.
type Parts struct {
	Open        Mount                            // everybody
	Owner       []Mount                          // the owner
	Robots      []Mount                          // robots, which show their own tokens
	TurnAway    func(r *http.Request, err error) // records a robot's request that is refused
	Bridge      Mount                            // programs with the bridge's key
	BridgeAdmin Mount                            // the owner, but not at the commands' socket
	Talks       Mount                            // coding agents, which show the token of their talk
	// Skin shows skins the agent, and checks the locks itself.
	Skin     func(r gin.IRouter, locks ...func(*http.Request) error)
	Skins    []Mount // programs with the skins' key
	Upgrades []Mount // the same, whose key comes when a WebSocket is opened
	// Character is for the owner and for programs with the skins' key. owns reports whether a
	// request is the owner's.
	Character  func(r gin.IRouter, owns func(*http.Request) bool)
	OpenClaw   Mount       // programs that send the skins' key later; may be nil
	Web        *web.Server // nil where the page is off
	QueryToken bool        // the skins' key may come in the query
}

// Handle mounts the parts on the listeners.
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
		s.Handle(listener.Local, r.local),
		s.Handle(listener.TLS, func(e *gin.Engine) { r.network(e, nil) }),
		s.Handle(listener.Ingress, func(e *gin.Engine) {
			e.Use(p.Web.ProxiesOnly(proxies))
			r.network(e, nil)
		}),
		s.Handle(listener.Socket, func(e *gin.Engine) {
			p.Open(e)
			mount(e, p.Owner...)
		}))
}

// routes mounts parts behind locks.
type routes struct {
	locks     *Locks
	parts     Parts
	listeners *listener.Set
}

func mount(r gin.IRouter, all ...Mount) {
	for _, one := range all {
		one(r)
	}
}

// network serves the owner's network. With a value for robots, their routes let them close
// their connections first. A robot cannot check a self-signed certificate, so that over TLS
// these routes are for the robot in the page of an owner.
func (r routes) network(e *gin.Engine, robots *httpserver.Lingering) {
	l, p := r.locks, r.parts
	owner, skins, viewers := l.refused.OnRefusal(l.Owner.Check), l.refused.OnRefusal(l.skins.Check), l.refused.OnRefusal(l.Owner.Or(l.skins))
	if p.Web != nil {
		p.Web.Card(e.Group("", httpserver.Guard(l.refused.CheckSlowly)))
		e.Use(p.Web.Recognize(), web.Unless(web.ByIngress, l.origins.Admit()), web.Unless(web.ByIngress, httpserver.Guard(r.host)))
		p.Web.Routes(e.Group("", httpserver.Guard(web.Or(l.refused.CheckSlowly))), e.Group("", httpserver.Guard(l.Pace.Check)))
		owner, skins, viewers = web.Or(owner), web.Or(skins), web.Or(viewers) // an owner who has logged in may use all
	} else {
		e.Use(l.origins.Admit(), httpserver.Guard(r.host))
	}
	e.Use(unknownPath(httpserver.Guard(web.Or(l.refused.CheckSlowly))))
	open := e.Group("", httpserver.Guard(l.Pace.Check))
	first := httpserver.Guard(web.Only)
	if robots != nil {
		first = robots.Last()
	}
	if robots != nil || p.Web != nil {
		downloads := r.listeners.Downloads.Below("/xiaozhi/ota/firmware/", "/xiaozhi/ota/assets/", "/xiaozhi/notify/")
		mount(open.Group("", first, downloads), p.Robots...)
	}
	p.Open(open)
	r.owner(e.Group("", httpserver.Guard(owner)))
	p.Bridge(e.Group("", l.bridge.Binds, httpserver.Guard(l.refused.OnRefusal(l.bridge.Check))))
	p.Talks(open)
	bound := e.Group("", l.skins.Binds)
	r.skins(bound, skins)
	p.Character(bound.Group("", httpserver.Guard(viewers)), l.owns)
}

// host refuses a request with another Host. Its owner finds a robot that is turned away so.
func (r routes) host(request *http.Request) error {
	err := r.locks.hosts.Check(request)
	if err != nil && strings.HasPrefix(request.URL.Path, "/xiaozhi/") && request.Header.Get("Device-Id") != "" {
		r.parts.TurnAway(request, err)
	}
	return err
}

// owner mounts what the owner uses by HTTP.
func (r routes) owner(e gin.IRouter) {
	mount(e, r.parts.Owner...)
	r.parts.BridgeAdmin(e)
}

// unknownPath is a handler for paths at which there is nothing.
func unknownPath(handler gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if c.FullPath() == "" {
			handler(c)
		}
	}
}

// local serves programs on this machine, and pages of allowed_origins that are open on it; the
// owner's API serves programs alone.
func (r routes) local(e *gin.Engine) {
	l, p := r.locks, r.parts
	e.Use(httpserver.Guard(l.origins.Local), l.origins.Admit())
	if p.Web != nil {
		e.Use(p.Web.Recognize())
	}
	p.Open(e)
	r.owner(e.Group("", l.local))
	if p.Web != nil { // browsers of this machine need no key
		here := e.Group("", httpserver.Guard(httpserver.Local), web.Here)
		p.Web.Routes(here, here)
		mount(here, p.Robots...)
	}
	p.Bridge(e)
	p.Talks(e)
	r.skins(e)
	p.Character(e, func(r *http.Request) bool { return httpserver.Local(r) == nil })
}

// skins mounts what shows the agent behind locks, or behind none for this machine.
func (r routes) skins(e gin.IRouter, locks ...func(*http.Request) error) {
	p := r.parts
	p.Skin(e, locks...)
	mount(e.Group("", httpserver.Guard(locks...)), p.Skins...)
	upgrades := make([]func(*http.Request) error, 0, len(locks))
	for _, lock := range locks {
		upgrades = append(upgrades, httpserver.InUpgrade(p.QueryToken, lock))
	}
	mount(e.Group("", httpserver.Guard(upgrades...)), p.Upgrades...)
}

// openClaw serves programs made for OpenClaw's gateway, on a listener where they are at the root.
// Where other machines reach that, the skins' key is their token.
func (r routes) openClaw(e *gin.Engine, loopback bool) {
	l := r.locks
	if loopback {
		e.Use(httpserver.Guard(l.origins.Local))
	} else {
		e.Use(l.origins.Admit(), httpserver.Guard(l.hosts.Check), l.skins.Binds)
	}
	r.parts.OpenClaw(e)
}
