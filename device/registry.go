package device

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// records is where robots are kept. PutSoon may lose the last few seconds in
// a power cut; Put may not.
type records interface {
	Put(key string, r Robot) error
	PutSoon(key string, r Robot)
	All() iter.Seq2[string, Robot]
}

// Errors of the registry.
var (
	// ErrUnknownRobot is returned for a robot that never checked in, or that was forgotten.
	ErrUnknownRobot = errors.New("unknown robot")
	// ErrToken is returned by Admit for a token that is missing, forged or of an earlier epoch.
	ErrToken = errors.New("wrong or missing token")
	// ErrNothingToAdopt is returned by Adopt where no robot waits under that id or code.
	ErrNothingToAdopt = errors.New("no robot waits for adoption under that id or code")
	// ErrFull is returned by CheckIn when strangers have filled the registry.
	ErrFull = errors.New("too many robots")
)

// mostRobots bounds what strangers who invent MACs can make us remember.
const mostRobots = 1000

// visitEvery is how stale the remembered time of the last visit may get
// before a visit that tells nothing new is worth a write.
const visitEvery = 10 * time.Minute

// Registry knows every robot that has been here. Its methods may be called
// from any goroutine.
type Registry struct {
	key      Key
	adoption Adoption
	records  records
	codes    *Codes

	mu     sync.Mutex
	robots map[ID]Robot
	kept   map[ID]time.Time // the last visit that the records tell of
	here   map[ID]visits    // in this run
}

// visits are which times of a robot this run has noted, by a clock that may
// have been wrong then.
type visits struct{ first, boot, last bool }

// NewRegistry reads what is remembered. The codes that robots showed before are
// not: they are given others when they ask again.
func NewRegistry(key Key, adoption Adoption, kept records) *Registry {
	run := make(Key, 32)
	_, _ = rand.Read(run) // it never fails
	r := &Registry{key: key, adoption: adoption, records: kept, codes: NewCodes(run), robots: map[ID]Robot{}, kept: map[ID]time.Time{}, here: map[ID]visits{}}
	for _, robot := range kept.All() {
		r.robots[robot.ID] = robot
		r.kept[robot.ID] = robot.LastSeen
	}
	return r
}

// CheckIn takes note of a robot that has booted and says whether it may
// connect. It writes nothing itself: what there is to keep is kept soon.
func (r *Registry) CheckIn(c CheckIn, now time.Time) (Robot, Admission, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[c.ID]
	if !known && r.count() >= mostRobots {
		return Robot{}, Admission{}, fmt.Errorf("%w: %d are known; forget some", ErrFull, mostRobots)
	}
	before := robot
	robot.ID = c.ID
	admission := r.admission(&robot, c.Client, now)
	news := before.Bound != robot.Bound || !reflect.DeepEqual(before.Claim, robot.Claim) || !before.sameButTime(c)
	v := r.here[robot.ID]
	r.here[robot.ID] = visits{first: v.first || robot.FirstSeen.IsZero(), boot: true, last: true}
	robot.see(c, now)
	r.visited(robot, news)
	return robot, admission, nil
}

