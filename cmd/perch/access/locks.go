// Package access decides who may use which routes: it holds the appliance's access keys, and
// mounts the routes of each listener behind checks of these keys.
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

// Locks holds the access keys and rate limits of the appliance. All listeners share them, so
// that wrong keys sent to one listener count on every other.
type Locks struct {
	Token string           // the admin token
	Owner *httpserver.Key  // checks the admin token
	Pace  *httpserver.Pace // limits the rate of requests that need no key, and of robots' requests

	hosts   httpserver.Hosts
	origins httpserver.Origins
	refused *httpserver.Pace // limits the rate of refused requests, and of requests for the page before the login
	bridge  *httpserver.Key  // checks the key of the bridge API
	skins   *httpserver.Key  // checks the key of skins, which are programs that show the agent
}

// NewLocks returns the locks that a configuration describes. At the first start it creates the
// admin token in the data directory.
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

// Keys holds the access keys that the configuration sets and Apply can replace: one for the
// bridge API, one for skins.
type Keys struct{ bridge, skins string }

// ReadKeys reads the access keys from a configuration and from the files that it names.
func ReadKeys(c *config.Config) (k Keys, err error) {
	if k.bridge, err = secret.Read("key", c.Bridge.Key, c.Bridge.KeyFile); err != nil {
		return k, err
	}
	k.skins, err = secret.Read("key", c.Skins.Key, c.Skins.KeyFile)
	return k, err
}

// Apply replaces the access keys of the bridge API and of skins.
func (l *Locks) Apply(k Keys) {
	l.bridge.Set(k.bridge)
	l.skins.Set(k.skins)
}

// SkinsToken returns an error unless token is the skins' key. It also refuses a remote address
// that has sent too many wrong tokens.
func (l *Locks) SkinsToken(remote, token string) error {
	return l.skins.CheckToken(&http.Request{RemoteAddr: remote}, token, nil)
}

// owns reports whether the owner sent a request, that is, whether the request has the admin
// token or comes from a page that the owner has logged in to.
func (l *Locks) owns(r *http.Request) bool { return web.AuthMethodOf(r) != "" || l.Owner.Opened(r) }

// showsSecrets reports whether the response to a GET of path holds secrets, or the paths of
// their files.
func showsSecrets(path string) bool { return path == "/api/v1/config" || path == "/api/v1/backup" }

// local guards the owner's API on the loopback addresses that the configuration lists under
// local. Reading needs no key there. A request that changes something or shows secrets needs
// the admin token or a login session: a proxy on this machine that adds no headers to the
// requests of strangers looks like a local program.
func (l *Locks) local(c *gin.Context) {
	reads := c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead
	httpserver.Guard(httpserver.Local, func(r *http.Request) error {
		if reads && !showsSecrets(c.FullPath()) || web.AuthMethodOf(r) == web.ByCookie {
			return nil
		}
		err := l.Owner.Check(r)
		if fault, ok := errors.AsType[*httpserver.Fault](err); ok && fault.Word == "wrong_key" {
			return &httpserver.Fault{Word: fault.Word, HTTP: fault.HTTP, Sentence: "changes and secrets need the owner's authentication on this machine, too: " +
				"sudo perch open prints a link that lets a browser in, and programs send the admin token or use the socket of the commands"}
		}
		return err
	})(c)
}
