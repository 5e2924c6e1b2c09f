package ota

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"perch/device"
	"perch/event"
)

// table stores records by key. A power cut may undo a PutSoon of the last few seconds. When Put
// or Delete returns nil, its effect is durable, and so are the effects of all earlier calls of PutSoon
// on any table of the same database.
type table[T any] interface {
	Put(key string, v T) error
	PutSoon(key string, v T)
	Delete(key string) error
	All() iter.Seq2[string, T]
	Err() error // not nil if a loop over All may have ended early
}

// FirmwareOptions configure the catalogue.
type FirmwareOptions struct {
	Dir    string            // folder of the files; no other program may write to it
	Images table[Record]     // key: SHA-256
	Units  table[Unit]       // key: robot ID
	Key    []byte            // authenticates the download tickets
	Signer ed25519.PublicKey // every image must be signed with this key; nil means that no signature is required
	Bus    publisher
	Zone   *time.Location // time zone of the hours of rollouts
	// Stopped is called when the rollout of a version stops, because the image has failed on too many (failed)
	// of the first robots (first). It must not call methods of Firmware.
	Stopped func(version string, failed, first int)
	Log     *slog.Logger
	Fetch   http.RoundTripper // downloads images by URL; nil means an ordinary http.Transport
}

// Firmware is the catalogue of images and their rollouts. It is safe for concurrent use.
//
// An image consists of a file named by its hash and a record in the store. The file is written
// under another name, synced and renamed before its record is written; it is removed after its
// record. Therefore a power cut leaves at most a file without a record. The next start moves
// such a file to another folder instead of deleting it, because the record may have been lost.
type Firmware struct {
	o         FirmwareOptions
	started   time.Time            // wall clock at the start
	running   func() time.Duration // returns the time since the start, regardless of changes of the clock
	uploads   chan struct{}        // contains a value during an upload; only one upload is allowed at a time
	downloads chan struct{}        // contains a value for each download

	checks sync.WaitGroup // waits for the running checks of files

	mu       sync.Mutex             // guards the fields below
	images   map[string]Record      // key: SHA-256
	checked  map[string]checkedFile // results of the latest checks; key: SHA-256
	checking map[string]*imageCheck // running checks; key: SHA-256
	closed   bool                   // whether Close was called, after which no check may start
	units    map[device.ID]Unit
	busy     map[device.ID]int // number of downloads that each robot runs or waits for
}

// Limits of the catalogue.
const (
	maxImages            = 64
	maxUnits             = 2000 // robots; more than the registry holds, in case the state of a forgotten robot could not be deleted
	maxDownloads         = 32   // concurrent downloads
	maxDownloadsPerRobot = 2    // the current one, and an abandoned one before its timeout
)

// OpenFirmware opens the catalogue and creates its folder if necessary. It removes incomplete
// uploads and records whose file is missing or has another size, and moves files without a record
// to another folder.
func OpenFirmware(o FirmwareOptions) (*Firmware, error) {
	started := time.Now()
	f := &Firmware{o: o, started: started.Round(0), running: func() time.Duration { return time.Since(started) }, uploads: make(chan struct{}, 1),
		downloads: make(chan struct{}, maxDownloads),
		images:    maps.Collect(o.Images.All()), checked: map[string]checkedFile{}, checking: map[string]*imageCheck{},
		units: map[device.ID]Unit{}, busy: map[device.ID]int{}}
	for id, u := range o.Units.All() {
		f.units[device.ID(id)] = u
	}
	if err := errors.Join(o.Images.Err(), o.Units.Err()); err != nil {
		return nil, err // there may be records that cannot be read
	}
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return nil, fmt.Errorf("the folder for firmware cannot be created: %w", err)
	}
	return f, f.cleanUp()
}

var errNoImage = refuse("unknown_image", http.StatusNotFound, "there is no such image in the catalogue")

// records returns all images, newest first, each with its damage if a check has found any. The caller
// holds f.mu.
func (f *Firmware) records() []Record {
	records := slices.SortedFunc(maps.Values(f.images), newestFirst)
	for i := range records {
		records[i].damage = f.checked[records[i].SHA256].damage
	}
	return records
}

