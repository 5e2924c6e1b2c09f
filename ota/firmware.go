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

// table stores records. PutSoon may lose the last few seconds in a power cut. Put and
// Delete may not, and also store what PutSoon has queued.
type table[T any] interface {
	Put(key string, v T) error
	PutSoon(key string, v T)
	Delete(key string) error
	All() iter.Seq2[string, T]
	Err() error // set if a loop over All may have ended early
}

// FirmwareOptions configure the catalogue.
type FirmwareOptions struct {
	Dir    string            // of the files; no other program may write them
	Images table[Record]     // by SHA-256
	Units  table[Unit]       // by robot
	Key    []byte            // of the download tickets
	Signer ed25519.PublicKey // must have signed every image; nil requires no signature
	Bus    publisher
	Zone   *time.Location // of the hours of rollouts
	// Stopped is called when a rollout stops because too many of its first robots failed.
	Stopped func(version string, failed, first int)
	Log     *slog.Logger
	Fetch   http.RoundTripper // fetches images by URL; nil is the network
}

// Firmware is the catalogue of images and their rollouts. It is safe for concurrent use.
//
// An image is a file named by its hash, and a record in the store. The file is written
// under another name, synced and renamed before its record is written, and removed after
// its record. So the catalogue survives a power cut at any time. At the next start a file
// without a record is put aside; it is not deleted, because the record may have been lost.
type Firmware struct {
	o         FirmwareOptions
	began     time.Time            // wall clock at the start
	running   func() time.Duration // time since then; it never jumps
	uploads   chan struct{}        // a semaphore for one, which is checked against the whole catalogue
	downloads chan struct{}

	checks sync.WaitGroup // of images' files

	mu       sync.Mutex
	images   map[string]Record
	checked  map[string]checkedFile // images' files, by SHA-256
	checking map[string]*imageCheck // running checks
	closed   bool                   // no more checks start
	units    map[device.ID]Unit
	busy     map[device.ID]int // downloads per robot
}

// Limits of the catalogue.
const (
	mostImages    = 64
	mostUnits     = 2000 // robots; more than the registry has, which may have forgotten some
	mostDownloads = 32   // at once
	mostOfOne     = 2    // per robot: its latest, and an abandoned download that has not stalled yet
)

// OpenFirmware opens the catalogue, creating its folder. Incomplete uploads are removed.
// Records without a file are removed, and files without a record are put aside.
func OpenFirmware(o FirmwareOptions) (*Firmware, error) {
	began := time.Now()
	f := &Firmware{o: o, began: began.Round(0), running: func() time.Duration { return time.Since(began) }, uploads: make(chan struct{}, 1),
		downloads: make(chan struct{}, mostDownloads),
		images:    maps.Collect(o.Images.All()), checked: map[string]checkedFile{}, checking: map[string]*imageCheck{},
		units: map[device.ID]Unit{}, busy: map[device.ID]int{}}
	for id, u := range o.Units.All() {
		f.units[device.ID(id)] = u
	}
	if err := errors.Join(o.Images.Err(), o.Units.Err()); err != nil {
		return nil, err // records may exist but be unreadable
	}
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return nil, fmt.Errorf("the folder for firmware cannot be made: %w", err)
	}
	return f, f.sweep()
}

var errNoImage = &fault{"unknown_image", http.StatusNotFound, errors.New("there is no such image in the catalogue")}

// records returns the images, newest first, with the damage found so far. f.mu is held.
func (f *Firmware) records() []Record {
	all := slices.SortedFunc(maps.Values(f.images), newestFirst)
	for i := range all {
		all[i].damage = f.checked[all[i].SHA256].damage
	}
	return all
}

