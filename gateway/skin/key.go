package skin

import (
	"errors"
	"fmt"
	"net/http"

	"perch/gateway/door"
)

// subprotocol is what a browser asks for beside the one that holds its key
// (door.InUpgrade), and is answered with.
const subprotocol = "vtuber.v1"

// Limits of the connected skins.
const (
	mostSkins = 1000
	mostOfOne = 100 // from one address
)

// admit counts a skin until leave is called.
func (d *Door) admit(remote string) (leave func(), err error) {
	leave, err = d.limit.Take(door.PeerOf(remote))
	switch {
	case errors.Is(err, door.ErrTooMany):
		return nil, full(fmt.Sprintf("%d skins are connected, and no more are let in", mostSkins))
	case err != nil:
		return nil, full(fmt.Sprintf("%d skins are connected from this address, and no more are let in; close some", mostOfOne))
	}
	return leave, nil
}

func full(why string) error {
	return &door.Fault{Word: "too_many_skins", Sentence: why, HTTP: http.StatusServiceUnavailable}
}
