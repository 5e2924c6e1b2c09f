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

// records stores the robots; the keys are their IDs. Put and Delete are durable when they return;
// a power failure may lose what PutSoon and DeleteSoon changed in the last few seconds.
type records interface {
	Put(key string, r Robot) error
	PutSoon(key string, r Robot)
	Delete(key string) error
	DeleteSoon(key string)
	All() iter.Seq2[string, Robot]
}

// Errors of the registry.
var (
	// ErrUnknownRobot is returned for a robot that is not registered.
	ErrUnknownRobot = errors.New("unknown robot: it has never checked in, or was forgotten; perch robot list lists the robots")
	// ErrToken is returned by Admit if the token is missing, forged, from an earlier epoch or of another client.
	ErrToken = errors.New("wrong or missing token")
	// ErrNothingToAdopt is wrapped by errors of Adopt, AdoptClient and Replace if there is no such robot, code or claim.
	ErrNothingToAdopt = errors.New("no robot waits for adoption under that id or code")
)

// storeEvery is how far Robot.lastHeard may differ from its stored value before the record is written again.
const storeEvery = 10 * time.Minute

// Registry holds all robots. It is safe for concurrent use.
type Registry struct {
	key      Key
	adoption Adoption
	records  records
	codes    *Codes

	// trusted maps the IDs of adopted robots to their Settings. It is not guarded by mu, because it
	// is read for every event: mu is held during writes to the disk, and publishing an event must not
	// wait for these.
	trusted sync.Map
	fixed   map[ID]Settings // from the configuration file; guarded by mu

	mu       sync.Mutex
	robots   map[ID]Robot     // includes forgotten robots
	storedAt map[ID]time.Time // lastHeard of the stored record
	times    map[ID]timesSet  // only of robots that were seen since the start
	welcome  time.Time        // end of the period of Welcome; zero without such a period
	welcomed int              // number of robots adopted since the last call of Welcome, except those on this machine
	expires  time.Time        // time of the next check for absent robots; see expire
	tools    map[ID]int       // size of the stored tools in JSON, in bytes
}

// timesSet records which times of a robot were set since the start. ClockJumped corrects them when the wall
// clock jumps.
type timesSet struct{ firstSeen, booted, lastSeen bool }

// NewRegistry returns a registry of the stored robots. Codes are not stored: robots get new ones at
// their next check-in.
func NewRegistry(key Key, adoption Adoption, stored records) *Registry {
	r := &Registry{key: key, adoption: adoption, records: stored, codes: NewCodes(),
		robots: map[ID]Robot{}, storedAt: map[ID]time.Time{}, times: map[ID]timesSet{}, tools: map[ID]int{}}
	for _, robot := range stored.All() {
		if n := size(robot.Tools); len(robot.Tools) > 0 && (n > limit.Body || !robot.Adopted()) { // from another version, or from before Replace; StoreTools stores no such tools
			robot.Tools, robot.ToolsFirmware = nil, ""
			stored.PutSoon(string(robot.ID), robot)
		} else if len(robot.Tools) > 0 {
			r.tools[robot.ID] = n
		}
		if robot.Claim != nil && !robot.Claim.Contested.IsZero() { // from an old version, which did not store the client of the replaced claim
			claim := *robot.Claim
			claim.Contested = time.Time{}
			robot.Claim, robot.Unlisted = &claim, true
		}
		r.update(robot)
		r.storedAt[robot.ID] = robot.lastHeard()
	}
	for strangers := r.strangers(); len(strangers) > maxStrangers; strangers = strangers[1:] {
		r.removeSoon(strangers[0])
	}
	return r
}

// CheckIn records the check-in of a robot, and returns the robot and whether it may connect. If the robot
// may not connect, CheckIn records only its claim. CheckIn does not wait until the record is on the disk.
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
	if a.Token, a.Code = r.admit(&robot, c, now); a.Token != "" {
		robot.applyCheckIn(c, now)
		if !robot.Named && !robot.Contested() && r.welcomes(robot, c, now) {
			robot.Named, robot.Welcomed, a.Adopted = true, true, true
		}
	}
	t, admitted := r.times[robot.ID], a.Token != ""
	r.times[robot.ID] = timesSet{firstSeen: t.firstSeen || before.FirstSeen.IsZero(), booted: t.booted || admitted, lastSeen: t.lastSeen || admitted || !robot.Bound}
	a.Repeats = a.Token == "" && !robot.differs(before)
	r.updateSeen(robot, robot.differs(before))
	return r.effective(robot), a
}

// update replaces a robot in memory. The caller holds r.mu.
func (r *Registry) update(robot Robot) {
	r.robots[robot.ID] = robot
	if robot.Adopted() {
		r.trusted.Store(robot.ID, r.settingsOf(robot))
	} else {
		r.trusted.Delete(robot.ID)
	}
}