// checkIn handles the part of a check-in about firmware. It returns the image to offer, or nil,
// and whether the robot must install the image regardless of the versions.
func (f *Firmware) checkIn(s sighting) (offer *Record, force bool) {
	s.at = s.at.In(f.o.Zone)
	f.mu.Lock()
	defer f.mu.Unlock()
	unit, v, ok := f.decide(s)
	if !ok {
		return nil, false
	}
	if v.force {
		t := unit.Trials[v.offer.SHA256]
		t.Offered = f.afterChoices(s.at)
		unit.setTrial(v.offer.SHA256, t)
		// An image is forced only once, so the offer must be durable before it is sent.
		if err := f.o.Units.Put(string(s.robot), unit); err != nil {
			f.o.Log.Error("firmware is not offered to a robot, because the offer could not be stored", "robot", s.robot, "err", err)
			return nil, false
		}
	}
	f.storeUnit(s.robot, unit)
	for _, e := range v.events {
		f.o.Bus.Publish(s.robot, "", e)
	}
	if v.offer != nil {
		f.recordFirst(v.offer.SHA256, s.robot)
		f.o.Log.Info("a robot is offered firmware", "robot", s.robot, "runs", s.version, "version", v.offer.Version, "force", v.force)
	}
	for _, sha := range slices.Compact(v.failed) {
		f.recordFailure(sha, s.robot)
	}
	return v.offer, v.force
}

// afterChoices returns a time for a new choice of the owner: now, or a time just after the latest choice
// if that is not before now, for example because the clock was set back. The owner makes a choice by adding
// an image, or by choosing an image for a robot. The latest choice decides which image is installed. The
// caller holds f.mu.
func (f *Firmware) afterChoices(now time.Time) time.Time {
	choices := []time.Time{{}}
	for _, r := range f.images {
		choices = append(choices, r.Added)
	}
	for _, u := range f.units {
		for _, t := range u.Trials {
			if t.Chosen {
				choices = append(choices, t.Offered)
			}
		}
	}
	if last := slices.MaxFunc(choices, time.Time.Compare); !now.After(last) {
		return last.Add(time.Millisecond)
	}
	return now
}

// storeUnit stores the state of a robot, which a power cut may undo (see table). The caller holds f.mu.
func (f *Firmware) storeUnit(id device.ID, u Unit) {
	f.units[id] = u
	f.o.Units.PutSoon(string(id), u)
}

// recordFirst adds a robot to the first robots of a rollout, unless there are maxFirst already.
// The caller holds f.mu.
func (f *Firmware) recordFirst(sha string, robot device.ID) {
	r := f.images[sha]
	if len(r.First) >= maxFirst || slices.Contains(r.First, robot) {
		return
	}
	r.First = append(slices.Clone(r.First), robot)
	f.images[sha] = r
	f.o.Images.PutSoon(sha, r)
}

// recordFailure logs the failure of an image on a robot, and stops the rollout if the image has
// failed on too many of the first robots. The caller holds f.mu.
func (f *Firmware) recordFailure(sha string, robot device.ID) {
	r := f.images[sha]
	f.o.Log.Warn("a robot did not come back with the offered firmware", "robot", robot, "version", r.Version)
	failures := 0
	for _, id := range r.First {
		if f.units[id].Trials[sha].hasFailed() {
			failures++
		}
	}
	if failures < maxFirstFailures || r.Stopped != "" {
		return
	}
	r.Failed = failures
	r.Stopped = fmt.Sprintf("%d of the first %d robots did not come back with it", failures, len(r.First))
	f.images[sha] = r
	if err := f.o.Images.Put(sha, r); err != nil {
		f.o.Log.Error("a rollout has stopped, but this could not be stored", "sha256", sha, "err", err)
	}
	f.publishChange(sha)
	f.o.Log.Warn("a rollout of firmware has stopped", "version", r.Version, "err", r.Stopped)
	f.o.Stopped(r.Version, failures, len(r.First))
}

// Shown describes an image for the owner.
type Shown struct {
	Record
	Damaged string              `json:"damaged,omitempty"` // damage of the file, with advice; a damaged image is not offered
	Robots  map[device.ID]Trial `json:"robots"`            // the robots that the image was offered to or chosen for
}

