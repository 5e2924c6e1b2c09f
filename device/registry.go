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

// records is where robots are kept. PutSoon may lose the last few seconds in
// a power cut; Put and Delete may not.
type records interface {
	Put(key string, r Robot) error
	PutSoon(key string, r Robot)
	Delete(key string) error
	DeleteSoon(key string)
	All() iter.Seq2[string, Robot]
}

// Errors of the registry.
var (
	// ErrUnknownRobot is returned for a robot that never checked in, or that was forgotten.
	ErrUnknownRobot = errors.New("unknown robot: it has not been here, or was forgotten; perch robot list lists those that have")
	// ErrToken is returned by Admit for a token that is missing, forged or of an earlier epoch.
	ErrToken = errors.New("wrong or missing token")
	// ErrNothingToAdopt is returned by Adopt where no robot waits under that id or code.
	ErrNothingToAdopt = errors.New("no robot waits for adoption under that id or code")
)

// visitEvery is how stale the remembered time of the last visit may get
// before a visit with nothing new is worth a write.
const visitEvery = 10 * time.Minute

// Registry knows every robot. Any goroutine may call its methods.
type Registry struct {
	key      Key
	adoption Adoption
	records  records
	codes    *Codes

	trusted sync.Map        // ID to Settings, of the adopted; every event asks, and waits for no disk
	fixed   map[ID]Settings // by the configuration file

	mu      sync.Mutex
	robots  map[ID]Robot
	kept    map[ID]time.Time // the last visit in the records
	here    map[ID]visits    // in this run
	welcome time.Time        // until then every robot that comes is adopted
	came    int              // that were adopted so, from other machines
	expires time.Time        // when strangers are next looked through
	tools   map[ID]int       // bytes that are kept
}

// visits are the times noted in this run, perhaps by a wrong clock.
type visits struct{ first, boot, last bool }

// NewRegistry reads what is remembered. The codes that robots showed before are
// not: they are given others when they ask again.
func NewRegistry(key Key, adoption Adoption, kept records) *Registry {
	r := &Registry{key: key, adoption: adoption, records: kept, codes: NewCodes(),
		robots: map[ID]Robot{}, kept: map[ID]time.Time{}, here: map[ID]visits{}, tools: map[ID]int{}}
	for _, robot := range kept.All() {
		if n := size(robot.Tools); len(robot.Tools) > 0 && (n > limit.Body || !robot.Adopted()) { // of a file that others wrote
			robot.Tools, robot.ToolsFirmware = nil, ""
			kept.PutSoon(string(robot.ID), robot)
		} else if len(robot.Tools) > 0 {
			r.tools[robot.ID] = n
		}
		if robot.Claim != nil && !robot.Claim.Contested.IsZero() { // the earlier client is not in the record
			waits := *robot.Claim
			waits.Contested = time.Time{}
			robot.Claim, robot.Unlisted = &waits, true
		}
		r.set(robot)
		r.kept[robot.ID] = robot.lastHeard()
	}
	for all := r.strangers(); len(all) > mostStrangers; all = all[1:] {
		r.removeSoon(all[0])
	}
	return r
}

// CheckIn takes note of a robot that has booted and returns whether it may
// connect. Of one that may not, only its claim is noted. CheckIn writes nothing
// itself: what there is to keep is kept soon.
func (r *Registry) CheckIn(c CheckIn, now time.Time) (Robot, Admission) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, known := r.robots[c.ID]
	a := Admission{New: !known || before.Forgotten(), Gone: r.expire(now)}
	robot := before
	robot.ID = c.ID
	if a.New {
		a.Gone = append(a.Gone, r.giveWay(c.Address)...)
	}
	if a.Token, a.Code = r.admission(&robot, c, now); a.Token != "" {
		robot.see(c, now)
		if !robot.Named && !robot.Contested() && r.welcomes(robot, c, now) {
			robot.Named, a.Adopted = true, true
		}
	}
	v, admitted := r.here[robot.ID], a.Token != ""
	r.here[robot.ID] = visits{first: v.first || before.FirstSeen.IsZero(), boot: v.boot || admitted, last: v.last || admitted || !robot.Bound}
	a.Repeats = a.Token == "" && !robot.news(before)
	r.visited(robot, robot.news(before))
	return r.shown(robot), a
}