// checkIn judges a robot's check-in and returns the image to offer, or nil.
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
		// Forced once, so it must be recorded before it is sent.
		if err := f.o.Units.Put(string(s.robot), unit); err != nil {
			f.o.Log.Error("a robot is not offered its firmware, for that could not be kept", "robot", s.robot, "err", err)
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

// afterChoices returns now or, if the clock was set back, a time after every earlier choice of the
// owner, because the latest choice counts. f.mu is held.
func (f *Firmware) afterChoices(now time.Time) time.Time {
	done := []time.Time{{}}
	for _, r := range f.images {
		done = append(done, r.Added)
	}
	for _, u := range f.units {
		for _, t := range u.Trials {
			if t.Chosen {
				done = append(done, t.Offered)
			}
		}
	}
	if last := slices.MaxFunc(done, time.Time.Compare); !now.After(last) {
		return last.Add(time.Millisecond)
	}
	return now
}

// storeUnit stores the state of a robot. f.mu is held.
func (f *Firmware) storeUnit(id device.ID, u Unit) {
	f.units[id] = u
	f.o.Units.PutSoon(string(id), u)
}

// recordFirst records a first robot of a rollout. f.mu is held.
func (f *Firmware) recordFirst(sha string, robot device.ID) {
	r := f.images[sha]
	if len(r.First) >= firstRobots || slices.Contains(r.First, robot) {
		return
	}
	r.First = append(slices.Clone(r.First), robot)
	f.images[sha] = r
	f.o.Images.PutSoon(sha, r)
}

// recordFailure records a failure, and stops a rollout if too many first robots have failed. f.mu is held.
func (f *Firmware) recordFailure(sha string, robot device.ID) {
	r := f.images[sha]
	f.o.Log.Warn("a robot did not come back with the firmware it was offered", "robot", robot, "version", r.Version)
	failures := 0
	for _, id := range r.First {
		if f.units[id].Trials[sha].fails() {
			failures++
		}
	}
	if failures < firstFailures || r.Stopped != "" {
		return
	}
	r.Failed = failures
	r.Stopped = fmt.Sprintf("%d of the first %d robots did not come back with it", failures, len(r.First))
	f.images[sha] = r
	if err := f.o.Images.Put(sha, r); err != nil {
		f.o.Log.Error("a rollout has stopped, which could not be kept", "sha256", sha, "err", err)
	}
	f.changed(sha)
	f.o.Log.Warn("a rollout of firmware has stopped", "version", r.Version, "err", r.Stopped)
	f.o.Stopped(r.Version, failures, len(r.First))
}

// Shown is an image as shown to its owner.
type Shown struct {
	Record
	Damaged string              `json:"damaged,omitempty"` // why it is offered to nobody, with advice
	Robots  map[device.ID]Trial `json:"robots"`            // to whom it was offered
}

// List returns the catalogue, the newest image first.
func (f *Firmware) List() []Shown {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []Shown{}
	for _, r := range f.records() {
		list = append(list, f.shown(r))
	}
	return list
}

func (f *Firmware) shown(r Record) Shown {
	s := Shown{Record: r, Robots: map[device.ID]Trial{}}
	if damage := f.checked[r.SHA256].damage; damage != nil {
		s.Damaged = damage.Error()
	}
	for id, u := range f.units {
		if t, tried := u.Trials[r.SHA256]; tried {
			s.Robots[id] = t
		}
	}
	return s
}

// Plan sets the rollout of an image, and restarts a stopped rollout without the robots that
// have failed. A plan that only pauses or resumes it does not reset its first robots. Errors
// have a code and a status.
func (f *Firmware) Plan(sha string, plan Rollout) (Shown, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, there := f.images[sha]
	if !there {
		return Shown{}, errNoImage
	}
	for _, b := range plan.Boards {
		if !r.declared(b) {
			return Shown{}, badRollout("the image was not declared for the board %q; publish it for that board first", clip(b))
		}
	}
	if !r.Rollout.onlyPaused(plan) {
		r.Stopped, r.First, r.Failed = "", nil, 0
	}
	r.Rollout = plan
	if err := f.o.Images.Put(sha, r); err != nil {
		return Shown{}, fmt.Errorf("keep the rollout: %w", err)
	}
	f.images[sha] = r
	f.changed(sha)
	return f.shown(r), nil
}

// changed publishes a change of the catalogue: of an image, its rollout or an asset file.
func (f *Firmware) changed(name string) {
	f.o.Bus.Publish("", "", event.Changed{What: "firmware", ID: name})
}

// Remove removes an image from the catalogue. Downloads of it are completed.
func (f *Firmware) Remove(sha string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.images[sha]; !there {
		return errNoImage
	}
	// The robots' records are queued, and so are on the disk once the image's is deleted.
	before := map[device.ID]Unit{}
	for id, u := range f.units {
		if _, tried := u.Trials[sha]; tried || u.Wanted == sha {
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
	f.changed(sha)
	if err := os.Remove(f.path(sha)); err != nil {
		f.o.Log.Warn("the file of an image that was removed is still there; the next start puts it aside", "err", err)
	}
	return nil
}

// Forget removes the state of a robot.
func (f *Firmware) Forget(id device.ID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.o.Units.Delete(string(id)); err != nil {
		return fmt.Errorf("forget the firmware of %s: %w", id, err)
	}
	delete(f.units, id)
	return nil
}

// Update is a robot's version, the latest one for it, and the progress of an update.
type Update struct {
	Installed string `json:"installed_version"`
	Latest    string `json:"latest_version"` // equals Installed if there is nothing newer
	SHA256    string `json:"sha256,omitempty"`
	Stage     Stage  `json:"stage,omitempty"`
	Bytes     int64  `json:"bytes,omitempty"`
	Size      int64  `json:"size,omitempty"`
	Back      bool   `json:"rolled_back,omitempty"` // the robot had it once, and returned with the previous image
}

// Update returns the state of a robot's firmware. Latest is the newest image for its board
// that it could run, whether or not a rollout reaches it.
func (f *Firmware) Update(id device.ID) Update {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.units[id]
	show := Update{Installed: u.Version, Latest: u.Version}
	if r := f.latest(u); r != nil {
		t := u.Trials[r.SHA256]
		show.Latest, show.SHA256, show.Stage, show.Bytes, show.Size, show.Back = r.Version, r.SHA256, t.Stage, t.Bytes, r.Size, t.Backed
	}
	return show
}

// latest returns the newest image that a robot could run and does not. f.mu is held.
func (f *Firmware) latest(u Unit) *Record {
	records := f.records()
	for i := range records {
		if is, _ := newer(records[i].Version, u.Version); is && records[i].damage == nil && records[i].suits(u) == nil {
			return &records[i]
		}
	}
	return nil
}

// Install offers an image to a robot at its next check-in, regardless of the rollout; an
// image that has failed on it is tried again. An empty sha means the newest image. The
// robot can also download it from path at once, by a tool of its firmware.
func (f *Firmware) Install(id device.ID, sha string, now time.Time) (path string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, sha, err = f.installable(id, sha)
	if err != nil {
		return "", err
	}
	c := f.check(sha)
	f.mu.Unlock()
	c.wait() // an image that takes longer is checked before it is sent
	f.mu.Lock()
	u, sha, err := f.installable(id, sha)
	if err != nil {
		return "", err
	}
	if damage := f.checked[sha].damage; damage != nil {
		return "", &fault{"damaged_image", http.StatusConflict, fmt.Errorf("the image cannot be installed: %w", damage)}
	}
	u.setTrial(sha, Trial{Chosen: true, Offered: f.afterChoices(now)})
	u.Wanted = sha
	if err := f.o.Units.Put(string(id), u); err != nil {
		return "", fmt.Errorf("keep what is to be installed: %w", err)
	}
	f.units[id] = u
	f.changed(sha)
	return f.location(sha, id, now), nil
}

// installable returns a robot and the hash of the image to install, by default the newest.
// f.mu is held.
func (f *Firmware) installable(id device.ID, sha string) (Unit, string, error) {
	u, known := f.units[id]
	if !known {
		return Unit{}, "", &fault{"unknown_robot", http.StatusNotFound,
			errors.New("this robot has not booted since it was adopted, or since the catalogue was made; restart it")}
	}
	if sha == "" {
		r := f.latest(u)
		if r == nil {
			return Unit{}, "", &fault{"nothing_newer", http.StatusConflict, errors.New("there is no newer image for this robot in the catalogue")}
		}
		sha = r.SHA256
	}
	r, there := f.images[sha]
	if !there {
		return Unit{}, "", errNoImage
	}
	if err := r.suits(u); err != nil {
		return Unit{}, "", &fault{"wrong_board", http.StatusConflict, err}
	}
	return u, sha, nil
}

// suits returns why an image must not go to a robot, or nil.
func (r Record) suits(u Unit) error {
	switch {
	case !r.declared(u.Board):
		return fmt.Errorf("the image was not declared for the robot's board %q", u.Board)
	case u.Fixed:
		return errors.New("the robot has no partitions for updates; it needs a cable")
	}
	return r.fits(u.target())
}

// progress publishes how much of an image was sent to a robot, and stores the end.
func (f *Firmware) progress(id device.ID, sha string, sent int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, there := f.images[sha]
	u, known := f.units[id]
	if !there || !known {
		return
	}
	t := u.Trials[sha]
	if t.Stage == Installed || t.Stage == Failed || t.Stage == Downloaded {
		return // a robot may download what it runs
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