// List returns the catalogue, the newest image first.
func (f *Firmware) List() []Shown {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []Shown{}
	for _, r := range f.records() {
		list = append(list, f.describe(r))
	}
	return list
}

// describe returns the description of an image for the owner. The caller holds f.mu.
func (f *Firmware) describe(r Record) Shown {
	s := Shown{Record: r, Robots: map[device.ID]Trial{}}
	if damage := f.checked[r.SHA256].damage; damage != nil {
		s.Damaged = damage.Error()
	}
	for id, u := range f.units {
		if t, ok := u.Trials[r.SHA256]; ok {
			s.Robots[id] = t
		}
	}
	return s
}

// Plan sets the rollout of an image. A stopped rollout begins again, but not for the robots on
// which the image has failed. A plan that only pauses or resumes the rollout changes nothing
// else: it does not restart a stopped rollout or forget the first robots. The error is a
// *httpserver.Fault or an internal error.
func (f *Firmware) Plan(sha string, plan Rollout) (Shown, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, ok := f.images[sha]
	if !ok {
		return Shown{}, errNoImage
	}
	for _, b := range plan.Boards {
		if !r.isDeclaredFor(b) {
			return Shown{}, badRollout("the image was not declared for the board %q; publish it for that board first", clip(b))
		}
	}
	if !r.Rollout.differsOnlyInPaused(plan) {
		r.Stopped, r.First, r.Failed = "", nil, 0
	}
	r.Rollout = plan
	if err := f.o.Images.Put(sha, r); err != nil {
		return Shown{}, fmt.Errorf("store the rollout: %w", err)
	}
	f.images[sha] = r
	f.publishChange(sha)
	return f.describe(r), nil
}

// publishChange publishes a change of an image, of its rollout or of an asset file.
func (f *Firmware) publishChange(name string) {
	f.o.Bus.Publish("", "", event.Changed{What: "firmware", ID: name})
}

// Remove removes an image from the catalogue, and the robots' trials of the image. Running downloads are
// completed.
func (f *Firmware) Remove(sha string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.images[sha]; !ok {
		return errNoImage
	}
	// Delete, below, also makes the changes of the units durable.
	before := map[device.ID]Unit{}
	for id, u := range f.units {
		if _, ok := u.Trials[sha]; ok || u.Wanted == sha {
			before[id] = u
			u.Trials = maps.Clone(u.Trials)
			delete(u.Trials, sha)
			if u.Wanted == sha {
				u.Wanted = ""
			}
			f.storeUnit(id, u)
		}
	}
	if err := f.o.Images.Delete(sha); err != nil {
		for id, u := range before {
			f.storeUnit(id, u)
		}
		return fmt.Errorf("remove the image: %w", err)
	}
	delete(f.images, sha)
	delete(f.checked, sha)
	delete(f.checking, sha)
	f.publishChange(sha)
	if err := os.Remove(f.path(sha)); err != nil {
		f.o.Log.Warn("the file of a removed image could not be deleted; the next start moves it to another folder", "err", err)
	}
	return nil
}

// Forget deletes the state of a robot.
func (f *Firmware) Forget(id device.ID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.o.Units.Delete(string(id)); err != nil {
		return fmt.Errorf("forget the firmware of %s: %w", id, err)
	}
	delete(f.units, id)
	return nil
}

// Update describes the firmware of a robot: the installed version, the latest image for the
// robot, and the progress of installing this image.
type Update struct {
	Installed     string `json:"installed_version"`
	Latest        string `json:"latest_version"` // version of the latest image; equals Installed if no image is newer
	SHA256        string `json:"sha256,omitempty"`
	Stage         Stage  `json:"stage,omitempty"`
	Bytes         int64  `json:"bytes,omitempty"`       // number of bytes of the image that were sent to the robot
	Size          int64  `json:"size,omitempty"`        // size of the image in bytes
	WasRolledBack bool   `json:"rolled_back,omitempty"` // whether the robot has rolled the image back at least once
}

// Update returns the state of a robot's firmware. The latest image is the newest that the robot
// can run, that is undamaged and that is newer than the robot's firmware, even if no rollout offers it.
func (f *Firmware) Update(id device.ID) Update {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.units[id]
	update := Update{Installed: u.Version, Latest: u.Version}
	if r := f.latest(u); r != nil {
		t := u.Trials[r.SHA256]
		update.Latest, update.SHA256, update.Stage, update.Bytes, update.Size, update.WasRolledBack = r.Version, r.SHA256, t.Stage, t.Bytes, r.Size, t.WasRolledBack
	}
	return update
}

