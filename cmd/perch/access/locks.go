// Package access says who may use what: the keys of the appliance, and what is served behind
// them on each listener.
package access

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/gin-gonic/gin"

	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/gateway/httpserver"
	"perch/gateway/owner/web"
	"perch/secret"
)

// Locks are the keys and limits, the same on every listener that the network reaches: failed
// tries at one listener count at all of them.
type Locks struct {
	Token string // of the owner
	Owner *httpserver.Key
	Pace  *httpserver.Pace // of requests without a lock, and of the robots'

	hosts   httpserver.Hosts
	origins httpserver.Origins
	refused *httpserver.Pace // of the page for those who have not logged in, and of all who are refused
	bridge  *httpserver.Key
	skins   *httpserver.Key
}

// NewLocks returns the locks of a configuration, and makes the owner's token at the first start.
func NewLocks(c *config.Config, data string, log *slog.Logger) (*Locks, error) {
	token, err := datadir.Secret(data, datadir.AdminTokenFile, log)
	if err != nil {
		return nil, err
	}
	k, err := ReadKeys(c)
	if err != nil {
		return nil, err
	}
	tokenFile, err := filepath.Abs(filepath.Join(data, datadir.AdminTokenFile))
	if err != nil {
		return nil, fmt.Errorf("find the data directory: %w", err)
	}
	hosts := append([]string(nil), c.AllowedHosts...)
	if u, err := url.Parse(c.PublicURL); err == nil && u.Hostname() != "" {
		hosts = append(hosts, strings.ToLower(u.Hostname()))
	}
	return &Locks{
		Token: token,
		Owner: httpserver.NewKey(token, tokenFile, "X-Admin-Token"),
		Pace:  httpserver.NewPace(),
		hosts: httpserver.Hosts{Allowed: hosts}, origins: httpserver.Origins{Allowed: c.AllowedOrigins}, refused: httpserver.NewPace(),
		bridge: httpserver.NewKey(k.bridge, "bridge.key", ""),
		skins:  httpserver.NewKey(k.skins, "skins.key", ""),
	}, nil
}

// Keys are those of the bridge and of the skins.
type Keys struct{ bridge, skins string }

// ReadKeys reads the keys of a configuration.
func ReadKeys(c *config.Config) (k Keys, err error) {
	if k.bridge, err = secret.Read("key", c.Bridge.Key, c.Bridge.KeyFile); err != nil {
		return k, err
	}
	k.skins, err = secret.Read("key", c.Skins.Key, c.Skins.KeyFile)
	return k, err
}

// Apply replaces the keys.
func (l *Locks) Apply(k Keys) {
	l.bridge.Set(k.bridge)
	l.skins.Set(k.skins)
}

// SkinsToken reports an error where a token, which somebody at a remote address has sent, is not
// the skins' key.
func (l *Locks) SkinsToken(remote, token string) error {
	return l.skins.CheckToken(&http.Request{RemoteAddr: remote}, token, nil)
}

// owns reports whether a request is the owner's: it has the admin token, or is of a page that
// the owner has logged in to.
func (l *Locks) owns(r *http.Request) bool { return web.HowOf(r) != "" || l.Owner.Opened(r) }

// showsSecrets reports whether reading what lies at a path shows secrets, or where they are.
func showsSecrets(path string) bool { return path == "/api/v1/config" || path == "/api/v1/backup" }

// local is a handler before the owner's API on the addresses in local. Reading needs no key
// there. What changes something or shows secrets needs the admin token or a session: a proxy on
// this machine that adds no headers looks like a program of it.
func (l *Locks) local(c *gin.Context) {
	reads := c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead
	httpserver.Guard(httpserver.Local, func(r *http.Request) error {
		if reads && !showsSecrets(c.FullPath()) || web.HowOf(r) == web.ByCookie {
			return nil
		}
		err := l.Owner.Check(r)
		if wrong, is := errors.AsType[*httpserver.Fault](err); is && wrong.Word == "wrong_key" {
			return &httpserver.Fault{Word: wrong.Word, HTTP: wrong.HTTP, Sentence: "changes and secrets need the owner on this machine, too: " +
				"perch open prints a link that lets a browser in, and programs send the admin token or use the socket of the commands"}
		}
		return err
	})(c)
}