// set takes over what is known of a robot. r.mu is held.
func (r *Registry) set(robot Robot) {
	r.robots[robot.ID] = robot
	if robot.Adopted() {
		r.trusted.Store(robot.ID, r.settingsOf(robot))
	} else {
		r.trusted.Delete(robot.ID)
	}
}

// visited takes over a robot that was just seen, and has it kept where there
// is news, or where what is kept of its visits has become stale.
func (r *Registry) visited(robot Robot, news bool) {
	// A clock that was set back has visits before the one that is kept.
	if news || robot.lastHeard().Sub(r.kept[robot.ID]).Abs() > visitEvery {
		r.records.PutSoon(string(robot.ID), robot)
		r.kept[robot.ID] = robot.lastHeard()
	}
	r.set(robot)
}

// Seen takes note that a robot opens its channel.
func (r *Registry) Seen(id ID, now time.Time) {
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

// Moved notes that the wall clock has jumped. Visits of this run were as long
// ago as they were, whatever the clock showed then.
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

// admission decides, and binds or notes the claim. Where another client comes
// with the MAC of a robot that is bound, perhaps its owner erased its flash, and
// perhaps somebody lies: it gets no token until the owner has spoken, also
// where everybody may talk. An adopted robot that is back ends the claims of others; a
// stranger does not, for it need not be the robot either.
func (r *Registry) admission(robot *Robot, c CheckIn, now time.Time) (token, code string) {
	switch {
	case robot.Adopted() && robot.Client == c.Client:
		robot.decided()
		r.codes.end(robot.ID)
	case robot.Bound && robot.Client == c.Client:
	case !robot.Bound && r.adoption == AdoptOpen:
		robot.Client, robot.Bound = c.Client, true
		robot.release(c.Client)
	default:
		robot.claim(c, now)
		code, _ = r.codes.Give(robot.ID, c.Client, c.Address, now)
		return "", code
	}
	return r.key.Token(robot.ID, c.Client, robot.Epoch), ""
}

// Admit checks the token with which a robot opens its channel.
func (r *Registry) Admit(id ID, c Client, token string) (Robot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	// Compared even for a robot that is not known, so that the time taken
	// does not show which are.
	want := r.key.Token(id, c, robot.Epoch)
	right := subtle.ConstantTimeCompare([]byte(want), []byte(token)) == 1
	if !known || !right || !robot.Bound || robot.Client != c {
		return Robot{}, ErrToken
	}
	return r.shown(robot), nil
}

// Adopt makes a robot its owner's own. A code binds the client that shows it,
// also instead of the one that was bound: the owner has read it from the
// robot itself. An id adopts the client that has come by that name, if no other ever
// has: anybody can claim a MAC. Errors are ErrNothingToAdopt, ErrCode, ErrTries, and a
// ClaimError of ErrClaimed or ErrContested.
func (r *Registry) Adopt(idOrCode string, now time.Time) (Robot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, client, byCode, err := r.meant(idOrCode, now)
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
	return r.shown(robot), r.keepAdopted(robot)
}

// AdoptClient is Adopt for one of the clients that claim a robot, by its Client-Id or
// its IP address. All other claims end. Errors are ErrNothingToAdopt, and a ClaimError
// of ErrNotAmongThem or ErrAmbiguous.
func (r *Registry) AdoptClient(id ID, client string) (Robot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	if !known || robot.Forgotten() {
		return Robot{}, ErrNothingToAdopt
	}
	c, err := robot.named(client)
	switch {
	case err != nil:
		return Robot{}, err
	case robot.Bound && robot.Client == c.Client:
		robot.decided()
	default:
		robot.bind(c)
	}
	robot.Named = true
	return r.shown(robot), r.keepAdopted(robot)
}

// Replace binds a client that waits under a bound robot's id instead of
// the one that is bound: the one that is named as for AdoptClient, or the only one, if
// client is empty. Anybody may have planted it, so that the robot is a stranger until
// it is adopted. It returns ErrNothingToAdopt where none waits, a ClaimError of
// ErrContested where several do, and the errors of AdoptClient.
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
		c, err = robot.named(client)
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
	robot.Epoch++ // and not welcomed as one that is new
	return r.shown(robot), r.keepAdopted(robot)
}

