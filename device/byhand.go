package device

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"time"
)

// AddByHand registers and adopts a robot whose firmware makes no check-in, such as the community's firmware for
// Stack-chan. The owner enters the address of the appliance and the robot's token (see Registry.Token) in the settings
// of that firmware. The robot gets a random ID. baseURL is the URL at which the robot will reach the appliance. Errors
// wrap ErrName, ErrTaken or an error of the store.
func (r *Registry) AddByHand(name, baseURL string, now time.Time) (Robot, error) {
	name, err := CheckName(name)
	if err != nil {
		return Robot{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkNameFree(name, ""); err != nil {
		return Robot{}, err
	}
	robot := Robot{Client: NewClient(rand.Text()), Bound: true, Named: true, ByHand: true, Settings: Settings{Name: name}, BaseURL: baseURL, FirstSeen: now}
	for known := true; known; _, known = r.robots[robot.ID] {
		address := [6]byte{2} // a locally administered MAC address, which no manufacturer has assigned
		_, _ = rand.Read(address[1:])
		robot.ID = ID(hex.EncodeToString(address[:]))
	}
	if err := r.records.Put(string(robot.ID), robot); err != nil {
		return Robot{}, fmt.Errorf("add %s: %w", name, err)
	}
	r.update(robot)
	return r.effective(robot), nil
}

// AdmitByHand returns the robot that was added by hand and has the token, or false if no such robot exists. The
// token alone suffices, because a robot that was added by hand may send any Device-Id and Client-Id.
func (r *Registry) AdmitByHand(token string) (Robot, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, robot := range r.robots {
		if robot.ByHand && subtle.ConstantTimeCompare([]byte(r.key.Token(robot.ID, robot.Client, robot.Epoch)), []byte(token)) == 1 {
			return r.effective(robot), true
		}
	}
	return Robot{}, false
}