// updateSeen replaces a robot in memory that was just seen. It stores the record if changed is true, or if
// lastHeard differs from its stored value by more than storeEvery. The caller holds r.mu.
func (r *Registry) updateSeen(robot Robot, changed bool) {
	// The absolute value is used because lastHeard is earlier than storedAt after the clock was set back.
	if changed || robot.lastHeard().Sub(r.storedAt[robot.ID]).Abs() > storeEvery {
		r.records.PutSoon(string(robot.ID), robot)
		r.storedAt[robot.ID] = robot.lastHeard()
	}
	r.update(robot)
}

// Flush stores each robot whose lastHeard has changed since its record was written. It does not wait until the
// records are on the disk.
func (r *Registry) Flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, robot := range r.robots {
		if heard := robot.lastHeard(); !heard.Equal(r.storedAt[id]) {
			r.records.PutSoon(string(id), robot)
			r.storedAt[id] = heard
		}
	}
}

// RecordSeen sets the time at which a robot was last seen. It ignores unknown robots and forgotten ones,
// whose connections may end afterwards.
func (r *Registry) RecordSeen(id ID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if robot, known := r.robots[id]; known && !robot.Forgotten() {
		robot.LastSeen = now
		t := r.times[id]
		t.lastSeen = true
		r.times[id] = t
		r.updateSeen(robot, false)
	}
}

// ClockJumped must be called when the wall clock has jumped by a duration, which is positive if the clock
// was set forward. ClockJumped corrects the times that were set since the start.
func (r *Registry) ClockJumped(by time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.welcome.IsZero() {
		r.welcome = r.welcome.Add(by)
	}
	for id, t := range r.times {
		robot, known := r.robots[id]
		if !known || robot.Forgotten() {
			continue
		}
		for at, isSet := range map[*time.Time]bool{&robot.FirstSeen: t.firstSeen, &robot.Booted: t.booted, &robot.LastSeen: t.lastSeen} {
			if isSet {
				*at = at.Round(0).Add(by)
			}
		}
		r.updateSeen(robot, true)
	}
}

// admit decides on a check-in: it binds the client and returns a token, or records its claim and
// returns a code. If another client uses the MAC address of a bound robot, either the owner has
// erased the robot's flash or the client is an impostor, so the owner has to decide, even with
// AdoptOpen. A check-in by the client of an adopted robot clears all claims. A check-in by the client
// of a stranger does not, because that client may be the impostor.
func (r *Registry) admit(robot *Robot, c CheckIn, now time.Time) (token, code string) {
	switch {
	case robot.Adopted() && robot.Client == c.Client:
		robot.clearClaims()
		r.codes.revoke(robot.ID)
	case robot.Bound && robot.Client == c.Client:
	case !robot.Bound && r.adoption == AdoptOpen:
		robot.Client, robot.Bound = c.Client, true
		robot.removeClaim(c.Client)
	default:
		robot.addClaim(c, now)
		code, _ = r.codes.Issue(robot.ID, c.Client, c.Address, now)
		return "", code
	}
	return r.key.Token(robot.ID, c.Client, robot.Epoch), ""
}

// Admit checks the token of a robot that opens its channel. It returns ErrToken if the token is not
// valid.
func (r *Registry) Admit(id ID, c Client, token string) (Robot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	// The token is compared even if the robot is unknown, so that the duration does not reveal
	// which robots are registered.
	want := r.key.Token(id, c, robot.Epoch)
	equal := subtle.ConstantTimeCompare([]byte(want), []byte(token)) == 1
	if !known || !equal || !robot.Bound || robot.Client != c {
		return Robot{}, ErrToken
	}
	return r.effective(robot), nil
}

// Adopt adopts the robot with an ID, a name or a code. A code binds the client that shows it, even if
// another client is bound, because the owner has read the code from the robot's screen. An ID or name
// adopts the robot only if a single client uses its MAC address, and binds that client. Errors are
// ErrNothingToAdopt, ErrCode, ErrTries, a ClaimError with ErrClaimed or ErrContested, and errors of the store.
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
	robot.Named, robot.Welcomed = true, false
	return r.effective(robot), r.storeAdopted(robot)
}

// AdoptClient adopts a robot and binds the client with a Client-Id or IP address. It clears all
// claims. Errors are ErrNothingToAdopt, a ClaimError with ErrNotAmongThem or ErrAmbiguous, and errors of the
// store.
func (r *Registry) AdoptClient(id ID, client string) (Robot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	if !known || robot.Forgotten() {
		return Robot{}, ErrNothingToAdopt
	}
	c, err := robot.findClaim(client)
	switch {
	case err != nil:
		return Robot{}, err
	case robot.Bound && robot.Client == c.Client:
		robot.clearClaims()
	default:
		robot.bind(c)
	}
	robot.Named, robot.Welcomed = true, false
	return r.effective(robot), r.storeAdopted(robot)
}

