package web_test

import (
	"testing"

	"perch/firmware-tools/simrobot"
)

// seeAdoption: a robot that waits is adopted by a click.
func seeAdoption(t *testing.T, c *chromium) {
	h := startHouse(t)
	b := c.browse(t)
	b.open(local(h))
	b.sees("[data-test=no-robot]")
	h.Adopt(kitchenMAC) // the first robot needs no owner's word
	b.sees("[data-test=robot-" + kitchen + "]")
	h.Stays(simrobot.Options{MAC: guestMAC, Asleep: true, Forever: true})
	b.sees("[data-test=waiting-" + guest + "]")
	b.axe("a robot that waits")
	b.click("[data-test=waiting-" + guest + "] [data-test=adopt]")
	b.sees("[data-test=robot-" + guest + "]")
	b.lacks("[data-test=waiting-" + guest + "]")
}