// latest returns the newest image that a robot can run and that is newer than the robot's
// firmware, or nil. The caller holds f.mu.
func (f *Firmware) latest(u Unit) *Record {
	records := f.records()
	for i := range records {
		if newer, _ := isNewerVersion(records[i].Version, u.Version); newer && records[i].damage == nil && records[i].checkUnit(u) == nil {
			return &records[i]
		}
	}
	return nil
}

// Install makes the appliance offer an image to a robot at its next check-in, regardless of
// the rollout and of earlier failures. An empty sha means the latest image (see Update). path is the
// path and query of the URL of the image: a caller can make a connected robot download the image at once
// by calling the robot's tool self.upgrade_firmware with the URL. The error is a *httpserver.Fault or an
// internal error.
func (f *Firmware) Install(id device.ID, sha string, now time.Time) (path string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, sha, err = f.installable(id, sha)
	if err != nil {
		return "", err
	}
	c := f.check(sha)
	f.mu.Unlock()
	c.wait() // waits at most checkTimeout; if the check has not ended by then, the download waits for it
	f.mu.Lock()
	u, sha, err := f.installable(id, sha)
	if err != nil {
		return "", err
	}
	if damage := f.checked[sha].damage; damage != nil {
		return "", refuse("damaged_image", http.StatusConflict, "the image cannot be installed: %w", damage)
	}
	u.setTrial(sha, Trial{Chosen: true, Offered: f.afterChoices(now)})
	u.Wanted = sha
	if err := f.o.Units.Put(string(id), u); err != nil {
		return "", fmt.Errorf("store the choice of firmware: %w", err)
	}
	f.units[id] = u
	f.publishChange(sha)
	return f.location(sha, id, now), nil
}

// installable returns the state of a robot and the hash of the image to install: sha, or the
// latest image if sha is empty. The error is a *httpserver.Fault. The caller holds f.mu.
func (f *Firmware) installable(id device.ID, sha string) (Unit, string, error) {
	u, ok := f.units[id]
	if !ok {
		return Unit{}, "", refuse("unknown_robot", http.StatusNotFound,
			"this robot has not booted since it was adopted; restart it")
	}
	if sha == "" {
		r := f.latest(u)
		if r == nil {
			return Unit{}, "", refuse("nothing_newer", http.StatusConflict, "there is no newer image for this robot in the catalogue")
		}
		sha = r.SHA256
	}
	r, ok := f.images[sha]
	if !ok {
		return Unit{}, "", errNoImage
	}
	if err := r.checkUnit(u); err != nil {
		return Unit{}, "", refuse("wrong_board", http.StatusConflict, "%w", err)
	}
	return u, sha, nil
}

// checkUnit returns an error if a robot cannot run an image.
func (r Record) checkUnit(u Unit) error {
	switch {
	case !r.isDeclaredFor(u.Board):
		return fmt.Errorf("the image was not declared for the robot's board %q", u.Board)
	case u.Fixed:
		return errors.New("the robot has no partitions for updates; use a USB cable")
	}
	return r.checkTarget(u.target())
}

// progress records and publishes how many bytes of an image were sent to a robot. It stores
// only the end of a download.
func (f *Firmware) progress(id device.ID, sha string, sent int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, hasImage := f.images[sha]
	u, hasUnit := f.units[id]
	if !hasImage || !hasUnit {
		return
	}
	t := u.Trials[sha]
	if t.Stage == Installed || t.Stage == Failed || t.Stage == Downloaded {
		return // a repeated download does not change the outcome
	}
	t.Stage, t.Open, t.Bytes = Downloading, true, sent
	if sent >= r.Size {
		t.Stage = Downloaded
	}
	u.setTrial(sha, t)
	if f.units[id] = u; t.Stage == Downloaded {
		f.o.Units.PutSoon(string(id), u)
	}
	f.o.Bus.Publish(id, "", event.FirmwareProgress{Version: r.Version, Bytes: sent, Size: r.Size})
}
