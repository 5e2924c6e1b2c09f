package main

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

// parts is the condition of each part. A brain is vital where no brain works.
func (a *app) parts() []admin.Part {
	parts := []admin.Part{
		storePart(a.db, a.data),
		diskPart(a.data, a.db.Err()), clockPart(time.Now(), a.built), a.doorsPart(), rolloutsPart(a.firmware.List()),
	}
	thinks := a.engines.thinks()
	for _, n := range a.engines.all {
		part := n.shown()
		part.Vital = n.list == "brain" && !thinks
		parts = append(parts, part)
	}
	if a.wyoming != nil {
		parts = append(parts, admin.Part{Name: "wyoming", OK: true, Note: "serves " + a.at.String()})
	}
	if k := a.doors.certificate; k != nil {
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
	for _, n := range e.all {
		if _, _, cause := n.Status(); n.list == "brain" && cause == nil {
			return true
		}
	}
	return false
}

// shown is an engine's condition.
func (n *engine) shown() admin.Part {
	since, _, cause := n.Status()
	part := admin.Part{Name: n.Part, OK: cause == nil, Since: since, Note: n.where}
	switch {
	case cause != nil:
		part.Note = cause.Error()
	case n.Limits() != nil:
		part.Note = n.Limits().Error()
	case n.note != nil:
		part.Note = n.note()
	}
	return part
}

// doorsPart is where everybody comes in. A listener that fails ends the
// appliance, so that only the commands' socket can be missing.
func (a *app) doorsPart() admin.Part {
	part := admin.Part{Name: "doors", OK: true, Note: "listens on " + strings.Join(a.doors.addresses(), ", ")}
	if path := socketPath(a.data); !isSocket(path) {
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
