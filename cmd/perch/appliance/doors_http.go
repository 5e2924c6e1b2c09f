package appliance

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/gin-gonic/gin"

	"perch/cmd/perch/config"
	"perch/gateway/door"
	"perch/gateway/web"
)

// locks are those of the doors, the same on every listener that the network
// reaches: failed tries at one listener count at all of them.
type locks struct {
	hosts   door.Hosts
	origins door.Origins
	pace    *door.Pace // of doors without a lock, and of the robots'
	others  *door.Pace // of the page for those who have not come in, and of all who are refused
	token   string     // of the owner
	owner   *door.Key
	bridge  *door.Key
	skins   *door.Key
}

func newLocks(a *Appliance) (*locks, error) {
	c := a.Config()
	token, err := Secret(a.Data, "admin-token", a.Log)
	if err != nil {
		return nil, err
	}
	bridge, skins, err := doorKeys(c)
	if err != nil {
		return nil, err
	}
	tokenFile, err := filepath.Abs(filepath.Join(a.Data, "admin-token"))
	if err != nil {
		return nil, fmt.Errorf("find the data directory: %w", err)
	}
	hosts := append([]string(nil), c.AllowedHosts...)
	if u, err := url.Parse(c.PublicURL); err == nil && u.Hostname() != "" {
		hosts = append(hosts, strings.ToLower(u.Hostname()))
	}
	return &locks{
		hosts: door.Hosts{Allowed: hosts}, origins: door.Origins{Allowed: c.AllowedOrigins}, pace: door.NewPace(), others: door.NewPace(),
		token:  token,
		owner:  door.NewKey(token, tokenFile, "X-Admin-Token"),
		bridge: door.NewKey(bridge, "bridge.key", ""),
		skins:  door.NewKey(skins, "skins.key", ""),
	}, nil
}

// doorKeys are those of the bridge and of the skins.
func doorKeys(c *config.Config) (bridge, skins string, err error) {
	if bridge, err = config.Secret("key", c.Bridge.Key, c.Bridge.KeyFile); err != nil {
		return "", "", err
	}
	skins, err = config.Secret("key", c.Skins.Key, c.Skins.KeyFile)
	return bridge, skins, err
}

// owns reports whether a request is of the owner: it has the admin token, or is of a page
// that the owner has logged in to.
func (l *locks) owns(r *http.Request) bool { return web.HowOf(r) != "" || l.owner.Opened(r) }

// networkRoutes serve the owner's network. With a value for robots, their doors let
// them close their connections first. A robot cannot check a self-signed certificate,
// so that over TLS these doors are for the robot in the page of an owner.
func (a *Appliance) networkRoutes(e *gin.Engine, l *locks, robots *door.Lingering) {
	keys := keys{l.others.OnRefusal(l.owner.Check), l.others.OnRefusal(l.skins.Check), l.others.OnRefusal(l.owner.Or(l.skins))}
	if a.web != nil {
		keys = a.pageRoutes(e, l, keys)
	} else {
		e.Use(l.origins.Admit(), door.Guard(l.hosts.Check))
	}
	e.Use(nothingThere(door.Guard(web.Or(l.others.CheckSlowly))))
	open := e.Group("", door.Guard(l.pace.Check))
	first := door.Guard(web.Only)
	if robots != nil {
		first = robots.Last()
	}
	if robots != nil || a.web != nil {
		doors := open.Group("", first, a.Doors.downloads.Below("/xiaozhi/ota/firmware/", "/xiaozhi/ota/assets/", "/xiaozhi/notify/"))
		a.ota.Routes(doors)
		a.Talk.Routes(doors)
	}
	a.admin.Open(open)
	owner := e.Group("", door.Guard(keys.owner))
	a.admin.Routes(owner)
	a.metrics.Routes(owner)
	a.pageOwned(owner)
	a.relays.Routes(owner)
	a.character.Owned(owner)
	a.bridge.Admin(owner)
	a.bridge.Routes(e.Group("", l.bridge.Binds, door.Guard(l.others.OnRefusal(l.bridge.Check))))
	a.talks.Routes(open)
	skins := e.Group("", l.skins.Binds)
	a.skinRoutes(skins, keys.skins)
	a.character.Routes(skins.Group("", door.Guard(keys.viewers)), l.owns)
}

// nothingThere is a handler for paths at which there is nothing.
func nothingThere(handler gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if c.FullPath() == "" {
			handler(c)
		}
	}
}

// showsSecrets reports whether reading what lies at a path shows secrets, or where they are.
func showsSecrets(path string) bool { return path == "/api/v1/config" || path == "/api/v1/backup" }

// here is a handler before the owner's doors on the addresses in local. Reading needs no key
// there. What changes something or shows secrets needs the admin token or a session, for a
// proxy on this machine that says nothing of itself looks like a program of it.
func (l *locks) here(c *gin.Context) {
	reads := c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead
	door.Guard(door.Local, func(r *http.Request) error {
		if reads && !showsSecrets(c.FullPath()) || web.HowOf(r) == web.ByCookie {
			return nil
		}
		err := l.owner.Check(r)
		if wrong, is := errors.AsType[*door.Fault](err); is && wrong.Word == "wrong_key" {
			return &door.Fault{Word: wrong.Word, HTTP: wrong.HTTP, Sentence: "changes and secrets need the owner on this machine, too: " +
				"perch open prints a link that lets a browser in, and programs send the admin token or use the socket of the commands"}
		}
		return err
	})(c)
}

// localRoutes serve programs on this machine, and pages of allowed_origins that
// are open on it; the owner's doors programs alone.
func (a *Appliance) localRoutes(e *gin.Engine, l *locks) {
	e.Use(door.Guard(l.origins.Local), l.origins.Admit())
	if a.web != nil {
		e.Use(a.web.Recognize())
	}
	a.admin.Open(e)
	owner := e.Group("", l.here)
	a.admin.Routes(owner)
	a.metrics.Routes(owner)
	a.pageOwned(owner)
	a.relays.Routes(owner)
	a.character.Owned(owner)
	a.bridge.Admin(owner)
	a.pageHere(e)
	a.bridge.Routes(e)
	a.talks.Routes(e)
	a.skinRoutes(e)
	a.character.Routes(e, func(r *http.Request) bool { return door.Local(r) == nil })
}