// visited takes over a robot that was just seen, and has it kept where there
// is news, or where what is kept of its visits has become stale.
func (r *Registry) visited(robot Robot, news bool) {
	// A clock that was set back has visits before the one that is kept.
	if news || robot.LastSeen.Sub(r.kept[robot.ID]).Abs() > visitEvery {
		r.records.PutSoon(string(robot.ID), robot)
		r.kept[robot.ID] = robot.LastSeen
	}
	r.robots[robot.ID] = robot
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

// Moved tells that the wall clock has jumped. Visits of this run were as long
// ago as they were, whatever the clock said then.
func (r *Registry) Moved(by time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, v := range r.here {
		robot, known := r.robots[id]
		if !known || robot.forgotten() {
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

// count leaves out the forgotten, whose epochs stay: only an owner makes those.
func (r *Registry) count() int {
	n := 0
	for _, robot := range r.robots {
		if !robot.forgotten() {
			n++
		}
	}
	return n
}

// admission decides, and binds or notes the claim. Where another client comes
// with the MAC of a robot that is bound, perhaps its owner erased its flash, and
// perhaps somebody lies: it gets no token until the owner has spoken, also
// where everybody is let in.
func (r *Registry) admission(robot *Robot, c Client, now time.Time) Admission {
	switch {
	case robot.Bound && robot.Client == c:
		robot.Claim = nil
		r.codes.end(robot.ID) // another client's, whose claim this ends
	case !robot.Bound && r.adoption == AdoptOpen:
		robot.Client, robot.Bound, robot.Claim = c, true, nil
	default:
		robot.Claim = &c
		code, _ := r.codes.Give(robot.ID, c, now)
		return Admission{Code: code}
	}
	return Admission{Token: r.key.Token(robot.ID, c, robot.Epoch)}
}

// Admit checks the token with which a robot opens its channel.
func (r *Registry) Admit(id ID, c Client, token string) (Robot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	// Compared even for a robot that is not known, so that the time taken
	// tells nobody which are.
	want := r.key.Token(id, c, robot.Epoch)
	right := subtle.ConstantTimeCompare([]byte(want), []byte(token)) == 1
	if !known || !right || !robot.Bound || robot.Client != c {
		return Robot{}, ErrToken
	}
	return robot, nil
}

// Adopt binds the client that waits under a robot's id or under a code, and
// makes the robot its owner's own. A robot that is bound already, as where
// everybody is let in, becomes that by its id. Where another client has come
// with a bound robot's MAC, the first word only lets that in: anybody can claim
// a MAC, and to be let in is not yet to be trusted. Errors are
// ErrNothingToAdopt, ErrCode and ErrTries.
func (r *Registry) Adopt(idOrCode string, now time.Time) (Robot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, err := r.meant(idOrCode, now)
	if err != nil {
		return Robot{}, err
	}
	another := robot.Bound && robot.Claim != nil
	if robot.Claim != nil {
		robot.Client, robot.Bound, robot.Claim = *robot.Claim, true, nil
	}
	robot.Named = !another
	if err := r.records.Put(string(robot.ID), robot); err != nil {
		return Robot{}, fmt.Errorf("adopt %s: %w", robot.ID, err)
	}
	r.robots[robot.ID] = robot
	r.codes.end(robot.ID) // and not before: what could not be kept may be tried again
	return robot, nil
}

// meant is the robot that an owner names by its id or by the code it shows.
// r.mu is held.
func (r *Registry) meant(idOrCode string, now time.Time) (Robot, error) {
	if isCode(idOrCode) {
		id, client, err := r.codes.look(idOrCode, now)
		if err != nil {
			return Robot{}, err
		}
		if robot := r.robots[id]; robot.Claim != nil && *robot.Claim == client {
			return robot, nil
		}
		return Robot{}, ErrCode
	}
	id, err := ParseID(idOrCode)
	if robot, known := r.robots[id]; err == nil && known && !robot.forgotten() {
		return robot, nil
	}
	return Robot{}, ErrNothingToAdopt
}

func isCode(s string) bool { return len(s) == 6 && strings.Trim(s, "0123456789") == "" }

// Forget unbinds a robot and makes its token void. The epoch stays, or an
// old token would be good again.
func (r *Registry) Forget(id ID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	if !known || robot.forgotten() {
		return ErrUnknownRobot
	}
	robot = Robot{ID: id, Epoch: robot.Epoch + 1}
	if err := r.records.Put(string(id), robot); err != nil {
		return fmt.Errorf("forget %s: %w", id, err)
	}
	r.robots[id] = robot
	delete(r.here, id)
	r.codes.end(id)
	return nil
}

func (r Robot) forgotten() bool { return !r.Bound && r.Claim == nil }

// Get returns one robot.
func (r *Registry) Get(id ID) (Robot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	if !known || robot.forgotten() {
		return Robot{}, ErrUnknownRobot
	}
	return robot, nil
}

// List returns every robot that is not forgotten, by id.
func (r *Registry) List() []Robot {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Robot, 0, len(r.robots))
	for _, robot := range r.robots {
		if !robot.forgotten() {
			list = append(list, robot)
		}
	}
	slices.SortFunc(list, func(a, b Robot) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return list
}

// Code is the six digits a robot that waits for adoption shows. It is empty for
// one that does not wait, and for one that has not asked for ten minutes or
// since the appliance was started.
func (r *Registry) Code(robot Robot, now time.Time) string {
	if robot.Claim == nil {
		return ""
	}
	return r.codes.current(robot.ID, *robot.Claim, now)
}

// KeepTools remembers what a robot lists, for the time before it has listed
// them again.
func (r *Registry) KeepTools(id ID, tools []Tool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	if !known || robot.ToolsFirmware == robot.Firmware && reflect.DeepEqual(robot.Tools, tools) {
		return
	}
	robot.Tools, robot.ToolsFirmware = tools, robot.Firmware
	r.robots[id] = robot
	r.records.PutSoon(string(id), robot)
}

// KeepEcho remembers whether a robot leaves echo cancellation to us, which it
// says when it opens its channel: its next bootstrap then gives it the framing
// that this takes.
func (r *Registry) KeepEcho(id ID, ours bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot, known := r.robots[id]
	if !known || robot.Echo == ours {
		return
	}
	robot.Echo = ours
	r.robots[id] = robot
	r.records.PutSoon(string(id), robot)
}

// Trusts reports whether a robot is one that its owner has adopted by name:
// what is said to it may allow what is dangerous.
func (r *Registry) Trusts(id ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	robot := r.robots[id]
	return robot.Bound && robot.Named
}

// KnownTools are those a robot listed under the firmware it runs now.
func (r Robot) KnownTools() []Tool {
	if r.ToolsFirmware != r.Firmware {
		return nil
	}
	return r.Tools
}
