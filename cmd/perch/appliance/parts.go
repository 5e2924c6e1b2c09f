package appliance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"perch/cmd/perch/config"
	"perch/gateway/admin"
	"perch/ota"
	"perch/store"
)

// Parts is the condition of each part. A brain is vital where no brain works.
func (a *Appliance) Parts() []admin.Part {
	parts := []admin.Part{
		storePart(a.Db, a.Data),
		diskPart(a.Data, a.Db.Err()), clockPart(time.Now(), a.built), a.doorsPart(), rolloutsPart(a.Firmware.List()),
	}
	thinks := a.Engines.thinks()
	for _, n := range a.Engines.All {
		part := n.shown()
		part.Vital = n.List == "brain" && !thinks
		parts = append(parts, part)
	}
	if a.wyoming != nil {
		parts = append(parts, admin.Part{Name: "wyoming", OK: true, Note: "serves " + a.At.String()})
	}
	if k := a.Doors.certificate; k != nil {
		fine, err := k.condition(time.Now())
		part := admin.Part{Name: "tls", OK: !errors.Is(err, config.ErrDates), Note: fine}
		if err != nil {
			part.Note = err.Error()
		}
		parts = append(parts, part)
	}
	return append(parts, a.mqttPart(), a.mdnsPart())
}

// storePart is the database. Without one that can be read nothing works; of
// damage that was salvaged it is told until the damaged file is removed. It is
// shown to anybody, whom neither keys of records nor folders concern.
func storePart(db *store.DB, data string) admin.Part {
	readable, refused := db.Readable(), db.Refused()
	told := []error{readable}
	if readable == nil { // else that is the cause of it
		told = append(told, db.Err())
	}
	told = append(told, refused)
	s := db.Salvaged()
	if s != nil {
		told = append(told, errors.New(s.Brief()))
	}
	fine := readable == nil && refused == nil && s == nil
	text := strings.ReplaceAll(note(errors.Join(told...)), filepath.Clean(data)+string(filepath.Separator), "")
	return admin.Part{Name: "store", OK: fine, Vital: fine || readable != nil, Note: text}
}

// thinks reports whether any brain works, as far as is known.
func (e *engines) thinks() bool {
	for _, n := range e.All {
		if _, _, cause := n.status(); n.List == "brain" && cause == nil {
			return true
		}
	}
	return false
}

// shown is an engine's condition.
func (n *Engine) shown() admin.Part {
	since, _, cause := n.status()
	part := admin.Part{Name: n.Part, OK: cause == nil, Since: since, Note: n.Where}
	switch {
	case cause != nil:
		part.Note = cause.Error()
	case n.limits() != nil:
		part.Note = n.limits().Error()
	case n.note != nil:
		part.Note = n.note()
	}
	return part
}

// doorsPart is where everybody comes in. A listener that fails ends the
// appliance, so that only the commands' socket can be missing.
func (a *Appliance) doorsPart() admin.Part {
	part := admin.Part{Name: "doors", OK: true, Note: "listens on " + strings.Join(a.Doors.Addresses(), ", ")}
	if path := socketPath(a.Data); !isSocket(path) {
		part.OK, part.Note = false, fmt.Sprintf("the commands of this machine find no socket at %s; restart the appliance, and see its log", path)
	}
	return part
}

func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeSocket != 0
}

// rolloutsPart is whether any rollout of firmware has stopped itself.
func rolloutsPart(images []ota.Shown) admin.Part {
	part := admin.Part{Name: "firmware", OK: true, Note: fmt.Sprintf("%d images", len(images))}
	for _, i := range images {
		if i.Stopped != "" {
			part.OK = false
			part.Note = fmt.Sprintf("the rollout of %s has stopped: %s; look at those robots, then set its rollout anew, or remove the image", i.Version, i.Stopped)
		}
	}
	return part
}
