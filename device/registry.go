package device

import (
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/limit"
)

// records stores robots. PutSoon may lose the last few seconds in a power cut; Put and
// Delete may not.
type records interface {
	Put(key string, r Robot) error
	PutSoon(key string, r Robot)
	Delete(key string) error
	DeleteSoon(key string)
	All() iter.Seq2[string, Robot]
}

// Errors of the registry.
var (
	// ErrUnknownRobot reports a robot that never checked in or was forgotten.
	ErrUnknownRobot = errors.New("unknown robot: it has not been here, or was forgotten; perch robot list lists those that have")
	// ErrToken is returned by Admit if the token is missing, forged or of an earlier epoch.
	ErrToken = errors.New("wrong or missing token")
	// ErrNothingToAdopt is returned by Adopt if no robot waits under that id or code.
	ErrNothingToAdopt = errors.New("no robot waits for adoption under that id or code")
)

// visitEvery is how old the stored time of the last visit may get before a visit with
// nothing new is written.
const visitEvery = 10 * time.Minute

// Registry knows every robot. It is safe for concurrent use.
type Registry struct {
	key      Key
	adoption Adoption
	records  records
	codes    *Codes

	trusted sync.Map        // ID to Settings of the adopted; read for every event without waiting for the disk
	fixed   map[ID]Settings // from the configuration file

	mu       sync.Mutex
	robots   map[ID]Robot
	storedAt map[ID]time.Time // last visit as stored
	here     map[ID]visits    // since the start
	welcome  time.Time        // until then every robot that checks in is adopted
	welcomed int              // robots of other machines that were adopted in that time
	expires  time.Time        // next check for expired strangers
	tools    map[ID]int       // bytes stored
}

// visits are the times recorded since the start, perhaps with a wrong clock.
type visits struct{ first, boot, last bool }

// NewRegistry returns a registry of the stored robots. Codes are not stored: robots get
// new ones when they ask again.
func NewRegistry(key Key, adoption Adoption, stored records) *Registry {
	r := &Registry{key: key, adoption: adoption, records: stored, codes: NewCodes(),
		robots: map[ID]Robot{}, storedAt: map[ID]time.Time{}, here: map[ID]visits{}, tools: map[ID]int{}}
	for _, robot := range stored.All() {
		if n := size(robot.Tools); len(robot.Tools) > 0 && (n > limit.Body || !robot.Adopted()) { // of a file written by others
			robot.Tools, robot.ToolsFirmware = nil, ""
			stored.PutSoon(string(robot.ID), robot)
		} else if len(robot.Tools) > 0 {
			r.tools[robot.ID] = n
		}
		if robot.Claim != nil && !robot.Claim.Contested.IsZero() { // the earlier client is not in the record
			waits := *robot.Claim
			waits.Contested = time.Time{}
			robot.Claim, robot.Unlisted = &waits, true
		}
		r.set(robot)
		r.storedAt[robot.ID] = robot.lastHeard()
	}
	for all := r.strangers(); len(all) > mostStrangers; all = all[1:] {
		r.removeSoon(all[0])
	}
	return r
}

// CheckIn records a robot that has booted and returns whether it may connect. If it
// may not, only its claim is recorded. Changes are written soon, not by CheckIn.
func (r *Registry) CheckIn(c CheckIn, now time.Time) (Robot, Admission) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, known := r.robots[c.ID]
	a := Admission{New: !known || before.Forgotten(), Gone: r.expire(now)}
	robot := before
	robot.ID = c.ID
	if a.New {
		a.Gone = append(a.Gone, r.evict(c.Address)...)
	}
	if a.Token, a.Code = r.admission(&robot, c, now); a.Token != "" {
		robot.applyCheckIn(c, now)
		if !robot.Named && !robot.Contested() && r.welcomes(robot, c, now) {
			robot.Named, a.Adopted = true, true
		}
	}
	v, admitted := r.here[robot.ID], a.Token != ""
	r.here[robot.ID] = visits{first: v.first || before.FirstSeen.IsZero(), boot: v.boot || admitted, last: v.last || admitted || !robot.Bound}
	a.Repeats = a.Token == "" && !robot.news(before)
	r.visited(robot, robot.news(before))
	return r.effective(robot), a
}

// set replaces the registry's copy of a robot. r.mu is held.
func (r *Registry) set(robot Robot) {
	r.robots[robot.ID] = robot
	if robot.Adopted() {
		r.trusted.Store(robot.ID, r.settingsOf(robot))
	} else {
		r.trusted.Delete(robot.ID)
	}
}

// visited replaces the copy of a robot that was just seen. It is written if there is
// news, or if the stored times have become stale.
func (r *Registry) visited(robot Robot, news bool) {
	// A clock that was set back has visits before the stored one.
	if news || robot.lastHeard().Sub(r.storedAt[robot.ID]).Abs() > visitEvery {
		r.records.PutSoon(string(robot.ID), robot)
		r.storedAt[robot.ID] = robot.lastHeard()
	}
	r.set(robot)
}