// Replace replaces the bound client of a robot by a client with a claim. client is the Client-Id or IP
// address of the new client, or empty if there is only one claim. The robot is then a stranger until it is
// adopted, because the new client may be an impostor. Replace returns ErrNothingToAdopt if there is no claim
// or client names the bound client, a ClaimError with ErrContested if client is empty and there are several
// claims, and the errors of AdoptClient.
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
		c, err = robot.findClaim(client)
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
	robot.Epoch++ // invalidates the old client's token, and keeps Welcome from adopting the robot
	return r.effective(robot), r.storeAdopted(robot)
}

// storeAdopted stores a robot durably. If no claim on it is left, its codes are revoked. The caller holds
// r.mu.
func (r *Registry) storeAdopted(robot Robot) error {
	if err := r.records.Put(string(robot.ID), robot); err != nil {
		return fmt.Errorf("store robot %s: %w", robot.ID, err)
	}
	r.update(robot)
	if robot.Claim == nil {
		r.codes.revoke(robot.ID) // after the write, so that the owner can use the code again if the write fails
	}
	return nil
}

// resolve returns the robot with an ID, a name or a code. byCode is true if idOrCode has the form of a code;
// client is then the client that shows the code. Errors are ErrNothingToAdopt, ErrCode and ErrTries. The
// caller holds r.mu.
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

// isCode reports whether s has the form of an adoption code.
func isCode(s string) bool { return len(s) == 6 && strings.Trim(s, "0123456789") == "" }

// Forget removes everything that is stored about a robot except its epoch, which it increases: without the
// epoch, old tokens would be valid again. Forget returns ErrUnknownRobot or an error of the store.
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
	r.update(robot)
	r.clearState(id)
	return nil
}

// clearState removes a robot's state in memory, except its record. The caller holds r.mu.
func (r *Registry) clearState(id ID) {
	delete(r.times, id)
	delete(r.storedAt, id)
	delete(r.tools, id)
	r.codes.revoke(id)
}

// Get returns a robot, or ErrUnknownRobot.
func (r *Registry) Get(id ID) (Robot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	if !known || robot.Forgotten() {
		return Robot{}, ErrUnknownRobot
	}
	return r.effective(robot), nil
}

// List returns all robots that are not forgotten, sorted by ID.
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

// Code returns the code that the client of a robot's latest claim shows. It returns "" if there is no
// claim, or if the client has no valid code, for example because it has not checked in for CodeLife.
func (r *Registry) Code(robot Robot, now time.Time) string {
	if robot.Claim == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.codes.current(robot.ID, robot.Claim.Client, now)
}

// StoreTools stores the tools of an adopted robot. It stores an empty list instead if the tools exceed
// 64 KiB of JSON, or the tools of all robots together would exceed 4 MiB.
func (r *Registry) StoreTools(id ID, tools []Tool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	if !known || !robot.Adopted() || robot.ToolsFirmware == robot.Firmware && reflect.DeepEqual(robot.Tools, tools) {
		return
	}
	bytes, others := size(tools), 0
	for other, n := range r.tools {
		if other != id {
			others += n
		}
	}
	if bytes > limit.Body || others+bytes > limit.Message {
		tools, bytes = nil, 0
	}
	robot.Tools, robot.ToolsFirmware = tools, robot.Firmware
	r.tools[id] = bytes
	r.update(robot)
	r.records.PutSoon(string(id), robot)
}

// size returns the size of a list of tools in JSON, in bytes.
func size(tools []Tool) int {
	text, err := json.Marshal(tools)
	if err != nil {
		return limit.Body + 1 // too large to store
	}
	return len(text)
}

// StoreEcho stores whether a robot leaves echo cancellation to the appliance. If it does, and connects by
// WebSocket, the response to its next check-in selects the framing that echo cancellation needs.
func (r *Registry) StoreEcho(id ID, byAppliance bool) {
	r.change(id, func(robot *Robot) (changed bool) {
		changed, robot.Echo = robot.Echo != byAppliance, byAppliance
		return changed
	})
}

// StoreTransport stores the transport that the response to a robot's last check-in selected.
func (r *Registry) StoreTransport(id ID, t Transport) {
	r.change(id, func(robot *Robot) (changed bool) {
		changed, robot.Transport = robot.Transport != t, t
		return changed
	})
}

// change calls edit with a copy of a robot's record, and stores the copy if edit reports a change. It does
// nothing for an unknown or forgotten robot.
func (r *Registry) change(id ID, edit func(*Robot) (changed bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if robot, known := r.robots[id]; known && !robot.Forgotten() && edit(&robot) {
		r.update(robot)
		r.records.PutSoon(string(id), robot)
	}
}

// Trusts reports whether a robot is adopted. It does not wait for the disk.
func (r *Registry) Trusts(id ID) bool {
	_, adopted := r.trusted.Load(id)
	return adopted
}

// KnownTools returns the stored tools, or nil if another version of the firmware has listed them.
func (r Robot) KnownTools() []Tool {
	if r.ToolsFirmware != r.Firmware {
		return nil
	}
	return r.Tools
}
