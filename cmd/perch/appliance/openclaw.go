package appliance

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"perch/cmd/perch/config"
	"perch/gateway/admin"
	"perch/gateway/door"
	"perch/gateway/openclaw"
)

// listenOpenClaw opens the door of programs made for OpenClaw's gateway, where it is
// wanted. It has a listener of its own, because they look for it at the root of one. Where
// other machines reach that, the skins' key is their token.
func (a *Appliance) listenOpenClaw(d *doors, l *locks) error {
	address := a.Config().Skins.OpenClaw
	if address == "" {
		return nil
	}
	o := openclaw.Options{Feed: a.feed, Talks: a.skins, Characters: a.Characters, Name: func() string { return a.Config().Persona.Name }, Version: a.Version, Log: a.Log}
	guards := []gin.HandlerFunc{door.Guard(l.origins.Local)}
	if !config.Loopback(address) {
		guards = []gin.HandlerFunc{l.origins.Admit(), door.Guard(l.hosts.Check), l.skins.Binds}
		o.Token = func(remote, token string) error { return l.skins.Try(&http.Request{RemoteAddr: remote}, token, nil) }
	}
	a.openClaw = openclaw.New(o)
	return d.listen(openClawKey, []string{address}, func(e *gin.Engine) {
		e.Use(guards...)
		a.openClaw.Routes(e)
	})
}

// openClawKey is the key of the configuration that names the address.
const openClawKey = "skins.openclaw"

// openClawPart lets those programs in, where it is wanted.
func (a *Appliance) openClawPart() part {
	if a.openClaw == nil {
		return part{}
	}
	return part{run: until(a.openClaw.Run), condition: only(func() admin.Part {
		return admin.Part{Name: "openclaw", OK: true}.Saying(
			fmt.Sprintf("serves %s; %d programs are connected", strings.Join(a.Doors.At(openClawKey), ", "), a.openClaw.Connected()))
	})}
}