// RecordSeen records that a robot opens its channel.
func (r *Registry) RecordSeen(id ID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if robot, known := r.robots[id]; known {
		robot.LastSeen = now
		v := r.here[id]
		v.last = true
		r.here[id] = v
		r.visited(robot, false)
	}
}

// Moved corrects the times of this run after a jump of the wall clock, so that visits
// stay as long ago as they were.
func (r *Registry) Moved(by time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.welcome.IsZero() {
		r.welcome = r.welcome.Add(by)
	}
	for id, v := range r.here {
		robot, known := r.robots[id]
		if !known || robot.Forgotten() {
			continue
		}
		for at, ours := range map[*time.Time]bool{&robot.FirstSeen: v.first, &robot.Booted: v.boot, &robot.LastSeen: v.last} {
			if ours {
				*at = at.Round(0).Add(by)
			}
		}
		r.visited(robot, true)
	}
}

// admission decides on a check-in, and binds the client or records its claim. If
// another client comes with the MAC of a bound robot, either its owner erased the
// flash or it is an impostor: it gets no token until the owner has decided, even under
// open adoption. An adopted robot that returns clears the claims of others; a stranger
// does not, since it may be an impostor too.
func (r *Registry) admission(robot *Robot, c CheckIn, now time.Time) (token, code string) {
	switch {
	case robot.Adopted() && robot.Client == c.Client:
		robot.clearClaims()
		r.codes.revoke(robot.ID)
	case robot.Bound && robot.Client == c.Client:
	case !robot.Bound && r.adoption == AdoptOpen:
		robot.Client, robot.Bound = c.Client, true
		robot.removeClaim(c.Client)
	default:
		robot.claim(c, now)
		code, _ = r.codes.Issue(robot.ID, c.Client, c.Address, now)
		return "", code
	}
	return r.key.Token(robot.ID, c.Client, robot.Epoch), ""
}

// Admit checks the token of a robot that opens its channel.
func (r *Registry) Admit(id ID, c Client, token string) (Robot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	// Compared for unknown robots too, so that the time does not reveal
	// which are known.
	want := r.key.Token(id, c, robot.Epoch)
	right := subtle.ConstantTimeCompare([]byte(want), []byte(token)) == 1
	if !known || !right || !robot.Bound || robot.Client != c {
		return Robot{}, ErrToken
	}
	return r.effective(robot), nil
}

// Adopt adopts a robot. A code binds the client that shows it, even in place of the
// bound one: the owner has read it from the robot. An id adopts the bound client only
// if no other client has claimed the MAC, since anybody can. Errors are
// ErrNothingToAdopt, ErrCode, ErrTries, and a ClaimError of ErrClaimed or ErrContested.
func (r *Registry) Adopt(idOrCode string, now time.Time) (Robot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, client, byCode, err := r.resolve(idOrCode, now)
	switch {
	case err != nil:
		return Robot{}, err
	case byCode:
		robot.bind(robot.claimOf(client))
	case robot.Adopted() && robot.Claim != nil:
		return Robot{}, robot.claimError(ErrClaimed)
	case robot.Contested():
		return Robot{}, robot.claimError(ErrContested)
	case !robot.Bound:
		robot.bind(*robot.Claim)
	}
	robot.Named = true
	return r.effective(robot), r.storeAdopted(robot)
}

// AdoptClient adopts a robot with the client that has the given Client-Id or IP
// address, and clears all other claims. Errors are ErrNothingToAdopt, and a
// ClaimError of ErrNotAmongThem or ErrAmbiguous.
func (r *Registry) AdoptClient(id ID, client string) (Robot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	if !known || robot.Forgotten() {
		return Robot{}, ErrNothingToAdopt
	}
	c, err := robot.claimant(client)
	switch {
	case err != nil:
		return Robot{}, err
	case robot.Bound && robot.Client == c.Client:
		robot.clearClaims()
	default:
		robot.bind(c)
	}
	robot.Named = true
	return r.effective(robot), r.storeAdopted(robot)
}

// Replace binds a waiting client in place of the bound one: the one named as for
// AdoptClient or, if client is empty, the only one. The robot is then a stranger until
// it is adopted, since anybody may have placed that claim. It returns
// ErrNothingToAdopt if no client waits, a ClaimError of ErrContested if several do,
// and the errors of AdoptClient.
func (r *Registry) Replace(id ID, client string) (Robot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot := r.robots[id]
	if !robot.Bound || robot.Claim == nil {
		return Robot{}, ErrNothingToAdopt
	}
	c, err := *robot.Claim, error(nil)
	switch {
	case client != "":
		c, err = robot.claimant(client)
	case len(robot.Rivals) > 0 || robot.Unlisted:
		err = robot.claimError(ErrContested)
	}
	if err == nil && c.Client == robot.Client {
		err = ErrNothingToAdopt
	}
	if err != nil {
		return Robot{}, err
	}
	robot.bind(c)
	robot.Named = false
	robot.Epoch++ // which prevents its adoption as a new robot
	return r.effective(robot), r.storeAdopted(robot)
}

