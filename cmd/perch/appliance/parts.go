package appliance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"perch/cmd/perch/config"
	"perch/gateway/admin"
	"perch/ota"
	"perch/store"
)

// machine is the condition of disk and clock.
func (a *Appliance) machine() []admin.Part {
	return []admin.Part{diskPart(a.Data, a.DB.Err()), clockPart(time.Now(), a.Built)}
}

// storePart is the database. Without one that can be read nothing works; damage
// that was salvaged is shown until the damaged file is removed. This is public,
// so it contains neither keys of records nor paths.
func storePart(db *store.DB, data string) admin.Part {
	readable, refused := db.Readable(), db.Refused()
	fault := readable
	if readable == nil { // else that is the cause of it
		fault = db.Err()
	}
	var notes []string
	for _, err := range []error{fault, refused} {
		if err != nil {
			notes = append(notes, err.Error())
		}
	}
	s := db.Salvaged()
	if s != nil {
		notes = append(notes, s.Brief())
	}
	fine := readable == nil && refused == nil && s == nil
	part := admin.Part{Name: "store", OK: fine, Vital: fine || readable != nil}
	return part.Saying(strings.ReplaceAll(strings.Join(notes, "; "), filepath.Clean(data)+string(filepath.Separator), ""))
}

// conditions are those of all engines. A brain is vital where no brain works, as
// far as is known.
func (e *engines) conditions() (all []admin.Part) {
	thinks := slices.ContainsFunc(e.All, func(n *Engine) bool {
		_, _, cause := n.Status()
		return n.List == "brain" && cause == nil
	})
	for _, n := range e.All {
		since, _, cause := n.Status()
		part := admin.Part{Name: n.Part, OK: cause == nil, Vital: n.List == "brain" && !thinks, Since: since, Note: n.Where}
		switch {
		case cause != nil:
			part = part.Saying(cause.Error())
		case n.Limits() != nil:
			part = part.Saying(n.Limits().Error())
		case n.note != nil:
			part = part.Saying(n.note())
		}
		all = append(all, part)
	}
	return all
}

// condition is where everybody comes in. A listener that fails ends the
// appliance, so that only the commands' socket can be missing.
func (d *doors) condition(data string) admin.Part {
	part := admin.Part{Name: "doors", OK: true}
	path := Socket(data)
	if info, err := os.Stat(path); err != nil || info.Mode()&os.ModeSocket == 0 {
		part.OK = false
		return part.Saying(fmt.Sprintf("the commands of this machine find no socket at %s; restart the appliance, and see its log", path))
	}
	return part.Saying(fmt.Sprintf("listens on %s", strings.Join(d.Addresses(), ", ")))
}

// rolloutsPart is whether any rollout of firmware has stopped itself, and whether the
// file of any image is known to be damaged.
func rolloutsPart(images []ota.Shown) admin.Part {
	part := admin.Part{Name: "firmware", OK: true}.Saying(fmt.Sprintf("%d images", len(images)))
	for _, i := range images {
		if i.Stopped != "" {
			part.OK = false
			part = part.Saying(
				fmt.Sprintf("the rollout of %s has stopped: %s; look at those robots, then set its rollout anew, or remove the image",
					i.Version, i.Stopped))
		}
		if i.Damaged != "" {
			part.OK = false
			part = part.Saying(fmt.Sprintf("the image %s is offered to no robot: %s", i.Version, i.Damaged))
		}
	}
	return part
}

// encryption is the condition of the certificate, where there is one: for whom and
// how long it is good, or what is wrong with it. Soon to expire is no failure yet.
func (d *doors) encryption() []admin.Part {
	if d.certificate == nil {
		return nil
	}
	shown, _ := d.certificate.get(nil) // it has no error
	err := config.Expiry(shown.Leaf, time.Now())
	part := admin.Part{Name: "tls", OK: !errors.Is(err, config.ErrDates)}
	if err != nil {
		return []admin.Part{part.Saying(err.Error())}
	}
	return []admin.Part{part.Saying(
		fmt.Sprintf("a certificate for %s, until %s", config.Names(shown.Leaf), shown.Leaf.NotAfter.Format(time.DateOnly)))}
}

// wyomingPart is the Wyoming server, where there is one.
func (a *Appliance) wyomingPart() part {
	if a.wyoming == nil {
		return part{}
	}
	shown := admin.Part{Name: "wyoming", OK: true}.Saying(fmt.Sprintf("serves %s", a.At))
	return part{run: a.wyoming.Run, end: a.wyoming.Close, condition: only(func() admin.Part { return shown })}
}
