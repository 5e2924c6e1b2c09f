package appliance

import (
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/gin-gonic/gin"

	"perch/gateway/admin"
	"perch/gateway/door"
	"perch/gateway/web"
)

// openPage makes the page, where there is to be one.
func (a *Appliance) openPage(l *locks) error {
	if !a.Config().Web.Enabled {
		return nil
	}
	proxies, err := a.Config().Web.Proxies()
	if err != nil {
		return err
	}
	if a.Config().Web.IngressListen != "" {
		proxies = nil // they have an address of their own
	}
	o := web.Options{Name: a.Config().Name, Language: a.firstLanguage, Version: a.Version, Secret: l.token,
		Epoch: a.sessions, KeepEpoch: func(epoch string) error { return writeSecret(filepath.Join(a.Data, sessionsFile), epoch) },
		Key: l.owner, Ingress: proxies, Addresses: a.found, Own: a.Doors.own, Pace: l.pace.Check, Log: a.Log}
	if a.homeAssistant != nil {
		o.Administrators = a.homeAssistant.administrators
	}
	a.web = web.New(o)
	return nil
}

// found are the addresses by which others on the network find this appliance, the
// best first.
func (a *Appliance) found() (all []string) {
	if at := a.address(); at != "" {
		all = append(all, at)
	}
	if port, ok := a.Doors.announced(); ok && a.Config().PublicURL == "" {
		if at := byNumbers(a.Doors.Addresses(), port); at != "" {
			all = append(all, at)
		}
	}
	return all
}

// ingressKey is the key of the configuration that names the address for proxies alone.
const ingressKey = "web.ingress_listen"

// listenIngress opens the address for proxies that let in owners only, where there is to be
// one. Where it cannot be opened, all else works.
func (a *Appliance) listenIngress(d *doors, l *locks) error {
	at := a.Config().Web.IngressListen
	if at == "" || a.web == nil {
		return nil
	}
	proxies, err := a.Config().Web.Proxies()
	if err != nil {
		return err
	}
	d.noIngress = d.listen(ingressKey, []string{at}, func(e *gin.Engine) {
		e.Use(a.web.Through(proxies))
		a.networkRoutes(e, l, nil)
	})
	if d.noIngress != nil {
		a.Log.Warn("Home Assistant cannot show the page", "err", d.noIngress)
	}
	return nil
}

// pagePart is the page, where there is one.
func (a *Appliance) pagePart() part {
	if a.web == nil {
		return part{}
	}
	return part{condition: only(func() admin.Part {
		shown := admin.Part{Name: "page", OK: a.Doors.noIngress == nil}
		switch {
		case !shown.OK:
			return shown.Saying(fmt.Sprintf("Home Assistant cannot show it: %v", a.Doors.noIngress))
		case !a.web.Bundled():
			return shown.Saying("this program was built without its page; make build bundles it")
		}
		return shown.Saying(fmt.Sprintf("is at %s/", a.Doors.own()))
	})}
}

// keys are the checks of the doors that an owner who has come in by the page may use,
// too.
type keys struct {
	owner, skins func(*http.Request) error
	viewers      func(*http.Request) error // of either
}

// pageRoutes mount the page for the network, and the checks of Host and Origin for
// all that is mounted after it. It returns the locks that an owner who has come in opens,
// too.
func (a *Appliance) pageRoutes(e *gin.Engine, l *locks, k keys) keys {
	a.web.Card(e.Group("", door.Guard(l.others.CheckSlowly)))
	e.Use(a.web.Recognize(), web.Unless(web.ByIngress, l.origins.Admit()), web.Unless(web.ByIngress, door.Guard(l.hosts.Check)))
	a.web.Routes(e.Group("", door.Guard(web.Or(l.others.CheckSlowly))), e.Group("", door.Guard(l.pace.Check)))
	return keys{web.Or(k.owner), web.Or(k.skins), web.Or(k.viewers)}
}

// pageHere mounts the page for browsers of this machine, who need no key, and the
// robots' doors for the robot in it.
func (a *Appliance) pageHere(e *gin.Engine) {
	if a.web == nil {
		return
	}
	here := e.Group("", door.Guard(door.Local), web.Here)
	a.web.Routes(here, here)
	a.ota.Routes(here)
	a.Talk.Routes(here)
}

// pageOwned mounts what the page's owner asks for.
func (a *Appliance) pageOwned(owner gin.IRouter) {
	if a.web != nil {
		a.web.Owned(owner)
	}
}