// storeAdopted stores a robot durably after its owner's decision. r.mu is held.
func (r *Registry) storeAdopted(robot Robot) error {
	if err := r.records.Put(string(robot.ID), robot); err != nil {
		return fmt.Errorf("adopt %s: %w", robot.ID, err)
	}
	r.set(robot)
	if robot.Claim == nil {
		r.codes.revoke(robot.ID) // only now: after a failed write the owner may try again
	}
	return nil
}

// resolve finds a robot by its id, its name or the code it shows, and the client that
// shows the code. r.mu is held.
func (r *Registry) resolve(idOrCode string, now time.Time) (robot Robot, client Client, byCode bool, err error) {
	if isCode(idOrCode) {
		id, client, err := r.codes.lookup(idOrCode, now)
		if err == nil && r.robots[id].Claim == nil {
			err = ErrCode
		}
		return r.robots[id], client, true, err
	}
	id, err := r.Resolve(idOrCode)
	if robot, known := r.robots[id]; err == nil && known && !robot.Forgotten() {
		return robot, Client{}, false, nil
	}
	return Robot{}, Client{}, false, ErrNothingToAdopt
}

func isCode(s string) bool { return len(s) == 6 && strings.Trim(s, "0123456789") == "" }

// Forget unbinds a robot. It keeps the epoch, or an old token would be valid again.
func (r *Registry) Forget(id ID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	if !known || robot.Forgotten() {
		return ErrUnknownRobot
	}
	robot = Robot{ID: id, Epoch: robot.Epoch + 1}
	if err := r.records.Put(string(id), robot); err != nil {
		return fmt.Errorf("forget %s: %w", id, err)
	}
	r.set(robot)
	r.drop(id)
	return nil
}

// drop removes a robot from memory. r.mu is held.
func (r *Registry) drop(id ID) {
	delete(r.here, id)
	delete(r.storedAt, id)
	delete(r.tools, id)
	r.codes.revoke(id)
}

// Get returns one robot.
func (r *Registry) Get(id ID) (Robot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	if !known || robot.Forgotten() {
		return Robot{}, ErrUnknownRobot
	}
	return r.effective(robot), nil
}

// List returns every robot that is not forgotten, sorted by id.
func (r *Registry) List() []Robot {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Robot, 0, len(r.robots))
	for _, robot := range r.robots {
		if !robot.Forgotten() {
			list = append(list, r.effective(robot))
		}
	}
	slices.SortFunc(list, func(a, b Robot) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Code returns the code that a robot waiting for adoption shows. It is empty for
// others, and if the robot has not checked in for ten minutes or since the start.
func (r *Registry) Code(robot Robot, now time.Time) string {
	if robot.Claim == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.codes.current(robot.ID, robot.Claim.Client, now)
}

// KeepTools stores an adopted robot's tools until it lists them again. A list over
// 64 KB of JSON, or that makes the total exceed 4 MB, is not stored.
func (r *Registry) KeepTools(id ID, tools []Tool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	if !known || !robot.Adopted() || robot.ToolsFirmware == robot.Firmware && reflect.DeepEqual(robot.Tools, tools) {
		return
	}
	bytes, all := size(tools), 0
	for other, n := range r.tools {
		if other != id {
			all += n
		}
	}
	if bytes > limit.Body || all+bytes > limit.Message {
		tools, bytes = nil, 0
	}
	robot.Tools, robot.ToolsFirmware = tools, robot.Firmware
	r.tools[id] = bytes
	r.set(robot)
	r.records.PutSoon(string(id), robot)
}

// size returns the length of a list of tools as JSON, in bytes.
func size(tools []Tool) int {
	text, err := json.Marshal(tools)
	if err != nil {
		return limit.Body + 1 // too large to store
	}
	return len(text)
}

// KeepEcho stores whether a robot leaves echo cancellation to the appliance; its next
// check-in then gives it the framing for that.
func (r *Registry) KeepEcho(id ID, ours bool) {
	r.update(id, func(robot *Robot) (news bool) {
		news, robot.Echo = robot.Echo != ours, ours
		return news
	})
}

// KeepTransport stores the transport that a robot was given at its last boot.
func (r *Registry) KeepTransport(id ID, t Transport) {
	r.update(id, func(robot *Robot) (news bool) {
		news, robot.Transport = robot.Transport != t, t
		return news
	})
}

// update changes the record of a known robot.
func (r *Registry) update(id ID, change func(*Robot) (news bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if robot, known := r.robots[id]; known && change(&robot) {
		r.set(robot)
		r.records.PutSoon(string(id), robot)
	}
}

// Trusts reports whether the robot's owner has adopted it.
func (r *Registry) Trusts(id ID) bool {
	_, adopted := r.trusted.Load(id)
	return adopted
}

// KnownTools returns the tools that a robot listed under its current firmware.
func (r Robot) KnownTools() []Tool {
	if r.ToolsFirmware != r.Firmware {
		return nil
	}
	return r.Tools
}
