package ota

import (
	"maps"
	"time"

	"perch/device"
	"perch/event"
	"perch/ota/espimage"
)

// Stage is the progress of an image on a robot.
type Stage string

// The stages. An image is offered again until it is installed or has failed.
const (
	Offered     Stage = "offered"
	Downloading Stage = "downloading"
	Downloaded  Stage = "downloaded"  // sent completely
	Installed   Stage = "installed"   // running on the robot
	RolledBack  Stage = "rolled_back" // the robot has returned to its previous image
	Failed      Stage = "failed"      // not offered again, unless the owner chooses the image
)

// Trial is the state of an image on a robot, from the first offer or the owner's choice on.
type Trial struct {
	Stage         Stage     `json:"stage"`            // empty before the first offer
	From          string    `json:"from"`             // version of the robot at the latest offer
	Open          bool      `json:"open,omitempty"`   // whether the robot has not checked in since the latest offer or download
	Misses        int       `json:"misses"`           // number of offers after which the robot checked in without the image
	Forced        bool      `json:"forced,omitempty"` // whether the image was offered with force, which happens only once
	Chosen        bool      `json:"chosen,omitempty"` // whether the owner has chosen the image for this robot, by Install or by force
	WasRolledBack bool      `json:"backed,omitempty"` // whether the robot has rolled the image back at least once
	Offered       time.Time `json:"offered"`          // time of the latest offer or choice
	Bytes         int64     `json:"bytes,omitempty"`  // number of bytes of the image sent since the latest offer
}

// maxMisses is the number of misses after which an image has failed.
const maxMisses = 3

// Unit is the stored state of a robot's firmware.
type Unit struct {
	Board   string `json:"board"`
	Version string `json:"version"` // version that the robot runs

	// Confirmed identifies the image that the robot ran when it last got a reply without an
	// offer. Such a reply makes the robot confirm the image: if a robot restarts before it
	// confirms a new image, its boot loader returns to the previous one.
	Confirmed string `json:"confirmed"`

	Reported bool `json:"told"` // whether the robot has ever reported its facts
	Facts         // from the latest check-in that reported facts

	Wanted string           `json:"wanted,omitempty"` // SHA-256 of the image that the owner has chosen by Install; empty if none is due
	Trials map[string]Trial `json:"trials,omitempty"` // key: SHA-256 of the image
}

// target returns the description of the robot for Image.checkTarget.
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
	facts   *Facts // nil if the body was invalid or named no known chip
	at      time.Time
}

// running identifies the image that the robot runs.
func (s sighting) running() string { return s.version + " " + s.elf }

// noELF is the ELF hash of an image whose build has not set the hash.
const noELF = "0000000000000000000000000000000000000000000000000000000000000000"

// isRunning reports whether the robot runs an image. It compares the hashes of the ELF files,
// which differ between builds, or the versions if one of the hashes is unknown.
func (s sighting) isRunning(i Image) bool {
	if s.elf != "" && i.ELF != noELF {
		return s.elf == i.ELF
	}
	return s.version == i.Version
}

// verdict is the result of a check-in: what to offer and to publish.
type verdict struct {
	offer  *Record // the image to offer; nil for no offer
	force  bool    // whether the robot must install the offer regardless of versions
	events []event.Event
	failed []string // SHA-256 of the images that have just failed on the robot
}

// step returns the state of a robot after a check-in, and the verdict. images are sorted newest
// first. step does not modify u.
func step(u Unit, s sighting, images []Record) (Unit, verdict) {
	u.Trials = maps.Clone(u.Trials)
	u.Board, u.Version = s.board, s.version
	if s.facts != nil {
		u.Reported, u.Facts = true, *s.facts
	}
	var v verdict
	chosen := u.chosenAt(s, images)
	u.updateTrials(s, images, !chosen.IsZero(), &v)
	if u.Confirmed != s.running() {
		u.Confirmed = s.running()
		return u, v
	}
	for _, r := range images {
		if u.Wanted != r.SHA256 && r.Added.Before(chosen) {
			continue // an image from before the owner's choice would undo the choice
		}
		if u.reasonAgainst(r, s) == "" {
			u.recordOffer(&r, s, &v)
			break
		}
	}
	return u, v
}

// chosenAt returns when the owner chose the image that the robot runs, or the zero time.
func (u Unit) chosenAt(s sighting, images []Record) (at time.Time) {
	for _, r := range images {
		if t := u.Trials[r.SHA256]; t.Chosen && s.isRunning(r.Image) {
			at = t.Offered
		}
	}
	return at
}