// keepAdopted keeps a robot durably that its owner has spoken of. r.mu is held.
func (r *Registry) keepAdopted(robot Robot) error {
	if err := r.records.Put(string(robot.ID), robot); err != nil {
		return fmt.Errorf("adopt %s: %w", robot.ID, err)
	}
	r.set(robot)
	if robot.Claim == nil {
		r.codes.end(robot.ID) // and not before: what could not be kept may be tried again
	}
	return nil
}

// meant finds a robot by its id, its name or the code it shows, and the client that
// shows the code. r.mu is held.
func (r *Registry) meant(idOrCode string, now time.Time) (robot Robot, client Client, byCode bool, err error) {
	if isCode(idOrCode) {
		id, client, err := r.codes.look(idOrCode, now)
		if err == nil && r.robots[id].Claim == nil {
			err = ErrCode
		}
		return r.robots[id], client, true, err
	}
	id, err := r.Find(idOrCode)
	if robot, known := r.robots[id]; err == nil && known && !robot.Forgotten() {
		return robot, Client{}, false, nil
	}
	return Robot{}, Client{}, false, ErrNothingToAdopt
}

func isCode(s string) bool { return len(s) == 6 && strings.Trim(s, "0123456789") == "" }

// Forget unbinds a robot. Its epoch stays, or an old token would be good again.
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

// drop removes what this run holds of a robot that is gone. r.mu is held.
func (r *Registry) drop(id ID) {
	delete(r.here, id)
	delete(r.kept, id)
	delete(r.tools, id)
	r.codes.end(id)
}

// Get returns one robot.
func (r *Registry) Get(id ID) (Robot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	if !known || robot.Forgotten() {
		return Robot{}, ErrUnknownRobot
	}
	return r.shown(robot), nil
}

// List returns every robot that is not forgotten, by id.
func (r *Registry) List() []Robot {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Robot, 0, len(r.robots))
	for _, robot := range r.robots {
		if !robot.Forgotten() {
			list = append(list, r.shown(robot))
		}
	}
	slices.SortFunc(list, func(a, b Robot) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Code is what a robot that waits for adoption shows. It is empty for all others,
// and if the robot has not asked for ten minutes or since the start.
func (r *Registry) Code(robot Robot, now time.Time) string {
	if robot.Claim == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.codes.current(robot.ID, robot.Claim.Client, now)
}

// KeepTools stores an adopted robot's tools until it lists them again. Lists over
// 64 KB of JSON are not kept, nor those beyond 4 MB for all robots.
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

// size is how many bytes a list of tools is as JSON.
func size(tools []Tool) int {
	text, err := json.Marshal(tools)
	if err != nil {
		return limit.Body + 1 // too large to keep
	}
	return len(text)
}

// KeepEcho stores whether a robot leaves echo cancellation to us: its next check-in
// then gives it the framing for that.
func (r *Registry) KeepEcho(id ID, ours bool) {
	r.note(id, func(robot *Robot) (news bool) {
		news, robot.Echo = robot.Echo != ours, ours
		return news
	})
}

// KeepTransport stores which transport a robot was told to use at its last boot.
func (r *Registry) KeepTransport(id ID, t Transport) {
	r.note(id, func(robot *Robot) (news bool) {
		news, robot.Transport = robot.Transport != t, t
		return news
	})
}

// note changes what is remembered of a robot that is known.
func (r *Registry) note(id ID, change func(*Robot) (news bool)) {
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

// KnownTools are those a robot listed under the firmware it runs now.
func (r Robot) KnownTools() []Tool {
	if r.ToolsFirmware != r.Firmware {
		return nil
	}
	return r.Tools
}
