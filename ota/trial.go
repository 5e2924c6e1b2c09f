package ota

import (
	"maps"
	"time"

	"perch/device"
	"perch/event"
	"perch/ota/espimage"
)

// Stage is a robot's progress with an image.
type Stage string

// The stages. An image is offered again until it is installed or has failed.
const (
	Offered     Stage = "offered"
	Downloading Stage = "downloading"
	Downloaded  Stage = "downloaded" // sent completely
	Installed   Stage = "installed"  // running on the robot
	RolledBack  Stage = "rolled_back"
	Failed      Stage = "failed" // not offered again
)

// Trial is the state of offering an image to a robot.
type Trial struct {
	Stage   Stage     `json:"stage"`
	From    string    `json:"from"`             // version that it ran at the latest offer
	Open    bool      `json:"open,omitempty"`   // the robot has not come back since the latest offer
	Misses  int       `json:"misses"`           // offers after which it came back without the image
	Forced  bool      `json:"forced,omitempty"` // it was sent with force, which is done once
	Chosen  bool      `json:"chosen,omitempty"` // the owner chose it for this robot, by hand or by force
	Backed  bool      `json:"backed,omitempty"` // the robot has rolled it back at least once
	Offered time.Time `json:"offered"`          // latest offer, or when it was chosen
	Bytes   int64     `json:"bytes,omitempty"`  // sent since then
}

// mostMisses is how many failed offers make a trial fail.
const mostMisses = 3

// Unit is the stored state of a robot's firmware.
type Unit struct {
	Board   string `json:"board"`
	Version string `json:"version"` // currently running

	// Confirmed identifies the image that the robot ran when it last got an answer without
	// an offer. That answer makes it keep the image: its boot loader rolls back an image
	// that restarts before.
	Confirmed string `json:"confirmed"`

	// The latest report with a valid body.

	Reported bool `json:"told"`
	Facts

	Wanted string           `json:"wanted,omitempty"` // SHA-256 of an image that the owner wants on it
	Trials map[string]Trial `json:"trials,omitempty"` // by SHA-256 of the image
}

// target returns what an image must fit.
func (u Unit) target() espimage.Target {
	if !u.Reported {
		return espimage.Target{Chip: espimage.NoChip, Revision: -1}
	}
	return espimage.Target{Chip: u.Chip, Revision: u.Revision, Slot: u.Slot}
}

// sighting is the part of a check-in that concerns firmware.
type sighting struct {
	robot   device.ID
	board   string
	version string
	elf     string // SHA-256 of the running ELF file, in hex; empty if unknown
	facts   *Facts // nil if the body was invalid
	at      time.Time
}

// running identifies what a robot runs, as precisely as it reported.
func (s sighting) running() string { return s.version + " " + s.elf }

// noELF is the hash in an image whose build did not fill it in.
const noELF = "0000000000000000000000000000000000000000000000000000000000000000"

// runs reports whether a robot runs an image. Two builds never share an ELF file.
func (s sighting) runs(i Image) bool {
	if s.elf != "" && i.ELF != noELF {
		return s.elf == i.ELF
	}
	return s.version == i.Version
}

// verdict is the result of a check-in.
type verdict struct {
	offer  *Record // nil for none
	force  bool
	events []event.Event
	failed []string // images that have just failed on this robot
}

// step returns the effect of a check-in on one robot, given the images, newest first. It
// does not change u.
func step(u Unit, s sighting, images []Record) (Unit, verdict) {
	u.Trials = maps.Clone(u.Trials)
	u.Board, u.Version = s.board, s.version
	if s.facts != nil {
		u.Reported, u.Facts = true, *s.facts
	}
	var v verdict
	chosen := u.chosen(s, images)
	u.updateTrials(s, images, !chosen.IsZero(), &v)
	if u.Confirmed != s.running() {
		u.Confirmed = s.running()
		return u, v
	}
	for _, r := range images {
		if u.Wanted != r.SHA256 && r.Added.Before(chosen) {
			continue // or the owner's choice would be undone at the next boot
		}
		if u.refuses(r, s) == "" {
			u.recordOffer(&r, s, &v)
			break
		}
	}
	return u, v
}

// chosen returns when the owner chose what the robot runs, or zero.
func (u Unit) chosen(s sighting, images []Record) (at time.Time) {
	for _, r := range images {
		if t := u.Trials[r.SHA256]; t.Chosen && s.runs(r.Image) {
			at = t.Offered
		}
	}
	return at
}