// updateTrials updates the trials after a check-in. chosen means that the owner has chosen the
// image that the robot runs, which may be older than others.
func (u *Unit) updateTrials(s sighting, images []Record, chosen bool, v *verdict) {
	for _, r := range images {
		t, ok := u.Trials[r.SHA256]
		if !ok {
			continue
		}
		isNewer, _ := isNewerVersion(r.Version, s.version) // on an error isNewer is false
		switch {
		case s.isRunning(r.Image), t.Open && s.version == r.Version && t.From != r.Version:
			t = t.recordInstalled(r.Image, v)
		case t.Stage == Failed:
		case t.Open && !isNewer && !t.Forced:
			t.Open = false // the robot runs another image, at least as new, that was installed by other means
			t.Misses++
		case t.Open, t.Stage == Installed && isNewer && !chosen:
			t = t.recordMiss(r.Image, v)
		}
		u.Trials[r.SHA256] = t
		if u.Wanted == r.SHA256 && (t.Stage == Installed || t.Stage == Failed) {
			u.Wanted = ""
		}
	}
}

// recordInstalled returns the trial after a check-in of a robot that runs the image.
func (t Trial) recordInstalled(i Image, v *verdict) Trial {
	if t.Stage != Installed {
		v.events = append(v.events, event.FirmwareInstalled{Version: i.Version})
	}
	t.Stage, t.Open = Installed, false
	return t
}

// recordMiss returns the trial after a check-in of a robot that does not run the image. If the
// robot has downloaded or run the image before, the image counts as rolled back: the boot loader
// returns to the previous image if the robot restarts before it confirms the new one.
func (t Trial) recordMiss(i Image, v *verdict) Trial {
	t.Misses++
	t.Open = false
	if t.Stage == Downloaded || t.Stage == Installed {
		t.Stage, t.WasRolledBack = RolledBack, true
		v.events = append(v.events, event.FirmwareRolledBack{Version: i.Version})
		v.failed = append(v.failed, i.SHA256)
	}
	if t.Misses >= maxMisses || t.Forced {
		t.Stage = Failed
		v.events = append(v.events, event.FirmwareFailed{Version: i.Version, Why: t.failureReason(), WasRolledBack: t.WasRolledBack})
		v.failed = append(v.failed, i.SHA256)
	}
	return t
}

// failureReason returns why the image has failed.
func (t Trial) failureReason() string {
	if t.WasRolledBack {
		return "it was installed, and the robot came back with its previous image"
	}
	return "it was offered, and the robot came back without it"
}

// reasonAgainst returns why an image is not offered to a robot now, or "" if the image is offered.
func (u Unit) reasonAgainst(r Record, s sighting) string {
	wanted := u.Wanted == r.SHA256
	t := u.Trials[r.SHA256]
	isNewer, err := isNewerVersion(r.Version, s.version)
	switch {
	case s.isRunning(r.Image):
		return "it already runs the image"
	case !r.isDeclaredFor(s.board):
		return "the image was not declared for its board"
	case err != nil:
		return err.Error()
	case t.Stage == Failed, t.Misses >= maxMisses:
		return t.failureReason()
	case t.Forced:
		return "it was already forced once"
	case r.damage != nil:
		return r.damage.Error()
	case u.Fixed:
		return "it has no partitions for updates; use a USB cable"
	case r.checkTarget(u.target()) != nil:
		return r.checkTarget(u.target()).Error()
	case wanted:
		return ""
	case r.Stopped != "":
		return "the rollout has stopped: " + r.Stopped
	case !isNewer && !r.Rollout.Force:
		return "it runs an image that is as new"
	}
	return r.Rollout.reasonAgainst(r.SHA256, s.robot, s.board, s.at)
}

// recordOffer adds the offer of an image to the verdict and to the trials.
func (u *Unit) recordOffer(r *Record, s sighting, v *verdict) {
	t := u.Trials[r.SHA256]
	isNewer, _ := isNewerVersion(r.Version, s.version) // reasonAgainst has handled the error
	v.offer, v.force = r, !isNewer                     // reasonAgainst permits an older image only if it is wanted or forced
	t.Stage, t.Open, t.Offered, t.From, t.Bytes = Offered, true, s.at, s.version, 0
	t.Forced, t.Chosen = v.force, t.Chosen || v.force
	u.setTrial(r.SHA256, t)
	v.events = append(v.events, event.FirmwareOffered{Version: r.Version})
}

// setTrial sets the trial of an image. It copies the map, because copies of u share it.
func (u *Unit) setTrial(sha string, t Trial) {
	u.Trials = maps.Clone(u.Trials)
	if u.Trials == nil {
		u.Trials = map[string]Trial{}
	}
	u.Trials[sha] = t
}

// hasFailed reports whether the trial counts as a failure in the decision to stop the image's rollout.
func (t Trial) hasFailed() bool { return t.Stage == Failed || t.WasRolledBack && t.Stage != Installed }