// updateTrials records the outcome of open offers. chosen says that the robot runs what its owner
// chose, which may be an older image.
func (u *Unit) updateTrials(s sighting, images []Record, chosen bool, v *verdict) {
	for _, r := range images {
		t, tried := u.Trials[r.SHA256]
		if !tried {
			continue
		}
		isNewer, _ := newer(r.Version, s.version) // both were comparable when the image was added
		switch {
		case s.runs(r.Image), t.Open && s.version == r.Version && t.From != r.Version:
			t = t.arrived(r.Image, v)
		case t.Stage == Failed:
		case t.Open && !isNewer && !t.Forced:
			t.Open = false // something newer was installed another way
			t.Misses++
		case t.Open, t.Stage == Installed && isNewer && !chosen:
			t = t.missed(r.Image, v)
		}
		u.Trials[r.SHA256] = t
		if u.Wanted == r.SHA256 && (t.Stage == Installed || t.Stage == Failed) {
			u.Wanted = ""
		}
	}
}

// arrived records that the robot runs the image.
func (t Trial) arrived(i Image, v *verdict) Trial {
	if t.Stage != Installed {
		v.events = append(v.events, event.FirmwareInstalled{Version: i.Version})
	}
	t.Stage, t.Open = Installed, false
	return t
}

// missed records that the robot came back without the image. If it ran the image and
// returned to the previous one, the image crashed before it was confirmed.
func (t Trial) missed(i Image, v *verdict) Trial {
	t.Misses++
	t.Open = false
	if t.Stage == Downloaded || t.Stage == Installed {
		t.Stage, t.Backed = RolledBack, true
		v.events = append(v.events, event.FirmwareRolledBack{Version: i.Version})
		v.failed = append(v.failed, i.SHA256)
	}
	if t.Misses >= mostMisses || t.Forced {
		t.Stage = Failed
		v.events = append(v.events, event.FirmwareFailed{Version: i.Version, Why: t.why(), Back: t.Backed})
		v.failed = append(v.failed, i.SHA256)
	}
	return t
}

func (t Trial) why() string {
	if t.Backed {
		return "it was installed, and the robot came back with the image before"
	}
	return "it was offered, and the robot came back without it"
}

// refuses returns why an image is not offered to a robot now, or "".
func (u Unit) refuses(r Record, s sighting) string {
	wanted := u.Wanted == r.SHA256
	t := u.Trials[r.SHA256]
	isNewer, err := newer(r.Version, s.version)
	switch {
	case s.runs(r.Image):
		return "it runs it"
	case !r.declared(s.board):
		return "the image was not declared for its board"
	case err != nil:
		return err.Error()
	case t.Stage == Failed, t.Misses >= mostMisses:
		return t.why()
	case t.Forced:
		return "it was forced once, which is not done again"
	case r.damage != nil:
		return r.damage.Error()
	case u.Fixed:
		return "it has no partitions for updates; it needs a cable"
	case r.fits(u.target()) != nil:
		return r.fits(u.target()).Error()
	case wanted:
		return ""
	case r.Stopped != "":
		return "the rollout has stopped: " + r.Stopped
	case !isNewer && !r.Rollout.Force:
		return "what it runs is as new"
	}
	return r.Rollout.reaches(r.SHA256, s.robot, s.board, s.at)
}

func (u *Unit) recordOffer(r *Record, s sighting, v *verdict) {
	t := u.Trials[r.SHA256]
	isNewer, _ := newer(r.Version, s.version) // compared by refuses
	v.offer, v.force = r, !isNewer            // refuses accepts an older one only if it is wanted
	t.Stage, t.Open, t.Offered, t.From, t.Bytes = Offered, true, s.at, s.version, 0
	t.Forced, t.Chosen = v.force, t.Chosen || v.force
	u.setTrial(r.SHA256, t)
	v.events = append(v.events, event.FirmwareOffered{Version: r.Version})
}

// setTrial stores a trial in a copy of the map, since others may use the old one.
func (u *Unit) setTrial(sha string, t Trial) {
	u.Trials = maps.Clone(u.Trials)
	if u.Trials == nil {
		u.Trials = map[string]Trial{}
	}
	u.Trials[sha] = t
}

// fails reports whether a trial counts against an image.
func (t Trial) fails() bool { return t.Stage == Failed || t.Backed && t.Stage != Installed }
